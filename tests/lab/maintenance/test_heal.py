# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What can come between in a recovery, one test each; every one is judged by what the cluster and the hosts say."""

from __future__ import annotations

import json
import re
import time

import pytest
import yaml

from support.lab.healing import ANYWAY, QUICK, heal, healing, told, wait_well, wedge
from support.lab.observer import APPROVAL, LAST, LEASE, STATE
from support.lab.rollout import NAMESPACE, NPU_NODES, OTHER, proof, reboot, run, upgrade, version_of, watch
from support.lab.workloads import A2, Team
from support.patience import PATIENCE

CHIPS = {"npu-a": (A2, 8), "npu-b": (A2, 8)}
pytestmark = pytest.mark.usefixtures("quick_agents")


@pytest.fixture
def well(idle):
    """The lab, and afterwards no node is wedged."""
    yield idle
    for node in NPU_NODES:
        idle.fault(node, "clear")
    for node in NPU_NODES:
        # A boot that failed meanwhile has no driver.
        if "failed" in idle.ssh(node, "systemctl is-active npu-driver.service", check=False).stdout:
            reboot(idle, node)
        wait_well(idle, node)


@pytest.fixture
def team(well):
    with Team(well, "heal-test") as one:
        yield one


def touched(observer) -> set[str]:
    """The nodes that were cordoned, got a record or rebooted."""
    first = {sight.name: sight for sight in observer.timeline if sight.first and sight.kind == "node"}
    return {
        sight.name
        for sight in observer.timeline
        if sight.kind == "node" and (sight.record or sight.cordoned or sight.boot_id != first[sight.name].boot_id)
    }


def last(lab, node: str) -> dict:
    return json.loads(lab.node(node)["metadata"]["annotations"].get(LAST, "{}"))


def slots(lab) -> dict:
    lease = lab.kubectl("get", "lease", LEASE, "-n", NAMESPACE, "--ignore-not-found", "-o", "json")
    return (
        json.loads(json.loads(lease)["metadata"]["annotations"]["npuops.ascend/slots"])
        if lease
        else {"holders": {}, "halted": None}
    )


@pytest.mark.core
def test_a_watch_recovers_a_node_without_a_hand(well, team, capsys):
    """From the wedge to allocatable chips; the running pod ends and comes back."""
    lab = well
    resource, chips = CHIPS["npu-a"]
    team.deploy("train", node="npu-a", chips={resource: 2}, budget={"maxUnavailable": 1})
    with watch(lab) as observer, healing(lab, npu_heal_watch=True, npu_heal_watch_interval=2, **ANYWAY) as watching:
        lab.wait_for(lambda: "None of 3 NPU nodes is wedged" in watching.text, PATIENCE, "it watches", 0.2)
        lab.fault("npu-a", "wedge")
        begun = time.monotonic()
        observer.wait(lambda sight: sight.name == "npu-a" and bool(sight.record), PATIENCE, "npu-a in recovery")
        lab.wait_for(
            lambda: (
                not told(lab, "npu-a")
                and LAST in lab.node("npu-a")["metadata"]["annotations"]
                and lab.node("npu-a")["status"]["allocatable"].get(resource) == str(chips)
            ),
            PATIENCE,
            "npu-a is back",
            0.5,
        )
        seconds = time.monotonic() - begun
        wait_well(lab, "npu-a")
        lab.wait_for(
            lambda: "watches again" in watching.text and watching.text.rstrip().endswith("None of 3 NPU nodes is wedged."),
            PATIENCE,
            "it watches again",
            0.5,
        )
        assert proof(lab, observer, {"npu-a": 1}) == [], watching.text[-3000:]
    team.wait_available("train", 1)
    with capsys.disabled():
        print(
            f"\n    from the wedge to allocatable chips, the agent looking every {QUICK['npu_node_agent_probe_interval']} s: {seconds:.0f} s"
        )
    assert last(lab, "npu-a")["reason"] == "recovery" and last(lab, "npu-a")["approval"] is None


