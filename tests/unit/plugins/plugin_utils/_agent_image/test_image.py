# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node agent's image, built from a base image and wheels of this test's own, in a real registry."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import tarfile
import zipfile

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._image import manifests
from ansible_collections.npuops.ascend.plugins.module_utils._image.reference import parse_reference
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry import RegistryClient
from ansible_collections.npuops.ascend.plugins.plugin_utils._agent_image import program, wheels
from ansible_collections.npuops.ascend.plugins.plugin_utils._agent_image.base import DEFAULT, Base
from ansible_collections.npuops.ascend.plugins.plugin_utils._agent_image.image import AgentImage

from support.host import agent_images, registry_server
from support.paths import CHECKOUT

ARCHITECTURES = agent_images.MACHINES
CONTAINERFILE = (CHECKOUT / "images/node-agent/Containerfile").read_text(encoding="utf-8")


@pytest.fixture
def registry():
    with registry_server.Registry(auth="basic") as server:
        yield server


@pytest.fixture
def mirror():
    """The registry of the base image, another one."""
    with registry_server.Registry() as server:
        yield server


@pytest.fixture
def packages(tmp_path):
    """A package index: a directory with the wheels of both architectures."""
    return agent_images.write_packages(tmp_path / "packages")


@pytest.fixture(autouse=True)
def lock(packages, tmp_path, monkeypatch):
    path = tmp_path / "requirements.lock"
    agent_images.write_lock(path, packages)
    monkeypatch.setattr(program, "REQUIREMENTS", path)
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    return path


@pytest.fixture
def build(registry, mirror, packages, tmp_path):
    """The image, built in a new directory."""
    count = iter(range(100))

    def make(architectures=tuple(ARCHITECTURES), base="mirror/python:3.11", wheels_from=packages):
        workdir = tmp_path / ("work%d" % next(count))
        workdir.mkdir(exist_ok=True)
        client = RegistryClient(registry.address, registry.username, registry.password, plain_http=True)
        base = Base(RegistryClient(mirror.address, plain_http=True), "%s/%s" % (mirror.address, base))
        reference = parse_reference("%s/npuops/node-agent:0.1.0" % registry.address)
        return AgentImage(client, reference, base, architectures, workdir, wheels_from)

    return make


def pull(registry, architecture):
    """(manifest, configuration, {name in the last layer: TarInfo}, its contents) of what a node of that architecture pulls."""
    client = RegistryClient(registry.address, registry.username, registry.password, plain_http=True)
    manifest = client.image("npuops/node-agent", "0.1.0", ARCHITECTURES[architecture])[1]
    config = json.loads(client.blob("npuops/node-agent", manifest["config"]["digest"]))
    with tarfile.open(fileobj=io.BytesIO(registry.blobs[manifest["layers"][-1]["digest"]])) as archive:
        members = {member.name: member for member in archive.getmembers()}
        contents = {name: archive.extractfile(member).read() for name, member in members.items() if member.isfile()}
    return manifest, config, members, contents


def test_one_name_for_both_architectures(build, registry, mirror):
    digest = agent_images.put_base(mirror)
    image = build()
    assert image.reason() == "%s/npuops/node-agent:0.1.0 does not exist" % registry.address
    image.push()
    assert image.reason() is None
    for architecture, machine in ARCHITECTURES.items():
        manifest, config, members, contents = pull(registry, architecture)
        assert config["architecture"] == architecture and len(manifest["layers"]) == len(config["rootfs"]["diff_ids"]) == 2
        assert registry.blobs[manifest["layers"][0]["digest"]] == ("the Python of %s" % architecture).encode("ascii")
        place = "opt/npuops/"
        assert contents[place + "multidict/fast.so"] == machine.encode("ascii")
        assert contents[place + "npu_node_agent/main.py"] == (CHECKOUT / "images/node-agent/npu_node_agent/main.py").read_bytes()
        assert place + "ansible_collections/npuops/ascend/plugins/module_utils/_host/errors.py" in contents
        assert members["usr/local/bin/npuops-python"].mode == 0o755
        assert {member.mode for member in members.values() if member.isdir()} == {0o755}
        assert not [name for name in contents if "outside" in name or "scripts" in name or ".pyc" in name]
        assert config["config"]["Env"] == [
            "PATH=/usr/local/bin:/usr/bin:/bin",
            "PYTHON_VERSION=3.11.14",
            "PYTHONUNBUFFERED=1",
            "PYTHONPATH=/opt/npuops",
            "PYTHONDONTWRITEBYTECODE=1",
            "MALLOC_ARENA_MAX=2",
        ]
        assert config["config"]["Labels"]["of"] == "base" and "Cmd" not in config["config"]
        assert manifest["annotations"]["org.opencontainers.image.base.digest"] == digest
        assert [entry["created_by"] for entry in config["history"]] == [
            "debootstrap",
            "npuops.ascend.npu_node_agent_image_build",
        ]
    # The last layer has its own name as its content's: no version of zlib has a part in it.
    assert manifest["layers"][-1]["digest"] == config["rootfs"]["diff_ids"][-1]


