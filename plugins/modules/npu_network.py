#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_network
short_description: "Step of a playbook: judge the network ports of the chips across the fleet"
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Compares what the hosts said of their network ports. Names duplicate addresses, addresses in C(/etc/hccn.conf) that belong to
    another chip, ports in another network than that of the same chip on similar hosts, and ports with another TLS setting, netmask,
    MTU or speed.
  - Plans a sample of pings between the chips, and judges their results, if the hosts have made them.
  - Runs inside Ansible on the controller, whatever host the task is for. Does not need the cluster.
extends_documentation_fragment:
  - npuops.ascend.attributes
  - npuops.ascend.attributes.info_module
options:
  hosts:
    description: The hosts, as P(npuops.ascend.npu_hosts#filter) returns them.
    type: list
    elements: dict
    required: true
  most_pings:
    description: Maximum number of pings to plan for the whole fleet.
    type: int
    default: 256
seealso:
  - module: npuops.ascend.npu_validate
  - module: npuops.ascend.npu_hccn_ping
"""

EXAMPLES = r"""
- name: Judge the network ports of the fleet
  npuops.ascend.npu_network:
    hosts: "{{ ansible_play_hosts_all | npuops.ascend.npu_hosts(hostvars) }}"
  run_once: true
  register: network

- name: Show what is wrong
  ansible.builtin.debug:
    msg: "{{ network.lines }}"
  run_once: true
"""

RETURN = r"""
findings:
  description: What is wrong.
  returned: success
  type: list
  elements: dict
  contains:
    kind:
      description:
        - One of V(duplicate), V(stale), V(foreign), V(netmask), V(tls), V(mtu), V(speed), V(network), V(unreachable), V(ping), or
          the name of a check of M(npuops.ascend.npu_validate).
      type: str
    hosts:
      description: Inventory names of the hosts of which it is wrong.
      type: list
      elements: str
    text:
      description: What is wrong.
      type: str
    advice:
      description: What to do.
      type: str
pings:
  description:
    - For each host that is to make pings, by inventory name, the options C(pings) and C(tree) of M(npuops.ascend.npu_hccn_ping).
  returned: success
  type: dict
lines:
  description: The findings as lines of text, empty if nothing is wrong.
  returned: success
  type: list
  elements: str
problems:
  description: One line for each finding of a host whose mode is V(strict).
  returned: success
  type: list
  elements: str
"""
