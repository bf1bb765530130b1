#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_vnpu
short_description: Divide the chips of an NPU host into virtual NPUs
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Creates the virtual NPUs (vNPUs) of O(layout) with C(npu-smi), and destroys those that are no longer wanted.
  - Records the layout in C(/var/lib/npuops/vnpu) before the first change. If the module is interrupted, run it again; it completes
    the change. At each boot, C(npu-driver.service) creates the recorded vNPUs again, with the same IDs, before they are offered.
  - Changes nothing while a process or a container uses a vNPU or a chip that would have to change.
  - Checks the layout against the templates and the parts of each chip that C(npu-smi) lists, before the first change.
extends_documentation_fragment:
  - npuops.ascend.attributes
  - npuops.ascend.attributes.host
  - npuops.ascend.driver
attributes:
  check_mode:
    support: full
    details:
      - If the driver is not loaded, the layout is not checked, and RV(vnpus) is empty. C(npu-smi) would have to be asked.
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  layout:
    description:
      - How the chips are divided. A list of dictionaries. C(templates) says, for each template, how many vNPUs each chip gets of
        it. C(chips) lists the numbers of the chips, as in C(/dev/davinciN), and is by default all chips of the host. Each chip can
        be in one entry.
      - A chip that is in no entry, or in one without templates, stays whole. Without any entry, V([]), the vNPUs that this module
        has created are destroyed.
      - If all chips are divided alike, the dictionary of C(templates) alone is enough.
      - C(npu-smi info -t template-info) lists the templates of a chip. On an Atlas 300I Duo, both chips of a card are divided, or
        none.
    type: raw
    required: true
  leftovers:
    description:
      - What happens to vNPUs that are neither in the layout nor recorded, but hold parts of a chip.
      - With V(refuse), the module fails and names them. With V(destroy), it destroys them unless they are in use.
      - Without a layout, now or before, they are only reported in RV(leftovers).
    type: str
    choices: [refuse, destroy]
    default: refuse
seealso:
  - module: npuops.ascend.npu_cdi_spec
    description: Describes the vNPUs to containerd. Run it after a change.
"""

EXAMPLES = r"""
- name: Divide each chip into two halves
  npuops.ascend.npu_vnpu:
    layout: {vir04: 1, vir04_3c: 1}

- name: Divide two of the chips, and leave the others whole
  npuops.ascend.npu_vnpu:
    layout:
      - chips: [2, 3]
        templates: {vir02: 3, vir02_1c: 1}
"""

RETURN = r"""
vnpus:
  description: The vNPUs of the layout.
  type: list
  elements: dict
  returned: success
  contains:
    chip:
      description: Number of the chip, as in C(/dev/davinciN).
      type: int
    id:
      description: Number of the vNPU, as in C(/dev/vdavinciN).
      type: int
    template:
      description: Name of its template.
      type: str
    resource:
      description: What pods request for it.
      type: str
leftovers:
  description: vNPUs that exist, but are neither in the layout nor recorded; of O(leftovers=destroy), those that were destroyed.
  type: list
  elements: dict
  returned: success
resources:
  description: How many devices of each resource the device plugin offers with this layout.
  type: dict
  returned: success
  sample: {"huawei.com/Ascend310P": 2, "huawei.com/Ascend310P-4c": 4}
msg:
  description: What was done, or why nothing was done.
  type: str
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.npuops.ascend.plugins.module_utils._chips import device_nodes
from ansible_collections.npuops.ascend.plugins.module_utils._chips.npu_smi import NpuSmi
from ansible_collections.npuops.ascend.plugins.module_utils._driver.loaded_driver import preinstalled_root
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._vnpu import vnpu as chips_vnpu
from ansible_collections.npuops.ascend.plugins.module_utils._vnpu import vnpu_change, vnpu_layout, vnpu_plan


def main():
    module = AnsibleModule(
        argument_spec={
            "layout": {"type": "raw", "required": True},
            "leftovers": {"type": "str", "choices": ["refuse", "destroy"], "default": "refuse"},
            "source": {"type": "str", "choices": ["image", "package", "preinstalled"], "default": "image"},
            "root": {"type": "path", "default": "/var/lib/Ascend"},
        },
        supports_check_mode=True,
    )
    try:
        module.exit_json(**run(module.params, module.check_mode))
    except NpuError as exc:
        module.fail_json(msg=exc.message, **exc.details)


def run(params, check_mode):
    wanted, root = vnpu_layout.parse(params["layout"]), params["root"].rstrip("/")
    if wanted and not device_nodes.numbers():
        if check_mode:
            return {
                "changed": True,
                "vnpus": [],
                "leftovers": [],
                "resources": {},
                "msg": "divide the chips when the driver is loaded",
            }
        raise NpuError("This host has no /dev/davinciN: its driver is not loaded. Run npuops.ascend.install first")
    if params["source"] == "preinstalled":
        root = preinstalled_root(root) or root
    layout = vnpu_change.Layout(wanted, NpuSmi(root + "/driver"), params["leftovers"] == "destroy")
    before = list(layout.record.target)
    plan = layout.plan() if check_mode else layout.apply()
    done = []
    if plan.destroy:
        done.append("destroy " + vnpu_plan.describe(plan.destroy))
    if plan.create:
        done.append("create " + vnpu_plan.describe(plan.create))
    changed = bool(done) or before != plan.target
    family = layout.family
    return {
        "changed": changed,
        "vnpus": [dict(vnpu._asdict(), resource=chips_vnpu.resource(family.resource, vnpu.template)) for vnpu in plan.target],
        "leftovers": [vnpu._asdict() for vnpu in plan.leftovers],
        "resources": chips_vnpu.offered(family.resource, len(layout.numbers), plan.target) if family else {},
        "msg": "; ".join(done) or ("record the layout" if changed else "the virtual NPUs are as they should be"),
        "diff": {"before": _lines(before), "after": _lines(plan.target)},
    }


def _lines(vnpus):
    return "".join("chip %d: %d %s\n" % vnpu for vnpu in vnpus)


if __name__ == "__main__":
    main()