def test_the_containerfile_makes_the_same_image():
    """Who changes the one must change the other."""
    environment = dict(text.split("=", 1) for text in re.search(r"^ENV (.+)$", CONTAINERFILE, re.MULTILINE)[1].split())
    assert environment == program.ENVIRONMENT
    assert json.loads(re.search(r"^ENTRYPOINT (.+)$", CONTAINERFILE, re.MULTILINE)[1]) == list(program.ENTRYPOINT)
    assert re.search(r"^WORKDIR (.+)$", CONTAINERFILE, re.MULTILINE)[1] == program.PLACE
    assert re.search(r"^ARG BASE=(.+)$", CONTAINERFILE, re.MULTILINE)[1] == DEFAULT
    assert sorted(re.findall(r"plugins/module_utils/\w+/\w+\.py", CONTAINERFILE)) == sorted(program.LIBRARY)
    assert re.search(r"^COPY images/node-agent/npuops-python /usr/local/bin/$", CONTAINERFILE, re.MULTILINE)
    assert "USER" not in CONTAINERFILE and "LABEL" not in CONTAINERFILE


def test_the_lock_file_names_what_the_agent_requires():
    directory = CHECKOUT / "images/node-agent"
    required = [line for line in (directory / "requirements.txt").read_text().splitlines() if not line.startswith("#")]
    locked = wheels.requirements(directory / "requirements.lock")
    assert ["%s==%s" % one[:2] for one in locked] == required
    assert {len(one.sha256) for one in locked} <= {1, 2}


def test_the_same_input_gives_the_same_digest(build, mirror, monkeypatch):
    agent_images.put_base(mirror)
    one = build()
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1234567890")
    before = os.umask(0o077)
    try:
        two = build(architectures=("arm64", "amd64"))
    finally:
        os.umask(before)
    assert one.digest == two.digest and one.content == two.content


def test_a_second_push_uploads_nothing(build, registry, mirror):
    agent_images.put_base(mirror)
    build().push()
    registry.requests.clear()
    again = build()
    assert again.reason() is None
    again.push()
    assert not [path for method, path, _header in registry.requests if method == "POST"]


def test_a_new_base_image_is_a_new_image(build, registry, mirror):
    agent_images.put_base(mirror)
    first = build()
    first.push()
    pinned = "mirror/python:3.11@" + first.base.digest
    agent_images.put_base(mirror, python="3.11.15")
    assert build().reason() == "%s/npuops/node-agent:0.1.0 is a different image (%s)" % (registry.address, first.digest)
    assert build(base=pinned).reason() is None


def test_only_the_architectures_that_are_asked_for(build, registry, mirror):
    agent_images.put_base(mirror)
    build(architectures=("arm64",)).push()
    assert [
        one["platform"]["architecture"] for one in json.loads(registry.manifests[("npuops/node-agent", "0.1.0")][0])["manifests"]
    ] == ["arm64"]


