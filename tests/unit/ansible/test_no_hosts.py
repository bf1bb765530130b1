# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run without a host to work on fails, and says what to correct."""

from __future__ import annotations

import json

import pytest
import yaml

from support import controller
from support.paths import CHECKOUT

FLEET = {"gpus": {"hosts": {"npu-a": {}, "npu-b": {}}}, "web": {"hosts": {"w-1": {}}}}
NPU_NODES = {"npu_nodes": {"hosts": {"npu-a": {}, "npu-b": {}}}, "web": {"hosts": {"w-1": {}}}}
# An inventory, further arguments, and what the message says.
CASES = {
    "a group of another name": (
        FLEET, (), "No host of the inventory matches 'npu_nodes'. The groups that have hosts are gpus, web. Correct the inventory (-i), or"
        " name the group of the hosts: -e npu_hosts=GROUP",
    ),
    "the only group": ({"gpus": FLEET["gpus"]}, (), "name the group of the hosts: -e npu_hosts=gpus"),
    "a misspelt npu_hosts": (FLEET, ("-e", "npu_hosts=gpu"), "No host of the inventory matches 'gpu'. "),
    "a list": (FLEET, ("-e", '{"npu_hosts": ["gpu", "npu"]}'), "No host of the inventory matches 'gpu,npu'. "),
    "hosts without a group": ({"ungrouped": {"hosts": {"npu-a": {}}}}, (), "It has no group with hosts."),
    "an empty inventory": ({"all": {"hosts": {}}}, (), "The inventory has no hosts. Name yours with -i, "),
    "a limit of other hosts": (NPU_NODES, ("--limit", "web"), "--limit leaves none of the hosts of 'npu_nodes', which are npu-a, npu-b."),
    "a limit within a pattern": (
        NPU_NODES, ("-e", "npu_hosts=npu_nodes:!npu-b", "--limit", "npu-b"), "none of the hosts of 'npu_nodes:!npu-b', which are npu-a.",
    ),
}  # fmt: skip
PLAYBOOKS = sorted(path.stem for path in (CHECKOUT / "playbooks").glob("[!_]*.yml"))
# They work on the control machine.
LOCAL = {"awx_bootstrap", "build_driver_image", "build_node_agent_image", "heal_service", "mirror"}


def run(tmp_path, playbook, inventory, *arguments):
    path = tmp_path / "hosts.json"
    path.write_text(json.dumps(inventory), encoding="utf-8")
    return controller.run(["ansible-playbook", "-i", str(path), "npuops.ascend." + playbook, *arguments], tmp_path)


@pytest.mark.parametrize("case", CASES)
def test_the_message_says_what_to_correct(tmp_path, case):
    inventory, arguments, said = CASES[case]
    done = run(tmp_path, "status", inventory, *arguments)
    assert done.returncode == 2 and said in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("playbook", sorted(set(PLAYBOOKS) - LOCAL))
def test_no_playbook_takes_zero_hosts_for_success(tmp_path, playbook):
    done = run(tmp_path, playbook, FLEET)
    assert done.returncode == 2 and "The groups that have hosts are gpus, web." in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("playbook", sorted(LOCAL))
def test_a_limit_that_leaves_out_the_control_machine_is_no_success(tmp_path, playbook):
    done = run(tmp_path, playbook, FLEET, "--limit", "web")
    assert done.returncode == 2 and "--limit leaves none of the hosts of 'localhost'" in done.stdout, done.stdout + done.stderr


def test_a_host_that_is_selected_is_worked_on(tmp_path):
    for arguments in (("-e", "npu_hosts=gpus"), ("-e", "npu_hosts=gpus", "--limit", "npu-b"), ("-e", "npu_hosts=all:!web")):
        done = run(tmp_path, "status", FLEET, "-e", "ansible_connection=local", *arguments)
        assert "Gather facts from the host" in done.stdout, done.stdout + done.stderr


def test_every_play_chooses_its_strategy():
    """`strategy = free` in a user's ansible.cfg would let hosts overtake the tasks for the whole fleet."""
    for path in (CHECKOUT / "playbooks").glob("*.yml"):
        for play in yaml.safe_load(path.read_text(encoding="utf-8")):
            assert "ansible.builtin.import_playbook" in play or "strategy" in play, (path.name, play["name"])
