# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Alerts of the site while which no maintenance begins: npu_upgrade_alerts.

Prometheus has firing alerts in the series ALERTS, https://prometheus.io/docs/prometheus/latest/configuration/alerting_rules/.
"""

from __future__ import annotations

import json
import ssl
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, one_line, printable
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import schema, site_server
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.and_more import and_more

_SECONDS = 10.0  # for one answer in all
_FRESH = 30.0  # seconds; Prometheus itself evaluates its rules once a minute by default
_LONGEST_ANSWER = 1024 * 1024
_LONGEST_TOKEN = 64 * 1024
_LONGEST_NAME = 100
_MOST_NAMES = 4


class FiringAlerts:
    """
    :param url: of Prometheus, or of another server with its API
    :param names: regular expressions (RE2), each for the whole name of an alert
    :param token_file: a file of the controller with a bearer token, read for each request; "": none
    :param ca_file: a file of the controller with the CA of the server's certificate; "": the CAs of the system
    """

    def __init__(
        self,
        url: str,
        names: Sequence[str],
        token_file: str = "",
        ca_file: str = "",
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        address = site_server.address("npu_upgrade_alerts.url", url)
        if not names:
            raise NpuError("npu_upgrade_alerts.url is set without npu_upgrade_alerts.names, the alerts to look for.")
        self._server = address.netloc
        any_of = "|".join("(?:%s)" % name for name in names)
        query = 'count by (alertname) (ALERTS{alertstate="firing",alertname=~%s})' % json.dumps(any_of)
        # Thanos would leave out what a store does not answer, and the alert may be there; Prometheus does not know the parameter.
        asked = urllib.parse.urlencode({"query": query, "partial_response": "false"})
        self._url = "%s/api/v1/query?%s" % (address.url.rstrip("/"), asked)
        self._token_file, self._ca_file = token_file, ca_file
        self._monotonic = monotonic
        self._known: tuple[float, str | None] | None = None  # (when, the answer)

    @classmethod
    def of(cls, setting: Mapping[str, Any]) -> FiringAlerts | None:
        """From the complete setting; None if no alert is named. Raises NpuError."""
        if not setting["url"] and not setting["names"]:
            return None
        return cls(setting["url"], setting["names"], setting["token_file"], setting["ca_file"])

    def refusal(self) -> str | None:
        """Why no maintenance may begin now, as a clause, or None. Asks the server at most every 30 seconds.

        If the server does not tell, none may begin: it may be the very reason for the alert.
        """
        now = self._monotonic()
        if self._known is None or now - self._known[0] >= _FRESH:
            try:
                self._known = (now, self.ask())
            except NpuError as exc:
                self._known = (now, exc.message)
        return self._known[1]

    def ask(self) -> str | None:
        """Which of the alerts fire, as a clause, or None. Raises NpuError if the server does not tell."""
        try:
            firing = _names(self._answer())
        except NpuError as exc:
            raise NpuError(
                "whether an alert of npu_upgrade_alerts fires is not known: %s: %s" % (self._server, exc.message)
            ) from None
        if not firing:
            return None
        word = "the alert %s fires" if len(firing) == 1 else "the alerts %s fire"
        return (word + " (npu_upgrade_alerts)") % and_more(firing, _MOST_NAMES)

    def in_plan(self) -> tuple[list[str], list[str]]:
        """(notes, reasons why the plan is not green) about the cluster: a server that does not tell may be a wrong address."""
        try:
            alert = self.ask()
        except NpuError as exc:
            return [], ["%s. No maintenance begins before it is. Correct npu_upgrade_alerts, or remove it" % exc.message]
        return ["%s: no maintenance begins meanwhile" % alert] if alert else [], []

    def _answer(self) -> bytes:
        request = urllib.request.Request(self._url, headers={"User-Agent": "npuops.ascend"})
        if self._token_file:
            # Unredirected: another server must not get it.
            request.add_unredirected_header("Authorization", "Bearer %s" % _token(self._token_file))
        try:
            return site_server.ask(request, _SECONDS, _LONGEST_ANSWER, self._tls)
        except site_server.Unanswered as exc:
            raise NpuError(exc.message + _why(exc.body)) from None

    def _tls(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self._ca_file or None)


def _token(path: str) -> str:
    try:
        with open(path, encoding="ascii") as stream:
            token = stream.read(_LONGEST_TOKEN).strip()
    except (OSError, ValueError) as exc:
        why = getattr(exc, "strerror", None) or "it is not ASCII"
        raise NpuError("npu_upgrade_alerts.token_file %s cannot be read: %s" % (path, why)) from None
    if not token or not token.isprintable() or " " in token:
        raise NpuError("npu_upgrade_alerts.token_file %s has no token" % path)
    return token


def _load(content: bytes) -> Any:
    try:
        return schema.load(content.decode(), _LONGEST_ANSWER)
    except (schema.Misfit, ValueError) as exc:
        raise NpuError("its answer is not that of Prometheus: %s" % one_line(exc)) from None


def _names(content: bytes) -> list[str]:
    """The names of the alerts in an answer. Raises NpuError."""
    answer = _load(content)
    try:
        found = answer["data"]["result"]
        if answer["status"] != "success" or not isinstance(found, list):
            raise TypeError
        names = {printable(str(entry["metric"]["alertname"]), _LONGEST_NAME) for entry in found}
    except (KeyError, TypeError):
        raise NpuError("its answer is not that of Prometheus: it has no list of alerts") from None
    # Thanos and VictoriaMetrics say so where a part of what they ask has not answered.
    if answer.get("warnings") or answer.get("isPartial"):
        raise NpuError("its answer is incomplete%s" % _warnings(answer.get("warnings")))
    return sorted(names)


def _warnings(found: Any) -> str:
    texts = [str(text) for text in found] if isinstance(found, list) else []
    return ": %s" % printable(one_line("; ".join(texts)), 300) if texts else ""


def _why(content: bytes) -> str:
    """What the server says of a request that it refuses, such as a regular expression that is none."""
    try:
        return ": %s" % printable(one_line(_load(content)["error"]), 300)
    except (NpuError, KeyError, TypeError):
        return ""
