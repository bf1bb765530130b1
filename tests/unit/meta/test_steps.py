# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`ansible-doc -l npuops.ascend` tells modules that people use in their own playbooks from the steps of ours."""

from __future__ import annotations

import re

from support.paths import CHECKOUT

# What has a use of its own: facts and checks of hosts, one host's driver, runtime and virtual NPUs, images, Kubernetes objects.
FOR_PEOPLE = {
    "ascend_docker_runtime", "ascend_docker_runtime_package", "containerd_cdi", "npu_cdi_spec", "npu_driver",
    "npu_driver_image_build", "npu_driver_stage", "npu_facts", "npu_heal_service", "npu_node", "npu_node_agent_image_build",
    "npu_hccn_info", "npu_hccn_ping", "npu_objects", "npu_release", "npu_rollout_pause", "npu_smi_info", "npu_validate", "npu_vnpu", "npu_wait",
}  # fmt: skip


def test_steps_say_that_they_are():
    said = {}
    for path in (CHECKOUT / "plugins" / "modules").glob("*.py"):
        said[path.stem] = re.search(r"^short_description: (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)[1]
    steps = {name for name, text in said.items() if text.startswith('"Step of a playbook: ')}
    assert steps == set(said) - FOR_PEOPLE
