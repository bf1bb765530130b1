# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Staging, with a real registry and a ctr that unpacks real layers; real containerds are for the lab."""

from __future__ import annotations

import collections
import gzip
import lzma
import os
import signal
import stat
import subprocess
import sys
import textwrap
import time

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._chips import symvers
from ansible_collections.npuops.ascend.plugins.module_utils._driver import staging
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._image import ctr as image_ctr
from ansible_collections.npuops.ascend.plugins.module_utils._inspect import facts as host_facts

from support.host import driver_images, mounted, registry_server
from support.host.fake_ctr import CTR
from support.paths import CHECKOUT, TESTS

REPOSITORY = "mlops/ascend-driver"
TAG = "25.5.0-910b-x"
HERE = os.path.dirname(os.path.abspath(__file__))


class Host:
    """A host as staging sees it, below a temporary directory."""

    def __init__(self, top, monkeypatch):
        self.top = top
        self.root = top / "Ascend"
        self.state = top / "state"
        for kind in ("images", "leases"):
            (self.state / kind).mkdir(parents=True)
        (self.state / "calls").write_text("")
        self.socket = top / "containerd.sock"
        self.socket.write_text("")
        self.ctr = top / "ctr"
        self.ctr.write_text(CTR.format(python=sys.executable, state=str(self.state), namespace="npuops"))
        self.ctr.chmod(0o755)
        self.run = top / "run"
        monkeypatch.setattr(image_ctr, "RUN_DIRECTORY", str(self.run))
        monkeypatch.setattr(image_ctr.Containerd, "_unmount", unmount)

    def stager(self, registry, **more):
        options = {
            "image": "%s/%s:%s" % (registry.address, REPOSITORY, TAG),
            "root": str(self.root),
            "kernel": driver_images.KERNEL,
            "username": registry.username,
            "password": registry.password,
            "plain_http": True,
            "containerd_address": str(self.socket),
            "ctr": str(self.ctr),
            "timeout": 30,
        }
        options.update(more)
        return staging.Stager(**options)

    def stage(self, registry, **more):
        stager = self.stager(registry, **more)
        if stager.reason() is None:
            return stager.release
        stager.check()
        return stager.stage()

    def is_clean(self):
        """Nothing left in containerd, no credentials, no mount, no half release."""
        return (
            not os.listdir(str(self.state / "images"))
            and not os.listdir(str(self.state / "leases"))
            and sorted(os.listdir(str(self.run))) == ["lock"]
            and not [name for name in os.listdir(str(self.root / "releases")) if name.startswith((".new", ".old"))]
        )


def unmount(self):
    import shutil

    shutil.rmtree(self._mount_point, ignore_errors=True)


@pytest.fixture
def host(tmp_path, monkeypatch):
    return Host(tmp_path / "host", monkeypatch)


@pytest.fixture(params=["basic", "token"])
def registry(request):
    with registry_server.Registry(auth=request.param) as server:
        yield server


@pytest.fixture
def basic():
    with registry_server.Registry(auth="basic") as server:
        yield server


def publish(registry, tmp_path, change=None, tag=TAG, annotations=None, **more):
    """Push a driver image; returns its digest."""
    top = tmp_path / ("image-" + tag)
    tree = driver_images.write_tree(top / "driver", **more)
    if change:
        change(tree)
    return driver_images.push(registry, REPOSITORY, tag, top, annotations=annotations)


def test_an_image_becomes_a_release(host, registry, tmp_path):
    digest = publish(registry, tmp_path)
    assert "is not staged for kernel" in host.stager(registry).reason()
    # Through a mirror: it may be staged again through another one.
    name = host.stage(registry, version="25.5.0", upstream="registry.example/x:1")
    assert name == "25.5.0-%s-%s" % (driver_images.KERNEL, digest[7:19])
    layout = host.stager(registry).layout
    manifest = layout.manifest(name)
    assert manifest["digest"] == digest and manifest["version"] == "25.5.0" and manifest["kernel"] == driver_images.KERNEL
    assert manifest["image"] == "registry.example/x:1"
    tree = host.root / "releases" / name / "driver"
    assert set(manifest["files"]) == {
        os.path.relpath(os.path.join(directory, file), str(tree))
        for directory, dummy, files in os.walk(str(tree))
        for file in files
    }
    plan = (tree / "modules.load").read_text().splitlines()
    assert plan[-1] == "insmod host/drv_vascend.ko optional" and plan[0] == "modprobe i2c_core required"
    assert [line.split()[1] for line in plan if line.startswith("insmod")] == manifest["modules"]
    assert host.is_clean()
    assert os.listdir(str(host.root)) == ["releases"]