def test_a_watch_recovers_a_host_that_joined_the_inventory_later(well, tmp_path):
    lab = well
    inventory = tmp_path / "hosts.yml"
    whole = lab.inventory.read_text(encoding="utf-8")
    without = yaml.safe_load(whole)
    del without["npu_nodes"]["hosts"]["npu-b"]
    inventory.write_text(yaml.safe_dump(without), encoding="utf-8")
    with (
        watch(lab) as observer,
        healing(lab, inventory=inventory, npu_heal_watch=True, npu_heal_watch_interval=2, **ANYWAY) as watching,
    ):
        lab.wait_for(lambda: "None of 3 NPU nodes is wedged" in watching.text, PATIENCE, "it watches", 0.2)
        inventory.write_text(whole, encoding="utf-8")
        wedge(lab, "npu-b")
        lab.wait_for(lambda: "watches again" in watching.text, PATIENCE, "a recovery has ended", 0.5)
        assert "no-host" in watching.text and "Reloads the inventory, for npu-b:" in watching.text, watching.text[-3000:]
        wait_well(lab, "npu-b")
        assert proof(lab, observer, {"npu-b": 1}) == [], watching.text[-3000:]


def test_an_old_approval_is_for_an_upgrade(well):
    """Given to all nodes in bulk, before one of them wedges."""
    lab = well
    lab.kubectl("annotate", "nodes", *NPU_NODES, f"{APPROVAL}=true")
    wedge(lab, "npu-a")
    # From now on, managedFields have the time of this for the approval, too.
    lab.kubectl("annotate", "node", "npu-a", "example.com/note=seen")
    with watch(lab) as observer:
        text = heal(lab, **{**ANYWAY, "npu_heal_auto": False})
        assert "kubectl-annotate has also set example.com/note" in text and touched(observer) == set(), text
        lab.kubectl(*re.findall(r"kubectl (annotate node npu-a .*--overwrite)", text)[-1].split())
        heal(lab, **{**ANYWAY, "npu_heal_auto": False})
        wait_well(lab, "npu-a")
        lab.kubectl("annotate", "nodes", "npu-b", "npu-c", f"{APPROVAL}-")
        lab.kubectl("annotate", "node", "npu-a", "example.com/note-")
        assert proof(lab, observer, {"npu-a": 1}) == []


@pytest.mark.core
def test_a_false_alarm(well):
    lab = well
    wedge(lab, "npu-b")
    lab.fault("npu-b", "clear")
    wait_well(lab, "npu-b")
    with watch(lab) as observer:
        assert "None of 3 NPU nodes is wedged" in heal(lab, **ANYWAY)
        assert touched(observer) == set() and proof(lab, observer, {}) == []


def test_chips_that_answer_again_during_the_drain(well, team):
    """The node goes back into service, without a reboot."""
    lab = well
    team.deploy("slow", node="npu-b", holds=True)
    wedge(lab, "npu-b")
    with watch(lab) as observer, healing(lab, **ANYWAY) as one:
        observer.wait(lambda sight: sight.name == "npu-b" and sight.cordoned, PATIENCE, "npu-b is cordoned")
        lab.fault("npu-b", "clear")
        # The pod holds the drain up until the agent has seen that the chips answer.
        assert one.wait() == 0, one.text
        assert "Its chips respond again" in one.text
        wait_well(lab, "npu-b")
        assert proof(lab, observer, {}) == [], one.text
    assert last(lab, "npu-b")["outcome"] == "answers-again"


@pytest.mark.core
def test_a_storm(well):
    lab = well
    for node in ("npu-a", "npu-b"):
        lab.fault(node, "wedge")
    for node in ("npu-a", "npu-b"):
        wedge(lab, node)
    with watch(lab) as observer:
        text = heal(lab, expect=1, **{**ANYWAY, "npu_heal_storm_percent": 50})
        assert "2 of 3 NPU nodes wedged within 3600 s (npu-a, npu-b)" in text, text
        assert touched(observer) == set()
    status = lab.playbook("status", npu_heal_storm_percent=50).stdout
    assert "STORM: 2 of 3 NPU nodes" in status and "no recovery in a storm" in status, status


