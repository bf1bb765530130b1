# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Chips that are divided into virtual NPUs, in the order of docs/vnpu.md: what the node offers and a pod gets, before and after a
reboot; leftovers; and back to whole chips."""

from __future__ import annotations

import pytest

from support.lab.workloads import DUO, Team

NAMESPACE = "npu-operator"
NODE, CHIPS = "npu-c", 4
HALVES = [{"chips": [0, 1], "templates": {"vir04": 1, "vir04_3c": 1}}]
FOURS, THREES = DUO + "-4c", DUO + "-4c.3cpu"
DIVIDED = {DUO: "2", FOURS: "2", THREES: "2"}

pytestmark = pytest.mark.usefixtures("installed")


@pytest.fixture(scope="module", name="team")
def fixture_team(lab):
    with Team(lab, "vnpu-test") as team:
        yield team
    divide(lab, [])
    take_over(lab)
    assert offered(lab) == {DUO: str(CHIPS)}


def divide(lab, layout: list, *arguments: str, **options: object) -> dict:
    return lab.module(NODE, "npu_vnpu", *arguments, layout=layout, **options)


def take_over(lab) -> None:
    """What follows a change: the device plugin looks at the chips anew, and install describes them to containerd."""
    lab.kubectl(
        "delete", "pod", "-n", NAMESPACE, "-l", "name=ascend-device-plugin-ds", f"--field-selector=spec.nodeName={NODE}"
    )  # fmt: skip
    lab.playbook("install", "--limit", NODE)


def offered(lab) -> dict[str, str]:
    allocatable = lab.node(NODE)["status"]["allocatable"]
    return {name: count for name, count in allocatable.items() if name.startswith(DUO) and count != "0"}


def test_what_a_chip_cannot_be_divided_into(lab, team):
    refused = divide(lab, [{"templates": {"vir04": 2}}])
    assert refused["failed"] and "vir04, vir04 need 8 AICPU, and chip 0 has 7" in refused["msg"]
    assert offered(lab) == {DUO: str(CHIPS)}


def test_divided_chips(lab, team):
    assert divide(lab, HALVES, "--check")["changed"]
    assert lab.ssh(NODE, "ls /dev/vdavinci*", check=False).returncode != 0
    made = divide(lab, HALVES)
    assert made["resources"] == {name: int(count) for name, count in DIVIDED.items()}
    assert not divide(lab, HALVES)["changed"]
    take_over(lab)
    assert offered(lab) == DIVIDED
    status = lab.playbook("status", "--limit", NODE).stdout
    assert f"2 {DUO}, 2 {FOURS}, 2 {THREES}" in status and "ready" in status


def test_a_pod_gets_its_virtual_npu_and_no_chip(lab, team):
    team.deploy("half", node=NODE, chips={FOURS: 1})
    (pod,) = team.pods("half")
    inside = lab.kubectl(
        "exec", "-n", team.name, pod["metadata"]["name"], "--", "sh", "-c", "cd /dev; stat -c '%n %t:%T' davinci[0-9]*"
    )
    name, number = inside.split()
    assert name in ("davinci100", "davinci116")
    assert lab.ssh(NODE, f"stat -c %t:%T /dev/v{name}").stdout.strip() == number
    lab.kubectl("delete", "deployment", "half", "-n", team.name)
    lab.kubectl("wait", "--for=delete", "pods", "--all", "-n", team.name, "--timeout=120s")


def test_leftovers_are_named(lab, team):
    smi = "/var/lib/Ascend/driver/tools/npu-smi"
    libraries = "LD_LIBRARY_PATH=/var/lib/Ascend/driver/lib64/driver:/var/lib/Ascend/driver/lib64/common"
    place = lab.ssh(NODE, f"{libraries} {smi} info -t phyid-remap -p 2").stdout
    npu, chip = (line.partition(":")[2] for line in place.splitlines()[2:4])
    lab.ssh(NODE, f"{libraries} {smi} set -t create-vnpu -i {npu} -c {chip} -f vir02")
    found = lab.module(NODE, "npu_validate")
    (check,) = (check for check in found["checks"] if check["name"] == "virtual_npus")
    assert not check["ok"] and "Not recorded, but holding parts of their chips: 132 (vir02, chip 2)" in check["message"]
    refused = divide(lab, HALVES)
    assert refused["failed"] and f"npu-smi set -t destroy-vnpu -i {npu} -c {chip} -v 132" in refused["msg"]
    assert [entry["id"] for entry in divide(lab, HALVES, leftovers="destroy")["leftovers"]] == [132]


def test_after_a_reboot_all_are_there_again(lab, team):
    before = lab.node(NODE)["status"]["nodeInfo"]["bootID"]
    lab.ssh(NODE, "systemctl reboot", check=False)

    def back() -> bool:
        node = lab.node(NODE)
        return node["status"]["nodeInfo"]["bootID"] != before and offered(lab) == DIVIDED

    lab.wait_for(back, 180, "the node offers its virtual NPUs again")
    lab.wait_for(lambda: lab.ssh(NODE, "true", check=False).returncode == 0, 60, "the host answers")
    assert not divide(lab, HALVES)["changed"]
