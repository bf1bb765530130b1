# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Signed driver images: one that cosign 2.6.1 has signed, and ones that were tampered with."""

from __future__ import annotations

import base64
import json

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._image import manifests
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight import driver_image
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight.checked_host import CheckedHost
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256, SHA384, SHA512
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from support.host import registry_server
from support.paths import UNIT

REPOSITORY = "mlops/ascend-driver"
FIXTURE = UNIT / "fixtures" / "cosign" / "signed.json"
ANNOTATION = "dev.cosignproject.cosign/signature"


@pytest.fixture
def registry():
    with registry_server.Registry() as server:
        yield server


def resolve(registry, tag="t", machine=None, **config):
    settings = {
        "registry_username": None,
        "registry_password": None,
        "registry_plain_http": True,
        "registry_ca_file": None,
        "driver_digest": None,
        "driver_signature_policy": "require",
        "driver_signature_keys": None,
    }
    return driver_image.resolve("%s/%s:%s" % (registry.address, REPOSITORY, tag), dict(settings, **config), machine)


def pem(key):
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode("ascii")


def image(registry, tag="t", content=b"layer"):
    layer = {"digest": registry.put_blob(content), "size": len(content)}
    return registry.put_manifest(REPOSITORY, tag, {"mediaType": manifests.OCI_MANIFEST, "config": {}, "layers": [layer]})


def sign(registry, digest, key, about=None, at=None, algorithm=SHA256, **changes):
    """As cosign does it."""
    critical = {
        "identity": {"docker-reference": "x"},
        "image": {"docker-manifest-digest": about or digest},
        "type": "cosign container image signature",
    }
    payload = json.dumps({"critical": dict(critical, **changes), "optional": None}).encode("ascii")
    if isinstance(key, rsa.RSAPrivateKey):
        signature = key.sign(payload, padding.PKCS1v15(), SHA256())
    elif isinstance(key, ed25519.Ed25519PrivateKey):
        signature = key.sign(payload)
    else:
        signature = key.sign(payload, ec.ECDSA(algorithm()))
    layer = {
        "digest": registry.put_blob(payload),
        "size": len(payload),
        "annotations": {ANNOTATION: base64.b64encode(signature).decode("ascii")},
    }
    tag = (at or digest).replace(":", "-") + ".sig"
    try:
        layers = json.loads(registry.manifests[(REPOSITORY, tag)][0])["layers"]
    except KeyError:
        layers = []
    registry.put_manifest(REPOSITORY, tag, {"mediaType": manifests.OCI_MANIFEST, "config": {}, "layers": layers + [layer]})


@pytest.fixture
def key():
    return ec.generate_private_key(ec.SECP256R1())


def test_what_cosign_has_signed_is_let_pass(registry, tmp_path, key):
    with open(FIXTURE, encoding="utf-8") as stream:
        signed = json.load(stream)
    for name, (text, media_type) in signed["manifests"].items():
        registry.put_manifest(REPOSITORY, name, text.encode("utf-8"), media_type)
    for text in signed["blobs"].values():
        registry.put_blob(text.encode("latin-1"))
    (tmp_path / "cosign.pub").write_text(signed["public_key"])
    for keys in (signed["public_key"], [signed["public_key"]], [pem(key), str(tmp_path / "cosign.pub")]):
        assert resolve(registry, driver_signature_keys=keys) == signed["digest"]
    with pytest.raises(NpuError, match="not signed with any of npu_driver_signature_keys"):
        resolve(registry, driver_signature_keys=[pem(key)])


@pytest.mark.parametrize(
    "make",
    [
        lambda: ec.generate_private_key(ec.SECP256R1()),
        lambda: rsa.generate_private_key(65537, 2048),
        ed25519.Ed25519PrivateKey.generate,
    ],
)
def test_every_kind_of_key(registry, make):
    key = make()
    digest = image(registry)
    sign(registry, digest, key)
    assert resolve(registry, driver_signature_keys=[pem(key)]) == digest


@pytest.mark.parametrize(
    "curve, algorithm", [(ec.SECP384R1, SHA384), (ec.SECP521R1, SHA512), (ec.SECP384R1, SHA256), (ec.SECP521R1, SHA256)]
)
def test_a_longer_curve_has_a_longer_hash(registry, curve, algorithm):
    """As cosign 3 signs, and as older ones did."""
    key = ec.generate_private_key(curve())
    digest = image(registry)
    sign(registry, digest, key, algorithm=algorithm)
    assert resolve(registry, driver_signature_keys=[pem(key)]) == digest


def test_one_good_signature_among_others_is_enough(registry, key):
    digest = image(registry)
    sign(registry, digest, ec.generate_private_key(ec.SECP256R1()))
    sign(registry, digest, key)
    assert resolve(registry, driver_signature_keys=[pem(key)]) == digest


def test_a_tag_that_was_moved_to_an_unsigned_image(registry, key):
    sign(registry, image(registry), key)
    image(registry, content=b"evil")
    with pytest.raises(NpuError, match="is not signed: the registry has no .*sig"):
        resolve(registry, driver_signature_keys=[pem(key)])
    # Without a policy, any client that may move the tag decides.
    assert resolve(registry, driver_signature_policy="off")


def test_the_signature_of_another_image_is_none(registry, key):
    good, evil = image(registry, "good"), image(registry, content=b"evil")
    sign(registry, good, key, at=evil)
    with pytest.raises(NpuError, match="not signed with any"):
        resolve(registry, driver_signature_keys=[pem(key)])


