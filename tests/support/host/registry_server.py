# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small real registry (OCI distribution) over HTTP, with Basic or token authentication and faults, for tests."""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import re
import threading
import urllib.parse


def sha256(content):
    return "sha256:" + hashlib.sha256(content).hexdigest()


class Registry:
    """``with Registry() as registry: registry.address``.

    ``auth``: None, "basic" or "token"; ``username`` and ``password`` are what it accepts. ``faults``: list of
    (method, regular expression on the path, answer); an answer is a status, an iterator of statuses for as many requests, or a
    function that changes the body. ``retry_after``: the header of that name in a 429.
    ``requests``: what was asked, as (method, path, Authorization header).
    """

    def __init__(self, host="127.0.0.1", port=0, auth=None, username="alice", password="s3cret word"):
        self.auth = auth
        self.username = username
        self.password = password
        self.token = "token-of-this-test"
        self.blobs = {}
        self.manifests = {}
        self.uploads = {}
        self.started = 0
        self.faults = []
        self.retry_after = None
        # Whether to close the connection instead of answering the request that has just come.
        self.interrupt = lambda: False
        self.requests = []
        self.list_tags = True
        self.head = True
        self.ranges = True  # False: it ignores them; None: it refuses them
        # After how many bytes of a blob to close the connection, one number for each request; and which ranges were asked for.
        self.cut = []
        self.wanted = []
        self._server = http.server.ThreadingHTTPServer((host, port), _handler(self))
        self._server.daemon_threads = True
        self.address = "%s:%d" % (host, self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *exc):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def put_blob(self, content):
        """Store a blob directly; returns its digest."""
        self.blobs[sha256(content)] = content
        return sha256(content)

    def put_manifest(self, repository, tag, document, media_type=None):
        """Store a manifest (dict or bytes) directly; returns its digest."""
        content = document if isinstance(document, bytes) else json.dumps(document).encode("utf-8")
        media_type = media_type or document.get("mediaType")
        for name in (tag, sha256(content)):
            self.manifests[(repository, name)] = (content, media_type)
        return sha256(content)

    def challenge(self):
        if self.auth == "basic":
            return 'Basic realm="test"'
        return 'Bearer realm="http://%s/token",service="test service"' % self.address

    def allowed(self, header):
        if self.auth is None:
            return True
        if self.auth == "basic":
            return self._password_is_right(header)
        return header == "Bearer " + self.token

    def _password_is_right(self, header):
        pair = "%s:%s" % (self.username, self.password)
        return header == "Basic " + base64.b64encode(pair.encode("utf-8")).decode("ascii")

    def issue_token(self, header):
        return self.token if self._password_is_right(header) else None


def _handler(registry):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args):
            pass

        def do_HEAD(self):
            self.handle_one("HEAD")

        def do_GET(self):
            self.handle_one("GET")

        def do_POST(self):
            self.handle_one("POST")

        def do_PUT(self):
            self.handle_one("PUT")

        def do_PATCH(self):
            self.handle_one("PATCH")

        def answer(self, status, body=b"", **headers):
            for method, pattern, fault in registry.faults:
                if method == self.command and re.search(pattern, self.path) and callable(fault):
                    body = fault(body)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            if "Content_Length" not in headers:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def error(self, status, code):
            body = json.dumps({"errors": [{"code": code, "message": code.lower().replace("_", " ")}]})
            headers = {"Retry_After": registry.retry_after} if status == 429 and registry.retry_after else {}
            self.answer(status, body.encode("ascii"), **headers)

        def handle_one(self, method):
            header = self.headers.get("Authorization")
            registry.requests.append((method, self.path, header))
            if registry.interrupt():
                self.close_connection = True
                return None
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length) if length else b""
            url = urllib.parse.urlsplit(self.path)
            for fault_method, pattern, fault in registry.faults:
                if fault_method == method and re.search(pattern, self.path) and not callable(fault):
                    status = fault if isinstance(fault, int) else next(fault, None)
                    if status:
                        return self.error(status, "FAULT")
            if url.path == "/token":
                token = registry.issue_token(header)
                if token is None:
                    return self.error(401, "UNAUTHORIZED")
                return self.answer(200, json.dumps({"token": token}).encode("ascii"))
            if not registry.allowed(header):
                self.send_response(401)
                self.send_header("WWW-Authenticate", registry.challenge())
                self.send_header("Content-Length", "0")
                return self.end_headers()
            if url.path == "/v2/":
                return self.answer(200, b"{}")
            match = re.match(r"/v2/(.+)/(manifests|blobs|tags)/(.*)\Z", url.path)
            if not match:
                return self.error(404, "NOT_FOUND")
            repository, kind, name = match.groups()
            if kind == "tags":
                return self.tags(repository)
            if method == "POST":
                registry.started += 1
                return self.answer(202, Location="/v2/%s/blobs/uploads/%d?state=x" % (repository, registry.started))
            if method == "PATCH":
                registry.uploads[name] = registry.uploads.get(name, b"") + body
                return self.answer(202, Location=self.path)
            if method == "PUT" and kind == "manifests":
                registry.put_manifest(repository, name, body, self.headers.get("Content-Type"))
                return self.answer(201)
            if method == "PUT":
                wanted = urllib.parse.parse_qs(url.query)["digest"][0]
                body = registry.uploads.pop(name, b"") + body
                if sha256(body) != wanted:
                    return self.error(400, "DIGEST_INVALID")
                registry.put_blob(body)
                return self.answer(201)
            if method == "HEAD" and not registry.head:
                return self.error(405, "UNSUPPORTED")
            if kind == "blobs":
                if name not in registry.blobs:
                    return self.error(404, "BLOB_UNKNOWN")
                return self.blob(registry.blobs[name])
            if (repository, name) not in registry.manifests:
                return self.error(404, "MANIFEST_UNKNOWN")
            content, media_type = registry.manifests[(repository, name)]
            return self.answer(200, content, Content_Type=media_type, Docker_Content_Digest=sha256(content))

        def blob(self, content):
            wanted = self.headers.get("Range")
            registry.wanted.append(wanted)
            start = int(wanted[len("bytes=") : -1]) if wanted and registry.ranges else 0
            if start > len(content) or wanted and registry.ranges is None:
                return self.error(416, "RANGE_INVALID")
            headers = {"Content_Range": "bytes %d-%d/%d" % (start, len(content) - 1, len(content))} if start else {}
            body = content[start:]
            if registry.cut:
                headers["Content_Length"] = str(len(body))
                body = body[: registry.cut.pop(0)]
                self.close_connection = True
            return self.answer(206 if start else 200, body, **headers)

        def tags(self, repository):
            names = [tag for name, tag in registry.manifests if name == repository and not tag.startswith("sha256:")]
            if not registry.list_tags:
                return self.error(403, "DENIED")
            if not names:
                return self.error(404, "NAME_UNKNOWN")
            return self.answer(200, json.dumps({"name": repository, "tags": sorted(names)}).encode("ascii"))

    return Handler
