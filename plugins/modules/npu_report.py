#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_report
short_description: "Step of a playbook: report the results of an upgrade, rollback or recovery"
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Combines the plan, the results of the tasks of this run, and the current state of the nodes.
  - Does not fail; the playbook fails with RV(problem).
  - With O(directory), writes the report as JSON, as JUnit XML (one test case per node, for tools that show test results) and as a
    self-contained HTML page with a timeline per node.
  - Runs inside Ansible on the controller, whatever host the task is for.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - npuops.ascend.attributes
  - npuops.ascend.attributes.cluster
  - npuops.ascend.notify
attributes:
  check_mode:
    support: full
    details:
      - The module changes nothing but the files in O(directory), which it does not write in check mode.
  diff_mode:
    support: none
  idempotent:
    support: none
    details:
      - With O(directory), the files are written each time, with a timestamp.
options:
  run:
    description: ID of this run, as passed to M(npuops.ascend.npu_maintenance).
    type: str
    required: true
  reason:
    description: The purpose of the run. It determines the command that continues the run.
    type: str
    choices: [upgrade, rollback, recovery]
    default: upgrade
  plan:
    description: The result of M(npuops.ascend.npu_plan) or M(npuops.ascend.npu_heal).
    type: dict
    required: true
  hosts:
    description: The results of the tasks, as P(npuops.ascend.npu_outcomes#filter) returns them.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Inventory name.
        type: str
        required: true
      outcome:
        description: The outcome of the host's maintenance. By default, the verdict of the plan.
        type: str
      reason:
        description: The reason for the outcome.
        type: str
  workloads:
    description: The results of M(npuops.ascend.npu_workloads) for parking and restoring, which become part of RV(report).
    type: dict
    default: {}
    suboptions:
      parked:
        description: The workloads that were parked.
        type: list
        elements: dict
        default: []
      restored:
        description: The workloads that were restored.
        type: list
        elements: dict
        default: []
      left:
        description: The workloads that were not changed, from both calls.
        type: list
        elements: dict
        default: []
      problem:
        description: What could not be restored. Becomes part of RV(problem).
        type: str
  components:
    description: What the run did with the components, which becomes part of RV(report).
    type: dict
    default: {}
    suboptions:
      order:
        description: V(before) or V(after) the drivers, RV(npuops.ascend.npu_plan#module:components). Not set if none changes.
        type: str
      from:
        description: The version lines of MindCluster before.
        type: list
        elements: str
        default: []
      to:
        description: The version line of MindCluster that was wanted.
        type: str
      changes:
        description: The changes that were planned.
        type: list
        elements: str
        default: []
      unfit:
        description: Why the components were not changed yet, as RV(npuops.ascend.npu_components#module:unfit) says.
        type: list
        elements: str
        default: []
      left_alone:
        description: Why no component was changed after the drivers, as RV(npuops.ascend.npu_components#module:left_alone) says.
        type: str
      problem:
        description: Why the components could not be changed. Becomes part of RV(problem).
        type: str
  namespace:
    description: Namespace of the Lease C(npu-maintenance).
    type: str
    default: npu-operator
  directory:
    description:
      - Directory on the controller for the files C(npu-<reason>-<run>.json), C(.xml) and C(.html). It is created if it does not
        exist. A relative path is relative to the directory in which C(ansible-playbook) was started.
      - By default, and if empty, no files are written.
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
  description: One aligned line per node with the duration of each part in seconds, then the reasons, then how to approve reboots.
  returned: always
  type: list
  elements: str
problem:
  description:
    - Which nodes did not succeed, why, and the command that continues the run; also why files could not be written. V(none) if
      there is no problem.
  returned: always
  type: str
halted:
  description:
    - The halt of the rollout, with C(who), C(why), C(when), C(reason) of that run, and C(node) if a node is in the middle of its
      maintenance. V(none) if the rollout is not halted.
  returned: always
  type: dict
files:
  description:
    - The files that were written, or would be in check mode, by format. Empty without O(directory), or if they could not be
      written, which RV(problem) explains.
  returned: always
  type: dict
  sample:
    json: /srv/npu/reports/npu-upgrade-awx-7.json
    xml: /srv/npu/reports/npu-upgrade-awx-7.xml
    html: /srv/npu/reports/npu-upgrade-awx-7.html
report:
  description: The report as data, from which the table and the files are generated. Times are in the format of RFC 3339, in UTC.
  returned: always
  type: dict
  contains:
    run:
      description: ID of the run.
      type: str
    reason:
      description: V(upgrade), V(rollback) or V(recovery).
      type: str
    from:
      description: The previous driver versions of the nodes that were due.
      type: list
      elements: str
    to:
      description: The target driver versions of these nodes.
      type: list
      elements: str
    written:
      description: When this report was generated.
      type: str
    started:
      description: When the first maintenance of the run began, V(none) if none did.
      type: str
    ended:
      description: When the last maintenance ended, or its last heartbeat.
      type: str
    seconds:
      description: Seconds between C(started) and C(ended).
      type: int
    halted:
      description: As RV(halted), V(none) if that halt does not concern O(reason).
      type: dict
    go_on:
      description: The command that continues the run, V(none) if nothing is left to do.
      type: str
    approve:
      description: The command that approves the reboots that wait for approval, V(none) if none do.
      type: str
    workloads:
      description:
        - What was parked and restored, as M(npuops.ascend.npu_workloads) returns it, and why not all workloads could be restored.
      type: dict
    components:
      description: What became of the components.
      type: dict
      contains:
        order:
          description: V(before) or V(after) the drivers, null if none was to change.
          type: str
        from:
          description: The version lines of MindCluster before.
          type: list
          elements: str
        to:
          description: The version line of MindCluster that was wanted.
          type: str
        changes:
          description: The changes that were planned.
          type: list
          elements: str
        outcome:
          description:
            - V(changed), V(checked) in check mode, V(waiting) if the next upgrade is to change them, or V(failed). Null if none was
              to change.
          type: str
        reason:
          description: Why the components were not changed.
          type: str
    nodes:
      description: One entry per host, in the order of the plan.
      type: list
      elements: dict
      contains:
        host:
          description: Inventory name.
          type: str
        node:
          description: Name of the Node object.
          type: str
        from:
          description: Previous version of the driver.
          type: str
        to:
          description: Target version of the driver.
          type: str
        firmware:
          description: How the plan was to change the firmware of the chips, with C(from) and C(to). Null if it was to stay.
          type: dict
        outcome:
          description:
            - The outcome in words. One of V(upgraded), V(returned), V(rolled back), V(left half-way), V(not begun),
              V(given back), V(deferred), V(failed), V(halted), V(busy), V(awaiting-approval), or the plan's verdict.
          type: str
        status:
          description: The outcome as a status.
          type: str
          choices: [passed, skipped, not-begun, failed]
        reason:
          description: The reason for the outcome, V(none) without one.
          type: str
        seconds:
          description:
            - Duration of each part (C(EVICT), C(REBOOT), C(VALIDATE), C(BACK)) and of all parts (C(TOTAL)). Empty if no maintenance
              began.
          type: dict
        started:
          description: When the maintenance began.
          type: str
        ended:
          description: When the maintenance ended, V(none) if it has not ended or never began.
          type: str
        times:
          description: Start time of each step, and of other events in the record.
          type: dict
        timeline:
          description: The steps in chronological order.
          type: list
          elements: dict
          contains:
            step:
              description: Name of the step, as in the label C(npu.openfuyao.com/driver-upgrade-state).
              type: str
            part:
              description: The part of the maintenance that the step belongs to, a key of C(seconds).
              type: str
            began:
              description: When the step began.
              type: str
            ended:
              description: When the next step began. For the last step, the last heartbeat of the maintenance.
              type: str
        approval:
          description: Who approved the reboot, with which program, when, and in which AWX job. V(none) without approval.
          type: dict
        approval_for:
          description:
            - What an approval of the node's reboot is for, as the annotation C(npuops.ascend/approval-for) has it, which is the
              version of the driver, or C(recovery-) with the time since when the node is wedged. V(none) if neither is known.
          type: str
        job:
          description:
            - The AWX job, with C(id), C(url), the C(user) who launched it, and C(workflow), the ID of the workflow job, as far as
              AWX provides them. V(none) outside AWX.
          type: dict
        earlier:
          description:
            - For a node that is V(up-to-date) because another run (such as one that was killed) upgraded it within the last day,
              that C(run), the version it was upgraded C(from), and when that maintenance C(ended). Otherwise V(none).
          type: dict
        state:
          description: Current value of the label C(npu.openfuyao.com/driver-upgrade-state).
          type: str
"""
