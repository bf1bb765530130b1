#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_report
short_description: Report the results of an upgrade, rollback or recovery
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Combines the plan, the results of the tasks of this run, and the current state of the nodes.
  - Does not fail; the playbook fails with RV(problem).
  - With O(directory), the report is written there as JSON, as JUnit XML (one test case per node, for tools that show test
    results) and as a self-contained HTML page with a timeline per node.
  - Runs inside Ansible on the controller, whatever host the task is for.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - npuops.ascend.attributes
  - npuops.ascend.attributes.cluster
attributes:
  check_mode:
    support: full
    details:
      - Writes only the files in O(directory), and none in check mode.
  diff_mode:
    support: none
  idempotent:
    support: none
    details:
      - With O(directory), the files are written each time, with a timestamp.
options:
  run:
    description: ID of this run, as M(npuops.ascend.npu_maintenance) had it.
    type: str
    required: true
  reason:
    description: The purpose of the run, for the command that continues it.
    type: str
    choices: [upgrade, rollback, recovery]
    default: upgrade
  plan:
    description: What M(npuops.ascend.npu_plan) returned, or M(npuops.ascend.npu_heal).
    type: dict
    required: true
  hosts:
    description: The results of the tasks, as P(npuops.ascend.npu_outcomes#filter) collects them.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Inventory name.
        type: str
        required: true
      outcome:
        description: The outcome of the host's maintenance; without it, the verdict of the plan counts.
        type: str
      reason:
        description: Why.
        type: str
  workloads:
    description: The results of M(npuops.ascend.npu_workloads) for parking and restoring; part of RV(report).
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
  directory:
    description:
      - Directory, on the controller, in which the files C(npu-<reason>-<run>.json), C(.xml) and C(.html) are written. It is
        made if it is not there. A relative one is below the directory in which C(ansible-playbook) was started.
      - Empty or without it, nothing is written.
    type: path
seealso:
  - module: npuops.ascend.npu_plan
  - module: npuops.ascend.npu_maintenance
"""

EXAMPLES = r"""
- name: Gather the results from the cluster
  npuops.ascend.npu_report:
    run: "{{ run_id }}"
    plan: "{{ plan }}"
    hosts: "{{ ansible_play_hosts_all | npuops.ascend.npu_outcomes(hostvars) }}"
    directory: /srv/npu/reports
  run_once: true
  register: report

- name: Show the report
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
  description:
    - Which nodes did not succeed, why, and the command with which to go on; and why the files could not be written.
      V(none) when all is well.
  returned: always
  type: str
halted:
  description:
    - Who halted the roll-out, why and when; C(reason) of that run; C(node), if one stands in the middle of its maintenance. V(none)
      when it is not halted.
  returned: always
  type: dict
files:
  description: The files that were written, or would be, by their kind. Empty without O(directory), or when RV(problem) says why.
  returned: always
  type: dict
  sample:
    json: /srv/npu/reports/npu-upgrade-awx-7.json
    xml: /srv/npu/reports/npu-upgrade-awx-7.xml
    html: /srv/npu/reports/npu-upgrade-awx-7.html
report:
  description: All of it for machines. The table and the files are made from this alone. Times are RFC 3339 in UTC.
  returned: always
  type: dict
  contains:
    run:
      description: ID of the run.
      type: str
    reason:
      description: V(upgrade) or V(rollback).
      type: str
    from:
      description: The versions that nodes had which were due.
      type: list
      elements: str
    to:
      description: The versions that these nodes were to get.
      type: list
      elements: str
    written:
      description: When this report was made.
      type: str
    started:
      description: When the first maintenance of the run began; V(none) when no node was taken.
      type: str
    ended:
      description: When the last one ended, or its last heartbeat.
      type: str
    seconds:
      description: From the one to the other.
      type: int
    halted:
      description: As RV(halted).
      type: dict
    go_on:
      description: The command with which to go on; V(none) when nothing is left to do.
      type: str
    approve:
      description: The command that approves the reboots that wait for it; V(none) when none does.
      type: str
    workloads:
      description:
        - What was parked and restored, as M(npuops.ascend.npu_workloads) returns it, and why not all of it could be restored.
      type: dict
    nodes:
      description: One entry per host, in the order of the plan.
      type: list
      elements: dict
      contains:
        host:
          description: Inventory name.
          type: str
        node:
          description: Name of the Node.
          type: str
        from:
          description: Version of the driver before.
          type: str
        to:
          description: Version that the node was to get.
          type: str
        outcome:
          description:
            - What became of it, in words. V(upgraded), V(returned), V(rolled back), V(left half-way), V(not begun),
              V(given back), V(deferred), V(failed), V(halted), V(busy), V(awaiting-approval), or the plan's verdict.
          type: str
        status:
          description: What that comes to.
          type: str
          choices: [passed, skipped, not-begun, failed]
        reason:
          description: Why; V(none) where nothing is to be said.
          type: str
        seconds:
          description:
            - How long each part took (C(EVICT), C(REBOOT), C(VALIDATE), C(BACK)), and C(TOTAL). Empty when the node was not taken.
          type: dict
        started:
          description: When its maintenance began.
          type: str
        ended:
          description: When it ended; V(none) when it has not, or never began.
          type: str
        times:
          description: When each step, and what else the record notes, began.
          type: dict
        timeline:
          description: The steps in their order.
          type: list
          elements: dict
          contains:
            step:
              description: As in the label C(npu.openfuyao.com/driver-upgrade-state).
              type: str
            part:
              description: The part of the maintenance it belongs to, a key of C(seconds).
              type: str
            began:
              description: When.
              type: str
            ended:
              description: When the next one began; of the last one, the last heartbeat of the node.
              type: str
        approval:
          description: Who approved the reboot, with which program, when, and the AWX job; V(none) without approval.
          type: dict
        job:
          description:
            - The job of AWX, with C(id), C(url), the C(user) who launched it, and C(workflow), the number of the workflow's job, as
              far as AWX tells them; V(none) elsewhere.
          type: dict
        earlier:
          description:
            - Of a node that is V(up-to-date) because another run upgraded it within the last day, such as one that was killed, that
              C(run), the version it was upgraded C(from), and when that C(ended); else V(none).
          type: dict
        state:
          description: What that label says now.
          type: str
"""
