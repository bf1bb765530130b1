# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Volcano and the ascend-operator: a job starts as a whole or not at all. Volcano changes and goes back by itself, and leaves nothing.

The roles alone, which is what install runs: the fleet is installed, and nothing else is to change. Volcano's programs are simulated, and
end if they may not do what upstream's do at their start. Only molecule/stack runs this.
"""

from __future__ import annotations

import re

import pytest

from support.lab.roles import Roles, changed
from support.lab.workloads import Team, ascend_job
from support.patience import PATIENCE

NAMESPACE = "volcano-system"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
SCHEDULER, CONTROLLERS = "volcano-scheduler", "volcano-controllers"
ENABLED = {"npu_volcano_enabled": True, "npu_ascend_operator_enabled": True}

pytestmark = pytest.mark.usefixtures("installed")


@pytest.fixture(name="roles", scope="module")
def fixture_roles(lab, tmp_path_factory):
    roles = Roles(lab, tmp_path_factory.mktemp("roles"), "npu_volcano", "npu_ascend_operator")
    yield roles.run
    roles.run(removed=True)


def template(lab, name: str) -> dict:
    return lab.api.get(f"{DEPLOYMENTS}/{name}")["spec"]["template"]


def images(lab) -> dict[str, str]:
    return {name: template(lab, name)["spec"]["containers"][0]["image"] for name in (SCHEDULER, CONTROLLERS)}


def gang(team: Team, script: str, workers: int) -> dict:
    """A job that Volcano schedules, with two chips for each pod."""
    job = ascend_job(team, script)
    job["spec"]["schedulerName"] = "volcano"
    worker = job["spec"]["replicaSpecs"]["Worker"]
    job["spec"]["replicaSpecs"]["Worker"] = dict(worker, replicas=workers)
    for replica in job["spec"]["replicaSpecs"].values():
        replica["template"]["spec"]["schedulerName"] = "volcano"
    return job


def phase(lab, team: Team) -> str:
    groups = lab.api.get(f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{team.name}/podgroups")["items"]
    return "".join((group.get("status") or {}).get("phase", "") for group in groups)


def test_a_second_run_changes_nothing(roles):
    roles(**ENABLED)
    assert changed(roles(**ENABLED)) == 0


def test_a_job_starts_as_a_whole_or_not_at_all(lab, roles):
    with Team(lab, "volcano-test") as team:
        team.apply(gang(team, "echo rank $RANK of $WORLD_SIZE", workers=1))
        state = "jsonpath={.status.conditions[-1:].type}"
        lab.wait_for(
            lambda: lab.kubectl("get", "ascendjob", "train", "-n", team.name, "-o", state) == "Succeeded", PATIENCE, "the job"
        )
        assert lab.kubectl("logs", "-n", team.name, "train-worker-0").strip() == "rank 1 of 4"
        assert phase(lab, team) == "Running"
    with Team(lab, "volcano-test") as team:
        team.apply(gang(team, "sleep 3600", workers=39))
        lab.wait_for(lambda: phase(lab, team) == "Inqueue", PATIENCE, "Volcano's answer")
        assert [pod["metadata"]["name"] for pod in lab.pods(team.name) if pod["spec"].get("nodeName")] == []


def test_an_image_without_the_plugin_returns(lab, roles):
    """Upstream's scheduler would go on, and pods would get no chips."""
    before, configuration = images(lab), template(lab, SCHEDULER)["metadata"]["annotations"]
    result = roles(check=False, **ENABLED, npu_volcano_version="v26.1.9", npu_volcano_scheduler_image=before[SCHEDULER])
    text = " ".join(result.stdout.split())
    assert result.returncode != 0 and "the image has no plugins/volcano-npu_v26.1.9.so" in text
    assert "The previous definition, with the image" in text
    assert images(lab) == before and template(lab, SCHEDULER)["metadata"]["annotations"] == configuration


def test_another_version_line_and_back(lab, roles):
    for version_line, release in (("7.3", "v7.3.2"), ("26.1", "v26.1.0")):
        roles(**ENABLED, npu_mindcluster_version_line=version_line)
        assert {image.rpartition(":")[2] for image in images(lab).values()} == {release}
        configuration = template(lab, SCHEDULER)["metadata"]["annotations"]["npuops.ascend/scheduler-conf"]
        assert f"name: volcano-npu_{release}\n" in configuration


def test_another_volcano_is_refused(lab):
    lab.kubectl("create", "deployment", SCHEDULER, "-n", "default", "--image=registry.example/vc-scheduler", "--replicas=0")
    try:
        result = lab.playbook("install", "--check", check=False, **ENABLED)
        text = " ".join(result.stdout.split())
        assert result.returncode != 0
        assert "another Volcano is deployed, Deployment volcano-scheduler in the namespace default" in text
        assert "set npu_volcano_enabled: false and npu_device_plugin_volcano: true" in text
    finally:
        lab.kubectl("delete", "deployment", SCHEDULER, "-n", "default")


def test_without_volcano_its_kinds_stay_and_without_both_nothing_does(lab, roles):
    roles(npu_volcano_enabled=False, npu_ascend_operator_enabled=False)
    lab.wait_for(lambda: not lab.pods(NAMESPACE), PATIENCE, "the end of Volcano's pods")
    assert "queues.scheduling.volcano.sh" in lab.kubectl("get", "crd", "-o", "name")
    roles(removed=True)
    kinds = "deployments,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings,customresourcedefinitions"
    names = lab.kubectl("get", kinds, "--all-namespaces", "-o", "name").split()
    assert [name for name in names if re.search(r"volcano(?!$)", name) and "npu-controller" not in name] == []