def test_a_recovery_that_does_not_help(well):
    """One attempt, then the node stays cordoned for people; when they have repaired it, it is given back."""
    lab = well
    bounds = {**ANYWAY, "npu_heal_attempts": 1}
    wedge(lab, "npu-c", "fewer-chips")
    with watch(lab) as observer:
        text = heal(lab, expect=1, **bounds)
        assert "did not help" in text and "npu-c" in text, text
        assert lab.node("npu-c")["spec"]["unschedulable"] and slots(lab)["holders"] == {} and not slots(lab)["halted"]
        text = heal(lab, expect=1, **bounds)
        assert "given-up" in text and "rebooted once within a day" in text, text
        status = lab.playbook("status", npu_heal_attempts=1, npu_heal_storm_percent=100).stdout
        assert "recovery: given-up" in status, status
        lab.fault("npu-c", "clear")
        reboot(lab, "npu-c")
        wait_well(lab, "npu-c")
        assert lab.node("npu-c")["spec"]["unschedulable"]
        assert "give-back" in heal(lab, **{**bounds, "npu_heal_auto": False})
        assert proof(lab, observer, {"npu-c": 2}, unasked=("npu-c",)) == []


def test_a_host_that_has_just_booted(well):
    """The uptime of the lab's hosts is that of its machine."""
    lab = well
    wedge(lab, "npu-a")
    with watch(lab) as observer:
        text = heal(lab, **{**ANYWAY, "npu_heal_min_uptime": 10**9})
        assert "too-soon" in text and "npu_heal_min_uptime" in text, text
        assert touched(observer) == set()


def test_together_with_an_upgrade(well, team):
    """A recovery waits for the slot, and does not touch the node that the upgrade has, although it is wedged, too."""
    lab = well
    team.deploy("slow", node="npu-a", holds=True)
    version = OTHER[version_of(lab, "npu-a")]
    with watch(lab) as observer:
        with run(lab, "--limit=npu-a", npu_driver_version=version) as upgrading:
            observer.wait(lambda sight: sight.name == "npu-a" and sight.cordoned, PATIENCE, "npu-a is cordoned")
            for node in ("npu-a", "npu-b"):
                lab.fault(node, "wedge")
            wedge(lab, "npu-b")
            with healing(lab, npu_upgrade_max_parallel=3, **ANYWAY) as one:
                lab.wait_for(
                    lambda: "waits for its turn" in one.text or not upgrading.controller.running, 60, "the recovery waits", 0.2
                )
                assert "waits for its turn: all 1 slot taken: npu-a" in one.text, one.text
                team.let_go("slow")
                assert upgrading.wait() == 0, upgrading.text
                assert one.wait() == 0, one.text
                assert "in-upgrade" in one.text or "npu-a" not in one.text.partition("VERDICT")[2].partition("TASK")[0], one.text
        wait_well(lab, "npu-a")
        wait_well(lab, "npu-b")
        # The upgrade's one reboot cured the one, the recovery the other.
        assert proof(lab, observer, {"npu-a": 1, "npu-b": 1}, max_parallel=1) == []
    assert version_of(lab, "npu-a") == version and last(lab, "npu-a")["reason"] == "upgrade"
    assert last(lab, "npu-b")["reason"] == "recovery"


def test_a_wedge_during_an_upgrade_is_the_upgrades_failure(well, team):
    """Chips that stay away after the new driver was loaded: rolled back, and halted."""
    lab = well
    team.deploy("slow", node="npu-b", holds=True)
    version = OTHER[version_of(lab, "npu-b")]
    with watch(lab) as observer, run(lab, "--limit=npu-b", npu_driver_version=version) as upgrading:
        observer.wait(lambda sight: sight.name == "npu-b" and sight.cordoned, PATIENCE, "npu-b is cordoned")
        lab.fault("npu-b", "fewer-chips")
        team.let_go("slow")
        assert upgrading.wait() != 0
    assert last(lab, "npu-b")["reason"] == "upgrade" and "npu-smi" in last(lab, "npu-b")["failure"]
    assert lab.node("npu-b")["metadata"]["labels"][STATE] == "upgrade-failed" and slots(lab)["halted"]
    lab.fault("npu-b", "clear")
    upgrade(lab, "--limit=npu-b", npu_driver_version=version, npu_upgrade_retry=True, npu_upgrade_clear_halt=True)
    assert version_of(lab, "npu-b") == version
