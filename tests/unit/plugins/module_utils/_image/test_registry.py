# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Image references, and the registry client against a real HTTP server."""

from __future__ import annotations

import base64
import io
import json
import os
import socket
import threading
import traceback

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._image import registry as image_registry
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry import (
    ImageNotFound,
    RegistryClient,
    RegistryDenied,
    RegistryError,
    RegistryUnreachable,
    near_tags,
    parse_reference,
)

from support.host import registry_server
from support.patience import PATIENCE

SHA = "sha256:" + "a" * 64
REPOSITORY = "mlops/ascend-driver"
TAG = "25.5.0-910b-6.6.0-145.0.4.135-oe2403sp3"


@pytest.mark.parametrize(
    "text, registry, repository, tag, digest",
    [
        ("busybox", "docker.io", "library/busybox", "latest", None),
        ("alauda/ascend-driver:1", "docker.io", "alauda/ascend-driver", "1", None),
        ("docker.io/busybox:1", "docker.io", "library/busybox", "1", None),
        ("index.docker.io/a/b:1", "docker.io", "a/b", "1", None),
        ("localhost/a", "localhost", "a", "latest", None),
        ("localhost:5000/a:b", "localhost:5000", "a", "b", None),
        ("r.example/mlops/d:" + TAG, "r.example", "mlops/d", TAG, None),
        ("10.0.0.1:5000/d@" + SHA, "10.0.0.1:5000", "d", None, SHA),
        ("[fd00::1]:5000/d:x@" + SHA, "[fd00::1]:5000", "d", "x", SHA),
        ("r.example:443/a/b/c_d__e-f.g:T", "r.example:443", "a/b/c_d__e-f.g", "T", None),
    ],
)
def test_references(text, registry, repository, tag, digest):
    found = parse_reference(text)
    assert (found.registry, found.repository, found.tag, found.digest) == (registry, repository, tag, digest)
    assert found.name == registry + "/" + repository
    assert parse_reference(str(found)) == found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "r.example/",
        "r.example/A:b",
        "a:b c",
        "a@sha256:12",
        "a@md5:" + "a" * 64,
        "r.example:x/a",
        "-r.example/a",
        "a::b",
        "https://r.example/a:1",
        "r.example/a:",
        "r.example/a:" + "x" * 129,
    ],
)
def test_what_is_no_reference(text):
    with pytest.raises(NpuError, match="no image reference"):
        parse_reference(text)


def image(registry, tag=TAG, **more):
    """Put a small image into the test registry; returns its digest."""
    config = json.dumps({"architecture": "amd64", "tag": tag}).encode("ascii")
    document = {
        "schemaVersion": 2,
        "mediaType": image_registry.OCI_MANIFEST,
        "config": {"digest": registry.put_blob(config), "size": len(config)},
        "layers": [{"digest": registry.put_blob(b"layer of " + tag.encode("ascii")), "size": 9}],
    }
    document.update(more)
    return registry.put_manifest(REPOSITORY, tag, document)


@pytest.fixture(params=[None, "basic", "token"])
def registry(request):
    with registry_server.Registry(auth=request.param) as server:
        yield server


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


def test_resolves_a_tag_and_a_digest(registry):
    digest = image(registry)
    for reference in (TAG, digest):
        found = client(registry).resolve(REPOSITORY, reference)
        assert found.digest == digest and found.media_type == image_registry.OCI_MANIFEST
        assert found.size == len(registry.manifests[(REPOSITORY, TAG)][0])


def test_resolves_where_head_is_refused(registry):
    registry.head = False
    digest = image(registry)
    assert client(registry).resolve(REPOSITORY, TAG).digest == digest


def test_reads_the_image_and_its_configuration(registry):
    image(registry)
    descriptor, manifest = client(registry).image(REPOSITORY, TAG)
    assert descriptor.digest == registry_server.sha256(registry.manifests[(REPOSITORY, TAG)][0])
    assert json.loads(client(registry).blob(REPOSITORY, manifest["config"]["digest"]))["tag"] == TAG


