# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The registry client against a real HTTP server."""

from __future__ import annotations

import contextlib
import io
import json
import os
import socket
import threading
import time

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._image import manifests, registry_connection
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry import RegistryClient
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry_errors import (
    ImageNotFound,
    RegistryDenied,
    RegistryError,
    RegistryUnreachable,
)

from support.host import registry_server
from support.patience import PATIENCE

SHA = "sha256:" + "a" * 64
REPOSITORY = "mlops/ascend-driver"
TAG = "25.5.0-910b-6.6.0-145.0.4.135-oe2403sp3"


def image(registry, tag=TAG, **more):
    """Put a small image into the test registry; returns its digest."""
    config = json.dumps({"architecture": "amd64", "tag": tag}).encode("ascii")
    document = {
        "schemaVersion": 2,
        "mediaType": manifests.OCI_MANIFEST,
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
        assert found.digest == digest and found.media_type == manifests.OCI_MANIFEST
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
    return registry.put_manifest(REPOSITORY, TAG, {"mediaType": manifests.OCI_INDEX, "manifests": entries})


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


def put_index(registry, media_type, *platforms):
    """An index of images for these platforms, each tagged with its place in it."""
    entries = [
        {"digest": image(registry, "place-%d" % place), **({} if platform is None else {"platform": platform})}
        for place, platform in enumerate(platforms)
    ]
    registry.put_manifest(REPOSITORY, TAG, {"mediaType": media_type, "manifests": entries})


ATTESTATION = {"os": "unknown", "architecture": "unknown"}
AMD64 = {"os": "linux", "architecture": "amd64"}
ARM64 = {"os": "linux", "architecture": "arm64"}


@pytest.mark.parametrize("media_type", manifests.INDEXES)
@pytest.mark.parametrize(
    ("platforms", "place"),
    [
        ([AMD64, {**ARM64, "variant": "v8"}], 1),
        ([AMD64, {**ARM64, "variant": ""}], 1),
        # Kunpeng 920 is ARMv8: an image for v9 would not start on it.
        ([{**ARM64, "variant": "v9"}, AMD64, {**ARM64, "variant": "v8"}], 2),
        ([ATTESTATION, AMD64, None, ARM64, ATTESTATION], 3),
        ([{"os": "windows", "architecture": "arm64"}, {"architecture": "arm64"}, ARM64], 2),
    ],
)
def test_which_image_of_an_index_an_arm64_host_gets(basic, media_type, platforms, place):
    put_index(basic, media_type, *platforms)
    found = client(basic).image(REPOSITORY, TAG, "aarch64")[0]
    assert found.digest == client(basic).resolve(REPOSITORY, "place-%d" % place).digest


@pytest.mark.parametrize(
    ("platforms", "only"),
    [
        ([AMD64, ATTESTATION, ATTESTATION], "linux/amd64, manifests without a platform"),
        ([AMD64, AMD64, {**ARM64, "variant": "v9"}], "linux/amd64, linux/arm64/v9"),
        ([None], "manifests without a platform"),
        ([], "an empty list"),
    ],
)
def test_what_an_index_offers_instead(basic, platforms, only):
    put_index(basic, manifests.DOCKER_LIST, *platforms)
    with pytest.raises(ImageNotFound) as caught:
        client(basic).image(REPOSITORY, TAG, "aarch64")
    assert caught.value.message.endswith("has no image for linux/arm64, only %s" % only)


@pytest.mark.parametrize("content", [b"abd", b"ab", b""])
def test_what_is_sent_is_what_its_digest_says(content):
    """A registry may check nothing: other content is not sent to its end."""
    received = []

    def accept(self):
        received.append(len(self.rfile.read(3)))
        self.close_connection = True

    with registry_server.Registry() as server:
        server._server.RequestHandlerClass.do_PUT = accept
        with pytest.raises(RegistryError, match="changed while it was sent"):
            client(server).push_blob(REPOSITORY, registry_server.sha256(b"abc"), 3, io.BytesIO(content))
    assert 3 not in received


def test_pushes_and_reads_back(registry):
    one = client(registry)
    content = b"x" * 3000000
    digest = registry_server.sha256(content)
    assert one.push_blob(REPOSITORY, digest, len(content), io.BytesIO(content)) is True
    assert one.push_blob(REPOSITORY, digest, len(content), io.BytesIO(content)) is False
    assert one.blob(REPOSITORY, digest) == content
    manifest = json.dumps({"mediaType": manifests.OCI_MANIFEST, "layers": []}).encode("ascii")
    assert one.push_manifest(REPOSITORY, TAG, manifest) == one.resolve(REPOSITORY, TAG).digest


def test_pushes_where_head_is_refused(registry):
    registry.head = False
    one = client(registry)
    digest = registry_server.sha256(b"abc")
    for _time in range(2):  # an existing blob cannot be seen, and is sent again
        assert one.push_blob(REPOSITORY, digest, 3, io.BytesIO(b"abc")) is True
    assert not one.has_blob(REPOSITORY, digest) and one.blob(REPOSITORY, digest) == b"abc"


class SignedStore(registry_server.Registry):
    """A blob store whose URLs are signed for one method, as those of S3 are: ?signed=HEAD. Another one is denied.

    ``lead(registry, code)`` makes a registry send its clients here.
    """

    def __enter__(self):
        super().__enter__()
        handler = self._server.RequestHandlerClass
        answer = handler.handle_one

        def check(request, method):
            return answer(request, method) if request.path.endswith("?signed=" + method) else request.answer(403)

        handler.handle_one = check
        return self

    def lead(self, registry, code):
        handler = registry._server.RequestHandlerClass
        originals = {"GET": handler.do_GET, "HEAD": handler.do_HEAD}
        self.blobs = registry.blobs

        def redirect(request):
            known = request.path.rpartition("/")[2] in registry.blobs
            if not known or not registry.allowed(request.headers.get("Authorization")):
                return originals[request.command](request)
            return request.answer(code, Location="http://%s%s?signed=%s" % (self.address, request.path, request.command))

        handler.do_GET = handler.do_HEAD = redirect


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_registry_that_keeps_its_blobs_in_a_store_of_signed_urls(registry, code):
    """Whether a blob exists is asked with HEAD, also after the redirect: a URL that is signed for HEAD denies a GET."""
    content = b"already there"
    with SignedStore() as store:
        store.lead(registry, code)
        digest = registry.put_blob(content)
        one = client(registry)
        assert one.blob(REPOSITORY, digest) == content
        assert one.has_blob(REPOSITORY, digest)
        assert not one.push_blob(REPOSITORY, digest, len(content), io.BytesIO(content))
        new = b"not yet there"
        assert one.push_blob(REPOSITORY, registry_server.sha256(new), len(new), io.BytesIO(new))
        assert [(method, header) for method, dummy, header in store.requests] == [("GET", None), ("HEAD", None), ("HEAD", None)]


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    ("location", "text"),
    [
        ("https://127.0.0.1:1/v2/?signature=secret", "to https://127.0.0.1:1 .*: do not set npu_registry_plain_http$"),
        ("http://127.0.0.1:1/v2/?signature=secret", "to http://127.0.0.1:1 .*: name the registry by that address$"),
    ],
)
@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_an_upload_that_is_redirected(basic, method, location, text, code):
    """Nor does it become a request without its content, as urllib makes it for a POST."""
    handler = basic._server.RequestHandlerClass
    original = handler.handle_one

    def redirect(request, asked):
        if asked == method and basic.allowed(request.headers.get("Authorization")):
            request.rfile.read(int(request.headers.get("Content-Length") or 0))
            return request.answer(code, Location=location)
        return original(request, asked)

    handler.handle_one = redirect
    with pytest.raises(RegistryError, match=text) as caught:
        client(basic).push_blob(REPOSITORY, registry_server.sha256(b"abc"), 3, io.BytesIO(b"abc"))
    assert str(code) in caught.value.message and "secret" not in caught.value.message


