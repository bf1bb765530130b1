# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A server that takes notices, as that of a chat does."""

from __future__ import annotations

import http.server
import json
import threading

TOKEN = "/services/T000/B000/secret-token"


class Webhooks(http.server.ThreadingHTTPServer):
    """``with Webhooks() as server``: ``server.url``, and ``server.bodies`` and ``server.paths`` of what came, in order.

    ``answer(handler)``: how it answers; ``get(handler)``: how it answers what only asks; ``over``: set when it ends.
    """

    daemon_threads = True

    def __init__(self):
        self.bodies, self.paths, self.answer = [], [], lambda handler: handler.say(b'{"errcode": 0, "code": 0}')
        self.get, self.authorizations = lambda handler: handler.say(b"{}"), []
        self.over = threading.Event()
        super().__init__(("127.0.0.1", 0), _Handler)

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_exc):
        self.over.set()
        self.shutdown()
        self.server_close()

    @property
    def url(self):
        return "http://127.0.0.1:%d%s" % (self.server_address[1], TOKEN)


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.server.paths.append(self.path)
        self.server.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.server.answer(self)

    def do_GET(self):
        self.server.paths.append(self.path)
        self.server.authorizations.append(self.headers["Authorization"])
        self.server.get(self)

    def say(self, content, status=200, **headers):
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_args):
        pass