def index(registry, *architectures):
    entries = [
        {"digest": image(registry, "for-" + name), "platform": {"os": "linux", "architecture": name}} for name in architectures
    ]
    return registry.put_manifest(REPOSITORY, TAG, {"mediaType": image_registry.OCI_INDEX, "manifests": entries})


def test_takes_the_image_of_the_hosts_architecture_from_an_index(basic):
    digest = index(basic, "amd64", "arm64")
    assert client(basic).resolve(REPOSITORY, TAG).digest == digest
    for machine, name in (("x86_64", "amd64"), ("aarch64", "arm64")):
        found = client(basic).image(REPOSITORY, TAG, machine)[0]
        assert found.digest == client(basic).resolve(REPOSITORY, "for-" + name).digest


def test_an_index_without_the_hosts_architecture_says_what_it_has(basic):
    index(basic, "amd64", "riscv64")
    with pytest.raises(ImageNotFound, match="no image for linux/arm64, only linux/amd64, linux/riscv64"):
        client(basic).image(REPOSITORY, TAG, "aarch64")


def test_pushes_and_reads_back(registry):
    one = client(registry)
    content = b"x" * 3000000
    digest = registry_server.sha256(content)
    assert one.push_blob(REPOSITORY, digest, len(content), io.BytesIO(content)) is True
    assert one.push_blob(REPOSITORY, digest, len(content), io.BytesIO(content)) is False
    assert one.blob(REPOSITORY, digest) == content
    manifest = json.dumps({"mediaType": image_registry.OCI_MANIFEST, "layers": []}).encode("ascii")
    assert one.push_manifest(REPOSITORY, TAG, manifest) == one.resolve(REPOSITORY, TAG).digest


def test_a_damaged_upload_is_refused(basic):
    with pytest.raises(RegistryError, match="answered 400"):
        client(basic).push_blob(REPOSITORY, SHA, 3, io.BytesIO(b"abc"))


def test_a_missing_tag_names_the_reference_and_what_comes_near(registry):
    for tag in ("25.5.0-910b-5.10.0-oe2203", "25.5.0-310p-6.6.0-oe2403", "24.1.0-910b-6.6.0-oe2403"):
        image(registry, tag)
    with pytest.raises(ImageNotFound) as caught:
        client(registry).resolve(REPOSITORY, TAG)
    assert "%s/%s:%s does not exist" % (registry.address, REPOSITORY, TAG) in caught.value.message
    assert caught.value.details["near_tags"] == ["25.5.0-910b-5.10.0-oe2203", "25.5.0-310p-6.6.0-oe2403"]
    assert "25.5.0-910b-5.10.0-oe2203, 25.5.0-310p" in caught.value.message


def test_a_missing_tag_where_nothing_is_near_or_listed(basic):
    with pytest.raises(ImageNotFound, match="has no repository mlops/ascend-driver"):
        client(basic).resolve(REPOSITORY, TAG)
    image(basic, "1.0")
    with pytest.raises(ImageNotFound, match="1 tags"):
        client(basic).resolve(REPOSITORY, TAG)
    basic.list_tags = False
    with pytest.raises(ImageNotFound, match="does not exist$"):
        client(basic).resolve(REPOSITORY, TAG)


def test_near_tags_are_few():
    tags = ["25.5.0-910b-%d" % number for number in range(50)]
    assert len(near_tags(TAG, tags)) == 8


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
                one.push_blob(REPOSITORY, SHA, 1, io.BytesIO(b"a"))
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


def test_the_password_is_not_sent_in_the_clear_when_the_registry_itself_uses_tls():
    one = RegistryClient("r.example", "alice", "s3cret")
    with pytest.raises(RegistryError, match="not encrypted; refused"):
        one._answer(['Bearer realm="http://auth.example/token",service="x"'], REPOSITORY, "pull", None)


@pytest.mark.parametrize(
    "status, expected, text",
    [
        (500, RegistryUnreachable, "answered 500"),
        (503, RegistryUnreachable, "503"),
        (429, RegistryUnreachable, "limits the rate"),
        (403, RegistryDenied, "does not let"),
        (418, RegistryError, "answered 418"),
    ],
)
def test_what_the_registry_answers_becomes_a_sentence(basic, status, expected, text):
    image(basic)
    basic.faults = [("HEAD", "manifests", status), ("GET", "manifests", status)]
    with pytest.raises(expected, match=text):
        client(basic).resolve(REPOSITORY, TAG)


