#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_report
short_description: Say what became of the nodes of an upgrade or rollback
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Puts together what the plan was, what the tasks of this run said, and what the nodes say of their maintenance now.
  - Does not fail by itself; RV(problem) is what the playbook fails with.
  - Runs inside Ansible on the controller, whatever host the task is for.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - npuops.ascend.attributes
  - npuops.ascend.attributes.info_module
requirements:
  - python >= 3.11
  - kubernetes >= 24.2.0
options:
  run:
    description: ID of this run, as M(npuops.ascend.npu_maintenance) had it.
    type: str
    required: true
  reason:
    description: What the run was to do, for the command with which to go on.
    type: str
    choices: [upgrade, rollback]
    default: upgrade
  plan:
    description: What M(npuops.ascend.npu_plan) returned.
    type: dict
    required: true
  hosts:
    description: What the tasks said, as P(npuops.ascend.npu_outcomes#filter) collects it.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Inventory name.
        type: str
        required: true
      outcome:
        description: How far the host's maintenance came; without it, the plan's verdict counts.
        type: str
      reason:
        description: Why.
        type: str
  workloads:
    description: What M(npuops.ascend.npu_workloads) returned when it parked and restored; becomes part of RV(report).
    type: dict
    default: {}
    suboptions:
      parked:
        description: What was parked.
        type: list
        elements: dict
        default: []
      restored:
        description: What was restored.
        type: list
        elements: dict
        default: []
      left:
        description: What was left as it is, both times.
        type: list
        elements: dict
        default: []
      problem:
        description: What could not be restored; becomes part of RV(problem).
        type: str
  namespace:
    description: Where the Lease C(npu-maintenance) is.
    type: str
    default: npu-operator
seealso:
  - module: npuops.ascend.npu_plan
  - module: npuops.ascend.npu_maintenance
"""

EXAMPLES = r"""
- name: Ask the cluster what became of the nodes
  npuops.ascend.npu_report:
    run: "{{ run_id }}"
    plan: "{{ plan }}"
    hosts: "{{ ansible_play_hosts_all | npuops.ascend.npu_outcomes(hostvars) }}"
  run_once: true
  register: report

- name: Show it
  ansible.builtin.debug:
    msg: "{{ report.table }}"
  run_once: true
"""

RETURN = r"""
table:
  description: One aligned line per node with the seconds of each part, then the reasons, then how to approve.
  returned: always
  type: list
  elements: str
problem:
  description: Which nodes did not get there, why, and the command with which to go on; V(none) when all did.
  returned: always
  type: str
halted:
  description: Who halted the roll-out, why and when; V(none) when it is not halted.
  returned: always
  type: dict
report:
  description: All of it for machines, with a list C(nodes).
  returned: always
  type: dict
"""
