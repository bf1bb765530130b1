# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small web server with files, ranges, Basic authentication, redirects and faults, for tests."""

from __future__ import annotations

import base64
import http.server
import threading


class FileServer:
    """``with FileServer({"/x.run": content}) as server: server.url("/x.run")``.

    ``login``: "user:password" that it demands, None for none. ``ranges``: whether it continues downloads; ``lengths``: whether it says
    how long they are. ``cut``: list of numbers
    of bytes after which it closes the connection, one for each request; ``redirects``: path -> URL; ``statuses``: path -> status.
    ``pause``: called before each block of the body. ``requests``: (path, Range, Authorization) of what was asked.
    """

    def __init__(self, files, login=None, ranges=True):
        self.files = files
        self.login = login
        self.ranges = ranges
        self.lengths = True
        self.cut = []
        self.redirects = {}
        self.statuses = {}
        self.pause = lambda: None
        self.requests = []
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *exc):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def url(self, path, host="127.0.0.1"):
        return "http://%s:%d%s" % (host, self.port, path)


def _handler(server):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            path = self.path.partition("?")[0]
            wanted = self.headers.get("Range")
            server.requests.append((self.path, wanted, self.headers.get("Authorization")))
            if path in server.redirects:
                return self._answer(302, [("Location", server.redirects[path])])
            if server.login and self.headers.get("Authorization") != "Basic " + base64.b64encode(server.login.encode()).decode():
                return self._answer(401)
            if path in server.statuses or path not in server.files:
                return self._answer(server.statuses.get(path, 404))
            content = server.files[path]
            start = int(wanted[len("bytes=") : -1]) if wanted and server.ranges else 0
            if start and start >= len(content):
                return self._answer(416)
            headers = [("Content-Length", str(len(content) - start)) if server.lengths else ("X-Length", "none")]
            if start:
                headers.append(("Content-Range", "bytes %d-%d/%d" % (start, len(content) - 1, len(content))))
            self._answer(206 if start else 200, headers)
            end = min(start + server.cut.pop(0), len(content)) if server.cut else len(content)
            for place in range(start, end, 4096):
                server.pause()
                try:
                    self.wfile.write(content[place : min(place + 4096, end)])
                except OSError:
                    break

        def _answer(self, status, headers=()):
            self.send_response(status)
            for name, value in headers or [("Content-Length", "0")]:
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *arguments):
            pass

    return Handler
