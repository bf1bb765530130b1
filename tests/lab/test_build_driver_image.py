# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""playbooks/build_driver_image.yml as a user runs it, with real .run files and registries that want a password."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import tarfile

import pytest

from support.host import driver_images, registry_server
from support.lab.lab import Lab
from support.paths import CHECKOUT

KERNEL = driver_images.KERNEL
TAG = "25.5.0-910b-6.6.0-145.0.4.135-oe2403sp3"
PASSWORD = "pA55word of these tests"


@pytest.fixture(params=["basic", "token"])
def registry(request):
    with registry_server.Registry(auth=request.param, password=PASSWORD) as server:
        yield server


@pytest.fixture
def package(tmp_path):
    """A .run file, made with makeself as the real ones are."""
    tree = driver_images.write_tree(tmp_path / "content" / "driver")
    (tree / "version.info").rename(tmp_path / "content" / "version.info")
    driver_images.write(tmp_path / "content" / "install.sh", b"#!/bin/sh\ntouch /npuops-was-installed\n", 0o755)
    path = tmp_path / "Ascend-hdk-910b-npu-driver_25.5.0_linux-x86-64.run"
    command = [
        "makeself",
        "--quiet",
        "--nomd5",
        "--sha256",
        str(tmp_path / "content"),
        str(path),
        "DRIVER",
        "./install.sh",
    ]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return path


def firmware_package(tmp_path, drivers="[25.5,25.5.]", version="7.8.0.7.220"):
    """A firmware package, made likewise."""
    content = tmp_path / "firmware-content"
    text = f"Version={version}\nfirmware_version=1.0\ncompatible_version_drv={drivers}\n"
    driver_images.write(content / "firmware" / "version.info", text.encode())
    driver_images.write(content / "install.sh", b"#!/bin/sh\ntouch /npuops-was-installed\n", 0o755)
    path = tmp_path / f"Ascend-hdk-910b-npu-firmware_{version}.run"
    command = ["makeself", "--quiet", "--nomd5", "--sha256", str(content), str(path), "FIRMWARE", "./install.sh"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return path


@pytest.fixture
def build(tmp_path, registry):
    """Run the playbook with one entry; returns (exit status, all that was printed)."""

    def run(*arguments, password=PASSWORD, **entry):
        variables = tmp_path / "build.json"
        variables.write_text(
            json.dumps(
                {
                    "npu_driver_repository": f"{registry.address}/mlops/ascend-driver",
                    "npu_registry_username": "alice",
                    "npu_registry_password": password,
                    "npu_registry_plain_http": True,
                    "npu_driver_image_build": [entry],
                }
            )
        )
        command = [
            "ansible-playbook",
            "-i",
            "localhost,",
            "npuops.ascend.build_driver_image",
            "-e",
            f"@{variables}",
            *arguments,
        ]
        done = Lab(CHECKOUT / ".lab")._run(command, check=False)
        return done.returncode, done.stdout + done.stderr

    return run


@pytest.mark.core
def test_build_and_again(build, package, registry):
    entry = {
        "package": str(package),
        "package_sha256": hashlib.sha256(package.read_bytes()).hexdigest(),
        "chip": "910b",
        "kernel": KERNEL,
    }
    status, printed = build("--check", **entry)
    assert status == 0 and "changed=1" in printed and registry.manifests == {}
    status, printed = build("-vvv", **entry)
    assert status == 0 and "changed=1" in printed and f"{registry.address}/mlops/ascend-driver:{TAG}" in printed
    assert PASSWORD not in printed
    manifest = json.loads(registry.manifests[("mlops/ascend-driver", TAG)][0])
    assert manifest["annotations"]["npuops.ascend/kernel"] == KERNEL
    assert manifest["annotations"]["npuops.ascend/chip"] == "910b"
    status, printed = build(**entry)
    assert status == 0 and "changed=0" in printed
    assert len(registry.manifests) == 2


def test_an_image_with_firmware(build, package, registry, tmp_path):
    entry = {"package": str(package), "chip": "910b", "kernel": KERNEL}
    firmware = firmware_package(tmp_path, "[25.0,25.0.],[25.5,25.5.]")
    digest = hashlib.sha256(firmware.read_bytes()).hexdigest()
    assert build(**entry)[0] == 0
    status, printed = build(**entry, firmware=str(firmware), firmware_sha256=digest)
    assert status == 0 and "changed=1" in printed, printed[-3000:]
    manifest = json.loads(registry.manifests[("mlops/ascend-driver", TAG)][0])
    assert manifest["annotations"]["npuops.ascend/firmware-version"] == "7.8.0.7.220"
    assert manifest["annotations"]["npuops.ascend/firmware-drivers"] == "25.0,25.5"
    (layer,) = manifest["layers"]
    with tarfile.open(fileobj=io.BytesIO(registry.blobs[layer["digest"]])) as archive:
        names = archive.getnames()
        assert archive.extractfile(f"firmware/{firmware.name}").read() == firmware.read_bytes()
    assert "firmware/version.info" in names and "driver/version.info" in names
    assert "changed=0" in build(**entry, firmware=str(firmware))[1]
    assert not os.path.exists("/npuops-was-installed")


@pytest.mark.parametrize(
    "more, text",
    [
        ({"firmware": "/nowhere.run"}, "/nowhere.run does not exist"),
        ({"firmware": "/tmp"}, "it must be the .run file"),
        ({"firmware": "FIRMWARE", "firmware_sha256": "0" * 64}, "it is a different file, or damaged"),
        ({"firmware": "310P"}, "is for 310p chips, not for 910b"),
        ({"firmware": "DRIVER"}, "is a driver package, not a firmware package"),
        ({"firmware": "OTHER"}, "works with drivers 24.1, not with 25.5.0: use the firmware package of the same release"),
        ({"firmware_sha256": "0" * 64}, "firmware"),
    ],
)
def test_bad_firmware(build, package, registry, tmp_path, more, text):
    if more.get("firmware") in ("FIRMWARE", "OTHER", "310P"):
        drivers = "[24.1,24.1.]" if more["firmware"] == "OTHER" else "[25.5,25.5.]"
        found = firmware_package(tmp_path, drivers)
        if more["firmware"] == "310P":
            found = found.rename(found.with_name(found.name.replace("910b", "310p")))
        more = {**more, "firmware": str(found)}
    elif more.get("firmware") == "DRIVER":
        more = {**more, "firmware": str(package)}
    status, printed = build("-vvv", package=str(package), chip="910b", kernel=KERNEL, **more)
    assert status != 0 and text in " ".join(printed.split()), printed[-3000:]
    assert registry.manifests == {}


@pytest.mark.parametrize(
    "change, text",
    [
        ({"password": "wr0ng-one"}, "does not let user 'alice' read mlops/ascend-driver"),
        ({"kernel": "5.10.0", "os": "oe2203"}, f"no kernel modules for 5.10.0: the package has modules for {KERNEL}"),
        ({"package": "/nowhere.run"}, "/nowhere.run does not exist"),
        ({"package_sha256": "0" * 64}, "it is a different file, or damaged"),
        ({"chip": "910B/x"}, "is not a valid image tag"),
        ({"chips": "910b"}, "chips"),
        ({"repository": "r.example/a:tag"}, "without a tag"),
    ],
)
def test_bad_input(build, package, registry, change, text):
    status, printed = build("-vvv", **{"package": str(package), "chip": "910b", "kernel": KERNEL, **change})
    assert status != 0 and text in " ".join(printed.split()), printed[-3000:]
    assert registry.manifests == {} and "wr0ng-one" not in printed
