# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node on which another installation's device plugin serves a pod moves to ours and back, and the pod does not notice. The long
way, with a driver package, interruptions and bad input, is the molecule scenario adopt."""

from __future__ import annotations

import json
import re

import pytest

from support.lab.foreign import EXPORTER, PLUGIN, Foreign
from support.lab.workloads import A2, Team

NODE = "npu-a"
LIMIT = f"--limit={NODE}"
BOTH = {(PLUGIN, NODE), (EXPORTER, NODE)}
COMPONENTS = ("ascend-device-plugin-daemonset", "npu-exporter", "npu-node-agent")

pytestmark = pytest.mark.usefixtures("installed")


def ours(lab) -> set[str]:
    """Names of our DaemonSets with a pod on the node."""
    found = [pod for pod in lab.pods("npu-operator") if pod["spec"].get("nodeName") == NODE]
    return {pod["metadata"]["ownerReferences"][0]["name"] for pod in found}


@pytest.fixture(scope="module", name="others")
def fixture_others(lab):
    """Theirs on the node instead of ours; in the end, ours again."""
    lab.kubectl("label", "node", NODE, "npuops.ascend/components-")
    try:
        lab.wait_for(lambda: not ours(lab), 60, "ours have left")
        with Foreign(lab, NODE, driver="/var/lib/Ascend/driver") as others:
            lab.wait_for(lambda: set(others.pods()) == BOTH, 60, "theirs are there")
            lab.wait_for(lambda: lab.node(NODE)["status"]["allocatable"].get(A2) == "8", 60, "theirs offers the chips")
            yield others
    finally:
        lab.kubectl("label", "node", NODE, "npuops.ascend/adopted-", "npuops.ascend/components=enabled", "--overwrite")
        lab.playbook("install")


def chips(lab, team) -> tuple:
    """Of the pod: its UID, restarts, devices, and those that the kubelet has noted for it."""
    (pod,) = team.pods("train")
    devices = lab.kubectl("exec", "-n", team.name, pod["metadata"]["name"], "--", "ls", "/dev")
    text = lab.ssh(NODE, "cat /var/lib/kubelet/device-plugins/kubelet_internal_checkpoint").stdout
    entries = json.loads(text)["Data"]["PodDeviceEntries"]
    noted = [entry["DeviceIDs"] for entry in entries if entry["PodUID"] == pod["metadata"]["uid"]]
    restarts = [status["restartCount"] for status in pod["status"]["containerStatuses"]]
    return pod["metadata"]["uid"], restarts, sorted(re.findall(r"^davinci\d+$", devices, re.MULTILINE)), noted


def test_a_node_moves_and_returns_and_its_pod_does_not_notice(lab, others):
    with Team(lab, "adopt-test") as team:
        team.deploy("train", node=NODE, chips={A2: 2})
        before, spec, theirs = chips(lab, team), others.daemonset()["spec"], others.pods()
        assert len(before[2]) == 2

        shown = lab.playbook("adopt", LIMIT).stdout
        assert re.search(rf"DaemonSet kube-system/{PLUGIN} +device plugin .* replaced", shown), shown
        assert re.search(rf"{NODE} +8 x 910B .* running +8 {A2} +1 +moves", shown), shown
        assert others.pods() == theirs and not ours(lab)

        told = " ".join(lab.playbook("adopt", LIMIT, npu_adopt=True).stdout.split())
        assert "1 of 1 pods that used its chips still run, none was restarted" in told
        assert ours(lab) == set(COMPONENTS) and others.pods() == {}
        assert chips(lab, team) == before and lab.node(NODE)["status"]["allocatable"][A2] == "8"

        lab.playbook("adopt", LIMIT, npu_adopt=True, npu_adopt_state="returned")
        # Kubernetes replaces their pods again, because their template is restored.
        lab.wait_for(lambda: set(others.pods()) == BOTH, 60, "theirs are there")
        lab.wait_for(lambda: lab.node(NODE)["status"]["allocatable"].get(A2) == "8", 60, "theirs offers the chips")
        assert not ours(lab) and chips(lab, team) == before
        assert not [
            key for key in lab.node(NODE)["metadata"]["labels"] if key in ("npuops.ascend/adopted", "npuops.ascend/components")
        ]
        assert others.daemonset()["spec"] == spec