PACKAGE = "Ascend-hdk-910b-npu-firmware_7.8.0.7.220.run"
FIRMWARE_INFO = "Version=7.8.0.7.220\ncompatible_version_drv=[25.0,25.0.],[25.5,25.5.]\n"


def add_firmware(tree, package=PACKAGE, info=FIRMWARE_INFO, content=b"#!/bin/sh\nexit 0\n"):
    """The directory beside the driver tree of an image."""
    directory = tree.parent / "firmware"
    driver_images.write(directory / "version.info", info.encode())
    if package:
        driver_images.write(directory / package, content, 0o4777)
    return directory


def test_firmware_becomes_part_of_the_release(host, basic, tmp_path):
    publish(basic, tmp_path, add_firmware)
    name = host.stage(basic)
    layout = host.stager(basic).layout
    assert {key: layout.manifest(name)["firmware"][key] for key in ("version", "drivers", "package")} == {
        "version": "7.8.0.7.220",
        "drivers": ["25.0", "25.5"],
        "package": PACKAGE,
    }
    staged = host.root / "releases" / name / "firmware"
    assert sorted(os.listdir(str(staged))) == [PACKAGE, "version.info"]
    assert stat.S_IMODE((staged / PACKAGE).stat().st_mode) == 0o755
    facts = host_facts.upgrade_facts(str(host.root))["staged"][name]
    sha256 = layout.manifest(name)["firmware"]["sha256"]
    assert facts["brings"] == {"version": "7.8.0.7.220", "drivers": ["25.0", "25.5"], "sha256": sha256}
    # A damaged package is found like a damaged driver, and staged again.
    (staged / PACKAGE).write_bytes(b"#!/bin/sh\nexit 1\n")
    assert layout.damage(name) is None and "was changed" in layout.damage(name, thorough=True)
    (staged / PACKAGE).write_bytes(b"cut")
    assert "firmware/%s of release %s was changed" % (PACKAGE, name) in host.stager(basic).reason()
    assert host.stage(basic) == name and layout.damage(name, thorough=True) is None


@pytest.mark.parametrize(
    ("version", "drivers", "fits"),
    [
        ("7.8.0.7.220", "25.0,25.5", True),
        ("7.8.0.7.220", "25.5", False),
        ("7.8.0.9.1", "25.5", False),
    ],
)
def test_an_image_must_have_the_firmware_that_it_declares(host, basic, tmp_path, version, drivers, fits):
    """By the annotations, the plan has judged."""
    told = {"npuops.ascend/firmware-version": version, "npuops.ascend/firmware-drivers": drivers}
    publish(basic, tmp_path, add_firmware, annotations=told)
    if fits:
        assert host.stage(basic)
        return
    with pytest.raises(NpuError, match="declare the firmware %s for drivers %s, but it has 7.8.0.7.220" % (version, drivers)):
        host.stage(basic)
    assert host.stager(basic).layout.releases() == []


def test_firmware_for_other_chips_is_not_staged(host, basic, tmp_path, monkeypatch):
    function = staging.pci.Function("0000:01:00.0", "19e5", "120000", "d500", "", False)
    monkeypatch.setattr(staging.pci, "chip_functions", lambda: [function])
    publish(basic, tmp_path, add_firmware)
    with pytest.raises(NpuError, match="%s is for 910b chips, not for 310p" % PACKAGE):
        host.stage(basic)
    assert host.is_clean()


