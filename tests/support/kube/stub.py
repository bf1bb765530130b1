# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An API server just real enough for the collection's cluster modules: objects in a dictionary, over HTTP."""

from __future__ import annotations

import contextlib
import copy
import http.server
import json
import socket
import tempfile
import threading
import time
import urllib.parse

from support.kube.conditions import merged
from support.kube.field_owners import note_cordon

_DISCOVERY = {
    "/version": {"major": "1", "minor": "34", "gitVersion": "v1.34.4"},
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "groups": []},
    "/api/v1": {
        "kind": "APIResourceList",
        "resources": [
            {"name": "namespaces", "singularName": "", "kind": "Namespace", "namespaced": False, "verbs": []},
            {"name": "configmaps", "singularName": "", "kind": "ConfigMap", "namespaced": True, "verbs": []},
        ],
    },
}

# Values of ``faults``: an admission webhook that is down, as the API server tells it; and a connection that just ends.
WEBHOOK_DOWN = (
    500,
    'Internal error occurred: failed calling webhook "guard.example.com": failed to call webhook: Post'
    ' "https://guard.policy.svc:443/validate?timeout=10s": dial tcp 10.96.7.7:443: connect: connection refused',
)
NO_ANSWER = (0, "")
# And one on which nothing ever comes, as of a server that is stopped.
FROZEN = (-1, "")


def node(name, boot_id=None, labels=None, annotations=None, allocatable=None, ready=True, **spec):
    """A Node as a kubelet reports it."""
    return {
        "metadata": {"name": name, "uid": "uid-" + name, "labels": labels or {}, "annotations": annotations or {}},
        "spec": spec,
        "status": {
            "allocatable": allocatable or {},
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True" if ready else "Unknown",
                    "message": "kubelet is posting ready status" if ready else "Kubelet stopped posting node status.",
                }
            ],
            "nodeInfo": {
                "bootID": "boot-of-" + name if boot_id is None else boot_id,
                "kubeletVersion": "v1.34.4",
                "containerRuntimeVersion": "containerd://2.1.5",
            },
        },
    }


class _Server(http.server.ThreadingHTTPServer):
    """Ends the connections that clients keep: kubernetes.core keeps its clients to the end of the process."""

    def __init__(self, *args):
        super().__init__(*args)
        self._accepted = []

    def get_request(self):
        request, address = super().get_request()
        self._accepted.append(request)
        return request, address

    def end_connections(self):
        for request in self._accepted:
            with contextlib.suppress(OSError):  # ended already
                request.shutdown(socket.SHUT_RDWR)

    def server_close(self):
        self.end_connections()
        super().server_close()


# kubernetes.core keeps its clients as long as the process lives, by the server's address and the credentials, and one that knows a
# server does not ask for its version again.
_USED = set()


def _at_a_new_address(handler):
    while True:
        server = _Server(("127.0.0.1", 0), handler)
        if server.server_address not in _USED:
            _USED.add(server.server_address)
            return server
        server.server_close()


