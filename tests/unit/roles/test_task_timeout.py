# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A site may have Ansible end every task after some minutes (task_timeout). That is no limit for what has its own, and would be ended
in the middle: a drain, a rollout, a diagnosis of hours."""

from __future__ import annotations

import yaml

from support.paths import CHECKOUT

LONG = {
    "npuops.ascend." + name
    for name in (
        "npu_accept_collective", "npu_accept_node", "npu_adopt", "npu_collect_bundle", "npu_driver", "npu_driver_condition",
        "npu_driver_image_build", "npu_driver_stage", "npu_heal_watch", "npu_maintenance", "npu_many_hosts", "npu_mirror",
        "npu_node_agent_image_build", "npu_objects", "npu_status", "npu_vnpu", "npu_vnpu_pause", "npu_wait", "npu_withdraw",
        "npu_workloads",
    )
}  # fmt: skip


def tasks(found):
    for one in found if isinstance(found, list) else []:
        if isinstance(one, dict):
            yield one
            for inner in ("tasks", "pre_tasks", "post_tasks", "block", "rescue", "always"):
                yield from tasks(one.get(inner))


def test_no_limit_of_the_site_ends_what_has_its_own():
    seen, limited = set(), []
    for path in sorted([*CHECKOUT.glob("playbooks/**/*.yml"), *CHECKOUT.glob("roles/*/tasks/*.yml")]):
        for task in tasks(yaml.safe_load(path.read_text(encoding="utf-8"))):
            for module in LONG & set(task):
                seen.add(module)
                if task.get("timeout") != 0:
                    limited.append("%s: %s" % (path.relative_to(CHECKOUT), task["name"]))
    assert limited == [] and seen == LONG