def test_a_damaged_upload_is_refused(basic):
    basic.faults.append(("PUT", "/uploads/", 400))
    with pytest.raises(RegistryError, match="answered 400"):
        client(basic).push_blob(REPOSITORY, registry_server.sha256(b"abc"), 3, io.BytesIO(b"abc"))


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


@pytest.mark.parametrize(
    "status, expected, text",
    [
        (500, RegistryUnreachable, "answered 500"),
        (503, RegistryUnreachable, "503"),
        (403, RegistryDenied, "does not let"),
        (418, RegistryError, "answered 418"),
    ],
)
def test_what_the_registry_answers_becomes_a_sentence(basic, status, expected, text):
    image(basic)
    basic.faults = [("HEAD", "manifests", status), ("GET", "manifests", status)]
    with pytest.raises(expected, match=text):
        client(basic).resolve(REPOSITORY, TAG)


@pytest.fixture
def pauses(monkeypatch):
    found = []
    monkeypatch.setattr(RegistryClient, "_sleep", staticmethod(found.append))
    return found


def test_a_registry_that_limits_the_rate_is_waited_for(basic, pauses):
    """As long as it says, or ever longer, but not for ever."""
    image(basic)
    basic.faults = [("HEAD", "manifests", 429)]
    asker = client(basic)
    with pytest.raises(RegistryUnreachable, match="limits the rate"):
        asker.resolve(REPOSITORY, TAG)
    assert pauses == [2, 4, 8, 16, 32, 64, 128]
    # Not again for each of many images.
    with pytest.raises(RegistryUnreachable, match="limits the rate"):
        asker.resolve(REPOSITORY, "other")
    assert sum(pauses) <= 300
    basic.faults = []
    assert asker.resolve(REPOSITORY, TAG)
    pauses.clear()
    asked = iter([429, 429])
    basic.retry_after = "7"
    basic.faults = [("GET", "manifests", asked)]
    assert asker.manifest(REPOSITORY, TAG)
    assert pauses == [7, 7]


