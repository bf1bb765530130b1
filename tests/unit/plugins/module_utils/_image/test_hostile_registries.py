# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Registries, token services and proxies that answer whatever they like: what comes of it is a sentence, in time."""

from __future__ import annotations

import contextlib
import http.server
import json
import random
import signal
import threading

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._driver import staging
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._image import manifests, oci, registry_connection
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry import RegistryClient
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight import driver_image

from support.host import registry_server

REPOSITORY = "mlops/ascend-driver"
SHA = "sha256:" + "a" * 64
CONFIG = {"registry_username": None, "registry_password": None, "registry_plain_http": True, "registry_ca_file": None}


@pytest.fixture(autouse=True)
def no_end_is_no_end():
    def over(number, frame):
        raise AssertionError("it hangs")

    before = signal.signal(signal.SIGALRM, over)
    signal.alarm(120)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


class Liar:
    """A server whose answers a function gives: answer(path) -> (status, headers, body). ``asked``: the paths, so far."""

    def __init__(self, answer):
        liar = self
        self.asked = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def do_GET(self):
                liar.asked.append(self.path)
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, headers, body = answer(self.path)
                self.send_response(status)
                for name, value in headers:
                    self.send_header(name, value)
                if not any(name == "Content-Length" for name, value in headers):
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_HEAD = do_POST = do_PUT = do_GET

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = "127.0.0.1:%d" % self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *exc):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def client(self):
        return RegistryClient(self.address, plain_http=True, timeout=5)


def ask_everything(address, tmp_path):
    """All that this collection reads from registries: each comes to an end, or to a sentence."""
    client = RegistryClient(address, plain_http=True, timeout=5)
    name = "%s/%s:t" % (address, REPOSITORY)
    stager = staging.Stager(name, digest=SHA, root=str(tmp_path / "root"), kernel="k", plain_http=True)
    layer = oci.Layer(str(tmp_path / "layer"), SHA, 3, SHA)
    said = []
    for ask in (
        lambda: client.resolve(REPOSITORY, "t"),
        lambda: client.image(REPOSITORY, "t"),
        lambda: client.tags(REPOSITORY),
        lambda: client.blob(REPOSITORY, SHA),
        lambda: client.authorization(REPOSITORY),
        lambda: driver_image.resolve(name, CONFIG),
        lambda: driver_image.size(name, "t", CONFIG, "x86_64"),
        lambda: setattr(stager, "digest", "t") or stager.check(),
        lambda: oci.Image(client, REPOSITORY, "t", layer, "amd64", {}).reason(),
    ):
        try:
            ask()
        except NpuError as exc:
            said.append(exc.message)
    for message in said:
        assert message.isprintable() and len(message) < 1500, message
    return said


WORDS = [
    "manifests",
    "layers",
    "config",
    "digest",
    "size",
    "mediaType",
    "annotations",
    "platform",
    "os",
    "architecture",
    "tags",
    "token",
    "access_token",
    "errors",
    "message",
    "code",
    "npuops.ascend/kernel",
    SHA,
    "linux",
    "amd64",
    "\x1b[2J",
    "a\nb",
    "",
]


def anything(rng, depth=0):
    """A JSON value; the more words of registries are in it, the further it gets."""
    kind = rng.randrange(9 if depth < 5 else 6)
    if kind < 2:
        return rng.choice([None, True, False, 0, -1, 1.5, 2**80, -(2**80), 1e308, 17])
    if kind < 6:
        return rng.choice(WORDS)
    if kind < 7:
        return [anything(rng, depth + 1) for dummy in range(rng.randrange(4))]
    return {rng.choice(WORDS): anything(rng, depth + 1) for dummy in range(rng.randrange(6))}


def plausible(rng):
    """An image or an index with one or two things that are wrong."""
    layer = {"digest": SHA, "size": 3, "mediaType": "x"}
    entry = {"digest": SHA, "platform": {"os": "linux", "architecture": "amd64"}}
    document = rng.choice(
        [
            {"mediaType": manifests.OCI_MANIFEST, "config": {"digest": SHA}, "layers": [layer], "annotations": {}},
            {"mediaType": manifests.OCI_INDEX, "manifests": [entry]},
            {"manifests": [entry], "layers": [layer]},
            {"token": "x"},
            {"tags": ["t"]},
            {"errors": [{"message": "x"}]},
        ]
    )
    document = json.loads(json.dumps(document))
    for dummy in range(rng.randrange(1, 3)):
        here, key = document, None
        while isinstance(here, (dict, list)) and here:
            parent, key = here, rng.choice(list(here) if isinstance(here, dict) else range(len(here)))
            here = here[key]
            if rng.random() < 0.4:
                break
        if key is not None:
            parent[key] = anything(rng, 3)
    return document


