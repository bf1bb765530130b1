# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a platform team with AWX is promised, for molecule/awx: from what its jobs said, and an observer saw."""

from __future__ import annotations

import json
import os
import pathlib
import re

import pytest

from support.awx.job import URL
from support.lab.observe import Recorded, end
from support.lab.observer import LAST
from support.lab.rollout import NPU_NODES, proof, version_of


@pytest.fixture(scope="module")
def observed() -> Recorded:
    return end(pathlib.Path(os.environ["NPU_OBSERVED"]))


@pytest.fixture(scope="module")
def jobs() -> dict:
    return json.loads(pathlib.Path(os.environ["NPU_OBSERVED"] + "-awx", "jobs.json").read_text(encoding="utf-8"))


def lasts(observed, node):
    """The records of the maintenances that ended on a node while it was looked at, each once."""
    found = {}
    for sight in observed.timeline:
        if sight.kind == "node" and sight.name == node and LAST in sight.annotations:
            record = json.loads(sight.annotations[LAST])
            found.setdefault((record["run"], record["ended"]), record)
    return list(found.values())


def test_every_promise_was_kept(lab, observed):
    """Up, back, and npu-b recovered in between: a reboot each, also where the job died after it was intended; nothing left behind."""
    assert proof(lab, observed, {"npu-a": 2, "npu-b": 3, "npu-c": 2}, max_parallel=3) == []
    assert {version_of(lab, node) for node in NPU_NODES} == {"25.5.0"}


def test_all_jobs_ran_without_a_prompt_or_a_warning_about_answers(jobs):
    for name, job in jobs.items():
        assert not re.search(r"password:|\[y/N\]|Press enter", job["output"]), name
        assert "unknown variable" not in job["output"], name


def test_the_jobs_before_a_workflows_approval_hand_on_what_there_is_to_know(jobs):
    plan = jobs["plan"]["artifacts"]["npuops_plan"]
    assert plan["green"] is True and tuple(sorted(plan["due"])) == NPU_NODES and plan["stuck"] == []
    assert jobs["install"]["artifacts"]["npuops_install"]["counts"] == {"ready": 3, "no chip": 1}
    first = jobs["first nodes"]["artifacts"]["npuops_rollout"]
    assert first["counts"] == {"upgraded": 2} and first["unfinished"] == []
    # Of the two that were done first nothing is left to do.
    assert jobs["fleet"]["artifacts"]["npuops_rollout"]["counts"] == {"upgraded": 1, "up-to-date": 2, "skipped": 1}
    assert jobs["heal"]["artifacts"]["npuops_recovery"]["counts"] == {"recovered": 1}
    assert jobs["rollback"]["artifacts"]["npuops_rollout"]["counts"] == {"returned": 3, "skipped": 1}
    assert jobs["status"]["artifacts"]["npuops_status"]["healthy"] is True
    assert all(len(json.dumps(job["artifacts"])) < 4000 for job in jobs.values())


def test_a_relaunched_job_goes_on_where_the_dead_one_stood(jobs, observed):
    assert "continues the maintenance that the run awx-%d left" % jobs["killed"]["number"] in jobs["first nodes"]["output"]
    node = next(name for name in NPU_NODES if name + "  " in jobs["killed"]["output"])
    record = lasts(observed, node)[-2]  # the last one is the rollback
    assert record["run"] == "awx-%d" % jobs["first nodes"]["number"] and record["outcome"] == "success"


def test_the_record_names_the_job_and_who_launched_it(jobs, observed):
    for node in NPU_NODES:
        number = str(jobs["rollback"]["number"])
        assert lasts(observed, node)[-1]["job"] == {"id": number, "url": f"{URL}/#/jobs/playbook/{number}", "user": "chen.wei"}


def test_no_secret_is_in_what_people_see(lab, jobs):
    token = json.loads(lab.controller_kubeconfig.read_text(encoding="utf-8"))["users"][0]["user"]["token"]
    for job in jobs.values():
        for secret in (token, lab.variable("npu_registry_password")):
            assert secret not in job["output"]
