# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Driver packages laid out as the real ones, made into trees and images."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import stat
import subprocess
import tarfile

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._chips import kernel_modules
from ansible_collections.npuops.ascend.plugins.module_utils._driver import run_package
from ansible_collections.npuops.ascend.plugins.module_utils._driver import tree as driver_tree
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._image import oci
from ansible_collections.npuops.ascend.plugins.module_utils._image.manifests import OCI_MANIFEST
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry import RegistryClient

from support.host import driver_images, registry_server

KERNEL = driver_images.KERNEL
OTHER = "5.10.0-60.18.0.50.oe2203.x86_64"
FILELIST = """module,operation,relative_path_in_pkg,relative_install_path,is_in_docker,permission
driver,mkdir,NA,driver/lib64,N,755
driver,copy,driver/lib64/libdcmi.so,driver/lib64/driver/libdcmi.so,N,444
driver,copy,driver/lib64/libdcmi.so,/usr/local/dcmi/libdcmi.so,N,444
driver,copy,driver/tools/npu-smi,/usr/local/bin/npu-smi,N,555
driver,copy,driver/tools/../../../outside,driver/tools/outside,N,555
driver,copy,short
"""
FUNCTIONS = """vendor_bdf="0x19e5"
mode_normal="drv_seclib_host|asdrv_pbl|drv_pcie_host|drv_pcie_hdc_host|asdrv_dms|drv_vascend"
src_names=(device_sw.bin hbm_img.bin)
dst_names=(ascend_910b_device_sw.bin ascend_910b_hbm.bin)
"""


@pytest.fixture
def package(tmp_path):
    """What a .run extracts to."""
    top = tmp_path / "extracted"
    tree = driver_images.write_tree(top / "driver")
    (tree / "version.info").rename(top / "version.info")
    (tree / "lib64" / "driver" / "libdcmi.so").rename(tree / "lib64" / "libdcmi.so")
    driver_images.write(tree / "script" / "specific_func.inc", FUNCTIONS.encode("ascii"), 0o440)
    driver_images.write(tree / "script" / "filelist.csv", FILELIST.encode("ascii"), 0o440)
    driver_images.write(tree / "device" / "device_sw.bin", b"firmware of the chip", 0o440)
    driver_images.write(tree / "host" / "ts_agent_vm.ko", driver_images.module(), 0o440)
    driver_images.write(tree / "vnpu_guest" / "drv_pcie_host.ko", driver_images.module(depends="other"), 0o440)
    driver_images.write(top / "install.sh", b"#!/bin/sh\necho installed >&2; exit 3\n", 0o755)
    (tree / "host").chmod(0o555)
    return top


def assemble(package, tmp_path, wanted=KERNEL, modules=None):
    target = tmp_path / "tree"
    kernel = run_package.assemble(str(package), str(target), wanted, modules and str(modules))
    return kernel, target


@pytest.mark.parametrize("filelist", ["driver/script/filelist.csv", "filelist.csv", None])
def test_the_tree_is_what_the_installer_would_leave(package, tmp_path, filelist):
    lies_at = package / "driver" / "script" / "filelist.csv"
    if filelist:
        lies_at.rename(package / filelist)
    else:
        lies_at.unlink()
    kernel, tree = assemble(package, tmp_path)
    assert kernel == KERNEL
    assert (tree / "version.info").read_text().startswith("Version=25.5.0")
    assert (tree / "lib64/driver/libdcmi.so").is_file() and not (tree / "lib64/libdcmi.so").exists()
    assert (tree / "tools/npu-smi").is_file()
    assert (tree / "device/ascend_910b_device_sw.bin").read_bytes() == b"firmware of the chip"
    assert not (tree / "device/device_sw.bin").exists()
    found = driver_tree.inspect(str(tree), str(tree), kernel, os.uname().machine, "25.5.0")
    assert len(found.modules) == len(driver_images.MODULES)


def test_modules_for_virtual_machines_and_other_kernels_are_left_out(package, tmp_path):
    driver_images.write(package / "driver" / "binary" / "asdrv_dms.ko", driver_images.module(OTHER))
    tree = assemble(package, tmp_path)[1]
    names = sorted(os.path.relpath(path, str(tree)) for path in driver_tree.module_files(str(tree)))
    assert names == sorted("host/%s.ko" % name for name in driver_images.MODULES)
    assert kernel_modules.modinfo(str(tree / "host/drv_pcie_host.ko"))["depends"] == ["asdrv_pbl"]