@pytest.mark.parametrize("seed", range(4))
def test_any_json_becomes_a_sentence(tmp_path, seed):
    rng = random.Random(seed)
    now = {}

    def answer(path):
        headers = [("Content-Type", now["type"]), ("Docker-Content-Digest", now["digest"])]
        if now["status"] == 401:
            headers.append(("WWW-Authenticate", 'Bearer realm="http://%s/token",service="s"' % liar.address))
        if path.startswith("/token"):
            return 200, [], now["body"]
        return now["status"], headers, now["body"]

    with Liar(answer) as liar:
        for dummy in range(25):
            document = plausible(rng) if rng.random() < 0.7 else anything(rng)
            now.update(
                body=json.dumps(document).encode("utf-8"),
                status=rng.choice([200, 200, 200, 200, 401, 400, 404, 500]),
                type=rng.choice([manifests.OCI_MANIFEST, manifests.OCI_INDEX, "text/html"]),
                digest=rng.choice([SHA, "x", ""]),
            )
            ask_everything(liar.address, tmp_path)


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 200000,
        b'{"manifests":' + b"[" * 100000,
        b'{"layers": [{"digest": "%s", "size": %s}]}' % (SHA.encode(), b"9" * 10000),
        b'{"layers": [{"digest": "%s", "size": -1000000000000}]}' % SHA.encode(),
        b'{"layers": [{"digest": "%s", "size": NaN}]}' % SHA.encode(),
        b'{"layers": [%s]}' % b",".join([b"{}"] * 100000),
        b'{"manifests": [{"digest": "sha256:\\u0661"}]}',
        b"\xef\xbb\xbf{}",
    ],
)
def test_json_made_to_break_who_reads_it(tmp_path, body):
    for status in (200, 401, 404):
        with Liar(lambda path, status=status: (status, [], body)) as liar:
            said = ask_everything(liar.address, tmp_path)
            # A list of tags, and what only asks whether there is an answer, may be in order.
            assert len(said) >= 5


@pytest.mark.parametrize("length", ["\xb2", "9" * 5000, "-1", "1e3", "0x10"])
def test_a_length_that_is_no_number(length):
    def answer(path):
        return 200, [("Docker-Content-Digest", SHA), ("Content-Length", length), ("Connection", "close")], b"{}"

    with Liar(answer) as liar, contextlib.suppress(NpuError):
        liar.client.resolve(REPOSITORY, "t")


def test_an_index_of_indexes():
    with registry_server.Registry() as registry:
        entry = {"platform": {"os": "linux", "architecture": "amd64"}}
        inner = registry.put_manifest(REPOSITORY, "inner", {"mediaType": manifests.OCI_INDEX, "manifests": []})
        registry.put_manifest(REPOSITORY, "t", {"mediaType": manifests.OCI_INDEX, "manifests": [dict(entry, digest=inner)]})
        with pytest.raises(NpuError, match="index of indexes"):
            RegistryClient(registry.address, plain_http=True).image(REPOSITORY, "t", "x86_64")


# --- where a registry sends its clients ---


@pytest.mark.parametrize(
    "target",
    [
        "file:///etc/passwd",
        "ftp://127.0.0.1:1/x",
        "data:,{}",
        "gopher://x/",
        "//",
        "http://[::1",
        "http://a:b/",
        "http://" + "a" * 100 + ".example/",
        "http://a\x01b/",
        "http:///x",
        "https://\xff/",
    ],
)
def test_redirects_to_what_is_no_web_address(target):
    def answer(path):
        return 307, [("Location", target)], b""

    with Liar(answer) as liar:
        for ask in (lambda: liar.client.image(REPOSITORY, "t"), lambda: liar.client.blob(REPOSITORY, SHA)):
            with pytest.raises(NpuError) as caught:
                ask()
            assert caught.value.message.isprintable()


