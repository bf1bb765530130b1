# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is asked of Prometheus, and what becomes of a server that answers badly, slowly or not at all."""

from __future__ import annotations

import json
import urllib.parse

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._image import registry_http
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry_http import Watch
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance import firing_alerts
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.firing_alerts import FiringAlerts

from support.webhooks import Webhooks

UNKNOWN = "whether an alert of npu_upgrade_alerts fires is not known: 127.0.0.1:%d: %s"


def vector(*names):
    result = [{"metric": {"alertname": name}, "value": [1700000000, "1"]} for name in names]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


@pytest.fixture
def server():
    with Webhooks() as made:
        made.get = lambda handler: handler.say(json.dumps(vector()).encode())
        made.root = "http://127.0.0.1:%d" % made.server_address[1]
        yield made


def answer(server, content, status=200, **headers):
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    server.get = lambda handler: handler.say(text, status, **headers)


def refusal(server, **options):
    return FiringAlerts(server.root, ["CephDown", "Etcd.*"], **options).refusal()


def test_what_is_asked(server):
    assert FiringAlerts(server.root + "/prometheus/", ["CephDown", 'a"b\\d']).refusal() is None
    (path,) = server.paths
    place, _mark, query = path.partition("?")
    assert place == "/prometheus/api/v1/query"
    asked = urllib.parse.parse_qs(query)["query"][0]
    assert asked == 'count by (alertname) (ALERTS{alertstate="firing",alertname=~"(?:CephDown)|(?:a\\"b\\\\d)"})'


def test_what_fires_is_named(server):
    answer(server, vector("EtcdNoLeader"))
    assert refusal(server) == "the alert EtcdNoLeader fires (npu_upgrade_alerts)"
    answer(server, vector("b", "a\x1b[31m" + "x" * 5000))
    told = refusal(server)
    assert told.startswith("the alerts a") and told.endswith("b fire (npu_upgrade_alerts)")
    assert "\x1b" not in told and len(told) < 300


def test_the_server_is_asked_once_in_a_while(server):
    now = [0.0]
    alerts = FiringAlerts(server.root, ["a"], monotonic=lambda: now[0])
    for now[0] in (0.0, 1.0, 29.0):
        assert alerts.refusal() is None
    answer(server, vector("a"))
    assert alerts.refusal() is None and len(server.paths) == 1
    now[0] = 30.0
    assert alerts.refusal() and len(server.paths) == 2


@pytest.mark.parametrize(
    "content, status, why",
    [
        (b"<html>", 200, "its answer is not that of Prometheus: it is not JSON"),
        (b"[" * 100000, 200, "its answer is not that of Prometheus: it is nested too deeply"),
        (b"\xff", 200, "its answer is not that of Prometheus: "),
        (b'"' + b"x" * (2 * 1024 * 1024), 200, "its answer is not that of Prometheus: it has 1048577 characters"),
        ({"status": "success", "data": {"result": {}}}, 200, "it has no list of alerts"),
        ({"status": "error", "data": {"result": []}}, 200, "it has no list of alerts"),
        ({"status": "success", "data": {"result": [{"metric": {}}]}}, 200, "it has no list of alerts"),
        ([], 200, "it has no list of alerts"),
        ({"status": "error", "error": "bad regexp\n\x1b[31m" + "x" * 1000}, 400, "it answers 400: bad regexp"),
        (b"no", 401, "it answers 401"),
        ({**vector(), "warnings": ["store 10.0.0.7 down\x1b[31m"]}, 200, "its answer is incomplete: store 10.0.0.7 down"),
        ({**vector(), "isPartial": True}, 200, "its answer is incomplete"),
    ],
)
def test_an_answer_that_is_none(server, content, status, why):
    answer(server, content, status)
    told = refusal(server)
    assert told.startswith(UNKNOWN % (server.server_address[1], "")) and why in told
    assert "\x1b" not in told and "\n" not in told and len(told) < 500
    notes, reasons = FiringAlerts(server.root, ["a"]).in_plan()
    assert notes == [] and len(reasons) == 1 and "Correct npu_upgrade_alerts" in reasons[0]


def test_an_error_that_breaks_off(server):
    def cut(handler):
        handler.send_response(502)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b"<html>")

    server.get = cut
    assert refusal(server) == UNKNOWN % (server.server_address[1], "it answers 502")


@pytest.mark.parametrize("first", ["the watch", "the socket"])
def test_a_server_that_does_not_answer(server, monkeypatch, first):
    monkeypatch.setattr(firing_alerts, "_SECONDS", 0.3)
    if first == "the socket":
        monkeypatch.setattr(registry_http, "Watch", lambda seconds: Watch(seconds * 100))
    server.get = lambda handler: server.over.wait(60)
    assert refusal(server) == UNKNOWN % (server.server_address[1], "no answer within 0.3 s")
    server.shutdown()
    server.server_close()
    assert "refused" in refusal(server)


def test_the_token_is_for_this_server_only(server, tmp_path):
    file = tmp_path / "token"
    file.write_text("s3cret\n", encoding="utf-8")
    with Webhooks() as other:
        other.get = lambda handler: handler.say(json.dumps(vector("a")).encode())
        answer(server, b"", 302, Location="http://127.0.0.1:%d/elsewhere" % other.server_address[1])
        told = refusal(server, token_file=str(file))
        assert server.authorizations == ["Bearer s3cret"] and other.authorizations == [None]
        assert told == "the alert a fires (npu_upgrade_alerts)"
    file.write_text("two\nlines", encoding="utf-8")
    assert "has no token" in refusal(server, token_file=str(file))
    assert "cannot be read: No such file" in refusal(server, token_file=str(tmp_path / "none"))
    assert "s3cret" not in told


@pytest.mark.parametrize("url", ["prometheus:9090", "file:///etc/passwd", "http://", "https://a:b:c", "http://a:0"])
def test_what_is_no_address(url):
    with pytest.raises(NpuError, match="npu_upgrade_alerts.url is not an address"):
        FiringAlerts.of({"url": url, "names": ["a"], "token_file": "", "ca_file": ""})


@pytest.mark.parametrize("url", ["https://user:s3cret@prometheus", "https://s3cret@prometheus:9090", "https://prometheus/\ts3cret"])
def test_addresses_that_would_show_up_in_messages_of_others(url):
    with pytest.raises(NpuError, match="npu_upgrade_alerts.url has a ") as caught:
        FiringAlerts(url, ["a"])
    assert "s3cret" not in caught.value.message


def test_settings_that_are_not_complete():
    nothing = {"url": "", "names": [], "token_file": "", "ca_file": ""}
    assert FiringAlerts.of(nothing) is None
    with pytest.raises(NpuError, match="without npu_upgrade_alerts.names"):
        FiringAlerts.of({**nothing, "url": "http://a"})
    with pytest.raises(NpuError, match="npu_upgrade_alerts.url is not an address"):
        FiringAlerts.of({**nothing, "names": ["a"]})