def test_docker_layers_and_variants(build, registry, mirror):
    """What a registry has of Docker's own formats becomes OCI's; their content is the same."""
    agent_images.put_base(mirror, layer_type=manifests.DOCKER_LAYER, architectures=("arm64",), variant="v8")
    build(architectures=("arm64",)).push()
    manifest = pull(registry, "arm64")[0]
    assert [layer["mediaType"] for layer in manifest["layers"]] == [manifests.OCI_LAYER, manifests.OCI_LAYER_PLAIN]
    entry = json.loads(registry.manifests[("npuops/node-agent", "0.1.0")][0])["manifests"][0]
    assert entry["platform"] == {"os": "linux", "architecture": "arm64", "variant": "v8"}


@pytest.mark.parametrize(
    "base, message",
    [
        (
            {"architectures": ["amd64"]},
            r"has nothing for linux/arm64: .*has no image for linux/arm64, only linux/amd64.*Set base to",
        ),
        ({"python": "3.12.1"}, r"mirror/python:3.11 has Python 3.12.1; the node agent needs 3.11"),
        ({"layer_type": "application/x-encrypted"}, r"a layer of type application/x-encrypted, which cannot be copied"),
    ],
)
def test_a_base_image_that_is_none(build, mirror, base, message):
    agent_images.put_base(mirror, **base)
    with pytest.raises(NpuError, match=message):
        build()


def test_a_base_image_for_one_architecture_without_an_index(build, mirror):
    agent_images.put_base(mirror, architectures=["amd64"])
    digest = json.loads(mirror.manifests[("mirror/python", "3.11")][0])["manifests"][0]["digest"]
    with pytest.raises(NpuError, match=r"is for linux/amd64, not for linux/arm64. Set base to an index with both"):
        build(base="mirror/python@" + digest)


def test_a_base_image_that_does_not_exist(build, mirror):
    with pytest.raises(NpuError, match="mirror/python:3.11 does not exist"):
        build()


def test_no_credentials(build, registry, mirror):
    agent_images.put_base(mirror)
    image = build()
    image.client = RegistryClient(registry.address, plain_http=True)
    with pytest.raises(NpuError, match="does not let an anonymous user read npuops/node-agent.*npu_registry_username"):
        image.reason()


def test_no_registry(build, mirror):
    agent_images.put_base(mirror)
    image = build()
    image.client = RegistryClient("127.0.0.1:1", plain_http=True)
    with pytest.raises(NpuError, match="127.0.0.1:1 cannot be reached: connection to 127.0.0.1:1 refused"):
        image.reason()


@pytest.mark.parametrize(
    "fault, message",
    [
        (lambda body: body[:-1] + bytes([body[-1] ^ 1]), "sent a blob that does not match the digest sha256:"),
        (500, "is out of order: it answered 500"),
    ],
)
def test_a_base_layer_that_does_not_arrive(build, registry, mirror, fault, message):
    agent_images.put_base(mirror)
    image = build()
    layer = image.platforms[0].layers[0].digest
    mirror.faults = [("GET", "blobs/" + layer, fault)]
    with pytest.raises(NpuError, match=message):
        image.push()
    assert not registry.manifests and layer not in registry.blobs
    mirror.faults = []
    image.push()
    assert image.reason() is None


def test_a_push_that_breaks_off_leaves_no_tag(build, registry, mirror):
    agent_images.put_base(mirror)
    image = build()
    registry.faults = [("PUT", "manifests/0.1.0", 500)]
    with pytest.raises(NpuError, match="answered 500"):
        image.push()
    assert ("npuops/node-agent", "0.1.0") not in registry.manifests


def test_a_directory_without_a_wheel(build, mirror, packages):
    agent_images.put_base(mirror)
    for path in packages.glob("*aarch64.whl"):
        path.unlink()
    with pytest.raises(NpuError, match=r"packages has no wheel of multidict 7.2.1 for linux/arm64 and Python 3.11"):
        build()
    assert build(architectures=("amd64",)).platforms
    with pytest.raises(NpuError, match=r"The directory with wheels, /nowhere, cannot be read: No such file"):
        build(wheels_from=pathlib.Path("/nowhere"))


