# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A platform team's first week with AWX, for molecule/awx: `python -m support.awx.scenario DIRECTORY`.

Install, a plan, the upgrade of the first node of each pool, whose job dies in the middle and is relaunched, the upgrade of the rest, a
recovery, a rollback, the status. What each job said and handed on is in DIRECTORY/jobs.json, for the test.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
import time

from support.awx.job import Awx, Job
from support.lab import healing
from support.lab.lab import Lab
from support.lab.observer import RECORD
from support.paths import CHECKOUT

OLD, NEW = "25.5.0", "25.5.1"
# What belongs to a credential in AWX, or to the controller.
NOT_OF_THE_INVENTORY = (
    "ansible_ssh_private_key_file",
    "ansible_ssh_common_args",
    "ansible_user",
    "npu_kubernetes_auth",
    "npu_registry_username",
    "npu_registry_password",
    "npu_driver_version",
)
# Before a relaunched job takes over from one that is dead; a text, as every answer.
SOON = {"npu_upgrade_heartbeat_limit": "20"}


class Week:
    def __init__(self, lab: Lab, directory: pathlib.Path) -> None:
        self.lab, self.directory, self.told = lab, directory, {}
        variables = {name: lab.variable(name) for name in lab.variables() if name not in NOT_OF_THE_INVENTORY}
        self.awx = Awx(lab, directory, {**variables, **healing.QUICK})
        # Of the credential type for the registry, which bootstrap makes.
        self.registry = {name: lab.variable(name) for name in ("npu_registry_username", "npu_registry_password")}

    def launch(self, playbook: str, answers: dict[str, str] | None = None, **options: object) -> Job:
        return self.awx.launch(playbook, answers, extra_vars={"npu_driver_version": OLD, **self.registry}, **options)

    def done(self, name: str, job: Job) -> Job:
        job.successful()
        self.tell(name, job)
        return job

    def tell(self, name: str, job: Job) -> None:
        print(f"{time.strftime('%H:%M:%S')} {name}: job {job.number}", flush=True)
        self.told[name] = {"number": job.number, "output": job.output, "artifacts": job.artifacts}
        (self.directory / "jobs.json").write_text(json.dumps(self.told), encoding="utf-8")


def week(lab: Lab, directory: pathlib.Path) -> None:
    it = Week(lab, directory)
    hosts = it.awx.sync_inventory()
    # What a host is that has no Python no label says; in AWX it is a variable of the host.
    hosts["_meta"]["hostvars"]["npu-c"]["ansible_python_interpreter"] = "/var/lib/npuops/python/current/python3"
    it.awx.keep(hosts)
    it.done("install", it.launch("install"))
    it.awx.keep({**it.awx.sync_inventory(), "_meta": hosts["_meta"]})
    up = {
        "npu_driver_version": NEW,
        "npu_upgrade_auto": "true",
        "npu_upgrade_max_parallel": "1",
        "npu_upgrade_retry": "false",
        "npu_upgrade_on_blocked": "",
        **SOON,
    }
    it.done("plan", it.launch("plan", {**up, "npu_plan_fail": "true"}))
    # Each node of the lab has an image of its own, and so is a pool of its own.
    canaries = {"limit": "npu-a,npu-c"}
    first = it.launch("upgrade", {**up, "npu_upgrade_canary": "true"}, **canaries)
    lab.wait_for(lambda: intends(lab), 120, "a reboot is intended")
    first.kill()
    it.tell("killed", first)
    it.done("first nodes", it.launch("upgrade", {**up, "npu_upgrade_canary": "true"}, **canaries))
    it.done("fleet", it.launch("upgrade", {**up, "npu_upgrade_max_parallel": "0", "npu_upgrade_canary": "false"}))
    healing.wedge(lab, "npu-b")
    it.done(
        "heal",
        it.launch(
            "heal",
            {
                "npu_driver_version": NEW,
                "npu_heal_auto": "true",
                "npu_heal_min_uptime": "0",
                "npu_heal_storm_percent": "100",
                **SOON,
            },
        ),
    )
    healing.wait_well(lab, "npu-b")
    it.done("rollback", it.launch("rollback", {"npu_upgrade_auto": "true", "npu_upgrade_max_parallel": "0", **SOON}))
    it.done("status", it.launch("status"))


def intends(lab: Lab) -> bool:
    """Whether the reboot of a node has been written down."""
    records = (node["metadata"].get("annotations", {}).get(RECORD) for node in lab.get("nodes")["items"])
    return any(json.loads(record).get("boot_id") for record in records if record)


if __name__ == "__main__":
    week(Lab(pathlib.Path(os.environ.get("NPU_LAB_STATE") or CHECKOUT / ".lab")), pathlib.Path(sys.argv[1]))