def test_an_upload_that_is_refused_for_now_is_sent_from_its_beginning(basic, pauses):
    basic.faults = [("PUT", "uploads", iter([429]))]
    content = b"x" * 3_000_000
    assert client(basic).push_blob(REPOSITORY, manifests.sha256(content), len(content), io.BytesIO(content))
    assert pauses == [2] and basic.blobs[manifests.sha256(content)] == content


def test_a_manifest_that_is_known_by_its_tag_only(basic):
    """As in a registry that passes images of another one on."""
    digest = image(basic)
    del basic.manifests[(REPOSITORY, digest)]
    asker = client(basic)
    with pytest.raises(ImageNotFound):
        asker.manifest(REPOSITORY, digest)
    assert asker.resolve(REPOSITORY, TAG).digest == digest
    assert asker.manifest(REPOSITORY, digest)[0].digest == digest
    basic.put_manifest(REPOSITORY, TAG, b'{"layers": [], "schemaVersion": 2}', manifests.OCI_MANIFEST)
    with pytest.raises(ImageNotFound):
        asker.manifest(REPOSITORY, digest)


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
            with pytest.raises(RegistryUnreachable, match="did not send a valid answer"):
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
    with pytest.raises(RegistryError, match="not an image that this collection can read"):
        client(basic).image(REPOSITORY, TAG)


def test_content_that_does_not_match_its_digest(basic, tmp_path):
    digest = image(basic)
    blob = basic.put_blob(b"right")
    basic.faults = [("GET", "manifests|blobs", lambda content: content.replace(b"r", b"R", 1))]
    with pytest.raises(RegistryError, match="manifest that does not match"):
        client(basic).image(REPOSITORY, digest)
    with pytest.raises(RegistryError, match="blob that does not match the digest"):
        client(basic).blob(REPOSITORY, blob)
    with pytest.raises(RegistryError, match="blob that does not match the digest"):
        client(basic).download(REPOSITORY, blob, str(tmp_path / "blob"))


class WithoutLength:
    """A registry that sends blobs without their length, in pieces: after how many it closes the connection, and how slowly."""

    def __init__(self, registry, pieces, pause=0.0):
        self.pieces, self.pause = pieces, pause
        without = self

        def blob(handler, content):
            handler.send_response(200)
            handler.send_header("Connection", "close")
            handler.end_headers()
            handler.close_connection = True
            with contextlib.suppress(OSError):
                for place in range(0, len(content), 1000)[: without.pieces]:
                    time.sleep(without.pause)
                    handler.wfile.write(content[place : place + 1000])

        registry._server.RequestHandlerClass.blob = blob


@pytest.mark.parametrize("method", ["download", "resume"])
@pytest.mark.parametrize(
    ("pieces", "pause", "text"),
    [
        (5, 0, "did not say how long its answer is, .* it may have broken off"),
        (8, 0.5, "did not complete its answer within 1 seconds"),
    ],
)
def test_a_blob_whose_end_is_not_seen(basic, tmp_path, method, pieces, pause, text):
    """Neither the time limit nor an early end of the connection makes it one that does not match. A right digest decides."""
    content = b"x" * 8000
    digest, path = basic.put_blob(content), tmp_path / "blob"
    without = WithoutLength(basic, pieces, pause)
    with pytest.raises(RegistryError, match=text):
        getattr(client(basic), method)(REPOSITORY, digest, str(path), len(content), 1 if pause else 60)
    without.pieces, without.pause = 8, 0
    getattr(client(basic), method)(REPOSITORY, digest, str(path), len(content), 60)
    assert path.read_bytes() == content
    basic.blobs[digest] = b"y" * 8000
    with pytest.raises(RegistryError, match="does not match the digest .*: repair"):
        getattr(client(basic), method)(REPOSITORY, digest, str(path) + "2", len(content), 60)


def test_an_endless_document_is_not_read_to_its_end(basic, monkeypatch):
    image(basic)
    monkeypatch.setattr(registry_connection, "_MAX_DOCUMENT", 10)
    with pytest.raises(RegistryError, match="more than 10 bytes"):
        client(basic).image(REPOSITORY, TAG)


def test_architectures():
    assert manifests.architecture("aarch64") == "arm64"
    assert manifests.architecture() == manifests.architecture(os.uname().machine)