def test_a_registry_that_is_down():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = "127.0.0.1:%d" % free.getsockname()[1]
    with pytest.raises(RegistryUnreachable, match="refused"):
        RegistryClient(address, plain_http=True).resolve(REPOSITORY, TAG)


def test_a_name_that_does_not_resolve():
    with pytest.raises(RegistryUnreachable, match="does-not-exist.invalid does not resolve"):
        RegistryClient("does-not-exist.invalid", plain_http=True).resolve(REPOSITORY, TAG)


def test_a_registry_that_never_answers():
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(5)
        one = RegistryClient("127.0.0.1:%d" % silent.getsockname()[1], plain_http=True, timeout=0.3)
        with pytest.raises(RegistryUnreachable, match="did not answer"):
            one.resolve(REPOSITORY, TAG)


def test_a_registry_without_tls_names_the_variable(basic):
    with pytest.raises(RegistryUnreachable, match="npu_registry_plain_http"):
        client(basic, plain_http=False).resolve(REPOSITORY, TAG)


def test_a_ca_file_that_is_none(tmp_path):
    (tmp_path / "ca.pem").write_text("no certificate")
    for path in (tmp_path / "ca.pem", tmp_path / "missing.pem"):
        with pytest.raises(NpuError, match="CA file"):
            RegistryClient("r.example", ca_file=str(path)).resolve(REPOSITORY, TAG)


def test_a_server_that_is_no_registry():
    """Some other program listens there and says something that is not HTTP."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen(5)

        def answer():
            connection = other.accept()[0]
            with connection:
                connection.recv(1000)
                connection.sendall(b"220 mail.example ESMTP\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            with pytest.raises(RegistryUnreachable, match="no proper answer"):
                RegistryClient("127.0.0.1:%d" % other.getsockname()[1], plain_http=True).resolve(REPOSITORY, TAG)
        finally:
            thread.join()


@pytest.mark.parametrize("body", [b"<html>login</html>", b"[1]", b"\xff\xfe"])
def test_a_web_page_in_the_manifests_place(basic, body):
    image(basic)
    basic.faults = [("GET", "manifests", lambda content: body)]
    with pytest.raises(RegistryError, match="not a JSON object"):
        client(basic).image(REPOSITORY, TAG)


def test_a_manifest_of_something_else(basic):
    image(basic)
    basic.faults = [("GET", "manifests", lambda content: b'{"schemaVersion": 1, "fsLayers": []}')]
    with pytest.raises(RegistryError, match="no image that this collection can read"):
        client(basic).image(REPOSITORY, TAG)


def test_content_that_does_not_match_its_digest(basic):
    digest = image(basic)
    blob = basic.put_blob(b"right")
    basic.faults = [("GET", "manifests|blobs", lambda content: content.replace(b"r", b"R", 1))]
    with pytest.raises(RegistryError, match="delivered another manifest"):
        client(basic).image(REPOSITORY, digest)
    with pytest.raises(RegistryError, match="delivered something else"):
        client(basic).blob(REPOSITORY, blob)


def test_an_endless_document_is_not_read_to_its_end(basic, monkeypatch):
    image(basic)
    monkeypatch.setattr(image_registry, "_MAX_DOCUMENT", 10)
    with pytest.raises(RegistryError, match="more than 10 bytes"):
        client(basic).image(REPOSITORY, TAG)


@pytest.mark.parametrize("answer", [b'{"no": "token"}', b'{"token": "a\\nb"}', b"nonsense"])
def test_a_token_service_that_gives_no_token(token, answer):
    image(token)
    token.faults = [("GET", "/token", lambda content: answer)]
    with pytest.raises(RegistryError):
        client(token).resolve(REPOSITORY, TAG)


def test_architectures():
    assert image_registry.architecture("aarch64") == "arm64"
    assert image_registry.architecture() == image_registry.architecture(os.uname().machine)