def test_a_wheel_that_is_another_file(build, mirror, packages):
    agent_images.put_base(mirror)
    path = next(packages.glob("*aarch64.whl"))
    path.write_bytes(path.read_bytes() + b"?")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    with pytest.raises(NpuError, match=r"%s is not the wheel that .*requirements.lock names: its SHA-256 .* is %s" % (path, found)):
        build()


def test_a_wheel_that_is_no_archive(tmp_path):
    path = tmp_path / "a-1-py3-none-any.whl"
    path.write_bytes(b"<html>")
    with pytest.raises(NpuError, match="a-1-py3-none-any.whl cannot be unpacked: File is not a zip file"):
        wheels.unpack(path, tmp_path)


def test_a_lock_file_that_pins_nothing(lock):
    lock.write_text("multidict>=7\n")
    with pytest.raises(
        NpuError, match="requirements.lock: this line is not a package with its version and its checksums: multidict>=7"
    ):
        wheels.requirements(lock)


@pytest.fixture
def pip(packages, monkeypatch):
    """pip with the test's package index, and no other."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(packages))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)


@pytest.mark.usefixtures("pip")
def test_pip_brings_the_wheels_of_both_architectures(build, mirror):
    agent_images.put_base(mirror)
    assert build(wheels_from=None).digest == build().digest


@pytest.mark.usefixtures("pip")
def test_pip_finds_no_wheel_for_an_architecture(build, mirror, packages):
    agent_images.put_base(mirror)
    for path in packages.glob("*aarch64.whl"):
        path.unlink()
    with pytest.raises(NpuError, match=r"no wheel of multidict==7.2.1 for linux/arm64 and Python 3.11.*PIP_INDEX_URL.*set wheels"):
        build(wheels_from=None)


@pytest.mark.usefixtures("pip")
def test_pip_finds_another_wheel(build, mirror, packages):
    agent_images.put_base(mirror)
    path = next(packages.glob("*aarch64.whl"))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("multidict/more.py", "")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    with pytest.raises(NpuError, match=r"another wheel of multidict==7.2.1 for linux/arm64 .*its SHA-256 checksum is %s" % found):
        build(wheels_from=None)


def test_pip_does_not_reach_its_index(build, mirror, monkeypatch):
    agent_images.put_base(mirror)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_RETRIES", "1")
    with pytest.raises(NpuError, match=r"pip does not reach its package index: .*refused.*Set PIP_INDEX_URL.*set wheels"):
        build(wheels_from=None)


def test_no_pip(build, mirror, tmp_path, monkeypatch):
    agent_images.put_base(mirror)
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho "$0: No module named pip" >&2\nexit 1\n')
    python.chmod(0o755)
    monkeypatch.setattr(wheels.sys, "executable", str(python))
    with pytest.raises(NpuError, match=r"The Python that runs Ansible \(.*/python\) has no pip.*set wheels"):
        build(wheels_from=None)


@pytest.mark.parametrize("full", ["amd64/layer.tar", "arm64/root/usr/local/bin/npuops-python"])
def test_a_directory_that_is_full(build, mirror, tmp_path, full):
    agent_images.put_base(mirror)
    (tmp_path / "work0" / full).parent.mkdir(parents=True)
    (tmp_path / "work0" / full).symlink_to("/dev/full")
    with pytest.raises(NpuError, match="cannot be built in %s/work0 on the controller: No space left.*TMPDIR" % tmp_path):
        build()


def test_a_base_layer_that_cannot_be_kept(build, mirror, registry, tmp_path):
    agent_images.put_base(mirror)
    image = build()
    shutil.rmtree(tmp_path / "work0")
    with pytest.raises(NpuError, match="cannot be built in %s/work0 on the controller: No such file.*TMPDIR" % tmp_path):
        image.push()


def test_a_wheel_that_cannot_be_read(build, mirror, packages):
    agent_images.put_base(mirror)
    wheel = next(packages.glob("grpclib*"))
    wheel.unlink()
    wheel.mkdir()
    with pytest.raises(NpuError, match="%s cannot be read: Is a directory" % re.escape(str(wheel))):
        build()
