#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_smi_info
short_description: Read what npu-smi says about the chips of a host
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Calls C(npu-smi info) of the driver on the host with a time limit and returns its table as data.
  - Fails when C(npu-smi) fails, hangs or prints something else, and says what its error code means and what to do.
  - C(npu-smi) can hang in the kernel where nothing ends it. At most one that this collection started exists on a host;
    while one hangs, this module says so and starts no other.
extends_documentation_fragment:
  - npuops.ascend.attributes
  - npuops.ascend.attributes.host
  - npuops.ascend.attributes.info_module
options:
  tree:
    description:
      - The driver tree. Without it C(/var/lib/Ascend/driver), then C(/usr/local/Ascend/driver).
    type: path
  timeout:
    description:
      - Seconds to wait for an answer.
    type: int
    default: 30
seealso:
  - module: npuops.ascend.npu_validate
"""

EXAMPLES = r"""
- name: Read the table of npu-smi
  npuops.ascend.npu_smi_info:
  register: smi

- name: Fail when a chip is not healthy
  ansible.builtin.assert:
    that: smi.chips | map(attribute='health') | unique == ['OK']
"""

RETURN = r"""
npu_smi_version:
  description: The version of the program.
  returned: success
  type: str
version:
  description: The version of the driver.
  returned: success
  type: str
  sample: 25.5.0
layout:
  description: Which table it was. V(hbm) comes from 910A and 910B, V(hbm-phy) from 910C, V(device) from 310 and 310P.
  returned: success
  type: str
chips:
  description: The chips in the order of the table.
  returned: success
  type: list
  elements: dict
  contains:
    npu:
      description: The card's ID; neither counted from 0 nor the number of C(/dev/davinciN).
      type: int
    chip:
      description: The chip's number on its card.
      type: int
    phy_id:
      description: The physical ID, where the table has one.
      type: int
    name:
      description: The name in the table. Do not identify chips by it.
      type: str
    health:
      description: One of V(OK), V(Warning), V(Alarm), V(Critical), V(UNKNOWN).
      type: str
    bus_id:
      description: The PCI address.
      type: str
warnings_printed:
  description: What npu-smi printed before the table.
  returned: success
  type: list
  elements: str
npu_smi:
  description: The failed call.
  returned: when npu-smi was called and did not print its table
  type: dict
  contains:
    command:
      description: The command.
      type: str
    status:
      description: Its exit status; V(none) when it gave no answer.
      type: int
    dcmi_code:
      description: The code behind the status, if it is known.
      type: int
    output:
      description: What it printed.
      type: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.npuops.ascend.plugins.module_utils._chips.npu_smi import NpuSmi
from ansible_collections.npuops.ascend.plugins.module_utils._host import facts as host_facts
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError


def main():
    module = AnsibleModule(
        argument_spec={"tree": {"type": "path"}, "timeout": {"type": "int", "default": 30}},
        supports_check_mode=True,
    )
    tree = module.params["tree"]
    if tree is None:
        tree = (host_facts.preinstalled_root() or host_facts.IMAGE_ROOT) + "/driver"
    try:
        info = NpuSmi(tree, timeout=module.params["timeout"]).info()
    except NpuError as exc:
        module.fail_json(msg=exc.message, **exc.details)
    # "warnings" is Ansible's own word in a result.
    info["warnings_printed"] = info.pop("warnings")
    module.exit_json(changed=False, **info)


if __name__ == "__main__":
    main()
