#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_heal
short_description: "Step of a playbook: plan which wedged nodes to recover"
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Reads the nodes of the cluster and evaluates those whose driver no longer responds (annotation C(npuops.ascend/wedged), which
    the node agent sets), those whose recovery started and did not end, and those that a recovery left cordoned and that
    respond again.
  - Changes nothing. The smoke pod of O(settings) is tried with C(dryRun=All) only; if it cannot be created, this module fails. The
    recovery itself is M(npuops.ascend.npu_maintenance) with
    O(npuops.ascend.npu_maintenance#module:reason=recovery).
  - Runs inside Ansible on the controller, whatever host the task is for.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - npuops.ascend.attributes
  - npuops.ascend.attributes.cluster
  - npuops.ascend.attributes.info_module
  - npuops.ascend.hosts
  - npuops.ascend.settings
  - npuops.ascend.heal_settings
seealso:
  - module: npuops.ascend.npu_maintenance
"""

EXAMPLES = r"""
- name: Plan the recovery of wedged nodes
  npuops.ascend.npu_heal:
    hosts: "{{ ansible_play_hosts_all | npuops.ascend.npu_hosts(hostvars) }}"
    heal_settings:
      auto: true
  run_once: true
  register: recovery

- name: Show the plan
  ansible.builtin.debug:
    msg: "{{ recovery.table }}"
"""

RETURN = r"""
hosts:
  description: Every host whose node is unhealthy, by inventory name.
  returned: success
  type: dict
  contains:
    node:
      description: Name of the Node object.
      type: str
    since:
      description: When the node wedged, V(none) if it responds.
      type: str
    wedged:
      description: What the node agent detected.
      type: str
    attempts:
      description: Times of its recovery reboots within the last 24 hours.
      type: list
      elements: str
    verdict:
      description:
        - V(recover), V(give-back) and V(in-flight) are due.
        - V(awaiting-approval), V(too-soon), V(in-upgrade) and V(skipped) are currently not due.
        - V(given-up), V(not-ready) and V(blocked) require an administrator.
      type: str
    reasons:
      description: The reasons for the verdict.
      type: list
      elements: str
    resource:
      description: The resource that the host provides, if its facts are known.
      type: str
    chips:
      description: Number of chips.
      type: int
    offers:
      description: How many of each resource the node is to advertise, of whole chips and of virtual NPUs.
      type: dict
order:
  description: The hosts that are due, in the order in which to recover them. Empty in a storm.
  returned: success
  type: list
  elements: str
max_parallel:
  description:
    - Maximum number of nodes in maintenance at once, upgrades and recoveries together, 0 for no limit. If C(max_parallel) in
      O(settings) is a percentage, what that comes to.
  returned: success
  type: int
pace:
  description:
    - The keywords C(serial) and C(strategy) of the play that maintains the nodes, one at a time or side by side.
    - Set by C(max_parallel) in O(heal_settings).
  returned: success
  type: dict
look_at:
  description: The hosts whose facts may change the verdict.
  returned: success
  type: list
  elements: str
storm:
  description: Why no node may be recovered at the moment, V(none) if there is no such reason.
  returned: success
  type: str
table:
  description: The plan as aligned lines of text.
  returned: success
  type: list
  elements: str
"""
