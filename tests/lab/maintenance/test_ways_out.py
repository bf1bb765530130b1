# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ways out of a halt: each command as docs/upgrade.md or the halted run itself prints it, in a shell, as a user runs it."""

from __future__ import annotations

import json
import re
import subprocess

import pytest
import yaml

from support.lab.observer import LAST, LEASE, RECORD, STATE, left_behind
from support.lab.rollout import NAMESPACE, TAKEOVER, last, proof, reset, slots, target, untouched, upgrade, version_of, watch
from support.paths import CHECKOUT
from support.patience import PATIENCE, RUN_PATIENCE

NODE, OTHER = "npu-a", "npu-b"
UPGRADE = "ansible-playbook -i my-fleet npuops.ascend.upgrade"
# For runs that wait for a host which is not to come back.
SOON = " -e '{npu_upgrade_reboot: {timeout: 10}}'"


class Fleet:
    """The inventory my-fleet of two nodes, in its own directory. `broken`: while this file exists, the new driver fails on NODE."""

    def __init__(self, lab, directory) -> None:
        self.lab, self.directory = lab, directory
        self.broken = directory / "broken"
        self.new = target(lab, NODE, OTHER)
        self.old = version_of(lab, NODE)
        self.message = ""  # what the last halted run said
        self._halt = ""  # the Lease's annotation
        tasks = [
            {
                "name": "Look at the node",
                "ansible.builtin.fail": {"msg": "no good"},
                "when": f"inventory_hostname == '{NODE}' and '{self.broken}' is exists",
            }
        ]
        (directory / "after.yml").write_text(json.dumps(tasks), encoding="utf-8")
        inventory = yaml.safe_load(lab.inventory.read_text(encoding="utf-8"))
        group = inventory["npu_nodes"]
        group["hosts"] = {name: group["hosts"][name] for name in (NODE, OTHER)}
        group["vars"].update(
            npu_driver_version=self.new,
            npu_upgrade_auto=True,
            npu_upgrade_reboot={"timeout": 2 * PATIENCE},
            npu_upgrade_hook_after=str(directory / "after.yml"),
            **TAKEOVER,
        )
        (directory / "my-fleet").write_text(yaml.safe_dump(inventory), encoding="utf-8")

    def run(self, line: str, succeeds: bool = True) -> str:
        """What the command line prints."""
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=self.directory,
            env=self.lab.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=RUN_PATIENCE,
        )
        assert (done.returncode == 0) == succeeds, f"{line}\nexit status {done.returncode}\n{done.stdout[-6000:]}"
        return " ".join(done.stdout.split())

    def halted_by_failure(self, anew: bool = False) -> None:
        """NODE went back to the old driver, and the rollout is halted. The halt is put back where another test has ended it."""
        if self._halt and not anew and self.state(NODE) == "upgrade-failed" and version_of(self.lab, NODE) == self.old:
            self.put_back()
            return
        self.begin()
        self.broken.touch()
        self.message = self.run(UPGRADE, succeeds=False)
        assert self.state(NODE) == "upgrade-failed" and version_of(self.lab, NODE) == self.old, self.message[-4000:]
        self._halt = json.dumps(slots(self.lab))
        self.message += " " + self.run(UPGRADE, succeeds=False)  # which touches nothing

    def halted_and_upgraded(self) -> None:
        """Both nodes have the new driver, and then it was halted."""
        if {version_of(self.lab, NODE), version_of(self.lab, OTHER)} != {self.new}:
            self.halted_by_failure()
            self.broken.unlink(missing_ok=True)
            self.run(documented("also retry the failed node"))
        self.put_back()

    def begin(self) -> None:
        reset(self.lab)
        upgrade(self.lab, f"--limit={NODE},{OTHER}", npu_driver_version=self.old, npu_upgrade_max_parallel=0)
        self.lab.kubectl("delete", "lease", LEASE, "-n", NAMESPACE, "--ignore-not-found")
        self.lab.kubectl("annotate", "node", NODE, OTHER, f"{LAST}-")

    def put_back(self) -> None:
        self.lab.kubectl("annotate", "lease", LEASE, "-n", NAMESPACE, "--overwrite", f"npuops.ascend/slots={self._halt}")

    def state(self, node: str) -> str | None:
        return self.lab.node(node)["metadata"]["labels"].get(STATE)

    def ways_out(self, begin: str) -> str:
        """The command that stands in what the halted run said after these words."""
        found = re.search(
            re.escape(begin) + r" (ansible-playbook -i \S+ npuops\.ascend\.\w+(?: --limit '[^']*')?(?: -e \w+=\w+)*)", self.message
        )
        assert found, f"it does not say {begin!r}: {self.message[-4000:]}"
        return found[1]


def documented(wanted: str) -> str:
    """The command in the row of the guide's table that begins so."""
    lines = (CHECKOUT / "docs" / "upgrade.md").read_text(encoding="utf-8").splitlines()
    (row,) = (line for line in lines if line.startswith((f"| {wanted} |", f"| {wanted},")))
    return re.search("`(ansible-playbook [^`]*)`", row)[1]


