#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_hccn_info
short_description: Return the state of the network ports of the chips
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Asks C(hccn_tool) of the driver on the host for the RoCE port of each chip, and reads C(/etc/hccn.conf). Changes nothing.
  - Only 910A, 910B and 910C chips are asked. On hosts without such ports, RV(roce) is V(false) and RV(reason) says why. This is not
    an error.
  - What cannot be read of a chip is V(none) and in RV(chips[].problems). The module fails only if the host has chips of several
    families.
  - C(hccn_tool) can hang in the driver, where it cannot be killed. This collection runs at most one C(hccn_tool) on a host at a
    time. When one hangs, the module makes no further call.
  - IPv6 addresses, bonds and the ports of 950 chips are not supported.
extends_documentation_fragment:
  - npuops.ascend.attributes
  - npuops.ascend.attributes.host
  - npuops.ascend.attributes.info_module
  - npuops.ascend.driver.tree
options:
  timeout:
    description:
      - Seconds to wait until a call of C(hccn_tool) ends. There are nine calls for each chip.
    type: int
    default: 10
  total_timeout:
    description:
      - Seconds for all calls. Chips that were not asked until then have a problem that says so.
    type: int
    default: 120
seealso:
  - module: npuops.ascend.npu_validate
"""

EXAMPLES = r"""
- name: Get the state of the network ports
  npuops.ascend.npu_hccn_info:
  register: hccn

- name: Show the ports that are down
  ansible.builtin.debug:
    msg: "{{ hccn.chips | selectattr('link', 'equalto', 'DOWN') | map(attribute='chip') }}"
"""

RETURN = r"""
roce:
  description: Whether the chips of the host have RoCE ports that C(hccn_tool) knows.
  returned: success
  type: bool
reason:
  description: Why RV(roce) is V(false), otherwise V(none).
  returned: success
  type: str
cabled:
  description:
    - Whether any port has a link or an optical module, or could not be read. With V(false), the host does not use its ports.
  returned: success
  type: bool
config:
  description: The file C(/etc/hccn.conf).
  returned: success
  type: dict
  contains:
    exists:
      description: Whether the file exists.
      type: bool
    problems:
      description: Values in it that are not valid, or why it cannot be read.
      type: list
      elements: str
chips:
  description: The chips, sorted. Values that are unknown, or that the chip does not have, are V(none).
  returned: success
  type: list
  elements: dict
  contains:
    chip:
      description: The number N of C(/dev/davinciN).
      type: int
    link:
      description: V(UP) or V(DOWN). From C(hccn_tool -link).
      type: str
    speed:
      description: Speed of the link in Mb/s. From C(hccn_tool -speed).
      type: int
      sample: 200000
    address:
      description: IPv4 address of the port. From C(hccn_tool -ip).
      type: str
    netmask:
      description: Netmask of that address. From C(hccn_tool -ip).
      type: str
    gateway:
      description: Default gateway of the port. From C(hccn_tool -gateway).
      type: str
    net_health:
      description:
        - The result of the chip's own probes of its detection address. From C(hccn_tool -net_health).
        - One of V(Success), V(Socket fail), V(Receive timeout), V(Unreachable), V(Time exceeded), V(Fault), V(Init), which is that
          there is no detection address, V(Thread error), V(Detect ip set), V(Unknown).
      type: str
    tls:
      description:
        - Whether connections between chips use TLS. From C(hccn_tool -tls). Chips can connect only if it is the same on both.
      type: bool
    fec:
      description: Mode of the forward error correction, such as V(rs), V(no) or V(auto). From C(hccn_tool -fec).
      type: str
    mtu:
      description: MTU in bytes. From C(hccn_tool -mtu).
      type: int
    optical:
      description: The optical module. From C(hccn_tool -optical). Lists have a value for each lane, V(none) for a lane without one.
      type: dict
      contains:
        present:
          description: Whether there is a module. Without one, it is the only field.
          type: bool
        tx_power:
          description: Sent power in mW.
          type: list
          elements: float
        rx_power:
          description: Received power in mW.
          type: list
          elements: float
        host_snr:
          description: Signal-to-noise ratio on the side of the chip, in dB.
          type: list
          elements: float
        media_snr:
          description: Signal-to-noise ratio on the side of the fiber, in dB.
          type: list
          elements: float
        tx_power_low:
          description: The module's own lower limit of the sent power, in mW.
          type: float
        tx_power_high:
          description: The upper one.
          type: float
        rx_power_low:
          description: The module's own lower limit of the received power, in mW.
          type: float
        rx_power_high:
          description: The upper one.
          type: float
    configured:
      description: What C(/etc/hccn.conf) says of the chip, V(none) if it says nothing.
      type: dict
      contains:
        address:
          description: IPv4 address.
          type: str
        netmask:
          description: Netmask.
          type: str
        gateway:
          description: Default gateway.
          type: str
        mtu:
          description: MTU in bytes.
          type: int
        tls:
          description: Whether TLS is on.
          type: bool
        dhcp:
          description: Whether the port gets its address by DHCP.
          type: bool
    problems:
      description: Why an item of C(hccn_tool) is unknown, by the name of the item, such as C(optical).
      type: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.npuops.ascend.plugins.module_utils._chips import hccn_ports
from ansible_collections.npuops.ascend.plugins.module_utils._driver import loaded_driver
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError


def main():
    module = AnsibleModule(
        argument_spec={
            "tree": {"type": "path"},
            "timeout": {"type": "int", "default": 10},
            "total_timeout": {"type": "int", "default": 120},
        },
        supports_check_mode=True,
    )
    params = module.params
    tree = loaded_driver.tree(params["tree"])
    try:
        ports = hccn_ports.gather(tree, timeout=params["timeout"], total=params["total_timeout"])
    except NpuError as exc:
        module.fail_json(msg=exc.message, **exc.details)
    module.exit_json(changed=False, **ports)


if __name__ == "__main__":
    main()
