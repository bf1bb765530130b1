# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Images of several architectures under one tag."""

from __future__ import annotations

import json

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._driver.staging import Stager
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._image import manifests, oci
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry import RegistryClient

from support.host import registry_server

REPOSITORY, TAG = "mlops/ascend-driver", "25.5.0-910b-6.6.0-145.0.4.135-oe2403sp3"
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}


@pytest.fixture
def registry():
    with registry_server.Registry(auth="basic") as server:
        yield server


@pytest.fixture
def build(registry, tmp_path):
    """An image of one architecture, whose only file says what it is."""

    def make(architecture, text="1"):
        tree = tmp_path / f"{architecture}-{text}"
        tree.mkdir(exist_ok=True)
        (tree / "version.info").write_text(f"{architecture} {text}")
        client = RegistryClient(registry.address, registry.username, registry.password, plain_http=True)
        layer = oci.write_layer(str(tree), "driver", str(tmp_path / f"{architecture}-{text}.tar.gz"))
        annotations = {"npuops.ascend/kernel": f"6.6.0.{MACHINES[architecture]}"}
        return oci.Image(client, REPOSITORY, TAG, layer, architecture, annotations)

    return make


def push(image):
    reason = image.reason()
    image.push()
    return reason


def found(image):
    """Digest of the image that a host of each architecture gets."""
    answers = {}
    for architecture, machine in MACHINES.items():
        answers[architecture] = image.client.image(REPOSITORY, TAG, machine)[0].digest
    return answers


def test_a_second_architecture_does_not_replace_the_first(build, registry):
    amd64, arm64 = build("amd64"), build("arm64")
    push(amd64)
    assert registry.manifests[(REPOSITORY, TAG)][1] == manifests.OCI_MANIFEST
    assert push(arm64) == f"{registry.address}/{REPOSITORY}:{TAG} has no image for linux/arm64, only linux/amd64"
    assert found(amd64) == {"amd64": amd64.digest, "arm64": arm64.digest}
    content, media_type = registry.manifests[(REPOSITORY, TAG)]
    index = json.loads(content)
    assert media_type == manifests.OCI_INDEX == index["mediaType"]
    assert [one["platform"] for one in index["manifests"]] == [
        {"os": "linux", "architecture": "amd64"},
        {"os": "linux", "architecture": "arm64"},
    ]
    assert [one["size"] for one in index["manifests"]] == [len(amd64.manifest), len(arm64.manifest)]
    # Neither is built again, and who has pinned the first image still finds it.
    assert build("amd64").reason() is None and build("arm64").reason() is None
    assert amd64.client.manifest(REPOSITORY, amd64.digest)[0].digest == amd64.digest


def test_the_index_is_the_same_whichever_was_first(build, registry):
    push(build("amd64"))
    push(build("arm64"))
    first = registry.manifests.pop((REPOSITORY, TAG))
    push(build("arm64"))
    push(build("amd64"))
    assert registry.manifests[(REPOSITORY, TAG)] == first


def test_building_one_again_keeps_the_other(build):
    amd64, arm64, newer = build("amd64"), build("arm64"), build("amd64", "2")
    push(amd64)
    push(arm64)
    assert f"is a different image ({amd64.digest})" in push(newer)
    assert found(newer) == {"amd64": newer.digest, "arm64": arm64.digest}


def test_what_others_have_put_into_the_index_stays(build, registry):
    arm64 = build("arm64")
    push(arm64)
    attestation = {
        "mediaType": manifests.OCI_MANIFEST,
        "digest": "sha256:" + "a" * 64,
        "size": 2,
        "platform": {"os": "unknown", "architecture": "unknown"},
        "annotations": {"vnd.docker.reference.type": "attestation-manifest"},
    }
    variant = {
        "mediaType": manifests.DOCKER_MANIFEST,
        "digest": arm64.digest,
        "size": len(arm64.manifest),
        "platform": {"os": "linux", "architecture": "arm64", "variant": "v8"},
    }
    document = {"mediaType": manifests.DOCKER_LIST, "manifests": [attestation, variant], "annotations": {"a": "b"}}
    registry.put_manifest(REPOSITORY, TAG, document)
    assert build("arm64").reason() is None
    amd64 = build("amd64")
    assert "has no image for linux/amd64, only linux/arm64/v8, manifests without a platform" in push(amd64)
    assert found(amd64) == {"amd64": amd64.digest, "arm64": arm64.digest}
    index = json.loads(registry.manifests[(REPOSITORY, TAG)][0])
    assert attestation in index["manifests"] and variant in index["manifests"] and index["annotations"] == {"a": "b"}
    newer = build("arm64", "2")
    push(newer)
    assert found(newer) == {"amd64": amd64.digest, "arm64": newer.digest}


def test_an_index_that_lost_one_image_keeps_the_other(build, registry):
    amd64, arm64 = build("amd64"), build("arm64")
    push(amd64)
    push(arm64)
    del registry.manifests[(REPOSITORY, amd64.digest)]
    assert "does not exist" in push(build("amd64"))
    assert found(amd64) == {"amd64": amd64.digest, "arm64": arm64.digest}


def test_a_push_that_breaks_off_changes_no_tag(build, registry):
    amd64, arm64 = build("amd64"), build("arm64")
    push(amd64)
    before = registry.manifests[(REPOSITORY, TAG)]
    arm64.reason()
    registry.faults = [("PUT", f"manifests/{TAG}", 500)]
    with pytest.raises(NpuError, match="answered 500"):
        arm64.push()
    assert registry.manifests[(REPOSITORY, TAG)] == before
    registry.faults = []
    push(arm64)
    assert found(amd64) == {"amd64": amd64.digest, "arm64": arm64.digest}


def test_each_architecture_stages_its_own(build, registry, tmp_path):
    """Each host is told the kernel that its own image was built for."""
    push(build("amd64"))
    push(build("arm64"))
    for machine in MACHINES.values():
        stager = Stager(
            f"{registry.address}/{REPOSITORY}:{TAG}",
            root=str(tmp_path),
            kernel="5.10.0",
            username=registry.username,
            password=registry.password,
            plain_http=True,
        )
        stager.machine = machine
        assert stager.reason()
        with pytest.raises(NpuError, match=f"was built for kernel 6.6.0.{machine}, not for 5.10.0"):
            stager.check()


def test_hosts_have_nothing_to_do_when_the_other_architecture_changes(build, registry, tmp_path):
    """Their release is named after the digest of their own image."""
    releases = []
    for image in (build("amd64"), build("arm64"), build("arm64", "2")):
        push(image)
        stager = Stager(
            f"{registry.address}/{REPOSITORY}:{TAG}",
            version="25.5.0",
            root=str(tmp_path),
            username=registry.username,
            password=registry.password,
            plain_http=True,
        )
        stager.machine = "x86_64"
        assert stager.reason()
        releases.append((stager.digest, stager.expected_release))
    assert releases[0] == releases[1] == releases[2]