def test_given_modules_count_before_the_packages(package, tmp_path):
    given = tmp_path / "repacked"
    driver_images.write(given / "asdrv_dms.ko", driver_images.module(srcversion="GIVEN"))
    driver_images.write(given / "asdrv_pbl.ko", driver_images.module(OTHER, srcversion="GIVEN"))
    tree = assemble(package, tmp_path, modules=given)[1]
    found = {name: kernel_modules.modinfo(str(tree / "host" / (name + ".ko")))["srcversion"] for name in driver_images.MODULES}
    assert [name for name in found if found[name] == ["GIVEN"]] == ["asdrv_dms"]


@pytest.mark.parametrize("wanted", [KERNEL, "6.6.0-145.0.4.135", "910b-6.6.0-145.0.4.135-oe2403sp3", "310p-6.6.0-145.0.4.135-mine"])
def test_the_kernel_may_be_given_in_each_spelling(package, tmp_path, wanted):
    assert assemble(package, tmp_path, wanted)[0] == KERNEL


@pytest.mark.parametrize("wanted", ["6.6.0", "6.6.0-145.0.4.136", "910b-6.6.0-145.0.4-oe2403sp3", OTHER])
def test_no_modules_for_that_kernel(package, tmp_path, wanted):
    with pytest.raises(NpuError, match="no kernel modules for .*it for|has modules for " + KERNEL):
        assemble(package, tmp_path, wanted)


def test_two_kernels_that_fit_are_refused(package, tmp_path):
    given = tmp_path / "repacked"
    driver_images.write(given / "asdrv_dms.ko", driver_images.module(KERNEL.replace("x86_64", "aarch64")))
    with pytest.raises(NpuError, match="several kernels"):
        assemble(package, tmp_path, "6.6.0-145.0.4.135", given)


@pytest.mark.parametrize(
    "spoil, text",
    [
        (lambda top: (top / "version.info").unlink(), "no version.info"),
        (lambda top: (top / "driver" / "lib64").rename(top / "lib"), "no driver/lib64"),
    ],
)
def test_what_is_no_driver_package(package, tmp_path, spoil, text):
    spoil(package)
    with pytest.raises(NpuError, match=text):
        assemble(package, tmp_path)


def test_a_real_run_file_is_extracted_and_not_installed(package, tmp_path):
    run = tmp_path / "Ascend-hdk-910b-npu-driver_25.5.0_linux-x86-64.run"
    assert shutil.which("makeself"), "makeself is not installed: dev/packages does that"
    makeself = ["makeself", "--quiet", "--nox11", "--nomd5", "--sha256"]
    subprocess.run(
        makeself + [str(package), str(run), "ASCEND DRIVER RUN PACKAGE", "./install.sh"], check=True, stdout=subprocess.DEVNULL
    )
    sha256 = hashlib.sha256(run.read_bytes()).hexdigest()
    found = run_package.extract(str(run), str(tmp_path), sha256.upper())
    assert os.path.isfile(os.path.join(found, "driver", "script", "specific_func.inc"))
    assert assemble(found, tmp_path)[0] == KERNEL
    with pytest.raises(NpuError, match="a different file, or damaged"):
        run_package.extract(str(run), str(tmp_path), "0" * 64)
    with open(str(run), "r+b") as stream:
        stream.seek(-200, os.SEEK_END)
        stream.write(b"\0" * 100)
    with pytest.raises(NpuError, match="cannot be extracted"):
        run_package.extract(str(run), str(tmp_path / "again"))


def test_a_file_that_is_no_package(tmp_path):
    path = tmp_path / "x.run"
    with pytest.raises(NpuError, match="does not exist"):
        run_package.extract(str(path), str(tmp_path))
    path.write_text("echo no such option; exit 4\n")
    with pytest.raises(NpuError, match=r"exit status 4\): no such option"):
        run_package.extract(str(path), str(tmp_path))
    with pytest.raises(NpuError, match="cannot be verified"):
        run_package.extract(str(tmp_path), str(tmp_path), "0" * 64)


