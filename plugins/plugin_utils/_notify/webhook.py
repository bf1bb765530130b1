# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sends notices to a webhook: of Slack, DingTalk, WeCom or Feishu, or as JSON to any other.

The address is a secret: any client that has it can write into the chat. No message has more of it than the name of the server.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, one_line, printable
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import site_server
from ansible_collections.npuops.ascend.plugins.plugin_utils._notify.notices import Notice

# The option `notify` of modules.
ARGUMENT: dict[str, Any] = {
    "type": "dict",
    "default": {},
    "options": {
        "url": {"type": "str", "no_log": True},
        "kind": {"type": "str", "choices": ["auto", "slack", "dingtalk", "wecom", "feishu", "json"], "default": "auto"},
        "secret": {"type": "str", "no_log": True},
    },
}

_SECONDS = 10.0
_LONGEST_ANSWER = 64 * 1024
# WeCom refuses texts of more than 2048 bytes; the others take more.
_LONGEST_TEXT = 2000
_KINDS = {
    "hooks.slack.com": "slack",
    "oapi.dingtalk.com": "dingtalk",
    "qyapi.weixin.qq.com": "wecom",
    "open.feishu.cn": "feishu",
    "open.larksuite.com": "feishu",
}
# These answer 200 to what they refuse; a number other than 0 under one of the names says so, and the other name has why.
# https://open.dingtalk.com/document/orgapp/custom-robots-send-group-messages,
# https://developer.work.weixin.qq.com/document/path/91770,
# https://open.feishu.cn/document/client-docs/bot-v3/add-custom-bot
_REFUSALS = {"dingtalk": ("errcode", "errmsg"), "wecom": ("errcode", "errmsg"), "feishu": ("code", "msg")}


class Webhook:
    """
    :param kind: how the server wants it; ``auto``: by its name
    :param secret: with which DingTalk or Feishu has a signature checked
    :param seconds: how long one notice may take in all
    :param now: seconds since 1970
    """

    def __init__(
        self, url: str, kind: str = "auto", secret: str = "", seconds: float = _SECONDS, now: Callable[[], float] = time.time
    ) -> None:
        self._url, self.server, _netloc = site_server.address("npu_notify_url", url)
        self._secret, self._seconds, self._now = secret.strip(), seconds, now
        self._kind = _KINDS.get(self.server, "json") if kind == "auto" else kind
        if self._secret and self._kind not in ("dingtalk", "feishu"):
            raise NpuError(
                "npu_notify_secret is for webhooks of DingTalk and Feishu; npu_notify_url is one of kind %s." % self._kind
            )

    @classmethod
    def of(cls, notify: Mapping[str, Any]) -> Webhook | None:
        """The webhook of a module's option, or None without a URL. Raises NpuError."""
        if not notify.get("url"):
            return None
        return cls(notify["url"], notify.get("kind") or "auto", notify.get("secret") or "")

    def send(self, notice: Notice, cluster: str) -> str | None:
        """Send it; return None, or why it was not delivered.

        :param cluster: the address of the API server, so that people know which one it is about
        """
        url, body = self._message(notice, cluster)
        headers = {"Content-Type": "application/json; charset=utf-8", "User-Agent": "npuops.ascend"}
        request = urllib.request.Request(url, json.dumps(body).encode(), headers)
        try:
            answer = site_server.ask(request, self._seconds, _LONGEST_ANSWER)
        except site_server.Unanswered as exc:
            return self._not_delivered(self._without_address(exc.message))
        return self._refusal(answer)

    def _message(self, notice: Notice, cluster: str) -> tuple[str, dict[str, Any]]:
        """(URL, body)."""
        title = "NPU %s on %s, run %s" % (notice.event, cluster, notice.run)
        text = _cut("\n".join([title, *notice.lines]))
        stamp = "%d" % self._now()
        if self._kind == "slack":
            # https://api.slack.com/reference/surfaces/formatting: without these, a text could call a whole channel.
            return self._url, {"text": text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")}
        if self._kind == "dingtalk":
            return self._signed_address(stamp + "000"), {"msgtype": "text", "text": {"content": text}}
        if self._kind == "wecom":
            return self._url, {"msgtype": "text", "text": {"content": text}}
        if self._kind == "feishu":
            # It takes <at> for a mention.
            body = {"msg_type": "text", "content": {"text": text.replace("<", "(").replace(">", ")")}}
            return self._url, {**body, **self._signed_body(stamp)}
        return self._url, {"cluster": cluster, "text": text, **notice._asdict(), "lines": list(notice.lines)}

    def _signed_address(self, stamp: str) -> str:
        if not self._secret:
            return self._url
        digest = hmac.digest(self._secret.encode(), ("%s\n%s" % (stamp, self._secret)).encode(), hashlib.sha256)
        query = urllib.parse.urlencode({"timestamp": stamp, "sign": base64.b64encode(digest).decode()})
        return self._url + ("&" if "?" in self._url else "?") + query

    def _signed_body(self, stamp: str) -> dict[str, str]:
        if not self._secret:
            return {}
        digest = hmac.digest(("%s\n%s" % (stamp, self._secret)).encode(), b"", hashlib.sha256)
        return {"timestamp": stamp, "sign": base64.b64encode(digest).decode()}

    def _refusal(self, content: bytes) -> str | None:
        if self._kind not in _REFUSALS:
            return None
        code, why = _REFUSALS[self._kind]
        try:
            answer = json.loads(content)
            if answer.get(code) in (0, None):
                return None
            return self._not_delivered("it answers %s, %s" % (answer[code], self._without_address(str(answer.get(why)))))
        except (ValueError, AttributeError, RecursionError):
            return self._not_delivered("its answer is no JSON object")

    def _not_delivered(self, why: str) -> str:
        return "%s was not notified: %s" % (self.server, printable(one_line(why)))

    def _without_address(self, text: str) -> str:
        path = self._url.partition("://")[2].partition("/")[2]
        return text.replace(self._url, self.server).replace(path, "...") if path else text


def notify(option: Mapping[str, Any], notice: Notice, cluster: str, warn: Callable[[str], None]) -> None:
    """Send a notice to the webhook of the option, if there is one. Raises NpuError for an option that makes no sense.

    :param warn: takes why it was not delivered; a run does not fail because of that
    """
    webhook = Webhook.of(option)
    why = webhook.send(notice, cluster) if webhook else None
    if why:
        warn(why)


def _cut(text: str) -> str:
    content = text.encode()
    return text if len(content) <= _LONGEST_TEXT else content[: _LONGEST_TEXT - 3].decode(errors="ignore") + "..."
