# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster's own nodes as the inventory: nothing of the lab's list of hosts is used but what SSH needs."""

from __future__ import annotations

import json
import re
import subprocess

import pytest
import yaml

from support.paths import CHECKOUT

STATE = "npu.openfuyao.com/driver-upgrade-state"
NODES = ["cpu-a", "npu-a", "npu-b", "npu-c"]
NPU_NODES = ["npu-a", "npu-b", "npu-c"]


class Fleet:
    """An inventory directory as in docs/inventory.md."""

    def __init__(self, lab, directory):
        self._lab, self._directory = lab, directory
        written = yaml.safe_load(lab.inventory.read_text(encoding="utf-8"))["npu_nodes"]
        self._write(
            "npu_nodes.yml",
            {"plugin": "npuops.ascend.npu_nodes", "kubeconfig": str(lab.kubeconfig), "pool_label": "npuops.ascend/chip"},
        )
        self._write("group_vars/npu_nodes.yml", written["vars"])
        for name, variables in written["hosts"].items():
            self._write(f"host_vars/{name}.yml", {key: value for key, value in variables.items() if key != "ansible_host"})
        self.addresses = {name: variables["ansible_host"] for name, variables in written["hosts"].items()}

    def _write(self, name, content):
        path = self._directory / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(yaml.safe_dump(content), encoding="utf-8")

    def run(self, program, *arguments):
        """What one of Ansible's programs prints; the test fails if it fails."""
        environment = {**self._lab.environment(), "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "true"}
        done = subprocess.run(
            [program, "-i", str(self._directory), *arguments],
            env=environment,
            cwd=CHECKOUT,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def groups(self):
        """{group: its hosts}, and the variables of each host."""
        # Ansible prints a string that is no template as an object.
        listed = json.loads(self.run("ansible-inventory", "--list"), object_hook=lambda item: item.get("__ansible_unsafe", item))
        variables = listed.pop("_meta")["hostvars"]
        return {name: sorted(group.get("hosts", [])) for name, group in listed.items()}, variables


@pytest.fixture
def fleet(lab, tmp_path):
    return Fleet(lab, tmp_path)


def test_addresses_are_those_that_answer(fleet):
    _groups, variables = fleet.groups()
    assert {name: values["ansible_host"] for name, values in variables.items()} == fleet.addresses
    # raw, since one host has no Python before install.
    told = fleet.run("ansible", "npu_nodes", "-m", "ansible.builtin.raw", "-a", "hostname")
    assert sorted(re.findall(r"^(\S+) \| CHANGED.*\n\1$", told, re.MULTILINE)) == NODES, told


@pytest.mark.core
def test_groups_after_install(installed, fleet):
    groups, variables = fleet.groups()
    assert sorted(variables) == NODES
    assert groups["npu_present"] == groups["npu_state_up_to_date"] == NPU_NODES
    assert (groups["npu_chip_910b"], groups["npu_chip_310p"]) == (["npu-a", "npu-b"], ["npu-c"])
    assert (groups["npu_pool_910B"], groups["npu_pool_310P"]) == (["npu-a", "npu-b"], ["npu-c"])
    version = variables["npu-a"]["npu_driver_version"].replace(".", "_")
    assert groups[f"npu_driver_{version}"] == NPU_NODES


def test_install_on_these_hosts_changes_nothing_more(installed, fleet):
    """Preflight knows every variable they have, and takes each host for the node it is."""
    told = fleet.run("ansible-playbook", "npuops.ascend.install")
    changed = re.findall(r"^(\S+) +: ok=\d+ +changed=(\d+) +unreachable=0 +failed=0", told, re.MULTILINE)
    # A host without tasks of its own has no line.
    assert {name for name, _number in changed} <= set(NODES) and {number for _name, number in changed} == {"0"}, told


def test_a_host_moves_with_its_label(installed, lab, fleet):
    lab.kubectl("label", "node", "npu-b", f"{STATE}=approval-required")
    try:
        groups, _variables = fleet.groups()
        assert (groups["npu_state_approval_required"], groups["npu_state_up_to_date"]) == (["npu-b"], ["npu-a", "npu-c"])
        assert "npu-b" in fleet.run("ansible", "npu_state_approval_required", "--list-hosts")
    finally:
        lab.kubectl("label", "node", "npu-b", f"{STATE}-")
    assert fleet.groups()[0]["npu_state_up_to_date"] == NPU_NODES
