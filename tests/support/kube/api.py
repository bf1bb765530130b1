# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Kubernetes API with nothing between it and the test: one connection per request, watches read line by line."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import pathlib
import socket
import ssl
import tempfile
import urllib.parse
from collections.abc import Iterator

import yaml


class Gone(Exception):
    """The server no longer has what came after the resourceVersion: events are lost."""


class Credentials:
    """Where the API server of a kubeconfig is and how its user is known there.

    :param kubeconfig: a file with its certificates inside, as the lab writes it
    """

    def __init__(self, kubeconfig: pathlib.Path) -> None:
        self.config = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
        cluster, user = self.config["clusters"][0]["cluster"], self.config["users"][0]["user"]
        url = urllib.parse.urlsplit(cluster["server"])
        self.host, self.port = url.hostname, url.port or (443 if url.scheme == "https" else 80)
        self.token = user.get("token")
        self.context = None
        if url.scheme == "https":
            self.context = ssl.create_default_context(
                cadata=base64.b64decode(cluster["certificate-authority-data"]).decode("ascii")
            )
            if "client-certificate-data" in user:
                self._load(user["client-certificate-data"], user["client-key-data"])

    def _load(self, certificate: str, key: str) -> None:
        """ssl takes a client's certificate from a file only."""
        with tempfile.NamedTemporaryFile() as file:  # 0600
            file.write(base64.b64decode(certificate) + base64.b64decode(key))
            file.flush()
            self.context.load_cert_chain(file.name)

    def connect(self, timeout: float | None = 120) -> http.client.HTTPConnection:
        """Return a connection that is not open yet."""
        if self.context is None:
            return http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        return http.client.HTTPSConnection(self.host, self.port, timeout=timeout, context=self.context)

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}


class KubeApi:
    """Requests of one user. An answer that is no success is an AssertionError with the server's own words."""

    def __init__(self, kubeconfig: pathlib.Path) -> None:
        self.credentials = Credentials(kubeconfig)

    def get(self, path: str) -> dict:
        return self.request("GET", path)

    def patch(self, path: str, body: dict) -> dict:
        return self.request("PATCH", path, body, "application/merge-patch+json")

    def request(self, method: str, path: str, body: dict | None = None, content_type: str = "application/json") -> dict:
        connection = self.credentials.connect()
        try:
            connection.request(
                method,
                path,
                None if body is None else json.dumps(body),
                {"Content-Type": content_type, **self.credentials.headers()},
            )
            answer = connection.getresponse()
            text = answer.read().decode("utf-8")
        finally:
            connection.close()
        assert 200 <= answer.status < 300, f"{method} {path}: {answer.status} {text}"
        return json.loads(text)


class Watch:
    """One watch. Iterating yields the events after `revision`, bookmarks among them, until the server ends it.

    Raises Gone when the server cannot go on from there, OSError when the connection breaks.

    :param revision: resourceVersion to start from
    :param seconds: how long the server shall keep it up
    :param selectors: as in the API, for example fieldSelector
    """

    def __init__(self, credentials: Credentials, path: str, revision: str, seconds: int = 240, **selectors: str) -> None:
        self.path = path
        query = urllib.parse.urlencode(
            {"watch": "1", "resourceVersion": revision, "allowWatchBookmarks": "true", "timeoutSeconds": str(seconds), **selectors}
        )
        self._connection = credentials.connect(timeout=seconds + 120)
        try:
            self._connection.connect()
            self._socket = self._connection.sock
            self._connection.request("GET", f"{path}?{query}", headers=credentials.headers())
            self._answer = self._connection.getresponse()
            if self._answer.status != 200:
                text = self._answer.read().decode("utf-8", "replace")
                raise Gone(text) if self._answer.status == 410 else OSError(f"watch of {path}: {self._answer.status} {text}")
        except BaseException:
            self._connection.close()
            raise

    def __iter__(self) -> Iterator[dict]:
        rest = b""
        try:
            while data := self._answer.read1(1 << 16):
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        if event["object"].get("code") == 410:
                            raise Gone(event["object"].get("message", ""))
                        raise OSError(f"watch of {self.path}: {event['object']}")
                    yield event
        except http.client.HTTPException as error:
            raise OSError(f"watch of {self.path}: {error!r}") from error
        finally:
            self._connection.close()

    def end(self) -> None:
        """End it from another thread."""
        with contextlib.suppress(OSError):
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


def write_kubeconfig(source: pathlib.Path, target: pathlib.Path, server: str, authority: bytes) -> None:
    """Write a kubeconfig for the same user with another server, known by the certificate `authority` (PEM)."""
    config = yaml.safe_load(source.read_text(encoding="utf-8"))
    config["clusters"][0]["cluster"] = {"server": server, "certificate-authority-data": base64.b64encode(authority).decode("ascii")}
    with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as stream:
        json.dump(config, stream)
