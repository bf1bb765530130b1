# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host with a driver from a package, for molecule/package: what install has made of it, bad input, a killed upgrade, uninstall."""

from __future__ import annotations

import itertools
import json
import os
import pathlib
import threading

import pytest
import yaml

from support.host.file_server import FileServer
from support.lab import leftovers
from support.lab.packages import FIND_PACKAGES, settings
from support.lab.rollout import TAKEOVER, proof, reboot, run, upgrade, watch
from support.patience import PATIENCE

# Its /usr is read-only.
NODE, CHIP = "npu-c", "310p"


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


def test_an_upgrade_that_is_killed_while_it_downloads_is_continued(lab, tmp_path):
    """By the next run, from where the download was."""
    wanted = settings(lab, CHIP, "25.5.1")
    content, name = pathlib.Path(wanted["npu_driver_package"]).read_bytes(), "/" + os.path.basename(wanted["npu_driver_package"])
    arguments = {"environment": {"XDG_CACHE_HOME": str(tmp_path)}, **wanted}
    half, killed, blocks = threading.Event(), threading.Event(), itertools.count()

    def pause():
        if next(blocks) == 8:
            half.set()
            killed.wait(PATIENCE)

    with FileServer({name: content}) as server, watch(lab) as observer:
        server.pause = pause
        arguments["npu_driver_package"] = server.url(name)
        try:
            with run(lab, f"--limit={NODE}", **arguments) as one:
                lab.wait_for(half.is_set, PATIENCE, "half of the package")
                one.controller.kill()
        finally:
            killed.set()
        text = upgrade(lab, f"--limit={NODE}", **arguments, **TAKEOVER)
        assert [bool(wanted_range) for _path, wanted_range, _login in server.requests] == [False, True], text[-3000:]
        assert proof(lab, observer, {NODE: 1}, "25.5.1", only=NODE) == []
    assert manifest(lab)["digest"] == "sha256:" + wanted["npu_driver_package_sha256"]
    assert lab.ssh(NODE, FIND_PACKAGES).stdout == "" and not list(tmp_path.glob("npuops/packages/*.part"))


def test_uninstall_leaves_nothing_of_it(lab, install):
    """And after a reboot, the host can be installed in the same way again."""
    wanted = settings(lab, CHIP, lab.variable("npu_driver_version"))
    printed = lab.playbook("uninstall", f"--limit={NODE}", **wanted).stdout
    assert "the driver stays loaded until this host is rebooted" in " ".join(printed.split())
    leftovers.assert_gone(lab, NODE)
    assert "changed=0" in lab.playbook("uninstall", f"--limit={NODE}", **wanted).stdout
    reboot(lab, NODE)
    status, printed = install(**wanted)
    assert status == 0, printed[-3000:]
    assert manifest(lab)["package"] == wanted["npu_driver_package"]