def documented_plan() -> str:
    """The command of the guide that looks, and touches nothing."""
    text = (CHECKOUT / "docs" / "upgrade.md").read_text(encoding="utf-8")
    return re.search(r"^ *\$ (ansible-playbook \S+ \S+ npuops\.ascend\.plan)$", text, re.MULTILINE)[1]


@pytest.fixture(scope="module")
def fleet(lab, installed, tmp_path_factory):
    reset(lab)
    yield Fleet(lab, tmp_path_factory.mktemp("fleet"))


# --- the new driver failed on one node ---


def test_go_on_with_the_other_nodes(fleet):
    fleet.halted_by_failure(anew=version_of(fleet.lab, OTHER) != fleet.old)
    line = documented("continue with the other nodes")
    assert "continue with: " + line in fleet.message, fleet.message[-4000:]
    with watch(fleet.lab) as observer:
        fleet.run(line, succeeds=False)  # for NODE did not succeed
    assert proof(fleet.lab, observer, {OTHER: 1}, fleet.new, only=OTHER) == []
    assert untouched(observer, NODE) == []
    assert (fleet.state(NODE), version_of(fleet.lab, NODE)) == ("upgrade-failed", fleet.old)
    assert slots(fleet.lab)["halted"] is None


def test_try_the_failed_node_again(fleet):
    fleet.halted_by_failure()
    fleet.broken.unlink(missing_ok=True)
    before = version_of(fleet.lab, OTHER)
    line = documented("also retry the failed node")
    assert "continue with: " + line in fleet.message, fleet.message[-4000:]
    with watch(fleet.lab) as observer:
        fleet.run(line)
    assert proof(fleet.lab, observer, {NODE: 1, OTHER: 0 if before == fleet.new else 1}, fleet.new) == []


def test_go_back(fleet):
    """On one node, then on all, which leaves that one unchanged. The halt remains, so that no run upgrades again by accident."""
    fleet.halted_and_upgraded()
    with watch(fleet.lab) as observer:
        fleet.run(documented("roll back one node that has the new driver"))
    assert proof(fleet.lab, observer, {OTHER: 1}, fleet.old, halted=True) == []
    assert untouched(observer, NODE) == []
    line = documented("roll back all nodes")
    assert fleet.ways_out("To go back instead:") == line
    with watch(fleet.lab) as observer:
        fleet.run(line)
        fleet.run(UPGRADE, succeeds=False)
    assert proof(fleet.lab, observer, {NODE: 1}, fleet.old, halted=True) == []
    assert untouched(observer, OTHER) == []
    assert {version_of(fleet.lab, node) for node in (NODE, OTHER)} == {fleet.old}


# --- one node stands in the middle of its maintenance ---


@pytest.fixture
def middle(fleet):
    fleet.begin()
    fleet.broken.unlink(missing_ok=True)
    yield fleet
    fleet.lab.fault(NODE, "clear")


def halt_in_the_middle(fleet, line: str = UPGRADE) -> None:
    """NODE does not come back from its reboot."""
    fleet.lab.fault(NODE, "no-return")
    text = fleet.run(line + SOON, succeeds=False)
    assert slots(fleet.lab)["halted"]["node"] == NODE, text[-4000:]
    fleet.message = fleet.run(documented_plan())
    assert last(fleet.lab, OTHER) == {}


def comes_back(fleet) -> None:
    fleet.lab.fault(NODE, "clear")
    fleet.lab.wait_for(lambda: fleet.lab.ssh(NODE, "true", check=False).returncode == 0, PATIENCE, f"{NODE} is back")


def test_finish_the_node_first(middle):
    """The halt ends with its maintenance, and the others follow."""
    with watch(middle.lab) as observer:
        halt_in_the_middle(middle)
        comes_back(middle)
        middle.run(middle.ways_out(f"finish {NODE} first:"))
    assert proof(middle.lab, observer, {NODE: 1, OTHER: 1}, middle.new) == []


def test_go_on_without_the_node(middle):
    """It is not touched, and the other one gets the new driver."""
    with watch(middle.lab) as observer:
        halt_in_the_middle(middle)
        middle.run(middle.ways_out("To continue without it:"))
        assert proof(middle.lab, observer, {OTHER: 1}, middle.new, max_parallel=2, only=OTHER) == []
        node = observer.now()[NODE]
        assert node.cordoned and node.record["step"] == "reboot-required"
        comes_back(middle)
        middle.run(UPGRADE)
    assert proof(middle.lab, observer, {NODE: 1, OTHER: 1}, middle.new, max_parallel=2) == []


def test_go_back_instead(middle):
    with watch(middle.lab) as observer:
        halt_in_the_middle(middle)
        comes_back(middle)
        middle.run(middle.ways_out("To go back instead:"))
    assert {version_of(middle.lab, node) for node in (NODE, OTHER)} == {middle.old}
    assert untouched(observer, OTHER) == []
    assert [line for line in left_behind(observer.now("node").values(), None) if not line.startswith(OTHER)] == []
    assert RECORD not in middle.lab.node(NODE)["metadata"]["annotations"] and not observer.now()[NODE].cordoned