def test_redirects_in_a_circle():
    with Liar(lambda path: (307, [("Location", path + "x")], b"")) as liar:
        with pytest.raises(NpuError):
            liar.client.image(REPOSITORY, "t")
        assert len(liar.asked) < 30


def test_no_redirect_leaves_tls(monkeypatch):
    """Manifests by tag have no digest to be checked with, so an attacker in between could replace them."""
    from ansible_collections.npuops.ascend.plugins.module_utils._image import registry_http

    with pytest.raises(registry_http.Refused, match="r.example, which is not encrypted"):
        registry_http._Redirects(plain_http=False).redirect_request(None, None, 307, "", {}, "http://r.example/x")


@pytest.mark.parametrize("location", ["file:///tmp/x", "http://[::1", "http://a:b/", "ftp://127.0.0.1/x"])
def test_uploads_to_what_is_no_web_address(tmp_path, location):
    def answer(path):
        return (202, [("Location", location)], b"") if "uploads" in path else (404, [], b"")

    (tmp_path / "layer").write_bytes(b"abc")
    with Liar(answer) as liar, open(tmp_path / "layer", "rb") as stream:
        with pytest.raises(NpuError):
            liar.client.push_blob(REPOSITORY, registry_server.sha256(b"abc"), 3, stream)


@pytest.mark.parametrize(
    "realm",
    [
        "file:///etc/passwd",
        "ftp://x/",
        "x",
        "",
        "http://[::1",
        "http://a:b/t",
        "http://" + "a" * 100 + ".example/t",
        "http://a b/t",
        "https://\x80/t",
    ],
)
def test_token_services_that_are_none(realm):
    def answer(path):
        return 401, [("WWW-Authenticate", 'Bearer realm="%s",service="s"' % realm)], b""

    with Liar(answer) as liar:
        with pytest.raises(NpuError) as caught:
            liar.client.resolve(REPOSITORY, "t")
        assert caught.value.message.isprintable()


def test_a_token_of_a_megabyte():
    def answer(path):
        if path.startswith("/token"):
            return 200, [], json.dumps({"token": "x" * 2**20}).encode()
        return 401, [("WWW-Authenticate", 'Bearer realm="http://%s/token"' % liar.address)], b""

    with Liar(answer) as liar, pytest.raises(NpuError, match="sent no token"):
        liar.client.resolve(REPOSITORY, "t")


@pytest.mark.parametrize("page", ["http://[::1", "?n=1000", "https://elsewhere.example/", "\x01"])
def test_pages_of_tags_without_end(page):
    def answer(path):
        return 200, [("Link", '<%s>; rel="next"' % page)], b'{"tags": ["a", "\\u001b[2J", 7, {"b": 1}]}'

    with Liar(answer) as liar:
        assert set(liar.client.tags(REPOSITORY)) == {"a"}
        assert len(liar.asked) <= 10


# --- servers that never come to an end ---


@pytest.mark.parametrize("part", ["headers", "body", "chunks", "nothing more"])
def test_a_byte_now_and_then_is_no_answer(monkeypatch, part):
    """Each byte comes within the time limit of the socket."""
    monkeypatch.setattr(registry_connection, "_MAX_SECONDS", 2)
    over = threading.Event()

    class Dripping(http.server.BaseHTTPRequestHandler):
        def log_message(self, *args):
            pass

        def do_GET(self):
            start = {
                "headers": b"HTTP/1.1 200 OK\r\nX-Endless: ",
                "body": b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n",
                "chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                "nothing more": b"HTTP/1.0 200 OK\r\n\r\n{",
            }[part]
            with contextlib.suppress(OSError):
                self.wfile.write(start)
                while not over.wait(0.05):
                    self.wfile.write(b"1\r\nx\r\n" if part == "chunks" else b" ")

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Dripping)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        client = RegistryClient("127.0.0.1:%d" % server.server_address[1], plain_http=True, timeout=5)
        with pytest.raises(NpuError, match="did not complete its answer within 2 seconds"):
            client.image(REPOSITORY, "t")
    finally:
        over.set()
        server.shutdown()
        server.server_close()
        thread.join()