def test_an_image_that_declares_firmware_and_has_none(host, basic, tmp_path):
    publish(basic, tmp_path, annotations={"npuops.ascend/firmware-version": "7.8.0.7.220"})
    with pytest.raises(NpuError, match="declare the firmware 7.8.0.7.220 for drivers any, but it has none for any"):
        host.stage(basic)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda tree: add_firmware(tree, None), "exactly one firmware package .*, but has none"),
        (lambda tree: add_firmware(tree, "a b.run"), "exactly one firmware package .*, but has a b.run"),
        (lambda tree: add_firmware(tree, "-x.run"), "exactly one firmware package"),
        (lambda tree: driver_images.write(add_firmware(tree) / "second.run", b""), "exactly one firmware package"),
        (lambda tree: driver_images.write(add_firmware(tree) / "deep" / "second.run", b""), "exactly one firmware package"),
        (lambda tree: add_firmware(tree, info="Version=$(id)\n"), "has an invalid version"),
        (lambda tree: add_firmware(tree, info="nothing\n"), "has no line Version="),
        (lambda tree: (tree.parent / "firmware").symlink_to("driver"), "/firmware in the image is not a directory"),
        (lambda tree: (add_firmware(tree, None) / PACKAGE).symlink_to("/etc/shadow"), "exactly one firmware package"),
        (lambda tree: driver_images.write(tree.parent / "firmware", b""), "/firmware in the image is not a directory"),
    ],
)
def test_bad_firmware_in_an_image_leaves_nothing_behind(host, basic, tmp_path, change, text):
    publish(basic, tmp_path, change)
    with pytest.raises(NpuError, match=text):
        host.stage(basic)
    assert host.stager(basic).layout.releases() == []


def test_the_second_time_nothing_is_done_and_with_a_digest_nobody_is_asked(host, registry, tmp_path):
    digest = publish(registry, tmp_path)
    name = host.stage(registry)
    stager = host.stager(registry)
    assert stager.reason() is None and stager.release == name
    registry.requests.clear()
    (host.state / "calls").write_text("")
    assert host.stager(registry, digest=digest).reason() is None
    assert host.stager(registry, image="%s/%s@%s" % (registry.address, REPOSITORY, digest)).reason() is None
    assert registry.requests == [] and (host.state / "calls").read_text() == ""


def test_a_tag_that_moved_is_staged_beside(host, basic, tmp_path):
    publish(basic, tmp_path)
    first = host.stage(basic)
    publish(basic, tmp_path, lambda tree: driver_images.write(tree / "new", b"new"))
    second = host.stage(basic)
    assert host.stager(basic).layout.releases() == sorted([first, second])


def test_another_kernel_needs_another_release(host, basic, tmp_path):
    def second_kernel(tree):
        driver_images.write(tree / "host-second" / "drv_pcie_host.ko", driver_images.module("6.8.0-31-generic"))

    publish(basic, tmp_path, second_kernel)
    host.stage(basic)
    assert host.stager(basic, kernel="6.8.0-31-generic").reason()
    assert host.stage(basic, kernel="6.8.0-31-generic").startswith("25.5.0-6.8.0-31-generic-")


def test_modes_are_safe_whatever_the_image_says(host, basic, tmp_path):
    def spoil(tree):
        (tree / "tools" / "npu-smi").chmod(0o6777)
        driver_images.write(tree / "device" / "secret.bin", b"x", 0o000)
        (tree / "device").chmod(0o700)
        (tree / "lib64" / "libx.so").symlink_to("driver/libdcmi.so")

    publish(basic, tmp_path, spoil)
    previous = os.umask(0o077)
    try:
        name = host.stage(basic)
    finally:
        os.umask(previous)
    tree = host.root / "releases" / name / "driver"
    modes = {
        path: stat.S_IMODE(os.lstat(os.path.join(str(tree), path)).st_mode)
        for path in ("tools/npu-smi", "device/secret.bin", "device", "host", "version.info")
    }
    assert modes == {
        "tools/npu-smi": 0o755,
        "device/secret.bin": 0o400,
        "device": 0o755,
        "host": 0o755,
        "version.info": 0o444,
    }
    assert os.readlink(str(tree / "lib64" / "libx.so")) == "driver/libdcmi.so"
    for directory, names, files in os.walk(str(host.root)):
        for entry in names + files:
            info = os.lstat(os.path.join(directory, entry))
            assert info.st_uid == os.geteuid()
            assert stat.S_ISLNK(info.st_mode) or not info.st_mode & 0o7022


