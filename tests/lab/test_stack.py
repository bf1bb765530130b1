# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All optional components of MindCluster together, as molecule/stack has installed them: a job runs, bad input changes nothing, and they
change their version line together, also if the controller is killed."""

from __future__ import annotations

import json
import re

import pytest

from support.lab.killed import run_killed
from support.lab.workloads import A2, Team, ascend_job
from support.patience import PATIENCE

ENABLED = {
    "npu_volcano_enabled": True,
    "npu_clusterd_enabled": True,
    "npu_noded_enabled": True,
    "npu_ascend_operator_enabled": True,
    "npu_ascend_operator_gang_scheduling": False,
    "npu_rollout_max_unavailable": "100%",
}
WORKLOADS = {
    "volcano": "/apis/apps/v1/namespaces/volcano-system/deployments/volcano-scheduler",
    "clusterd": "/apis/apps/v1/namespaces/mindx-dl/deployments/clusterd",
    "noded": "/apis/apps/v1/namespaces/npu-operator/daemonsets/noded",
    "ascend_operator": "/apis/apps/v1/namespaces/npu-operator/deployments/ascend-operator-manager",
}


def versions(lab) -> dict[str, str]:
    """Of the objects, as the API server counts their changes by people and playbooks."""
    return {part: lab.api.get(path)["metadata"]["generation"] for part, path in WORKLOADS.items()}


def version_lines(lab) -> dict[str, str]:
    """By the images that are to run."""
    images = {part: lab.api.get(path)["spec"]["template"]["spec"]["containers"][0]["image"] for part, path in WORKLOADS.items()}
    return {part: re.search(r":v(\d+\.\d+)\.", image).group(1) for part, image in images.items()}


def unready(lab) -> list[str]:
    """The components that do not run as they are to."""
    found = []
    for part, path in WORKLOADS.items():
        item = lab.api.get(path)
        status, wanted = item["status"], item["spec"].get("replicas", 3)
        counts = (
            ("availableReplicas", "updatedReplicas")
            if "replicas" in item["spec"]
            else ("numberAvailable", "updatedNumberScheduled")
        )
        found += [part] if any(status.get(count) != wanted for count in counts) else []
    return found


def test_a_job_runs(lab):
    with Team(lab, "stack-test") as team:
        team.apply(ascend_job(team, "echo rank $RANK of $WORLD_SIZE"))
        state = "jsonpath={.status.conditions[-1:].type}"
        lab.wait_for(
            lambda: lab.kubectl("get", "ascendjob", "train", "-n", team.name, "-o", state) == "Succeeded", PATIENCE, "the job"
        )
        assert lab.kubectl("logs", "-n", team.name, "train-worker-0").strip() == "rank 1 of 4"


def test_clusterd_knows_the_chips_of_all_nodes(lab):
    def known() -> set[str]:
        data = lab.api.get("/api/v1/namespaces/mindx-dl/configmaps/cluster-info-device-0")["data"]
        return set(json.loads(data["cluster-info-device-0"]))

    lab.wait_for(lambda: known() == {f"mindx-dl-deviceinfo-npu-{name}" for name in "abc"}, PATIENCE, "all nodes")


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        (
            {"npu_component_log_levels": {"clusterd": 7}},
            "npu_component_log_levels.clusterd is 7; it must be a whole number, -1 to 3",
        ),
        (
            {"npu_noded_version": "v7.3.2"},
            "npu_noded_version is v7.3.2, of MindCluster 7.3, and npu_mindcluster_version_line is 26.1",
        ),
        ({"npu_clusterd_enable": True}, "npu_clusterd_enable"),
    ],
)
def test_bad_input_changes_nothing(lab, variables, told):
    before = versions(lab)
    result = lab.playbook("install", check=False, **ENABLED, **variables)
    assert result.returncode != 0 and told in " ".join(result.stdout.split())
    assert versions(lab) == before


def test_another_one_is_refused(lab):
    lab.kubectl("create", "deployment", "clusterd", "-n", "default", "--image=registry.example/clusterd", "--replicas=0")
    try:
        result = lab.playbook("install", check=False, **ENABLED)
        text = " ".join(result.stdout.split())
        assert result.returncode != 0
        assert "another clusterd is deployed, Deployment clusterd in the namespace default" in text
    finally:
        lab.kubectl("delete", "deployment", "clusterd", "-n", "default")


def test_an_image_that_cannot_be_pulled_returns(lab):
    """From a registry without a route to it. The component works as before."""
    before, image = version_lines(lab), "192.0.2.1:5000/mindcluster/clusterd:v26.1.0"
    result = lab.playbook("install", check=False, **ENABLED, npu_clusterd_image=image, npu_rollout_timeout=60)
    text = " ".join(result.stdout.split())
    assert result.returncode != 0 and image in text
    assert version_lines(lab) == before and unready(lab) == []


def test_another_version_line_and_back(lab):
    """By upgrades, the first of which is killed between two components. A pod keeps its chips, and no node is touched."""
    there, back = dict(ENABLED, npu_mindcluster_version_line="7.3"), dict(ENABLED, npu_mindcluster_version_line="26.1")
    with Team(lab, "stack-train") as team:
        team.deploy("train", node="npu-a", chips={A2: 2})
        (pod,) = team.pods("train")
        boots = {name: lab.node(name)["status"]["nodeInfo"]["bootID"] for name in ("npu-a", "npu-b", "npu-c")}
        run_killed(
            lab,
            "the first of them changes",
            lambda: "7.3" in version_lines(lab).values(),
            "upgrade",
            npu_upgrade_auto=True,
            **there,
        )
        assert "26.1" in version_lines(lab).values(), "it was killed before the last one"
        for settings in (there, back):
            version_line = settings["npu_mindcluster_version_line"]
            text = lab.playbook("upgrade", npu_upgrade_auto=True, **settings).stdout
            assert f"-> {version_line}" in text and "components change." in text
            assert set(version_lines(lab).values()) == {version_line} and unready(lab) == []
        assert "Components:" not in lab.playbook("upgrade", npu_upgrade_auto=True, **back).stdout, "nothing is left to change"
        (after,) = team.pods("train")
        assert after["metadata"]["uid"] == pod["metadata"]["uid"]
        assert [status["restartCount"] for status in after["status"]["containerStatuses"]] == [0]
        assert {name: lab.node(name)["status"]["nodeInfo"]["bootID"] for name in boots} == boots