class ApiServer:
    """``with ApiServer() as api``: ``api.address``, and ``api.objects``: collection path -> name -> object.

    ``denied``: (verb, resource) pairs that access reviews refuse; ``rules``: what tells the status of a review of a namespace's rules;
    ``faults``: (method, path) -> (status, message), NO_ANSWER or FROZEN;
    ``on_patch``: called before each patch; ``on_watch``: called with the HTTP handler and the query of each watch, returns whether it
    has answered; None: lists have no version to watch from; ``logs``: pod name -> text, or an iterator of
    bytes that are sent, whatever is asked for, until the client has enough; ``requests``: (method, path) in order;
    ``accepted``: the header Accept of the last one; ``tokens``: those that are let in, None for any; ``ahead``: seconds by which its
    clock is ahead.
    """

    def __init__(self):
        self.objects = {}
        self.denied = set()
        self.rules = self._all_or_not_told
        self.faults = {}
        self.logs = {}
        self.requests = []
        self.accepted = ""
        self.tokens = None
        self.ahead = 0.0
        self.over = threading.Event()
        self.on_patch = lambda: None
        self.on_watch = None
        self._version = 100
        self._server = _at_a_new_address(_handler(self))
        self.address = "http://127.0.0.1:%d" % self._server.server_address[1]

    def __enter__(self):
        # kubernetes.core keeps what it learns of an API server in the temporary directory, by the server's address.
        self._usual, self._own = tempfile.tempdir, tempfile.TemporaryDirectory(prefix="api-")
        tempfile.tempdir = self._own.name
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_exc):
        self.over.set()
        self._server.shutdown()
        self._server.server_close()
        tempfile.tempdir = self._usual
        self._own.cleanup()

    def end_connections(self):
        """Those that clients keep, as a server does that restarts."""
        self._server.end_connections()

    def put(self, collection, *objects):
        for item in objects:
            self._version += 1
            item["metadata"]["resourceVersion"] = str(self._version)
            self.objects.setdefault(collection, {})[item["metadata"]["name"]] = item

    def answer(self, method, path, query, body):
        """(status, answer) of one request."""
        if (method, path) in self.faults:
            status, message = self.faults[(method, path)]
            return status, {"kind": "Status", "message": message, "code": status}
        if method == "PATCH" and path.endswith("/status"):
            path = path[: -len("/status")]
        if path in _DISCOVERY:
            return 200, _DISCOVERY[path]
        if path.endswith("/selfsubjectaccessreviews"):
            wanted = body["spec"]["resourceAttributes"]
            return 201, {"status": {"allowed": (wanted["verb"], wanted["resource"]) not in self.denied}}
        if path.endswith("/selfsubjectrulesreviews"):
            return 201, {"status": self.rules(body["spec"]["namespace"])}
        if method == "POST":
            if not query.get("dryRun"):
                self.put(path, body)
            return 201, body
        if path in self.objects:
            found = _selected(self.objects[path].values(), query.get("labelSelector"))
            key, _equals, name = query.get("fieldSelector", "").partition("=")
            if key == "metadata.name":
                found = [item for item in found if item["metadata"]["name"] == name]
            return 200, self._page(found, query)
        collection, _slash, name = path.rpartition("/")
        if name == "log":
            return 200, _log(self.logs.get(collection.rpartition("/")[2], ""), query)
        item = self.objects.get(collection, {}).get(name)
        if item is None:
            if path.rpartition("/")[2] in ("nodes", "pods", "events", "daemonsets", "deployments"):
                return 200, {"metadata": {}, "items": []}
            return 404, {"kind": "Status", "message": "%s not found" % path}
        if method == "DELETE":
            del self.objects[collection][name]
            return 200, {"kind": "Status"}
        if method == "PATCH" and "conditions" in body.get("status", {}):
            body["status"]["conditions"] = merged(item["status"].get("conditions", []), body["status"]["conditions"])
        if method == "PATCH":
            return self._patch(collection, name, body, bool(query.get("dryRun")), query.get("fieldManager", "python"))
        return 200, item

    def _all_or_not_told(self, _namespace):
        # Rules that grant all but a few things would have to name each that they do grant.
        everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
        return {"incomplete": bool(self.denied), "resourceRules": [] if self.denied else [everything]}

    def _page(self, items, query):
        start, limit = int(query.get("continue", 0)), int(query.get("limit", 0)) or len(items)
        metadata = {"continue": str(start + limit)} if start + limit < len(items) else {}
        if self.on_watch is not None:
            metadata["resourceVersion"] = str(self._version)
        return {"metadata": metadata, "items": items[start : start + limit]}

    def _patch(self, collection, name, body, dry_run, manager):
        self.on_patch()
        item = copy.deepcopy(self.objects[collection][name])
        if body.get("metadata", {}).pop("resourceVersion", None) not in (None, item["metadata"]["resourceVersion"]):
            return 409, {"kind": "Status", "message": "the object has been modified"}
        _merge(item, body)
        note_cordon(self.objects[collection][name], item, manager)
        if not dry_run:
            self.put(collection, item)
        return 200, item


def _log(text, query):
    """As a kubelet answers: of the last lines, the first bytes."""
    if not isinstance(text, str):
        return text
    lines = text.splitlines(keepends=True)
    return "".join(lines[-int(query.get("tailLines", len(lines) or 1)) :])[: int(query.get("limitBytes", len(text)))]


def _selected(items, label_selector):
    if not label_selector:
        return list(items)
    from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import (
        selectors as kube_selectors,  # Python 3.8 has no use for it
    )

    selector = kube_selectors.parse(label_selector, "labelSelector")
    return [item for item in items if selector.matches(item["metadata"].get("labels") or {})]


def _merge(target, patch):
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict) and value.get("$patch") == "replace":
            target[key] = {name: inner for name, inner in value.items() if name != "$patch"}
        elif isinstance(value, dict):
            _merge(target.setdefault(key, {}), value)
        else:
            target[key] = value


def _handler(api):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Head and body in one packet; two would wait 40 ms for the client's delayed acknowledgement.
        wbufsize = -1

        def _serve(self):
            url = urllib.parse.urlsplit(self.path)
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "null")
            api.requests.append((self.command, url.path))
            api.accepted = self.headers.get("Accept") or ""
            query = dict(urllib.parse.parse_qsl(url.query))
            if "watch" in query and api.on_watch and api.on_watch(self, query):
                return
            if api.tokens is None or (self.headers.get("Authorization") or "").partition(" ")[2] in api.tokens:
                status, answer = api.answer(self.command, url.path, query, body)
            else:
                status, answer = 401, {"kind": "Status", "message": "Unauthorized", "code": 401}
            if (status, "") in (NO_ANSWER, FROZEN):
                if status:
                    api.over.wait()
                self.close_connection = True
                return
            if not isinstance(answer, (str, dict, list)):
                self._send_pieces(answer)
                return
            content = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            retry_after = answer.get("details", {}).get("retryAfterSeconds") if isinstance(answer, dict) else None
            if retry_after:
                self.send_header("Retry-After", str(retry_after))
            self.end_headers()
            self.wfile.write(content)

        def _send_pieces(self, pieces):
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.flush()
            self.close_connection = True
            with contextlib.suppress(OSError):
                for piece in pieces:
                    self.connection.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.connection.sendall(b"0\r\n\r\n")

        do_GET = do_POST = do_PATCH = do_DELETE = _serve

        def log_message(self, *_args):
            pass

        def date_time_string(self, timestamp=None):
            return super().date_time_string((timestamp or time.time()) + api.ahead)

    return Handler
