# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host that was set up without this collection, with a driver package and MindCluster's manifests, is adopted: bad input, a
component that does not work, a controller that is killed, a second run, and the way back. One story in the order of its tests; a
pod that uses chips does not notice any of it. At its end the fleet is installed as before. The molecule scenario adopt runs it."""

from __future__ import annotations

import json
import re

import pytest

from support.lab.foreign import EXPORTER, PLUGIN, PLUGIN_NAMESPACE, Foreign
from support.lab.killed import run_killed
from support.lab.own_driver import KEPT, own_driver
from support.lab.workloads import A2, Team

NODE = "npu-b"
LIMIT = f"--limit={NODE}"
BOTH = {(PLUGIN, NODE), (EXPORTER, NODE)}
GO = dict(KEPT, npu_adopt=True)


def ours(lab) -> set[str]:
    """Names of our DaemonSets with a pod on the node."""
    found = [pod for pod in lab.pods("npu-operator") if pod["spec"].get("nodeName") == NODE]
    return {pod["metadata"]["ownerReferences"][0]["name"] for pod in found}


@pytest.fixture(scope="module", name="others")
def fixture_others(lab):
    """The node as it was set up without this collection."""
    with own_driver(lab, NODE):
        lab.kubectl("label", "node", NODE, "accelerator=huawei-Ascend910", "workerselector=dls-worker-node")
        try:
            with Foreign(lab, NODE) as others:
                lab.wait_for(lambda: set(others.pods()) == BOTH, 60, "theirs are there")
                lab.wait_for(lambda: lab.node(NODE)["status"]["allocatable"].get(A2) == "8", 120, "theirs offers the chips")
                yield others
        finally:
            lab.kubectl("label", "node", NODE, "accelerator-", "workerselector-")


@pytest.fixture(scope="module", name="team")
def fixture_team(lab, others):
    with Team(lab, "adopt-fleet") as team:
        team.deploy("train", node=NODE, chips={A2: 2})
        yield team


@pytest.fixture(autouse=True)
def unnoticed(lab, team):
    def seen() -> tuple:
        (pod,) = team.pods("train")
        devices = lab.kubectl("exec", "-n", team.name, pod["metadata"]["name"], "--", "ls", "/dev")
        text = lab.ssh(NODE, "cat /var/lib/kubelet/device-plugins/kubelet_internal_checkpoint").stdout
        entries = json.loads(text)["Data"]["PodDeviceEntries"]
        noted = [entry["DeviceIDs"] for entry in entries if entry["PodUID"] == pod["metadata"]["uid"]]
        restarts = [status["restartCount"] for status in pod["status"]["containerStatuses"]]
        return pod["metadata"]["uid"], restarts, sorted(re.findall(r"^davinci\d+$", devices, re.MULTILINE)), noted

    before, boot = seen(), lab.node(NODE)["status"]["nodeInfo"]["bootID"]
    assert len(before[2]) == 2
    yield
    assert seen() == before and lab.node(NODE)["status"]["nodeInfo"]["bootID"] == boot


def untouched(lab, others) -> tuple:
    labels = {key: value for key, value in lab.node(NODE)["metadata"]["labels"].items() if "npu" in key}
    return labels, others.daemonset()["spec"], others.pods(), ours(lab)


@pytest.mark.parametrize(
    "variables, told",
    [
        (dict(GO, npu_adopt_state="mine"), "value of state must be one of: adopted, returned, got: mine"),
        ({"npu_adopt": True}, "was installed by a .run package"),
        (dict(GO, npu_device_plugin_volcano=True), "npu_device_plugin_volcano is true"),
        (dict(GO, npu_adobt=True), "npu_adobt"),
    ],
)
def test_bad_input_changes_nothing(lab, others, variables, told):
    before = untouched(lab, others)
    result = lab.playbook("adopt", LIMIT, check=False, **variables)
    assert result.returncode != 0 and told in " ".join(result.stdout.split()), result.stdout
    assert untouched(lab, others) == before


def test_who_would_put_it_back_is_a_conflict(lab, others):
    path = ("daemonset", PLUGIN, "-n", PLUGIN_NAMESPACE)
    lab.kubectl("annotate", *path, "argocd.argoproj.io/tracking-id=npus:apps/DaemonSet:x/y")
    try:
        result = lab.playbook("adopt", LIMIT, check=False, **GO)
        assert result.returncode != 0 and "managed by the Argo CD application npus" in " ".join(result.stdout.split())
    finally:
        lab.kubectl("annotate", *path, "argocd.argoproj.io/tracking-id-")


def test_the_plan_and_check_mode_change_nothing(lab, others):
    before = untouched(lab, others)
    shown = lab.playbook("adopt", LIMIT, **KEPT).stdout
    assert re.search(rf"{NODE} +8 x 910B +25\.5\.0 \(\.run\) +containerd.* running +8 {A2} +1 +moves", shown), shown
    lab.playbook("adopt", LIMIT, "--check", "--diff", **GO)
    assert untouched(lab, others) == before
    refused = lab.playbook("install", LIMIT, check=False, **KEPT)
    assert refused.returncode != 0 and "Move the nodes with npuops.ascend.adopt" in " ".join(refused.stdout.split())


def test_a_component_that_does_not_work_goes_back(lab, others):
    image = f"{str(lab.variable('npu_driver_repository')).split('/', maxsplit=1)[0]}/lab/test:lab"
    result = lab.playbook("adopt", LIMIT, check=False, **dict(GO, npu_device_plugin_image=image))
    told = " ".join(result.stdout.split())
    assert result.returncode != 0 and f"{NODE} has the previous components again" in told, result.stdout
    assert set(others.pods()) == BOTH and not ours(lab)
    assert lab.node(NODE)["status"]["allocatable"][A2] == "8"


def test_a_controller_that_is_killed(lab, others):
    """While the node has neither. The next run completes it."""
    run_killed(
        lab,
        "it has begun",
        lambda: lab.node(NODE)["metadata"]["labels"].get("npuops.ascend/adopted"),
        "adopt",
        LIMIT,
        **GO,
    )
    refused = lab.playbook("install", LIMIT, check=False, **KEPT)
    assert refused.returncode != 0 and "Continue with npuops.ascend.adopt" in " ".join(refused.stdout.split())
    lab.playbook("adopt", LIMIT, **GO)
    assert others.pods() == {} and len(ours(lab)) == 3
    assert lab.node(NODE)["status"]["allocatable"][A2] == "8"


def test_a_second_run_changes_nothing_and_install_goes_on(lab):
    for playbook, variables in (("adopt", GO), ("install", KEPT)):
        recap = re.findall(r"^\S+ +: ok=\d+ +changed=(\d+)", lab.playbook(playbook, LIMIT, **variables).stdout, re.MULTILINE)
        assert recap and set(recap) == {"0"}, playbook
    status = lab.playbook("status", LIMIT, **KEPT).stdout
    assert re.search(rf"{NODE} +8 x 910B +preinstalled +25\.5\.0 .* ready", status), status


def test_uninstall_wants_it_given_back_first(lab, others):
    before = untouched(lab, others)
    result = lab.playbook("uninstall", LIMIT, check=False, **KEPT)
    told = " ".join(result.stdout.split())
    assert result.returncode != 0 and f"was adopted from DaemonSet {PLUGIN_NAMESPACE}/{PLUGIN}" in told, result.stdout
    assert "npu_adopt_state=returned" in told and untouched(lab, others) == before


def test_the_way_back(lab, others):
    lab.playbook("adopt", LIMIT, **dict(GO, npu_adopt_state="returned"))
    assert not ours(lab) and "affinity" not in others.daemonset()["spec"]["template"]["spec"]
    assert others.daemonset()["spec"]["updateStrategy"]["type"] == "RollingUpdate"
    lab.wait_for(lambda: set(others.pods()) == BOTH, 60, "theirs are there")
    lab.wait_for(lambda: lab.node(NODE)["status"]["allocatable"][A2] == "8", 60, "theirs offers the chips")