@pytest.mark.parametrize("changes", [{"type": "something else"}, {"image": None}, {"image": {"docker-manifest-digest": 7}}])
def test_a_signed_text_that_says_something_else(registry, key, changes):
    digest = image(registry)
    sign(registry, digest, key, **changes)
    with pytest.raises(NpuError, match="not signed with any"):
        resolve(registry, driver_signature_keys=[pem(key)])


@pytest.mark.parametrize("text", [7, "%%", "", "AAAA", "\u00e4", None])
def test_signatures_that_are_none(registry, key, text):
    digest = image(registry)
    sign(registry, digest, key)
    tag = digest.replace(":", "-") + ".sig"
    manifest = json.loads(registry.manifests[(REPOSITORY, tag)][0])
    manifest["layers"][0]["annotations"] = {ANNOTATION: text} if text is not None else []
    registry.put_manifest(REPOSITORY, tag, manifest)
    with pytest.raises(NpuError, match="not signed with any"):
        resolve(registry, driver_signature_keys=[pem(key)])


@pytest.mark.parametrize(
    "keys, words",
    [
        (None, "names no public key"),
        ([], "names no public key"),
        ("", "names no public key"),
        (["/none/cosign.pub"], "cannot be read"),
        (["-----BEGIN PUBLIC KEY-----\nx\n-----END PUBLIC KEY-----"], "not a PEM public key"),
    ],
)
def test_keys_that_are_none(registry, keys, words):
    image(registry)
    with pytest.raises(NpuError, match=words):
        resolve(registry, driver_signature_keys=keys)


def test_a_policy_that_is_none(registry):
    image(registry)
    with pytest.raises(NpuError, match="npu_driver_signature_policy is 'requires'; it must be off or require"):
        resolve(registry, driver_signature_policy="requires")


# --- a digest of one's own ---


def test_a_digest_counts_for_more_than_the_tag(registry):
    first = image(registry)
    second = image(registry, content=b"evil")
    assert resolve(registry, driver_signature_policy="off") == second
    assert resolve(registry, driver_signature_policy="off", driver_digest=first) == first
    for digest, words in (("sha256:12", "must be sha256"), ("sha256:" + "0" * 64, "does not exist")):
        with pytest.raises(NpuError, match=words):
            resolve(registry, driver_signature_policy="off", driver_digest=digest)


def test_hosts_with_another_digest_are_asked_for_by_themselves():
    """Two hosts want the same tag; only one of them pins its digest."""
    asked = []
    verdicts = []
    for digest in (None, "sha256:" + "1" * 64):
        verdict = CheckedHost({"name": "a", "config": {"driver_image": "r.example/d:t", "driver_digest": digest}})
        verdict.wants_driver = True
        verdicts.append(verdict)
    answers = driver_image.Answers(
        lambda reference, config, machine: asked.append(config["driver_digest"]) or config["driver_digest"]
    )
    driver_image.resolve_all(verdicts, answers)
    assert asked == [None, "sha256:" + "1" * 64]


# --- an index of several architectures ---


@pytest.fixture
def index(registry):
    """Digests of an index and of its images, of which the tag t names the first."""
    images = {name: image(registry, name, name.encode("ascii")) for name in ("amd64", "arm64")}
    entries = [{"digest": digest, "platform": {"os": "linux", "architecture": name}} for name, digest in images.items()]
    return dict(images, index=registry.put_manifest(REPOSITORY, "t", {"mediaType": manifests.OCI_INDEX, "manifests": entries}))


def test_a_host_has_the_digest_of_its_own_image(registry, index):
    off = {"driver_signature_policy": "off"}
    assert resolve(registry, machine="x86_64", **off) == index["amd64"]
    assert resolve(registry, machine="aarch64", **off) == index["arm64"]
    assert resolve(registry, machine="aarch64", driver_digest=index["index"], **off) == index["arm64"]
    assert resolve(registry, machine="aarch64", driver_digest=index["arm64"], **off) == index["arm64"]
    # Of a host that has not said what it is.
    assert resolve(registry, **off) == index["index"]
    with pytest.raises(NpuError, match="no image for linux/riscv64, only linux/amd64, linux/arm64"):
        resolve(registry, machine="riscv64", **off)


@pytest.mark.parametrize("signed", ["index", "arm64"])
def test_the_signature_of_the_index_or_of_the_image(registry, index, key, signed):
    with pytest.raises(NpuError, match="@%s is not signed" % index["arm64"]):
        resolve(registry, machine="aarch64", driver_signature_keys=[pem(key)])
    sign(registry, index[signed], key)
    assert resolve(registry, machine="aarch64", driver_signature_keys=[pem(key)]) == index["arm64"]


def test_the_signature_of_another_image_in_the_index_is_none(registry, index, key):
    sign(registry, index["amd64"], key)
    with pytest.raises(NpuError, match="@%s is not signed" % index["arm64"]):
        resolve(registry, machine="aarch64", driver_signature_keys=[pem(key)])


def test_each_architecture_is_asked_for_by_itself(registry, index):
    """Two hosts want the same tag, on different machines."""
    verdicts = []
    for machine in ("x86_64", "aarch64"):
        verdict = CheckedHost({"name": machine, "facts": {"machine": machine}, "config": {"driver_image": "r.example/d:t"}})
        verdict.wants_driver = True
        verdicts.append(verdict)
    answers = driver_image.Answers(
        lambda _reference, _config, machine: resolve(registry, machine=machine, driver_signature_policy="off")
    )
    driver_image.resolve_all(verdicts, answers)
    assert [verdict.digest for verdict in verdicts] == [index["amd64"], index["arm64"]]
