# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A site may have Ansible end every task after some minutes (task_timeout). That is no limit for what has its own, and would be ended
in the middle: a drain, a rollout, a diagnosis of hours."""

from __future__ import annotations

import yaml

from support.paths import CHECKOUT

# Those without an option for it: their limits are settings, or the module's own.
OTHERS = (
    "npu_accept_collective", "npu_accept_node", "npu_driver_image_build", "npu_heal_watch", "npu_maintenance", "npu_mirror",
    "npu_node_agent_image_build", "npu_objects", "npu_python", "npu_vnpu", "npu_workloads",
)  # fmt: skip


def with_limits():
    """Modules that have an option for their time."""
    for path in sorted(CHECKOUT.glob("plugins/modules/*.py")):
        documentation = path.read_text(encoding="utf-8").partition('DOCUMENTATION = r"""')[2].partition('"""')[0]
        if any("timeout" in name for name in yaml.safe_load(documentation).get("options") or {}):
            yield path.stem


def tasks(found):
    for one in found if isinstance(found, list) else []:
        if isinstance(one, dict):
            yield one
            for inner in ("tasks", "pre_tasks", "post_tasks", "block", "rescue", "always"):
                yield from tasks(one.get(inner))


def test_no_limit_of_the_site_ends_what_has_its_own():
    long = {"npuops.ascend." + name for name in (*OTHERS, *with_limits())}
    seen, limited = set(), []
    for path in sorted([*CHECKOUT.glob("playbooks/**/*.yml"), *CHECKOUT.glob("roles/*/tasks/*.yml")]):
        for task in tasks(yaml.safe_load(path.read_text(encoding="utf-8"))):
            for module in long & set(task):
                seen.add(module)
                if task.get("timeout") != 0:
                    limited.append("%s: %s" % (path.relative_to(CHECKOUT), task["name"]))
    assert limited == [] and len(seen) > 20
