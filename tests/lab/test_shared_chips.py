# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Chips that are offered several times: what nodes offer and pods get, while the count changes and while a driver does."""

from __future__ import annotations

import collections
import re

import pytest

from support.lab.rollout import OTHER, upgrade
from support.lab.workloads import A2, DUO, Team

NAMESPACE = "npu-operator"
NODE, CHIPS, SHARES = "npu-c", 4, 4
SHARED = {"npu_device_plugin_share_count": SHARES}

pytestmark = pytest.mark.usefixtures("installed")


@pytest.fixture(scope="module", name="team")
def fixture_team(lab):
    with Team(lab, "sharing-test") as team:
        yield team
    lab.playbook("install")
    assert offered(lab) == CHIPS


def offered(lab) -> int:
    return int(lab.node(NODE)["status"]["allocatable"][DUO])


def plugins_of_others(lab) -> set[str]:
    """UIDs of the device plugins' pods on the nodes whose chips cannot be shared."""
    pods = [pod for pod in lab.pods(NAMESPACE) if pod["metadata"]["labels"].get("name") == "ascend-device-plugin-ds"]
    assert len(pods) == 3
    return {pod["metadata"]["uid"] for pod in pods if pod["spec"].get("nodeName") != NODE}


def chips_of(lab, team, name: str) -> list[str]:
    """The chips that each pod has, as its container sees them."""
    found = []
    for pod in team.pods(name):
        devices = lab.kubectl("exec", "-n", team.name, pod["metadata"]["name"], "--", "ls", "/dev")
        found.append(" ".join(re.findall(r"^davinci\d+$", devices, re.MULTILINE)))
    return found


def test_what_the_plugin_would_refuse_is_refused_before_anything_is_changed(lab):
    before = lab.api.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets")["items"]
    result = lab.playbook("install", check=False, npu_device_plugin_volcano=True, **SHARED)
    assert result.returncode != 0 and "Volcano cannot assign shared chips" in " ".join(result.stdout.split())
    after = lab.api.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets")["items"]
    assert [item["spec"] for item in after] == [item["spec"] for item in before]


def test_from_one_device_to_four(lab, team):
    """A pod that runs keeps its chip, and no other node is touched."""
    team.deploy("train", node=NODE, chips={DUO: 1})
    (pod,), chip, others = team.pods("train"), chips_of(lab, team, "train"), plugins_of_others(lab)
    result = lab.playbook("install", **SHARED)
    said = " ".join(result.stdout.split())
    assert (
        "each chip is to be offered 4 times instead of 1: the kubelet then counts the chips of pods that run already as free"
        in said
    )
    assert "npu_device_plugin_share_count has no effect here: MindCluster does not share the 910B" in said
    assert offered(lab) == CHIPS * SHARES and plugins_of_others(lab) == others
    assert lab.node("npu-a")["status"]["allocatable"][A2] == "8"
    (later,) = team.pods("train")
    assert later["metadata"]["uid"] == pod["metadata"]["uid"] and chips_of(lab, team, "train") == chip
    status = lab.playbook("status").stdout
    assert f"{CHIPS * SHARES} {DUO}" in status and f"up to {SHARES} pods share a chip" in status
    lab.playbook("validate", **SHARED)


def test_as_many_pods_share_a_chip(lab, team):
    lab.kubectl("delete", "deployment", "train", "-n", team.name)
    lab.kubectl("wait", "--for=delete", "pods", "-l", "app=train", "-n", team.name, "--timeout=120s")
    team.deploy("infer", replicas=CHIPS * SHARES, node=NODE, chips={DUO: 1})
    assert collections.Counter(chips_of(lab, team, "infer")) == {f"davinci{chip}": SHARES for chip in range(CHIPS)}
    team.deploy("more", node=NODE, chips={DUO: 1}, wait=False)

    def refused() -> bool:
        conditions = [one for pod in team.pods("more") for one in pod["status"].get("conditions", [])]
        return any(f"Insufficient {DUO}" in one.get("message", "") for one in conditions)

    lab.wait_for(refused, 60, "the scheduler finds no room")
    for name in ("more", "infer"):
        lab.kubectl("delete", "deployment", name, "-n", team.name)
    lab.kubectl("wait", "--for=delete", "pods", "--all", "-n", team.name, "--timeout=120s")


def test_a_node_is_upgraded_and_offers_its_devices_again(lab, team):
    """Whether or not the run knows the count: what counts is the plugin on the node."""
    version = str(lab.variable("npu_driver_version"))
    for target, variables in ((OTHER[version], SHARED), (version, {})):
        upgrade(lab, f"--limit={NODE}", npu_driver_version=target, **variables)
        assert offered(lab) == CHIPS * SHARES
        assert lab.node(NODE)["metadata"]["labels"]["npuops.ascend/driver-version"] == target


def test_back_to_one_device(lab, team):
    lab.playbook("install")
    assert offered(lab) == CHIPS
    status = lab.playbook("status").stdout
    assert f"{CHIPS} {DUO}" in status and "share a chip" not in status
