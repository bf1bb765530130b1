# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node whose chips are divided into virtual NPUs, as converge of molecule's scenario vnpu leaves it."""

from __future__ import annotations

import pytest

from support.lab.killed import run_killed
from support.lab.vnpus import DIVIDED, FOURS, HALVES, LIMIT, NODE, QUARTERED, QUARTERS, offered, serves, words
from support.lab.workloads import Team

RECORD = "/var/lib/npuops/vnpu"
SMI = "/var/lib/Ascend/driver/tools/npu-smi"
LIBRARIES = "LD_LIBRARY_PATH=/var/lib/Ascend/driver/lib64/driver:/var/lib/Ascend/driver/lib64/common"


@pytest.fixture(autouse=True)
def divided(lab):
    """Whatever a test does, the next one finds the node as the scenario has made it."""
    yield
    lab.fault(NODE, "clear")
    if (offered(lab), serves(lab)) != (DIVIDED, True):
        lab.playbook("install", LIMIT, npu_vnpu=HALVES)
    assert (offered(lab), serves(lab)) == (DIVIDED, True)


def record(lab) -> str:
    return lab.ssh(NODE, f"cat {RECORD}").stdout


def refused(lab, layout) -> str:
    """What install says of a layout that cannot be; nothing has changed then."""
    before = record(lab), lab.node(NODE)["metadata"]["resourceVersion"], offered(lab)
    result = lab.playbook("install", LIMIT, check=False, npu_vnpu=layout)
    assert result.returncode != 0 and (record(lab), offered(lab), serves(lab)) == (before[0], before[2], True)
    return words(result.stdout)


def test_what_it_offers(lab):
    assert (offered(lab), serves(lab)) == (DIVIDED, True)
    assert "changed=0 " in lab.playbook("install", LIMIT).stdout, "absent: as it is"


@pytest.mark.parametrize(
    ("layout", "told"),
    [
        ({"vir04": 2}, "vir04, vir04 need 8 AICPU, and chip 0 has 7"),
        ([{"chips": [0], "templates": {"vir04": 1}}], "the chips 0 and 1 are on one Atlas 300I Duo"),
        ([{"chips": [7], "templates": {"vir04": 1}}], "this host has no chip 7; its chips: 0, 1, 2, 3"),
        ({"vir12_3c_32g": 1}, "the 310P has no template vir12_3c_32g"),
        ("halves", "halves is no layout"),
    ],
)
def test_what_cannot_be(lab, layout, told):
    assert told in refused(lab, layout)


def test_leftovers_are_named(lab):
    place = lab.ssh(NODE, f"{LIBRARIES} {SMI} info -t phyid-remap -p 2").stdout
    npu, chip = (line.partition(":")[2] for line in place.splitlines()[2:4])
    lab.ssh(NODE, f"{LIBRARIES} {SMI} set -t create-vnpu -i {npu} -c {chip} -f vir02")
    try:
        found = lab.module(NODE, "npu_validate")
        (check,) = (check for check in found["checks"] if check["name"] == "virtual_npus")
        assert not check["ok"] and "Not recorded, but holding parts of their chips: 132 (vir02, chip 2)" in check["message"]
        assert f"npu-smi set -t destroy-vnpu -i {npu} -c {chip} -v 132" in refused(lab, HALVES)
    finally:
        destroyed = lab.module(NODE, "npu_vnpu", layout=HALVES, leftovers="destroy")
    assert [entry["id"] for entry in destroyed["leftovers"]] == [132]


@pytest.mark.parametrize("kind", ["clean", "leftover"])
def test_a_virtual_npu_that_cannot_be_created(lab, kind):
    """The node stays out of the NPU service until install has completed the change, whatever the setting says by then."""
    lab.fault(NODE, "vnpu-create-fails", "2", kind)
    failed = lab.playbook("install", LIMIT, check=False, npu_vnpu=QUARTERS)
    assert failed.returncode != 0 and "could not be created" in words(failed.stdout)
    assert not serves(lab) and not offered(lab)
    status = words(lab.playbook("status", LIMIT).stdout)
    assert "its virtual NPUs change since" in status and "run npuops.ascend.install" in status
    assert "its virtual NPUs are being changed" in words(lab.playbook("plan", LIMIT, npu_driver_version="25.5.1").stdout)
    lab.fault(NODE, "clear")
    lab.playbook("install", LIMIT)
    assert (offered(lab), serves(lab)) == (QUARTERED, True)


@pytest.mark.parametrize(
    ("moment", "seen"),
    [
        ("the node has left the service", lambda lab: not serves(lab)),
        ("the host is in the middle of the change", lambda lab: "vir02" in record(lab)),
        ("the host has changed", lambda lab: record(lab).count("vir02") == 12 and "destroy" not in record(lab)),
    ],
)
def test_a_controller_that_is_killed(lab, moment, seen):
    run_killed(lab, moment, lambda: seen(lab), "install", LIMIT, npu_vnpu=QUARTERS)
    assert not serves(lab), "nobody was there to give it back"
    lab.playbook("install", LIMIT, npu_vnpu=QUARTERS)
    assert (offered(lab), serves(lab)) == (QUARTERED, True)


def test_an_upgrade_drains_a_node_whose_npus_are_used(lab):
    with Team(lab, "vnpu-drain") as team:
        team.deploy("half", node=NODE, chips={FOURS: 1})
        lab.kubectl("label", "node", NODE, "npuops.ascend/maintenance-requested=true")
        result = words(lab.playbook("upgrade", LIMIT, npu_vnpu=QUARTERS, npu_upgrade_auto=True).stdout)
        assert "its virtual NPUs change in the same drain: 12 vir02 on chip 0, 1, 2, 3 instead of 2 vir04, 2 vir04_3c" in result
        assert (offered(lab), serves(lab)) == (QUARTERED, True)


def test_after_a_reboot_all_are_there_again(lab):
    before = lab.node(NODE)["status"]["nodeInfo"]["bootID"]
    lab.ssh(NODE, "systemctl reboot", check=False)

    def back() -> bool:
        node = lab.node(NODE)
        return node["status"]["nodeInfo"]["bootID"] != before and offered(lab) == DIVIDED

    lab.wait_for(back, 180, "the node offers its virtual NPUs again")
    lab.wait_for(lambda: lab.ssh(NODE, "true", check=False).returncode == 0, 60, "the host answers")
    assert "changed=0 " in lab.playbook("install", LIMIT, npu_vnpu=HALVES).stdout


def test_a_pod_on_a_virtual_npu_that_comes_at_the_last_moment(lab):
    """It waits for a virtual NPU that is not offered, and gets the new one."""
    with Team(lab, "vnpu-late") as team:
        team.deploy("late", node=NODE, chips={FOURS: 3}, wait=False)
        lab.playbook("install", LIMIT, npu_vnpu={"vir04": 1, "vir04_3c": 1})
        assert offered(lab)[FOURS] == "4"


def test_uninstall_ends_a_change_that_was_interrupted(lab):
    """To whole chips: then the record names only what is to go."""
    lab.ssh(NODE, f"sed -i 's/^[0-9]/destroy &/' {RECORD}")
    lab.playbook("uninstall", LIMIT)
    assert lab.ssh(NODE, f"ls -d /dev/vdavinci[0-9]* {RECORD}", check=False).stdout == ""