def test_modes_are_safe_when_somebody_else_made_the_image(tmp_path):
    """The builder leaves setuid and write permission out; other people's images need not."""
    source = tmp_path / "source"
    for name, mode in (("suid", 0o4755), ("sgid", 0o2777), ("open", 0o666), ("closed", 0o000)):
        driver_images.write(source / "sub" / name, b"x", mode)
    (source / "sub").chmod(0o1777)
    staging.copy_tree(str(source), str(tmp_path / "target"))
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "target").glob("**/*")}
    assert modes == {"sub": 0o755, "suid": 0o755, "sgid": 0o755, "open": 0o644, "closed": 0o400}


def link(value, name="lib64/evil"):
    return lambda tree: (tree / name).symlink_to(value)


def chain(tree):
    """Each link looks harmless by itself: through "up" the second one ends two directories higher than it seems."""
    (tree / "deep").mkdir()
    (tree / "up").symlink_to(".")
    (tree / "lib64" / "evil").symlink_to("../up/../up/../up/x")


Bad = collections.namedtuple("Bad", "change text more")


@pytest.mark.parametrize(
    "bad",
    [
        Bad(link("/etc/shadow"), "lib64/evil -> /etc/shadow .* leads out", {}),
        Bad(link("../../x"), "leads out", {}),
        Bad(link("..", "evil"), "leads out", {}),
        Bad(chain, "leads out", {}),
        Bad(lambda tree: os.mkfifo(str(tree / "pipe")), "pipe in the image is a named pipe", {}),
        Bad(lambda tree: (tree / "version.info").unlink(), "no driver tree", {}),
        Bad(None, "no modules for kernel 9.9; it has modules for 6.6.0", {"kernel": "9.9"}),
        Bad(None, r"contains driver 25\.5\.0 instead of 25\.5\.1", {"version": "25.5.1"}),
        Bad(None, "no driver tree at /opt", {"path": "/opt"}),
    ],
)
def test_a_bad_image_leaves_nothing_behind(host, basic, tmp_path, bad):
    top = tmp_path / "image"
    tree = driver_images.write_tree(top / "driver")
    if bad.change:
        bad.change(tree)
    if os.path.exists(str(tree / "pipe")):
        # Our own packer refuses what other people's images may have.
        import gzip
        import io
        import json
        import tarfile

        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            archive.add(str(tree), "driver")
        layer = gzip.compress(packed.getvalue())
        registry_manifest = {
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "layers": [{"digest": basic.put_blob(layer), "size": len(layer)}],
            "config": {},
        }
        basic.put_manifest(REPOSITORY, TAG, json.loads(json.dumps(registry_manifest)))
    else:
        driver_images.push(basic, REPOSITORY, TAG, top)
    with pytest.raises(NpuError, match=bad.text):
        host.stage(basic, **bad.more)
    assert host.stager(basic).layout.releases() == []
    # The next run that holds the lock removes the incomplete copy.
    with host.stager(basic).layout.lock():
        pass
    assert host.is_clean()


def test_an_image_that_says_it_is_for_another_kernel_is_not_even_pulled(host, basic, tmp_path):
    publish(basic, tmp_path, annotations={"npuops.ascend/kernel": "5.10.0"})
    with pytest.raises(NpuError, match=r"built for kernel 5\.10\.0, not for 6\.6\.0"):
        host.stage(basic)
    assert (host.state / "calls").read_text() == ""


VERSIONS = {"module_layout": 0x11111111, "_printk": 0x22222222}
REBUILT = {"module_layout": 0x33333333, "_printk": 0x22222222}


