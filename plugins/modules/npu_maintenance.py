#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_maintenance
short_description: "Step of a playbook: run the maintenance of one node, from cordon to uncordon"
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Drives one node that is due (label C(npu.openfuyao.com/driver-upgrade-state)) through cordon, drain, reboot into the new
    driver release on trial, validation and uncordon. When the new driver does not validate, the node goes back to the one before.
  - With O(reason=recovery), reboots a node whose driver no longer responds in the same way. The reboot is likely to repair it.
  - The state is on the node, in that label and the annotation C(npuops.ascend/maintenance), not in the play. The next run completes
    a run that was killed at any point. The host reboots exactly once, and a node that was cordoned before stays cordoned.
  - Runs inside Ansible on the controller, for the host of the node. Host modules go through that host's connection.
    Shows each step as one line when it starts.
  - The playbooks C(npuops.ascend.upgrade) and C(npuops.ascend.rollback) stage the release and label the nodes first;
    C(npuops.ascend.heal) chooses the nodes to recover.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - npuops.ascend.attributes
  - npuops.ascend.attributes.cluster
  - npuops.ascend.settings
  - npuops.ascend.heal_settings
  - npuops.ascend.notify
attributes:
  check_mode:
    support: partial
    details:
      - Returns only RV(outcome=check-mode). The playbook C(npuops.ascend.plan) shows what would happen to the whole fleet.
  diff_mode:
    support: none
  idempotent:
    support: full
