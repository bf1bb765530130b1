# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Authentication with a registry that is a real HTTP server: Basic, tokens, and where credentials never go."""

from __future__ import annotations

import base64
import io
import traceback

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry import RegistryClient
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry_connection import Connection
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry_errors import RegistryDenied, RegistryError

from support.host import registry_server
from support.patience import PATIENCE

SHA = "sha256:" + "a" * 64
REPOSITORY = "mlops/ascend-driver"
TAG = "25.5.0-910b-6.6.0-145.0.4.135-oe2403sp3"


def image(registry):
    """Put a small manifest into the test registry."""
    registry.put_manifest(REPOSITORY, TAG, {"schemaVersion": 2, "config": {}, "layers": []})


@pytest.fixture
def basic():
    with registry_server.Registry(auth="basic") as server:
        yield server


@pytest.fixture
def token():
    with registry_server.Registry(auth="token") as server:
        yield server


def client(registry, **more):
    options = {"username": registry.username, "password": registry.password, "plain_http": True, "timeout": PATIENCE}
    options.update(more)
    return RegistryClient(registry.address, **options)


@pytest.mark.parametrize("action", ["resolve", "push"])
@pytest.mark.parametrize("kind", ["basic", "token"])
@pytest.mark.parametrize("username, password", [("alice", "wrong-Pa55"), ("mallory", "wrong-Pa55"), (None, None)])
def test_wrong_credentials_are_named_without_the_password(kind, action, username, password):
    with registry_server.Registry(auth=kind) as server:
        image(server)
        one = client(server, username=username, password=password)
        with pytest.raises(RegistryDenied) as caught:
            if action == "resolve":
                one.resolve(REPOSITORY, TAG)
            else:
                one.push_blob(REPOSITORY, registry_server.sha256(b"a"), 1, io.BytesIO(b"a"))
    text = "".join(traceback.format_exception(caught.type, caught.value, caught.tb, chain=True)) + repr(caught.value)
    assert "npu_registry_password" in text and (username or "anonymous") in caught.value.message
    for secret in ("wrong-Pa55", base64.b64encode(b"%s:wrong-Pa55" % (username or "").encode()).decode()):
        assert secret not in text


def test_the_authorization_for_containerd(basic, token):
    assert client(basic).authorization(REPOSITORY).startswith("Basic ")
    assert client(token).authorization(REPOSITORY) == "Bearer " + token.token
    with registry_server.Registry() as free:
        assert client(free, username=None).authorization(REPOSITORY) is None


def test_a_fresh_token_is_fetched_when_the_old_one_expired(token):
    image(token)
    one = client(token)
    one.resolve(REPOSITORY, TAG)
    token.token = "another-token"
    assert one.authorization(REPOSITORY) == "Bearer another-token"
    token.token = "third-token"
    one.resolve(REPOSITORY, TAG)


def test_credentials_do_not_follow_a_redirect(basic):
    image(basic)
    content = b"stored elsewhere"
    with registry_server.Registry() as store:
        digest = store.put_blob(content)
        handler = basic._server.RequestHandlerClass
        original = handler.do_GET

        def redirect(self):
            if "/blobs/" in self.path and basic.allowed(self.headers.get("Authorization")):
                self.send_response(307)
                self.send_header("Location", "http://%s%s" % (store.address, self.path))
                self.send_header("Content-Length", "0")
                return self.end_headers()
            return original(self)

        handler.do_GET = redirect
        assert client(basic).blob(REPOSITORY, digest) == content
        assert [header for dummy, path, header in store.requests] == [None]


def test_credentials_do_not_follow_an_upload_to_another_server(basic):
    with registry_server.Registry() as store:
        handler = basic._server.RequestHandlerClass
        original = handler.do_POST

        def elsewhere(self):
            if not basic.allowed(self.headers.get("Authorization")):
                return original(self)
            self.send_response(202)
            self.send_header("Location", "http://%s%s1" % (store.address, self.path))
            self.send_header("Content-Length", "0")
            return self.end_headers()

        handler.do_POST = elsewhere
        client(basic).push_blob(REPOSITORY, registry_server.sha256(b"abc"), 3, io.BytesIO(b"abc"))
        assert [(method, header) for method, dummy, header in store.requests] == [("PUT", None)]


@pytest.mark.parametrize("scheme", ["http", "HTTP", "Http"])
def test_the_password_is_not_sent_in_the_clear_when_the_registry_itself_uses_tls(scheme):
    one = RegistryClient("r.example", "alice", "s3cret")
    challenge = ['Bearer realm="%s://auth.example/token",service="x"' % scheme]
    with pytest.raises(RegistryError, match="not encrypted; refused"):
        one._authentication.answer(challenge, REPOSITORY, "pull", None)


