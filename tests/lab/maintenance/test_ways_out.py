# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A way out of a halt: the command as docs/upgrade.md and the halted run itself print it, in a shell, as a user runs it."""

from __future__ import annotations

import json
import re
import subprocess

import pytest
import yaml
from lab import CHECKOUT
from observer import LAST, LEASE, STATE
from patience import PATIENCE, RUN_PATIENCE
from rollout import NAMESPACE, TAKEOVER, proof, reset, slots, target, untouched, upgrade, version_of, watch

NODE, OTHER = "npu-a", "npu-b"
UPGRADE = "ansible-playbook -i my-fleet npuops.ascend.upgrade"


class Fleet:
    """The inventory my-fleet of two nodes, in a directory of its own. `broken`: as long as it is there, the new driver fails on NODE."""

    def __init__(self, lab, directory) -> None:
        self.lab, self.directory = lab, directory
        self.broken = directory / "broken"
        self.new = target(lab, NODE, OTHER)
        self.old = version_of(lab, NODE)
        self.message = ""  # what the last halted run said
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
        """What the command line prints. What a run prints names no inventory: that is the one of the user's ansible.cfg."""
        environ = {**self.lab.environment(), "ANSIBLE_INVENTORY": str(self.directory / "my-fleet")}
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=self.directory,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=RUN_PATIENCE,
        )
        assert (done.returncode == 0) == succeeds, f"{line}\nexit status {done.returncode}\n{done.stdout[-6000:]}"
        return " ".join(done.stdout.split())

    def halted_by_failure(self) -> None:
        """NODE went back to the old driver, and the roll-out is halted."""
        self.begin()
        self.broken.touch()
        self.message = self.run(UPGRADE, succeeds=False)
        assert self.state(NODE) == "upgrade-failed" and version_of(self.lab, NODE) == self.old, self.message[-4000:]
        self.message += " " + self.run(UPGRADE, succeeds=False)  # which touches nothing

    def begin(self) -> None:
        reset(self.lab)
        upgrade(self.lab, f"--limit={NODE},{OTHER}", npu_driver_version=self.old, npu_upgrade_max_parallel=0)
        self.lab.kubectl("delete", "lease", LEASE, "-n", NAMESPACE, "--ignore-not-found")
        self.lab.kubectl("annotate", "node", NODE, OTHER, f"{LAST}-")

    def state(self, node: str) -> str | None:
        return self.lab.node(node)["metadata"]["labels"].get(STATE)

    def ways_out(self, begin: str) -> str:
        """The command that stands in what the halted run said after these words."""
        found = re.search(re.escape(begin) + r" (ansible-playbook npuops\.ascend\.\w+(?: -e \w+=\w+)*)", self.message)
        assert found, f"it does not say {begin!r}: {self.message[-4000:]}"
        return found[1]


def documented(wanted: str) -> str:
    """The command in the row of the guide's table that begins so."""
    lines = (CHECKOUT / "docs" / "upgrade.md").read_text(encoding="utf-8").splitlines()
    (row,) = (line for line in lines if line.startswith(f"| {wanted} |"))
    return re.search("`(ansible-playbook [^`]*)`", row)[1]


def without_inventory(line: str) -> str:
    return line.replace(" -i my-fleet", "")


@pytest.fixture(scope="module")
def fleet(lab, installed, tmp_path_factory):
    reset(lab)
    yield Fleet(lab, tmp_path_factory.mktemp("fleet"))


def test_go_on_with_the_other_nodes(fleet):
    fleet.halted_by_failure()
    line = documented("go on with the other nodes")
    assert fleet.ways_out("go on with") == without_inventory(line)
    with watch(fleet.lab) as observer:
        fleet.run(line, succeeds=False)  # for NODE did not get there
    assert proof(fleet.lab, observer, {OTHER: 1}, fleet.new, only=OTHER) == []
    assert untouched(observer, NODE) == []
    assert (fleet.state(NODE), version_of(fleet.lab, NODE)) == ("upgrade-failed", fleet.old)
    assert slots(fleet.lab)["halted"] is None
