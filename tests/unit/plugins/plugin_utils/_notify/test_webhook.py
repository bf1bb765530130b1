# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a server gets, and what becomes of one that answers badly, slowly or not at all."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import urllib.parse

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._image import registry_http
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry_http import Watch
from ansible_collections.npuops.ascend.plugins.plugin_utils._notify import notices
from ansible_collections.npuops.ascend.plugins.plugin_utils._notify.webhook import Webhook

from support.webhooks import TOKEN, Webhooks

HOSTILE = 'failed <!channel> <at user_id="all"></at> & \x1b[31m\nline \u202e' + "x" * 5000


@pytest.fixture
def server():
    with Webhooks() as made:
        yield made


def notice(why="the driver did not load"):
    return notices.failure("run-1", "upgrade", "npu-a", "failed", why)


def text_of(kind, body):
    return {
        "slack": lambda: body["text"],
        "json": lambda: body["text"],
        "dingtalk": lambda: body["text"]["content"],
        "wecom": lambda: body["text"]["content"],
        "feishu": lambda: body["content"]["text"],
    }[kind]()


KINDS = ("slack", "dingtalk", "wecom", "feishu", "json")


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_server_gets(server, kind):
    assert Webhook(server.url, kind).send(notice(), "https://10.0.0.1:6443") is None
    text = text_of(kind, server.bodies[0])
    assert text.splitlines() == ["NPU failure on https://10.0.0.1:6443, run run-1", "npu-a: failed: the driver did not load"]
    assert server.paths == [TOKEN]


@pytest.mark.parametrize("kind", KINDS)
def test_words_of_a_host_call_nobody_and_fit(server, kind):
    assert Webhook(server.url, kind).send(notice(HOSTILE), "c") is None
    text = text_of(kind, server.bodies[0])
    assert len(text.encode()) <= 2048
    assert not set(text) & {"\x1b", "\u202e"}
    if kind in ("slack", "feishu"):
        assert "<" not in text


def test_a_program_gets_numbers(server):
    counts = notices.begin("run-1", "upgrade", ["npu-b", "npu-a"], {"npu-a": "25.5.1", "npu-b": "25.5.1"})
    assert Webhook(server.url).send(counts, "c") is None
    body = server.bodies[0]
    assert (body["event"], body["counts"], body["run"], body["reason"]) == ("begin", {"due": 2}, "run-1", "upgrade")
    assert body["lines"] == ["Upgrade of 2 nodes begins: npu-a, npu-b", "To: 25.5.1"]


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("https://hooks.slack.com/services/x", "slack"),
        ("https://oapi.dingtalk.com/robot/send?access_token=x", "dingtalk"),
        ("https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=x", "wecom"),
        ("https://open.feishu.cn/open-apis/bot/v2/hook/x", "feishu"),
        ("https://open.larksuite.com/open-apis/bot/v2/hook/x", "feishu"),
        ("https://example.com/hooks.slack.com", "json"),
        ("https://hooks.slack.com.example.com/", "json"),
    ],
)
def test_the_kind_follows_from_the_server(url, kind):
    assert Webhook(url)._kind == kind


def test_dingtalk_checks_a_signature(server):
    url = server.url + "?access_token=x"
    assert Webhook(url, "dingtalk", "SEC1", now=lambda: 1700000000.5).send(notice(), "c") is None
    query = urllib.parse.parse_qs(urllib.parse.urlsplit(server.paths[0]).query)
    digest = hmac.digest(b"SEC1", b"1700000000000\nSEC1", hashlib.sha256)
    assert query == {"access_token": ["x"], "timestamp": ["1700000000000"], "sign": [base64.b64encode(digest).decode()]}


def test_feishu_checks_a_signature(server):
    assert Webhook(server.url, "feishu", "SEC1", now=lambda: 1700000000.5).send(notice(), "c") is None
    digest = hmac.digest(b"1700000000\nSEC1", b"", hashlib.sha256)
    assert (server.bodies[0]["timestamp"], server.bodies[0]["sign"]) == ("1700000000", base64.b64encode(digest).decode())


@pytest.mark.parametrize("kind", ["slack", "wecom", "json"])
def test_a_secret_that_nothing_uses_is_a_mistake(kind):
    with pytest.raises(NpuError, match="npu_notify_secret is for webhooks of DingTalk and Feishu"):
        Webhook("https://example.com/x", kind, "SEC1")


