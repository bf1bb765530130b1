# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A changed component comes node by node, returns by itself, and goes on after its controller was killed. No workload notices."""

from __future__ import annotations

import re

import pytest

from support.lab.killed import run_killed
from support.lab.workloads import A2, Team

NAMESPACE, ANNOTATION = "npu-operator", "npuops.ascend/rollout"
PLUGIN = "ascend-device-plugin-daemonset"
# The nodes of that plugin; on the first one a workload uses the chips.
BUSY, FREE = "npu-a", "npu-b"
LIMIT = f"--limit={BUSY},{FREE}"
CHANGED = {"npu_component_log_levels": {"device_plugin": 1}}

pytestmark = pytest.mark.usefixtures("installed")


@pytest.fixture(scope="module", autouse=True)
def workload(lab):
    """Uses two chips during all of this; in the end it is the same pod with the same chips."""
    with Team(lab, "rollout-test") as team:
        team.deploy("train", node=BUSY, chips={A2: 2})
        yield team
        lab.playbook("install")


@pytest.fixture(autouse=True)
def unnoticed(lab, workload):
    def seen() -> tuple:
        (pod,) = workload.pods("train")
        devices = lab.kubectl("exec", "-n", workload.name, pod["metadata"]["name"], "--", "ls", "/dev")
        restarts = [status["restartCount"] for status in pod["status"]["containerStatuses"]]
        return pod["metadata"]["uid"], restarts, sorted(re.findall(r"^davinci\d+$", devices, re.MULTILINE))

    before = seen()
    assert len(before[2]) == 2
    yield
    assert seen() == before


def daemonset(lab) -> dict:
    return lab.api.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets/{PLUGIN}")


def plugins(lab) -> dict[str, tuple[str, str]]:
    """{node: (UID, template) of the plugin's pod}, without pods that no node has been found for yet."""
    uid = daemonset(lab)["metadata"]["uid"]
    pods = [pod for pod in lab.pods(NAMESPACE) if pod["metadata"]["ownerReferences"][0]["uid"] == uid]
    return {
        pod["spec"]["nodeName"]: (pod["metadata"]["uid"], pod["metadata"]["labels"]["controller-revision-hash"])
        for pod in pods
        if "deletionTimestamp" not in pod["metadata"] and "nodeName" in pod["spec"]
    }


def is_whole(lab) -> None:
    item = daemonset(lab)
    assert ANNOTATION not in item["metadata"]["annotations"]
    assert item["spec"]["updateStrategy"]["type"] == "RollingUpdate"
    assert {name: lab.node(name)["status"]["allocatable"][A2] for name in (BUSY, FREE)} == {BUSY: "8", FREE: "8"}


@pytest.mark.core
def test_a_bad_image_stops_at_one_node_and_returns(lab):
    before, template = plugins(lab), daemonset(lab)["spec"]["template"]
    # It has no device plugin, which preflight cannot see.
    image = f"{lab.variable('npu_driver_repository').split('/')[0]}/lab/test:lab"
    result = lab.playbook("install", LIMIT, check=False, npu_device_plugin_image=image)
    assert result.returncode != 0
    said = " ".join(result.stdout.split())
    assert f"DaemonSet {NAMESPACE}/{PLUGIN}: with the image {image} it does not work on {FREE}: its pod " in said
    assert "is restored on all nodes that had the new one" in said
    after = plugins(lab)
    assert after[BUSY] == before[BUSY], "nobody has touched the node whose chips are used"
    assert after[FREE][1] == before[FREE][1] and after[FREE][0] != before[FREE][0]
    assert daemonset(lab)["spec"]["template"] == template
    is_whole(lab)


def test_a_good_change(lab):
    """Check mode tells it first. A second run changes nothing."""
    before = plugins(lab)
    told = f"DaemonSet {NAMESPACE}/{PLUGIN}: another pod template with the image"
    result = lab.playbook("install", LIMIT, "--check", "--diff", **CHANGED)
    assert told in result.stdout and f"on 2 nodes: {FREE} first" in result.stdout
    assert plugins(lab) == before
    result = lab.playbook("install", LIMIT, **CHANGED)
    assert told in result.stdout
    after = plugins(lab)
    assert all(after[name][0] != before[name][0] for name in (BUSY, FREE)) and len({item[1] for item in after.values()}) == 1
    is_whole(lab)


def test_a_controller_that_is_killed(lab):
    """The next run completes what it began."""
    before = plugins(lab)
    other = {"npu_component_log_levels": {"device_plugin": 2}}
    run_killed(
        lab,
        "the first pod is replaced",
        lambda: plugins(lab).get(FREE, before[FREE]) != before[FREE],
        "install",
        LIMIT,
        **other,
    )
    assert daemonset(lab)["spec"]["updateStrategy"]["type"] == "OnDelete" and plugins(lab)[BUSY] == before[BUSY]
    result = lab.playbook("install", LIMIT, **other)
    assert "is silent for" in result.stdout and "an earlier run began to roll it out; this one continues" in result.stdout
    after = plugins(lab)
    assert after[BUSY][0] != before[BUSY][0] and len({item[1] for item in after.values()}) == 1
    is_whole(lab)
