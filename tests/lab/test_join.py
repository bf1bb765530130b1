# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node of the lab joins the cluster, as far as install can tell, and is in service after one run that touches no other."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.usefixtures("installed")

NODE, OTHER, WITHOUT_CHIPS = "npu-a", "npu-b", "cpu-a"
GATE = "npuops.ascend/not-accepted"
# The inventory asks for something else than the cluster has.
CHANGED = {"npu_tolerations": [{"key": "mine", "operator": "Exists"}]}


@pytest.fixture
def as_new(lab):
    """The Node as a kubelet registers it that joins for the first time, but for what the host has."""
    ours = [label for label in lab.node(NODE)["metadata"]["labels"] if label.startswith("npuops.ascend/")]
    lab.kubectl("label", "node", NODE, *[label + "-" for label in ours])
    lab.kubectl("cordon", NODE)
    yield
    lab.kubectl("uncordon", NODE)
    lab.kubectl("taint", "node", NODE, GATE + "-", check=False)
    lab.playbook("install", f"--limit={NODE}")


def daemonsets(lab):
    found = json.loads(lab.kubectl("get", "daemonsets", "-n", "npu-operator", "-o", "json"))["items"]
    return {item["metadata"]["name"]: item["metadata"]["generation"] for item in found}


def test_a_node_that_joins(lab, as_new):
    before = daemonsets(lab)
    done = lab.playbook("join", **CHANGED)
    assert f"Left for now: {NODE}: is cordoned" in done.stdout, done.stdout
    assert f"To be set up: {WITHOUT_CHIPS}" in done.stdout, "only the host knows whether it has chips"
    lab.kubectl("uncordon", NODE)
    done = lab.playbook("join", npu_install_gate=1, **CHANGED)
    assert f"To be set up: {NODE}, {WITHOUT_CHIPS}" in done.stdout and f"{NODE}: PASS at level 1" in done.stdout, done.stdout
    assert f"[{OTHER}]" not in done.stdout.partition("Gather facts from the hosts")[2], "no other host is asked"
    node = lab.node(NODE)
    assert node["metadata"]["labels"]["npuops.ascend/components"] == "enabled"
    assert not [taint for taint in node["spec"].get("taints", ()) if taint["key"] == GATE]
    assert int(node["status"]["allocatable"]["huawei.com/Ascend910"]) > 0
    assert daemonsets(lab) == before, "no component changes"
    done = lab.playbook("join", f"--limit=all:!{WITHOUT_CHIPS}", **CHANGED)
    assert "All nodes of the inventory that are in the cluster are set up." in done.stdout, done.stdout