@pytest.mark.parametrize(
    "url", ["hooks.slack.com/services/x", "ftp://example.com/x", "https://", "file:///etc/passwd", "https://a:b/secret", "secret"]
)
def test_what_is_no_address(url):
    with pytest.raises(NpuError, match="npu_notify_url is not an address") as caught:
        Webhook(url)
    assert "secret" not in caught.value.message


@pytest.mark.parametrize(
    "url",
    ["https://user:secret@example.com/x", "https://secret@example.com", "https://example.com/a secret", "https://a.b/\x00secret"],
)
def test_addresses_that_would_show_up_in_messages_of_others(url):
    with pytest.raises(NpuError, match="npu_notify_url has a ") as caught:
        Webhook(url)
    assert "secret" not in caught.value.message


@pytest.mark.parametrize("kind", KINDS)
def test_a_block_of_yaml_ends_with_a_line_end(server, kind):
    secret = "SEC1\n" if kind in ("dingtalk", "feishu") else ""
    assert Webhook(server.url + "?access_token=x\n", kind, secret, now=lambda: 1700000000).send(notice(), "c") is None
    assert server.paths[0].startswith(TOKEN + "?access_token=x") and "%0A" not in server.paths[0]


@pytest.mark.parametrize(
    ("kind", "answer", "why"),
    [
        ("slack", lambda handler: handler.say(b"no_service", 404), "it answers 404"),
        (
            "dingtalk",
            lambda handler: handler.say(b'{"errcode": 310000, "errmsg": "sign not match"}'),
            "it answers 310000, sign not match",
        ),
        ("wecom", lambda handler: handler.say(b'{"errcode": 93000, "errmsg": "invalid"}'), "it answers 93000, invalid"),
        ("feishu", lambda handler: handler.say(b'{"code": 19021, "msg": "sign"}'), "it answers 19021, sign"),
        ("dingtalk", lambda handler: handler.say(b"<html>"), "its answer is no JSON object"),
        ("wecom", lambda handler: handler.say(b"[]"), "its answer is no JSON object"),
        ("feishu", lambda handler: handler.say(b"[" * 60000), "its answer is no JSON object"),
        ("json", lambda handler: handler.say(b"", 302, Location="/elsewhere"), "it redirects to another address"),
        ("json", lambda handler: handler.say(b"", 302, Location="file:///etc/passwd"), "it redirects to another address"),
        ("json", lambda handler: handler.wfile.write(b"\0" * 100), ""),
        ("json", lambda handler: handler.connection.close(), ""),
    ],
)
def test_what_is_not_delivered(server, kind, answer, why):
    server.answer = answer
    told = Webhook(server.url, kind).send(notice(), "c")
    assert told.startswith("127.0.0.1 was not notified: ") and why in told
    assert "secret-token" not in told


def test_an_answer_with_the_address_does_not_show_it(server):
    server.answer = lambda handler: handler.say(json.dumps({"errcode": 1, "errmsg": "bad " + server.url}).encode())
    told = Webhook(server.url, "wecom").send(notice(), "c")
    assert told == "127.0.0.1 was not notified: it answers 1, bad 127.0.0.1"


def test_nor_does_it_if_the_server_is_written_in_capitals(server):
    server.answer = lambda handler: handler.say(json.dumps({"errcode": 1, "errmsg": "bad " + TOKEN}).encode())
    told = Webhook(server.url.replace("127.0.0.1", "LOCALHOST"), "wecom").send(notice(), "c")
    assert told.startswith("localhost was not notified: it answers 1") and "secret-token" not in told


def test_nobody_listens():
    told = Webhook("http://127.0.0.1:9/secret-token").send(notice(), "c")
    assert told == "127.0.0.1 was not notified: [Errno 111] Connection refused"


def test_a_server_that_takes_its_time_has_an_end(server):
    def drip(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", "100000")
        handler.end_headers()
        while not server.over.wait(0.05):
            handler.wfile.write(b" ")
            handler.wfile.flush()

    server.answer = drip
    told = Webhook(server.url, seconds=0.5).send(notice(), "c")
    assert told == "127.0.0.1 was not notified: no answer within 0.5 s"


def test_a_socket_that_gives_up_before_the_watch_says_the_same(server, monkeypatch):
    monkeypatch.setattr(registry_http, "Watch", lambda seconds: Watch(seconds * 100))
    server.answer = lambda handler: server.over.wait(60)
    told = Webhook(server.url, seconds=0.3).send(notice(), "c")
    assert told == "127.0.0.1 was not notified: no answer within 0.3 s"


def test_without_an_address_nothing_is_sent():
    assert Webhook.of({"url": "", "kind": "auto", "secret": None}) is None
    assert Webhook.of({}) is None
