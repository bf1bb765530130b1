# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The part of the Kubernetes API the agent uses: one Node, its status, Events, ResourceSlices and DeviceTaintRules, with conflicts and
both kinds of patches."""

from __future__ import annotations

import contextlib
import json
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class ApiServer:
    """On a loopback port; ``with server.stopped():`` takes it away. ``context``: an ssl.SSLContext for HTTPS."""

    def __init__(self, context=None):
        self.node = {
            "metadata": {"name": "node-1", "uid": "uid-1", "resourceVersion": "1", "labels": {}, "annotations": {}},
            "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]},
        }
        self.events = {}
        self.slices = []
        self.rules = {}
        self.taint_refusal = None  # (status, message) of all requests about slices and rules
        self.requests = []
        self.headers = []
        self.conflicts = 0
        self.refusals = []  # (status, message) of the next patches of the status
        self.refuses = self.loses = lambda _method, _path: (
            False
        )  # requests that fail; those that take effect, with a failure as answer
        self.lock = threading.RLock()
        self._context = context
        self._port = 0
        self._start()

    @property
    def url(self):
        return "%s://127.0.0.1:%d" % ("https" if self._context else "http", self._port)

    def _start(self):
        handler = type("Handler", (_Handler,), {"api": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), handler)
        if self._context:
            self._server.socket = self._context.wrap_socket(self._server.socket, server_side=True)
        self._port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    def stop(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @contextlib.contextmanager
    def stopped(self):
        self.stop()
        yield
        self._start()

    @property
    def annotations(self):
        return self.node["metadata"]["annotations"]

    @property
    def labels(self):
        return self.node["metadata"]["labels"]

    @property
    def conditions(self):
        """{type: condition} of the Node."""
        with self.lock:
            return {one["type"]: dict(one) for one in self.node["status"]["conditions"]}

    def calls(self, *methods):
        """The requests but those for the status."""
        with self.lock:
            return [call for call in self.requests if call[0] in methods and not call[1].endswith("/status")]

    def taints(self):
        """{device: value} of the rules."""
        with self.lock:
            return {rule["spec"]["deviceSelector"]["device"]: rule["spec"]["taint"]["value"] for rule in self.rules.values()}

    def status_patches(self):
        """The patches of the status, refused ones among them."""
        with self.lock:
            return [call for call in self.requests if call == ("PATCH", "/api/v1/nodes/node-1/status")]


_DRA = "/apis/resource.k8s.io/v1/"


class _Handler(BaseHTTPRequestHandler):
    api = None

    def log_message(self, *args):
        pass

    def _handle(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        with self.api.lock:
            self.api.requests.append((self.command, self.path))
            self.api.headers.append(dict(self.headers))
            refused = self.api.refuses(self.command, self.path)
            status, answer = (500, {}) if refused else self._answer(body)
            if self.api.loses(self.command, self.path):
                status, answer = 500, {"message": "no answer"}
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_PATCH = do_POST = do_DELETE = _handle

    def _answer(self, body):
        api = self.api
        if self.path == "/api/v1/nodes/node-1":
            if self.command == "PATCH":
                return self._patch_node(body)
            return 200, api.node
        if self.path == "/api/v1/nodes/node-1/status" and self.command == "PATCH":
            return self._patch_status(body)
        if self.path.startswith(_DRA):
            return self._dra(*self.path[len(_DRA) :].partition("?")[::2], body)
        base = "/api/v1/namespaces/default/events"
        if self.path == base and self.command == "POST":
            if body["involvedObject"].get("namespace", "default") != body["metadata"]["namespace"]:
                return 422, {"message": "involvedObject.namespace does not match event.namespace"}
            api.events[body["metadata"]["name"]] = body
            return 201, body
        name = self.path[len(base) + 1 :]
        if name not in api.events:
            return 404, {"message": "not found"}
        if self.command == "DELETE":
            return 200, api.events.pop(name)
        if self.command == "PATCH":
            api.events[name].update(body)
        return 200, api.events[name]

    def _dra(self, path, query, body):
        api, asked = self.api, dict(urllib.parse.parse_qsl(query))
        resource, _slash, name = path.partition("/")
        if api.taint_refusal:
            return api.taint_refusal[0], {"message": api.taint_refusal[1]}
        if resource == "resourceslices":
            fields = dict(part.split("=") for part in asked["fieldSelector"].split(","))
            found = [
                one
                for one in api.slices
                if (one["spec"]["nodeName"], one["spec"]["driver"]) == (fields["spec.nodeName"], fields["spec.driver"])
            ]
            return 200, {"items": found}
        if self.command == "POST":
            if body["metadata"]["name"] in api.rules:
                return 409, {"message": "already exists"}
            body["metadata"]["resourceVersion"] = "1"
            api.rules[body["metadata"]["name"]] = body
            return 201, body
        if not name:
            key, value = asked["labelSelector"].split("=")
            return 200, {"items": [rule for rule in api.rules.values() if rule["metadata"]["labels"].get(key) == value]}
        if name not in api.rules:
            return 404, {"message": "not found"}
        if self.command == "DELETE":
            return 200, api.rules.pop(name)
        if self.headers["Content-Type"] != "application/merge-patch+json":
            return 415, {"message": "patch type"}
        rule = api.rules[name]
        if body["metadata"]["resourceVersion"] != rule["metadata"]["resourceVersion"]:
            return 409, {"message": "the object has been modified"}
        rule["metadata"]["resourceVersion"] += "1"
        rule["spec"]["taint"].update(body["spec"]["taint"])
        return 200, rule

    def _patch_node(self, body):
        metadata = self.api.node["metadata"]
        if self.headers["Content-Type"] != "application/merge-patch+json":
            return 415, {"message": "patch type"}
        if self.api.conflicts:
            self.api.conflicts -= 1
            metadata["resourceVersion"] = str(int(metadata["resourceVersion"]) + 1)
        if body["metadata"].pop("resourceVersion") != metadata["resourceVersion"]:
            return 409, {"message": "the object has been modified"}
        for kind, values in body["metadata"].items():
            for key, value in values.items():
                metadata[kind].pop(key, None)
                if value is not None:
                    metadata[kind][key] = value
        metadata["resourceVersion"] = str(int(metadata["resourceVersion"]) + 1)
        return 200, self.api.node

    def _patch_status(self, body):
        if self.headers["Content-Type"] != "application/strategic-merge-patch+json":
            return 415, {"message": "patch type"}
        if self.api.refusals:
            status, message = self.api.refusals.pop(0)
            return status, {"message": message}
        assert list(body) == ["status"] and list(body["status"]) == ["conditions"]
        by_type = {one["type"]: one for one in self.api.node["status"]["conditions"]}
        for one in body["status"]["conditions"]:
            by_type[one["type"]] = {**by_type.get(one["type"], {}), **one}
        self.api.node["status"]["conditions"] = list(by_type.values())
        return 200, self.api.node
