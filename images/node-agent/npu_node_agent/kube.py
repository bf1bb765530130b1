# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls to the Kubernetes API with the standard library. The official client alone needs twice the memory of the agent."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import urllib.parse
from typing import Mapping, Optional

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
_LARGEST_ANSWER = 8 << 20


class ApiError(Exception):
    """The API server rejected the request; ``status`` is the HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__("%d: %s" % (status, message))
        self.status = status


class Api:
    """The API server at ``server`` (URL). Token and CA are read for every request, because both are rotated in place."""

    def __init__(self, server: str, token_file: str, ca_file: str, timeout: float = 10) -> None:
        self._url = urllib.parse.urlsplit(server)
        self._token_file = token_file
        self._ca_file = ca_file
        self._timeout = timeout

    def request(self, method: str, path: str, body: Optional[dict] = None, kind: str = "application/json") -> dict:
        """One call. Raises ApiError, and OSError or ValueError if there is no valid response."""
        connection = self._connect()
        try:
            headers = {"Accept": "application/json", "User-Agent": "npuops-node-agent", **self._authorization()}
            if body is not None:
                headers["Content-Type"] = kind
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            content = answer.read(_LARGEST_ANSWER)
        except http.client.HTTPException as exc:
            raise OSError("no valid HTTP response: %r" % exc) from exc
        finally:
            connection.close()
        if answer.status >= 300:
            raise ApiError(answer.status, _message(content) or answer.reason)
        return json.loads(content)

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self._url.hostname or "", self._url.port
        if self._url.scheme == "https":
            context = ssl.create_default_context(cafile=self._ca_file)
            return http.client.HTTPSConnection(host, port, timeout=self._timeout, context=context)
        return http.client.HTTPConnection(host, port, timeout=self._timeout)

    def _authorization(self) -> dict:
        # The token is never sent unencrypted: plain HTTP is for a proxy on this host that adds its own.
        if self._url.scheme != "https":
            return {}
        with open(self._token_file, encoding="ascii") as stream:
            return {"Authorization": "Bearer " + stream.read().strip()}


def in_cluster(environment: Mapping[str, str] = os.environ) -> str:
    """The URL of the API server from the environment of the pod; "" outside of a cluster."""
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        return ""
    return "https://%s:%s" % ("[%s]" % host if ":" in host else host, port)


def _message(content: bytes) -> str:
    try:
        return str(json.loads(content)["message"])
    except (ValueError, KeyError, TypeError):
        return content[:200].decode("utf-8", "replace")