def layer(tree, tmp_path, name="layer"):
    return oci.write_layer(str(tree), "/driver", str(tmp_path / name))


def test_a_layer_is_the_same_whenever_and_by_whomever_it_is_packed(package, tmp_path):
    tree = assemble(package, tmp_path)[1]
    one = layer(tree, tmp_path, "one")
    os.utime(str(tree / "version.info"), (1, 1))
    (tree / "zz").mkdir()
    (tree / "zz").rmdir()
    if os.geteuid() == 0:
        os.chown(str(tree / "version.info"), 1234, 1234)
    two = layer(tree, tmp_path, "two")
    assert (one.digest, one.diff_id, one.size) == (two.digest, two.diff_id, two.size)
    packed = (tmp_path / "one").read_bytes()
    assert one.digest == registry_server.sha256(packed)
    # The header of gzip: no name (flags), no time.
    assert packed[3:8] == b"\0" * 5


def test_a_layer_holds_the_tree_as_roots(package, tmp_path):
    tree = assemble(package, tmp_path)[1]
    (tree / "lib64/driver/libdcmi.so.1").symlink_to("libdcmi.so")
    (tree / "tools/npu-smi").chmod(0o6777)
    with tarfile.open(layer(tree, tmp_path).path) as archive:
        members = {member.name: member for member in archive.getmembers()}
    assert list(members) == sorted(members)
    assert {(member.uid, member.gid, member.mtime) for member in members.values()} == {(0, 0, 0)}
    assert members["driver/lib64/driver/libdcmi.so.1"].linkname == "libdcmi.so"
    assert members["driver/tools/npu-smi"].mode == 0o755
    assert members["driver/lib64"].mode == 0o755 and members["driver/version.info"].mode == 0o444
    assert not any(stat.S_IMODE(member.mode) & 0o7022 for member in members.values() if not member.issym())


@pytest.fixture(params=["basic", "token"])
def registry(request):
    with registry_server.Registry(auth=request.param) as server:
        yield server


def build(registry, tree, tmp_path, annotations=None):
    client = RegistryClient(registry.address, registry.username, registry.password, plain_http=True)
    return oci.Image(client, "mlops/ascend-driver", "25.5.0-x", layer(tree, tmp_path), "amd64", annotations or {"a": "b"})


def test_an_image_is_pushed_once(registry, package, tmp_path):
    tree = assemble(package, tmp_path)[1]
    image = build(registry, tree, tmp_path)
    assert "does not exist" in image.reason()
    image.push()
    descriptor, manifest = image.client.image(image.repository, image.tag)
    assert descriptor.digest == image.digest and descriptor.media_type == OCI_MANIFEST
    assert manifest["annotations"] == {"a": "b"}
    config = json.loads(image.client.blob(image.repository, manifest["config"]["digest"]))
    packed = image.client.blob(image.repository, manifest["layers"][0]["digest"])
    assert config["architecture"] == "amd64" and config["rootfs"]["diff_ids"] == [image.layer.diff_id]
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        assert "driver/version.info" in archive.getnames()
    assert build(registry, tree, tmp_path).reason() is None
    assert "is a different image" in build(registry, tree, tmp_path, {"a": "c"}).reason()


def test_an_image_packed_by_another_zlib_is_the_same_image(registry, package, tmp_path, monkeypatch):
    tree = assemble(package, tmp_path)[1]
    image = build(registry, tree, tmp_path)
    image.push()
    again = build(registry, tree, tmp_path)
    again.manifest = again.manifest.replace(again.layer.digest.encode("ascii"), b"sha256:" + b"0" * 64)
    again.digest = oci.sha256(again.manifest)
    assert again.reason() is None and again.digest == image.digest


def test_a_push_that_breaks_off_leaves_no_tag(registry, package, tmp_path):
    image = build(registry, assemble(package, tmp_path)[1], tmp_path)
    registry.faults = [("PUT", "blobs/uploads", 500)]
    with pytest.raises(NpuError, match="answered 500"):
        image.push()
    assert registry.manifests == {}
    registry.faults = []
    image.push()
    assert image.reason() is None