@pytest.fixture
def export(host, monkeypatch):
    """A function that installs a kernel of the release that the images are for, with the symbol versions ``versions``."""
    of_kernel = symvers.of_kernel
    monkeypatch.setattr(symvers, "of_kernel", lambda release: of_kernel(release, str(host.top)))
    path = host.top / "boot" / ("symvers-%s.gz" % driver_images.KERNEL)
    return lambda versions: driver_images.write(path, gzip.compress(driver_images.symvers(versions)))


def test_a_rebuilt_kernel_with_the_same_release_is_named_before_its_boot(host, basic, tmp_path, export):
    publish(basic, tmp_path, versions=VERSIONS)
    told = (
        r"drv_seclib_host does not load .* module_layout is 0x11111111 in the module, and 0x33333333 in .*symvers-.*gz; 1 of its 2 "
    )
    export(REBUILT)
    with pytest.raises(NpuError, match=told) as caught:
        host.stage(basic)
    assert caught.value.details == {"kernel": driver_images.KERNEL, "module": "drv_seclib_host", "symbols": ["module_layout"]}
    assert host.is_clean() and host.stager(basic).layout.releases() == []
    export(VERSIONS)
    name = host.stage(basic)
    # The kernel is built again after the driver was staged for a later upgrade or rollback.
    export(REBUILT)
    with pytest.raises(NpuError, match=told):
        host.stager(basic).reason()
    # A driver that runs has loaded, whatever that file says.
    host.stager(basic).layout.point("driver", name)
    assert host.stager(basic).reason() is None


def test_an_image_for_another_release_of_the_same_kabi(host, basic, tmp_path, export):
    """An image names one kernel; hosts with that of a later update, whose symbol versions are the same, also use it."""
    sibling = "6.6.0-132.0.0.111.oe2403sp3.x86_64"
    publish(basic, tmp_path, kernel=sibling, versions=VERSIONS, annotations={"npuops.ascend/kernel": sibling})
    with pytest.raises(NpuError, match="was built for kernel %s, not for" % sibling):
        host.stage(basic)
    export(REBUILT)
    with pytest.raises(NpuError, match="has modules for %s. Those for .* needs module_layout with a CRC that" % sibling):
        host.stage(basic)
    export(VERSIONS)
    with pytest.raises(NpuError, match="those of this kernel are unknown"):
        host.stage(basic)
    own = driver_images.module(driver_images.KERNEL)
    driver_images.write(host.top / "lib/modules" / driver_images.KERNEL / "kernel/fs/fat.ko.xz", lzma.compress(own))
    name = host.stage(basic)
    assert name.startswith("25.5.0-%s-" % driver_images.KERNEL) and host.is_clean()
    assert host.stager(basic).reason() is None


def test_a_staged_version_that_is_not_the_one_asked_for(host, basic, tmp_path):
    publish(basic, tmp_path)
    host.stage(basic)
    with pytest.raises(NpuError, match=r"contains driver 25\.5\.0 instead of 25\.5\.1"):
        host.stager(basic, version="25.5.1").reason()


def test_a_corrupt_layer(host, basic, tmp_path):
    publish(basic, tmp_path)
    basic.faults = [("GET", "/blobs/", lambda content: content[:-1] + b"x")]
    with pytest.raises(NpuError, match="is damaged.*Push the image again"):
        host.stage(basic)
    assert host.is_clean()
    basic.faults = []
    host.stage(basic)


def test_a_token_that_expires_while_pulling_is_renewed(host, tmp_path):
    class Expiring(registry_server.Registry):
        """The token is good for what we ask and runs out when containerd comes."""

        issued = 0

        def issue_token(self, header):
            self.issued += 1
            self.token = "token-%d" % self.issued
            return self.token

        def allowed(self, header):
            return super().allowed(header) and not (self.issued == 2 and "/blobs/" in self.requests[-1][1])

    with Expiring(auth="token") as registry:
        publish(registry, tmp_path)
        assert host.stage(registry)
        assert registry.issued == 3
    assert host.is_clean()


