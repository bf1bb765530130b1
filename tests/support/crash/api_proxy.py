# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A proxy between a controller and the API server that asks a gate (gate.py) about each mutating call.

It ends the controller's TLS and opens its own, as the same user. Watches and other answers without a length are passed on
as they come. Not for exec, attach and port-forward.
"""

from __future__ import annotations

import http.client
import http.server
import json
import pathlib
import socket
import ssl
import subprocess
import threading
import urllib.parse

from support.crash.gate import Answer, Gate, describe_request
from support.kube import api as kube_api

MUTATING = ("POST", "PUT", "PATCH", "DELETE")
# POSTs that ask, and change nothing.
QUESTIONS = ("accessreviews", "rulesreviews", "tokenreviews", "selfsubjectreviews")
HOP_BY_HOP = {
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "host",
    "content-length",
}


class ApiProxy:
    """`with ApiProxy(kubeconfig, directory, gate) as proxy: proxy.kubeconfig` is what the controller uses.

    :param kubeconfig: of the real API server
    :param directory: for the proxy's certificate and kubeconfig
    """

    def __init__(self, kubeconfig: pathlib.Path, directory: pathlib.Path, gate: Gate) -> None:
        self.gate = gate
        self.kubeconfig = directory / "proxy-kubeconfig"
        self.upstream = kube_api.Credentials(kubeconfig)
        gate.on_dark.append(self._cut)
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        certificate, key = _certificate(directory)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        # The handshake is the business of the connection's own thread.
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        kube_api.write_kubeconfig(
            kubeconfig, self.kubeconfig, f"https://127.0.0.1:{self._server.server_address[1]}", certificate.read_bytes()
        )

    def __enter__(self) -> ApiProxy:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._server.shutdown()
        self._cut()
        self._server.server_close()

    def opened(self, connection: socket.socket) -> None:
        with self._lock:
            self._open.add(connection)

    def closed(self, connection: socket.socket) -> None:
        with self._lock:
            self._open.discard(connection)

    def _cut(self) -> None:
        """Break all connections, watches too."""
        with self._lock:
            for connection in self._open:
                try:
                    socket.socket.shutdown(connection, socket.SHUT_RDWR)
                except OSError:
                    pass  # it is closed already


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request, client_address):
        """Broken connections are what this is for."""


class _Drop(Exception):
    """Close the connection without an answer."""


def _handler(proxy: ApiProxy) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1  # head and body in one packet

        def setup(self):
            proxy.opened(self.request)
            super().setup()

        def finish(self):
            proxy.closed(self.request)
            super().finish()

        def handle_one_request(self):
            if proxy.gate.dark or proxy.gate.dead:
                self.close_connection = True
                return
            try:
                super().handle_one_request()
            except (_Drop, OSError, http.client.HTTPException):
                self.close_connection = True

        def _serve(self):
            if "upgrade" in self.headers.get("Connection", "").lower():
                self.send_error(501, "this proxy does not upgrade connections")
                return
            body = self._body()
            if proxy.gate.dark or proxy.gate.dead:
                raise _Drop
            number, document = 0, _decoded(body)
            if _mutates(self.command, self.path, document):
                number, answer = proxy.gate.before(
                    "api", describe_request(self.command, urllib.parse.urlsplit(self.path).path, document)
                )
                if answer is Answer.DROP:
                    raise _Drop
            connection = proxy.upstream.connect(timeout=600)
            try:
                headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP_BY_HOP}
                connection.request(self.command, self.path, body, {**headers, **proxy.upstream.headers()})
                response = connection.getresponse()
                if number:
                    content = response.read()  # all of it has reached the server and come back
                    if proxy.gate.after(number) is Answer.DROP:
                        raise _Drop
                    self._head(response, len(content))
                    self.wfile.write(content)
                else:
                    self._stream(response)
            finally:
                connection.close()

        do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _serve

        def _body(self) -> bytes | None:
            if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
                content = b""
                while size := int(self.rfile.readline().split(b";")[0], 16):
                    content += self.rfile.read(size)
                    self.rfile.readline()
                while self.rfile.readline().strip():
                    pass
                return content
            length = self.headers.get("Content-Length")
            return None if length is None else self.rfile.read(int(length))

        def _head(self, response: http.client.HTTPResponse, length: int | None) -> None:
            self.send_response_only(response.status, response.reason)
            for name, value in response.getheaders():
                if name.lower() not in HOP_BY_HOP:
                    self.send_header(name, value)
            if length is None:
                self.send_header("Transfer-Encoding", "chunked")
            else:
                self.send_header("Content-Length", str(length))
            self.end_headers()

        def _stream(self, response: http.client.HTTPResponse) -> None:
            """Pass an answer on as it comes."""
            length = response.getheader("Content-Length")
            if length is not None or self.command == "HEAD" or response.status in (204, 304):
                self._head(response, int(length or 0))
                self.wfile.write(response.read())
                return
            self._head(response, None)
            self.wfile.flush()
            while data := response.read1(1 << 16):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")

        def log_message(self, *_args):
            pass

    return Handler


def _mutates(method: str, target: str, document: dict) -> bool:
    url = urllib.parse.urlsplit(target)
    # An eviction says it in its options, everything else in the query.
    dry = urllib.parse.parse_qs(url.query).get("dryRun") or (document.get("deleteOptions") or {}).get("dryRun")
    return method in MUTATING and not url.path.endswith(QUESTIONS) and not dry


def _decoded(body: bytes | None) -> dict:
    try:
        document = json.loads(body or b"{}")
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _certificate(directory: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    """A certificate for 127.0.0.1 that signs itself, and its key."""
    certificate, key = directory / "proxy.crt", directory / "proxy.key"
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=api-proxy",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-keyout",
            key,
            "-out",
            certificate,
        ],
        check=True,
        capture_output=True,
    )
    return certificate, key
