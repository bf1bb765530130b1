#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_smi_info
short_description: Return the chips that npu-smi lists
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Runs C(npu-smi info) of the driver on the host with a time limit, and returns its table as data.
  - Fails if C(npu-smi) fails, hangs or prints no table. The message explains the error code and says what to do.
  - C(npu-smi) can hang in the kernel, where it cannot be killed. This collection runs at most one C(npu-smi) on a host at a time.
    While one hangs, the module fails without starting another one.
extends_documentation_fragment:
  - npuops.ascend.attributes
  - npuops.ascend.attributes.host
  - npuops.ascend.attributes.info_module
  - npuops.ascend.driver.tree
options:
  timeout:
    description:
      - Seconds to wait until C(npu-smi) ends.
    type: int
    default: 30
seealso:
  - module: npuops.ascend.npu_validate
"""

EXAMPLES = r"""
- name: Get the chips that npu-smi lists
  npuops.ascend.npu_smi_info:
  register: smi

- name: Assert that all chips are healthy
  ansible.builtin.assert:
    that: smi.chips | map(attribute='health') | unique == ['OK']
"""

RETURN = r"""
npu_smi_version:
  description: Version of C(npu-smi).
  returned: success
  type: str
version:
  description: Version of the loaded driver.
  returned: success
  type: str
  sample: 25.5.0
layout:
  description: The layout of the table, V(hbm) for 910A and 910B, V(hbm-phy) for 910C, V(device) for 310 and 310P.
  returned: success
  type: str
chips:
  description: The chips in the order of the table.
  returned: success
  type: list
  elements: dict
  contains:
    npu:
      description: ID of the card. IDs do not necessarily start at 0, and are not the numbers of C(/dev/davinciN).
      type: int
    chip:
      description: Number of the chip on its card.
      type: int
    phy_id:
      description: Physical ID of the chip, V(none) if the table has no such column.
      type: int
    name:
      description: Name of the chip in the table. Do not use it to identify chips; M(npuops.ascend.npu_facts) uses PCI IDs.
      type: str
    health:
      description: One of V(OK), V(Warning), V(Alarm), V(Critical), V(UNKNOWN).
      type: str
    bus_id:
      description: PCI address.
      type: str
warnings_printed:
  description: The lines that C(npu-smi) printed before the table.
  returned: success
  type: list
  elements: str
npu_smi:
  description: The C(npu-smi) command that failed.
  returned: failure, if C(npu-smi) ran and did not print its table
  type: dict
  contains:
    command:
      description: The command.
      type: str
    status:
      description: Its exit status, V(none) if it did not end in time.
      type: int
    dcmi_code:
      description: The DCMI error code behind the exit status, V(none) if unknown.
      type: int
    output:
      description: Its output.
      type: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.npuops.ascend.plugins.module_utils._chips.npu_smi import NpuSmi
from ansible_collections.npuops.ascend.plugins.module_utils._driver import loaded_driver
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError


def main():
    module = AnsibleModule(
        argument_spec={"tree": {"type": "path"}, "timeout": {"type": "int", "default": 30}},
        supports_check_mode=True,
    )
    tree = loaded_driver.tree(module.params["tree"])
    try:
        info = NpuSmi(tree, timeout=module.params["timeout"]).info()
    except NpuError as exc:
        module.fail_json(msg=exc.message, **exc.details)
    # "warnings" is a reserved key in Ansible's results.
    info["warnings_printed"] = info.pop("warnings")
    module.exit_json(changed=False, **info)


if __name__ == "__main__":
    main()