def test_no_secret_in_arguments_or_on_disk(host, basic, tmp_path):
    publish(basic, tmp_path)
    host.stage(basic)
    header = next(value for dummy, dummy2, value in basic.requests if value)
    for directory, dummy, files in os.walk(str(host.top)):
        for name in files:
            with open(os.path.join(directory, name), "rb") as stream:
                content = stream.read()
            assert basic.password.encode() not in content and header.split()[1].encode() not in content, name


def test_leftovers_of_a_killed_run_are_removed(host, basic, tmp_path):
    publish(basic, tmp_path)
    for kind, name in (("images", "old@sha256"), ("leases", "5")):
        (host.state / kind / name).write_text("")
    (host.run / "hosts" / "r").mkdir(parents=True)
    (host.run / "hosts" / "r" / "hosts.toml").write_text("secret")
    (host.root / "releases" / ".new-x" / "driver").mkdir(parents=True)
    host.stage(basic)
    assert host.is_clean()


def test_damage_is_repaired_unless_the_release_is_in_use(host, basic, tmp_path):
    publish(basic, tmp_path)
    name = host.stage(basic)
    library = host.root / "releases" / name / "driver/lib64/driver/libdcmi.so"
    library.unlink()
    assert "libdcmi.so" in host.stager(basic).reason()
    assert host.stage(basic) == name and library.exists()
    host.stager(basic).layout.point("driver", name)
    library.unlink()
    with pytest.raises(NpuError, match="damaged.*libdcmi.so.*in use"):
        host.stage(basic)


def flip(path):
    """One bit is another; size and times are what they were."""
    info = path.stat()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.chmod(0o644)
    path.write_bytes(bytes(content))
    path.chmod(stat.S_IMODE(info.st_mode))
    os.utime(str(path), ns=(info.st_atime_ns, info.st_mtime_ns))


def cut(path):
    path.chmod(0o644)
    os.truncate(str(path), path.stat().st_size - 1)


def hang(path):
    path.unlink()
    os.mkfifo(str(path))


@pytest.mark.parametrize("damage", [flip, cut, hang, lambda path: path.unlink()])
@pytest.mark.parametrize("file", ["lib64/driver/libdcmi.so", "host/drv_pcie_host.ko", "modules.load", "version.info"])
def test_what_is_staged_is_verified_and_staged_again(host, basic, tmp_path, damage, file):
    publish(basic, tmp_path)
    name = host.stage(basic)
    path = host.root / "releases" / name / "driver" / file
    before = path.read_bytes()
    assert host.stager(basic, verify=True).reason() is None
    # What a rollback goes back to is named by a link, and replaced all the same.
    host.stager(basic).layout.point("previous", name)
    damage(path)
    assert file in host.stager(basic, verify=True).reason()
    assert host.stage(basic, verify=True) == name and path.read_bytes() == before
    assert host.stager(basic, verify=True).reason() is None
    assert host.stager(basic).layout.target("previous") == name


@pytest.mark.parametrize("link", ["driver", "good"])
def test_what_runs_is_not_replaced_even_if_it_is_damaged(host, basic, tmp_path, link):
    publish(basic, tmp_path)
    name = host.stage(basic)
    host.stager(basic).layout.point(link, name)
    flip(host.root / "releases" / name / "driver/lib64/driver/libdcmi.so")
    assert host.stager(basic).reason() is None
    with pytest.raises(NpuError, match="damaged.*libdcmi.so.*in use"):
        host.stage(basic, verify=True)


def test_contradicting_digests(host, basic):
    with pytest.raises(NpuError, match="has another digest"):
        host.stager(basic, image="r.example/a@sha256:" + "a" * 64, digest="sha256:" + "b" * 64)


def test_no_containerd(host, basic, tmp_path):
    publish(basic, tmp_path)
    with pytest.raises(NpuError, match="does not exist on this host. Check systemctl status containerd"):
        host.stage(basic, containerd_address=str(tmp_path / "none.sock"))


# Places


