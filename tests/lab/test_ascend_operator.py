# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ascend-operator: an AscendJob gets its pods, their ranks and chips. It changes and goes back by itself, and leaves nothing.

The role alone, which is what install runs: the fleet is installed, and nothing else is to change.
"""

from __future__ import annotations

import re

import pytest

from support.lab.roles import Roles, changed
from support.lab.workloads import Team, ascend_job
from support.paths import CHECKOUT
from support.patience import PATIENCE

NAMESPACE, NAME = "npu-operator", "ascend-operator-manager"
CRD = "ascendjobs.mindxdl.gitee.com"
KINDS = str(CHECKOUT / "lab" / "files" / "volcano-kinds.yml")
ENABLED = {"npu_ascend_operator_enabled": True, "npu_ascend_operator_gang_scheduling": False}

pytestmark = pytest.mark.usefixtures("installed")


@pytest.fixture(name="role", scope="module")
def fixture_role(lab, tmp_path_factory):
    return Roles(lab, tmp_path_factory.mktemp("role"), "npu_ascend_operator").run


@pytest.fixture(scope="module", autouse=True)
def kinds(lab, role):
    yield
    role(removed=True)
    lab.kubectl("delete", "-f", KINDS, "--ignore-not-found")


def image(lab) -> str:
    path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{NAME}"
    return lab.api.get(path)["spec"]["template"]["spec"]["containers"][0]["image"]


def operators(lab) -> dict[str, str]:
    """{pod: image} of those that are Ready."""
    pods = [pod for pod in lab.pods(NAMESPACE) if pod["metadata"]["name"].startswith(NAME + "-")]
    return {
        pod["metadata"]["name"]: pod["spec"]["containers"][0]["image"]
        for pod in pods
        if any(item["type"] == "Ready" and item["status"] == "True" for item in pod["status"].get("conditions", []))
        and "deletionTimestamp" not in pod["metadata"]
    }


def test_install_refuses_without_volcano(lab):
    result = lab.playbook("install", "--check", check=False, **ENABLED)
    text = " ".join(result.stdout.split())
    assert result.returncode != 0
    assert "the cluster does not have the kind Job of batch.volcano.sh/v1alpha1" in text


def test_a_second_run_changes_nothing(lab, role):
    lab.kubectl("apply", "-f", KINDS)
    assert changed(role(**ENABLED)) == 1
    assert len(operators(lab)) == 1
    assert changed(role(**ENABLED)) == 0


def test_a_job_gets_its_pods_their_ranks_and_chips(lab, role):
    with Team(lab, "ascendjob-test") as team:
        team.apply(ascend_job(team, "echo rank $RANK of $WORLD_SIZE; ls /dev | grep -c 'davinci[0-9]'"))
        state = "jsonpath={.status.conditions[-1:].type}"
        lab.wait_for(
            lambda: lab.kubectl("get", "ascendjob", "train", "-n", team.name, "-o", state) == "Succeeded", PATIENCE, "the job"
        )
        for rank, pod in enumerate(("train-master-0", "train-worker-0")):
            assert lab.kubectl("logs", "-n", team.name, pod).split("\n")[:2] == [f"rank {rank} of 4", "2"]


def test_an_image_that_does_not_exist_returns(lab, role):
    before, good = operators(lab), image(lab)
    bad = re.sub(r":[^:/]+$", ":v26.1.9", good)
    result = role(check=False, **ENABLED, npu_ascend_operator_image=bad)
    text = " ".join(result.stdout.split())
    assert result.returncode != 0
    assert f"with the image {bad} it does not work: its pod cannot get its image" in text
    assert f"The previous definition, with the image {good}, is restored; its pod was kept and works." in text
    assert operators(lab) == before and image(lab) == good


def test_another_version_line_and_back(lab, role):
    for version_line, release in (("7.3", "v7.3.2"), ("26.1", "v26.1.0")):
        role(**ENABLED, npu_mindcluster_version_line=version_line)
        (running,) = operators(lab).values()
        assert running.endswith(":" + release)


def test_without_the_operator_jobs_stay_and_without_both_nothing_does(lab, role):
    role(npu_ascend_operator_enabled=False)
    lab.wait_for(lambda: not operators(lab), PATIENCE, "the end of the operator's pod")
    assert CRD in lab.kubectl("get", "crd", "-o", "name")
    role(removed=True)
    kinds = "deployments,serviceaccounts,clusterroles,clusterrolebindings,customresourcedefinitions"
    names = lab.kubectl("get", kinds, "--all-namespaces", "-o", "name").split()
    assert [name for name in names if re.search(r"ascend-operator(?!$)|ascendjob", name)] == []