options:
  node:
    description: Name of the Node object.
    type: str
    required: true
  run:
    description:
      - ID of this run, the same in all its tasks and different from that of any other run. The maintenance of another run is
        taken over only after C(heartbeat_limit) seconds (of O(settings)) without a heartbeat of that run.
    type: str
    required: true
  until:
    description:
      - The step before which to stop. A node that has already passed it is not changed, with RV(outcome=under-way).
      - V(cordon) acquires a slot and writes the record. Nothing else is changed.
      - V(drain) stops after the node is cordoned.
      - V(reboot) stops after the pods have been evicted, before the reboot.
      - V(validate) stops after the host is back.
      - V(confirm) stops after the new driver has validated, before it is confirmed. Until it is confirmed, any reboot returns to
        the previous driver.
      - V(hook) stops where the first tasks of the user run, by O(settings). That is V(cordon) with C(hook_before), V(reboot) with
        C(with_os) if O(reason=upgrade), and V(confirm) with C(hook_after). If there are none, it completes the maintenance.
      - V(done) completes the maintenance.
    type: str
    choices: [hook, cordon, drain, reboot, validate, confirm, done]
    default: done
  previous:
    description:
      - The result of the previous task, if the maintenance consists of several tasks. If that task ended the maintenance, for
        whatever reason, this task is skipped and returns the same RV(outcome), RV(reason) and RV(step).
    type: dict
  reason:
    description:
      - The purpose of the maintenance.
      - With V(recovery), a wedged node (annotation C(npuops.ascend/wedged)) is rebooted with its current driver, within the limits
        of O(heal_settings). A node that responds again before the reboot is not rebooted. There is no rollback, so a node
        whose driver does not work after the reboot stays cordoned.
    type: str
    choices: [upgrade, rollback, recovery]
    default: upgrade
  target:
    description:
      - The driver that the node will run. Once the reboot is committed, the record on the node takes precedence.
      - Required unless O(reason=recovery).
    type: dict
    suboptions:
      version:
        description: Version of the driver.
        type: str
        required: true
      release:
        description: Name of the release, as M(npuops.ascend.npu_driver_stage) returned it.
        type: str
        required: true
      digest:
        description: Digest of the driver image.
        type: str
      firmware:
        description: Version of the firmware to write into the chips, which the release must have. By default, none is written.
        type: str
  resource:
    description:
      - The extended resource that the node advertises, such as V(huawei.com/Ascend910). Without it, the module does not wait for
        chips.
    type: str
  chips:
    description: Number of O(resource) that the node must advertise before it is uncordoned.
    type: int
    default: 0
  offers:
    description:
      - How many of each resource the node must advertise, if some of its chips are divided into virtual NPUs. By default, O(chips)
        of O(resource).
    type: dict
    default: {}
  vnpu_layout:
    description:
      - The option O(npuops.ascend.npu_vnpu#module:layout) of M(npuops.ascend.npu_vnpu), into which the chips are divided before the
        reboot, when the node is drained. By default, they are not changed.
    type: raw
  namespace:
    description: Namespace of the Lease C(npu-maintenance), which all runs share.
    type: str
    default: npu-operator
  root:
    description: The directory on the host that contains the links C(driver), C(good) and C(next).
    type: path
    default: /var/lib/Ascend
  library_path:
    description: The option of the same name of M(npuops.ascend.npu_validate).
    type: str
    choices: [hook, env, none]
  network:
    description:
      - What happens if a network port of a chip has lost its link or its address in the reboot. With V(warn), a line says so. With
        V(strict), the node returns to the previous driver, and is not given back if that does not help. V(off) does not look.
      - Ports are compared with how they were before the reboot. They have 120 s to get it back. A recovery does not look.
    type: str
    choices: [strict, warn, "off"]
    default: "off"
  failure:
    description:
      - Why the maintenance must not continue, such as the failure of a hook. Before the reboot, the node returns to service. After
        the reboot, it rolls back to the previous driver.
    type: str
  pool:
    description:
      - Nodes with the same value are of the same kind and have the same target. One of them goes first. Whatever
        C(max_parallel) in O(settings) is, no other node of the pool is cordoned before that one is confirmed. If it fails, the
        next one is tried alone.
      - By default, nodes with the same O(resource) and release form a pool.
    type: str
  proved:
    description: Whether a node of the O(pool) already runs the O(target), so that no node has to go first.
    type: bool
    default: false
  in_flight:
    description:
      - Nodes whose maintenance this run continues. If one of them caused a halt, the others wait until it is done.
    type: list
    elements: str
    default: []
  due:
    description:
      - How many nodes this run is to maintain. With more than one, a line at the end of each maintenance shows how many are done.
    type: int
    default: 1
notes:
  - C(max_parallel) in O(settings) must be a whole number. The number that a percentage comes to is
    RV(npuops.ascend.npu_plan#module:max_parallel).
seealso:
  - module: npuops.ascend.npu_trial_boot
  - module: npuops.ascend.npu_validate
"""

EXAMPLES = r"""
- name: Upgrade the node
  npuops.ascend.npu_maintenance:
    node: "{{ npu_node_name | default(inventory_hostname) }}"
    run: "{{ run_id }}"
    target:
      version: 25.5.0
      release: 25.5.0-6.6.0-145.0.4.135.oe2403sp3.aarch64-0123456789ab
    resource: huawei.com/Ascend910
    chips: 8
    settings:
      auto: true
  register: maintenance

- name: Show the outcome
  ansible.builtin.debug:
    msg: "{{ maintenance.outcome }}: {{ maintenance.reason }}"
"""

RETURN = r"""
outcome:
  description:
    - V(under-way), O(until) is reached. V(done), the maintenance is complete. V(up-to-date), no maintenance was due.
    - V(withdrawn), the maintenance of another run was withdrawn before its reboot, and the node is not due.
    - V(awaiting-approval), the reboot is not approved. The node is in service.
    - V(deferred), the drain is blocked. The node is back in service and still due.
    - V(failed), the maintenance failed. If it failed before the reboot, the node is back in service, otherwise its state label is
      C(upgrade-failed).
    - V(halted), the rollout is halted until an administrator clears it. V(busy), another run has the node.
    - For recoveries, V(answers-again), the chips respond again and the node was not rebooted. V(too-soon), the host has just
      booted. V(given-up), the node was rebooted too often. V(failed), the reboot did not help and the node stays cordoned.
    - V(check-mode), nothing was done because of check mode.
  returned: always
  type: str
step:
  description: The next step of the maintenance, V(none) for a node that is up to date.
  returned: always
  type: str
reason:
  description: The reason for the outcome, and what to do. V(none) on success.
  returned: always
  type: str
blockers:
  description: The pods and processes that block the drain, each with a C(text).
  returned: always
  type: list
  elements: dict
intended:
  description: Whether the reboot is certain. V(false) until the reboot command may have reached the host.
  returned: always
  type: bool
api_unreachable:
  description:
    - Whether the maintenance ended because the Kubernetes API did not respond for ten minutes. Then no other node can succeed.
  returned: failure
  type: bool
seconds:
  description: Seconds since the maintenance began.
  returned: always
  type: int
"""