@pytest.mark.parametrize("option, text", [("noexec", "mounted noexec"), ("ro", "mounted read-only")])
def test_a_place_where_nothing_may_run_or_be_written(tmp_path, option, text):
    place = str(tmp_path / "not" / "yet" / "there")
    program = (
        "from ansible_collections.npuops.ascend.plugins.module_utils._driver import staging\n"
        "from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError\n"
        "try:\n"
        "    staging.check_place(%r, 1)\n"
        "except NpuError as exc:\n"
        "    print(exc.message)\n"
    ) % place
    assert text in mounted.output_of(["-t", "tmpfs", "-o", option, "none", str(tmp_path)], program)
    staging.check_place(place, 1)


def test_too_little_room_says_how_much_is_missing(tmp_path):
    with pytest.raises(
        NpuError, match=r"Not enough space in .*: \d+ MiB are free, but the driver image needs \d{9,} MiB"
    ) as caught:
        staging.check_place(str(tmp_path), 2**50)
    assert caught.value.details["needed_bytes"] > caught.value.details["free_bytes"] > 0
    staging.check_place(str(tmp_path), 1000)


def test_selinux_types_the_policy_does_not_know_are_passed_over(tmp_path, monkeypatch):
    labels = {}
    monkeypatch.setattr(
        staging.os, "setxattr", lambda path, name, value, follow_symlinks: labels.update({path: value}), raising=False
    )
    monkeypatch.setattr(staging, "_first_context", lambda types, selinux: types[-1].encode("ascii"))
    (tmp_path / "selinux").mkdir()
    (tmp_path / "selinux" / "context").write_text("")
    tree = driver_images.write_tree(tmp_path / "release" / "driver")
    staging.label(str(tree), ["host/asdrv_pbl.ko"], str(tmp_path / "selinux"))
    assert labels[str(tree / "host/asdrv_pbl.ko")] == b"modules_object_t"
    assert labels[str(tree / "tools/npu-smi")] == b"usr_t" and labels[str(tree)] == b"usr_t"
    labels.clear()
    staging.label(str(tree), [], str(tmp_path / "no-selinux"))
    assert labels == {}


# What ctr says


class Said:
    def __init__(self, stderr, rc=1):
        self.stdout, self.stderr, self.rc = "progress\n", stderr, rc
        self.timed_out = rc is None


@pytest.mark.parametrize(
    "text, rc, expected",
    [
        (
            "ctr: failed to copy: httpReadSeeker: pull access denied, no basic auth credentials",
            1,
            "did not let containerd pull X",
        ),
        (
            'ctr: failed commit on ref "layer-sha256:a": unexpected commit digest sha256:b: failed precondition',
            1,
            "X is damaged",
        ),
        ("ctr: failed to extract layer sha256:a: archive/tar: invalid tar header", 1, "X is damaged"),
        ("ctr: write /var/lib/containerd/x: no space left on device", 1, "is full"),
        ('ctr: failed to dial "/run/containerd/containerd.sock": connection refused', 1, "containerd does not respond"),
        (
            'ctr: failed to do request: Head "http://r/v2/": dial tcp 10.0.0.1:5000: connect: connection refused',
            1,
            "cannot reach the registry",
        ),
        ('ctr: failed to resolve reference "X": X: not found', 1, "no longer has X"),
        ("ctr: failed to copy: unexpected EOF", 1, "registry failed while"),
        ("", None, "did not finish X within 7 seconds"),
        ("ctr: something new", 1, "something new"),
        ("", 3, "no output, exit status 3"),
    ],
)
def test_what_ctr_says_becomes_a_sentence(text, rc, expected):
    said = Said(text, rc)
    if not text:
        said.stdout = ""
    assert expected in image_ctr.explain(said, "X", 7).message


def test_a_secret_that_ctr_repeats_is_not_shown():
    error = image_ctr.explain(Said("ctr: bad header Basic c2VjcmV0, really c2VjcmV0"), "X", 7, secrets=["Basic c2VjcmV0", None])
    assert "c2VjcmV0" not in error.message


