# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host with a driver from a package, for molecule/package: what install has made of it, and bad input."""

from __future__ import annotations

import json
import os
import pathlib

import pytest
import yaml

from support.host.file_server import FileServer
from support.lab.packages import settings

# Its /usr is read-only.
NODE, CHIP = "npu-c", "310p"
FIND_PACKAGES = "find /root/.ansible /var/lib/npuops* -name '*.run' 2>/dev/null; true"


def manifest(lab, root="/var/lib/Ascend/driver/.."):
    return json.loads(lab.ssh(NODE, f"cat {root}/manifest.json").stdout)


@pytest.fixture
def install(lab, tmp_path):
    """Run install with these variables of the host: (exit status, all that was printed)."""

    def run(*arguments, **variables):
        path = tmp_path / "zz-package.yml"
        path.write_text(yaml.safe_dump({"npu_nodes": {"hosts": {NODE: variables}}}), encoding="utf-8")
        env = {"XDG_CACHE_HOME": str(tmp_path)}
        done = lab.playbook("install", f"--limit={NODE}", "-i", str(path), *arguments, check=False, env=env)
        return done.returncode, " ".join((done.stdout + done.stderr).split())

    return run


def test_the_driver_is_from_the_package(lab):
    wanted = settings(lab, CHIP, lab.variable("npu_driver_version"))
    found = manifest(lab)
    assert found["digest"] == "sha256:" + wanted["npu_driver_package_sha256"] and found["package"] == wanted["npu_driver_package"]
    assert lab.node(NODE)["metadata"]["labels"]["npuops.ascend/driver-version"] == wanted["npu_driver_version"]
    assert lab.ssh(NODE, FIND_PACKAGES).stdout == "" and lab.ssh(NODE, "ls -A /var/lib/Ascend/releases").stdout.count(".new-") == 0


def test_a_second_run_does_not_need_the_package(lab, install):
    wanted = settings(lab, CHIP, lab.variable("npu_driver_version"))
    status, printed = install(**dict(wanted, npu_driver_package="https://127.0.0.1:1/nobody.run"))
    assert status == 0 and "changed=0" in printed, printed[-3000:]


@pytest.mark.parametrize("fault", ["wrong checksum", "truncated", "another chip"])
def test_bad_packages_change_nothing(lab, install, fault):
    """What preflight says comes before any change."""
    wanted = settings(lab, CHIP, "25.5.1")
    content = pathlib.Path(wanted["npu_driver_package"]).read_bytes()
    before = lab.ssh(NODE, "readlink /var/lib/Ascend/driver; ls -A /var/lib/Ascend/releases").stdout
    name = os.path.basename(wanted["npu_driver_package"])
    if fault == "another chip":
        name = name.replace(CHIP, "910b")
    with FileServer({"/" + name: content}) as server:
        wanted["npu_driver_package"] = server.url("/" + name)
        if fault == "wrong checksum":
            wanted["npu_driver_package_sha256"] = "0" * 64
        elif fault == "truncated":
            server.cut = [1000] + [0] * 20
        status, printed = install(**wanted)
    told = {
        "wrong checksum": "it is another file, or npu_driver_package_sha256 is wrong. The download was removed",
        "truncated": "ended early, also when repeated",
        "another chip": "is for 910b chips, not for 310p",
    }
    assert status != 0 and "Nothing was changed" in printed and told[fault] in printed, printed[-3000:]
    assert lab.ssh(NODE, "readlink /var/lib/Ascend/driver; ls -A /var/lib/Ascend/releases").stdout == before