@pytest.mark.parametrize(
    "realm", [" http://auth.example/token", "h\tttp://auth.example/token", "\x01http://auth.example", "https://\xe9"]
)
def test_a_token_service_must_be_a_plain_url(realm):
    """Of some of these, one part of Python's library takes other characters away than another one."""
    one = RegistryClient("r.example", "alice", "s3cret")
    with pytest.raises(RegistryError, match="names no token service"):
        one._authentication.answer(['Bearer realm="%s",service="x"' % realm], REPOSITORY, "pull", None)


@pytest.mark.parametrize("answer", [b'{"no": "token"}', b'{"token": "a\\nb"}', b"nonsense"])
def test_a_token_service_that_gives_no_token(token, answer):
    image(token)
    token.faults = [("GET", "/token", lambda content: answer)]
    with pytest.raises(RegistryError):
        client(token).resolve(REPOSITORY, TAG)


class Store(registry_server.Registry):
    """A blob store that wants the credentials of the registry for itself."""

    def __enter__(self):
        super().__enter__()
        store = self
        self.stolen = []

        def steal(handler):
            if handler.path.startswith("/token"):
                store.stolen.append(handler.headers.get("Authorization"))
                return handler.answer(200, b'{"token":"T"}')
            handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
            return handler.answer(401, **{"WWW-Authenticate": store.wanted % store.address})

        for method in ("do_GET", "do_HEAD", "do_PUT"):
            setattr(self._server.RequestHandlerClass, method, steal)
        return self


@pytest.mark.parametrize("action", ["blob", "push"])
@pytest.mark.parametrize("wanted", ['Bearer realm="http://%s/token",service="s"', 'Basic realm="%s"'])
@pytest.mark.parametrize("kind", ["basic", "token"])
def test_a_challenge_of_another_server_is_not_answered(kind, wanted, action):
    with registry_server.Registry(auth=kind) as server, Store() as store:
        store.wanted = wanted
        handler = server._server.RequestHandlerClass
        originals = {"do_GET": handler.do_GET, "do_POST": handler.do_POST}

        def elsewhere(self):
            original = originals["do_" + self.command]
            if "/blobs/" in self.path and server.allowed(self.headers.get("Authorization")):
                location = {"Location": "http://%s/elsewhere" % store.address}
                return self.answer(307 if self.command == "GET" else 202, **location)
            return original(self)

        handler.do_GET = handler.do_POST = elsewhere
        with pytest.raises(RegistryError) as caught:
            if action == "blob":
                client(server).blob(REPOSITORY, SHA)
            else:
                client(server).push_blob(REPOSITORY, registry_server.sha256(b"a"), 1, io.BytesIO(b"a"))
        assert store.stolen == []
        assert store.address in caught.value.message and "npu_registry_username" not in caught.value.message


def test_a_token_service_that_redirects_to_another_server(token):
    """That one gets no password."""
    with Store() as store:
        answer = token._server.RequestHandlerClass.do_GET

        def redirect(self):
            if self.path.startswith("/token"):
                return self.answer(307, Location="http://%s%s" % (store.address, self.path))
            return answer(self)

        token._server.RequestHandlerClass.do_GET = redirect
        with pytest.raises(RegistryDenied):
            client(token).blob(REPOSITORY, SHA)
        assert store.stolen == [None]


@pytest.mark.parametrize(
    "registry, url, own",
    [
        ("r.example", "https://r.example/v2/", True),
        ("r.example", "https://R.example:443/v2/", True),
        ("r.example:443", "https://r.example/v2/", True),
        ("r.example", "http://r.example/v2/", False),
        ("r.example", "https://r.example:8443/v2/", False),
        ("r.example", "https://r.example.evil.example/v2/", False),
        ("r.example", "https://r.example@evil.example/v2/", False),
        ("r.example", "https://evil.example\\@r.example/v2/", False),
        ("docker.io", "https://registry-1.docker.io/v2/", True),
        ("docker.io", "https://auth.docker.io/token", False),
    ],
)
def test_what_is_the_registry_itself(registry, url, own):
    assert Connection(registry, False, None, 1, None).is_own(url) is own


def test_the_account_of_a_proxy_stays_with_the_proxy(monkeypatch, basic):
    """urllib keeps it in the headers that follow a redirect, to a server that needs no proxy too."""
    with registry_server.Registry() as store:
        digest = store.put_blob(b"abc")

        def redirect(self):
            return self.answer(307, Location="http://%s/v2/%s/blobs/%s" % (store.address, REPOSITORY, digest))

        seen = []
        answer = store._server.RequestHandlerClass.do_GET

        def look(self):
            seen.append(self.headers.get("Proxy-Authorization"))
            return answer(self)

        basic._server.RequestHandlerClass.do_GET = redirect
        store._server.RequestHandlerClass.do_GET = look
        monkeypatch.setenv("http_proxy", "http://user:proxy-secret@%s" % basic.address)
        monkeypatch.setenv("no_proxy", store.address)
        assert RegistryClient("registry.example", plain_http=True, timeout=PATIENCE).blob(REPOSITORY, digest) == b"abc"
        assert seen == [None]