def test_hosts_toml():
    assert image_ctr.hosts_toml("https://r.example", "Basic eA==", "/etc/ca.pem") == textwrap.dedent("""\
        server = "https://r.example"
        [host."https://r.example"]
          capabilities = ["pull", "resolve"]
          ca = "/etc/ca.pem"
          [host."https://r.example".header]
            Authorization = "Basic eA=="
        """)


# Killed

KILLED = """\
import sys
sys.path[:0] = {path!r}
import test_staging
from ansible_collections.npuops.ascend.plugins.module_utils._chips import symvers
from ansible_collections.npuops.ascend.plugins.module_utils._driver import staging
from ansible_collections.npuops.ascend.plugins.module_utils._image import ctr
ctr.RUN_DIRECTORY = {run!r}
ctr.Containerd._unmount = test_staging.unmount
stager = staging.Stager({image!r}, root={root!r}, kernel={kernel!r}, username="alice", password={password!r}, plain_http=True,
                       containerd_address={socket!r}, ctr={ctr!r})
stager.reason()
stager.stage()
"""


def child_path(tmp_path):
    """Directories from which a child finds the collection and the tests' own modules."""
    package = tmp_path / "path" / "ansible_collections"
    (package / "npuops").mkdir(parents=True)
    for directory in (package, package / "npuops"):
        (directory / "__init__.py").write_text("")
    (package / "npuops" / "ascend").symlink_to(CHECKOUT)
    return [str(tmp_path / "path"), HERE, str(TESTS)]


@pytest.mark.parametrize(
    "moment",
    [
        "call 1",
        "call 3",
        "call 4",
        "call 5",
        "call 6",
        "Ascend/releases/.new-*",
        "Ascend/releases/.new-*/driver/host/*",
        "Ascend/releases/.new-*/driver/modules.load",
        "Ascend/releases/25*",
        "call 8",
    ],
)
def test_killed_at_any_time_and_repeated(host, basic, tmp_path, moment):
    """SIGKILL as soon as that many calls of ctr, or such a file, are seen."""
    digest = publish(basic, tmp_path)
    script = KILLED.format(
        path=child_path(tmp_path),
        run=str(host.run),
        image="%s/%s:%s" % (basic.address, REPOSITORY, TAG),
        root=str(host.root),
        kernel=driver_images.KERNEL,
        password=basic.password,
        socket=str(host.socket),
        ctr=str(host.ctr),
    )

    def reached():
        if moment.startswith("call "):
            return len((host.state / "calls").read_text().splitlines()) >= int(moment[5:])
        return list(host.top.glob(moment))

    with subprocess.Popen([sys.executable, "-c", script]) as process:
        while not reached():
            assert process.poll() is None, "staging ended before the moment came"
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
    layout = host.stager(basic).layout
    for name in layout.releases():
        assert layout.damage(name) is None and layout.manifest(name)["digest"] == digest
    assert not os.path.lexists(str(host.root / "driver"))
    name = host.stage(basic)
    assert layout.releases() == [name] and layout.damage(name) is None
    with layout.lock():
        pass
    assert [entry for entry in os.listdir(layout.releases_dir) if entry != ".lock"] == [name]


class PowerCut(BaseException):
    pass


@pytest.mark.parametrize(
    "where",
    [
        "image_ctr.Containerd.pull",
        "image_ctr.Containerd.mounted",
        "driver_tree.inspect",
        "copy_tree",
        "copy_file",
        "label",
        "digests",
        "releases.Layout.commit",
    ],
)
def test_cut_short_at_each_step_and_repeated(host, basic, tmp_path, monkeypatch, where):
    publish(basic, tmp_path)
    target = staging
    *modules, name = where.split(".")
    for part in modules:
        target = getattr(target, part)

    def cut(*args, **kwargs):
        raise PowerCut

    with monkeypatch.context() as patch:
        patch.setattr(target, name, cut)
        with pytest.raises(PowerCut):
            host.stage(basic)
    assert host.stager(basic).layout.releases() == []
    assert not os.path.exists(str(host.run / "hosts"))
    assert host.stage(basic)
    assert host.is_clean()
