# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All optional components of MindCluster together, as molecule/stack has installed them: a job runs, and bad input changes nothing."""

from __future__ import annotations

import json

import pytest

from support.lab.workloads import Team, ascend_job
from support.patience import PATIENCE

ENABLED = {
    "npu_clusterd_enabled": True,
    "npu_noded_enabled": True,
    "npu_ascend_operator_enabled": True,
    "npu_ascend_operator_gang_scheduling": False,
    "npu_rollout_max_unavailable": "100%",
}
WORKLOADS = {
    "clusterd": "/apis/apps/v1/namespaces/mindx-dl/deployments/clusterd",
    "noded": "/apis/apps/v1/namespaces/npu-operator/daemonsets/noded",
    "ascend_operator": "/apis/apps/v1/namespaces/npu-operator/deployments/ascend-operator-manager",
}


def versions(lab) -> dict[str, str]:
    """Of the objects, as the API server counts their changes by people and playbooks."""
    return {part: lab.api.get(path)["metadata"]["generation"] for part, path in WORKLOADS.items()}


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
        ({"npu_clusterd_log_level": 7}, "npu_clusterd_log_level is 7; it must be a whole number, -1 to 3"),
        ({"npu_noded_version": "v7.3.2"}, "npu_noded_version is v7.3.2, of MindCluster 7.3, and npu_mindcluster_train is 26.1"),
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
