#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_hccn_ping
short_description: Ping addresses through the network ports of the chips
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Runs C(hccn_tool -ping) of the driver on the host, one ping after the other. A ping sends three packets of 4096 bytes.
  - An address that does not answer is a result, not an error. The module fails only if the driver has no C(hccn_tool), or an
    argument is not valid.
extends_documentation_fragment:
  - npuops.ascend.attributes
  - npuops.ascend.attributes.host
  - npuops.ascend.attributes.info_module
  - npuops.ascend.driver.tree
options:
  pings:
    description: The pings, 64 at most.
    type: list
    elements: dict
    required: true
    suboptions:
      chip:
        description: The number N of C(/dev/davinciN) of the chip through whose port to ping.
        type: int
        required: true
      address:
        description: The IPv4 address to ping.
        type: str
        required: true
  timeout:
    description: Seconds to wait until a ping ends. After one that does not, no other is made.
    type: int
    default: 15
  total_timeout:
    description: Seconds for all pings. Those that were not begun until then have a RV(results[].problem) that says so.
    type: int
    default: 60
seealso:
  - module: npuops.ascend.npu_hccn_info
"""

EXAMPLES = r"""
- name: Ping the first chip of another host
  npuops.ascend.npu_hccn_ping:
    pings:
      - chip: 0
        address: 10.20.0.18
  register: hccn

- name: Assert that it answers
  ansible.builtin.assert:
    that: hccn.results[0].received == hccn.results[0].sent
"""

RETURN = r"""
results:
  description: The results, in the order of O(pings).
  returned: success
  type: list
  elements: dict
  contains:
    chip:
      description: The chip.
      type: int
    address:
      description: The address.
      type: str
    sent:
      description: Number of packets that were sent, V(none) if it is unknown whether the address answers.
      type: int
    received:
      description: Number of packets that were answered, V(none) if that is unknown.
      type: int
    problem:
      description: Why it is unknown, otherwise V(none).
      type: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.npuops.ascend.plugins.module_utils._chips import hccn_output, hccn_pings
from ansible_collections.npuops.ascend.plugins.module_utils._chips.hccn_tool import HccnTool
from ansible_collections.npuops.ascend.plugins.module_utils._driver import loaded_driver

MOST = 64


def main():
    module = AnsibleModule(
        argument_spec={
            "pings": {
                "type": "list",
                "elements": "dict",
                "required": True,
                "options": {"chip": {"type": "int", "required": True}, "address": {"type": "str", "required": True}},
            },
            "tree": {"type": "path"},
            "timeout": {"type": "int", "default": 15},
            "total_timeout": {"type": "int", "default": 60},
        },
        supports_check_mode=True,
    )
    params = module.params
    tree = loaded_driver.tree(params["tree"])
    pings = [(ping["chip"], ping["address"]) for ping in params["pings"]]
    wrong = ["%d: %s" % (chip, address) for chip, address in pings if not (0 <= chip < 1024 and hccn_output.is_address(address))]
    if wrong or len(pings) > MOST:
        module.fail_json(msg="pings must be %d at most, of a chip and an IPv4 address each. Wrong: %s" % (MOST, ", ".join(wrong)))
    tool = HccnTool(tree, params["timeout"])
    if not tool.exists():
        module.fail_json(msg="The driver has no %s, so its chips have no ports. Run npuops.ascend.install" % tool.path)
    module.exit_json(changed=False, results=hccn_pings.run(pings, tool, params["total_timeout"]))


if __name__ == "__main__":
    main()
