#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_maintenance
short_description: Run the maintenance of one node, from cordon to uncordon
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Drives one node that is due (label C(npu.openfuyao.com/driver-upgrade-state)) through cordon, drain, reboot into the new
    driver release on trial, validation and uncordon. When the new driver does not validate, the node goes back to the one before.
  - The same way, with O(reason=recovery), a node whose driver no longer answers gets the reboot that most likely cures it.
  - The state is on the node, in that label and the annotation C(npuops.ascend/maintenance), not in the play. A run that was
    killed at any point is finished by the next one; the host reboots exactly once, and a cordon that was there before stays.
  - Runs inside Ansible on the controller, for the host of the node. Host modules go through that host's connection.
    Each step is shown as a line as soon as it is taken.
  - The playbooks C(npuops.ascend.upgrade) and C(npuops.ascend.rollback) stage the release and label the nodes first;
    C(npuops.ascend.heal) chooses the nodes to recover.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - npuops.ascend.attributes
  - npuops.ascend.attributes.cluster
  - npuops.ascend.heal
attributes:
  check_mode:
    support: partial
    details:
      - Says only that it would act. What would happen to the whole fleet is what C(npuops.ascend.plan) tells.
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
        only taken over once that has been silent for O(heartbeat_limit) seconds.
    type: str
    required: true
  until:
    description:
      - How far to go. A node that is further already is left there, with RV(outcome=under-way).
      - V(cordon) takes a slot and writes the record; nothing else is changed.
      - V(drain) stops when the node is cordoned.
      - V(reboot) stops when the pods are gone and only the reboot is due.
      - V(validate) stops when the host is back.
      - V(confirm) stops when the new driver has validated. Until it is confirmed, which comes next, any reboot ends on the
        driver before.
      - V(done) goes to the end.
    type: str
    choices: [cordon, drain, reboot, validate, confirm, done]
    default: done
  previous:
    description:
      - The result of the task before, when the maintenance is made of several. If that one ended it, for whatever reason, nothing
        is done, the task is skipped, and RV(outcome), RV(reason) and RV(step) are those of the one before.
    type: dict
  reason:
    description:
      - Why, for people and records.
      - With V(recovery), a node that is wedged (annotation C(npuops.ascend/wedged)) is rebooted with the driver it has, within the
        bounds of O(recovery). A node that responds again before the reboot is not touched. There is no rollback, so a node that
        is not healthy afterwards stays cordoned.
    type: str
    choices: [upgrade, rollback, recovery]
    default: upgrade
  target:
    description:
      - The driver that the node is to run. Once the reboot is committed, the record on the node counts instead.
      - Required unless O(reason=recovery).
    type: dict
    suboptions:
      version:
        description: The driver's version.
        type: str
        required: true
      release:
        description: The release as M(npuops.ascend.npu_driver_stage) named it on the host.
        type: str
        required: true
      digest:
        description: Digest of its image.
        type: str
  resource:
    description: The resource that the node advertises, such as V(huawei.com/Ascend910). Without it, chips are not waited for.
    type: str
  chips:
    description: How many of O(resource) the node must advertise in the end.
    type: int
    default: 0
  policy:
    description: The variables C(npu_upgrade_*), without that prefix.
    type: dict
    default: {}
    suboptions:
      auto:
        description: Whether a node may be rebooted without the annotation C(npu.openfuyao.com/approve-reboot=true).
        type: bool
        default: false
      max_parallel:
        description: Maximum number of nodes of the cluster in maintenance at once, V(0) for no limit.
        type: int
        default: 1
      wait_for_jobs:
        description: With C(selector) and C(timeout) (seconds); pods that may finish first.
        type: dict
        default: {}
      pod_deletion:
        description: With C(force), C(timeout) and C(delete_empty_dir); how pods that use NPUs are evicted.
        type: dict
        default: {}
      drain:
        description: With C(enable), C(force), C(timeout), C(delete_empty_dir) and C(skip_selector); how the others are.
        type: dict
        default: {}
      reboot_timeout:
        description: Seconds to wait for the host to come back, V(0) for no limit.
        type: int
        default: 1800
      max_failures:
        description: Number of failed nodes that halts the rollout, V(0) for never.
        type: int
        default: 1
      approval_wait:
        description: Seconds to wait for a missing approval.
        type: int
        default: 0
      approval_max_age:
        description: Seconds after which an approval expires, V(0) for never.
        type: int
        default: 0
      smoke_pod:
        description:
          - Path of the manifest of a Pod that must complete on the node before the driver is confirmed. It gets a unique name,
             a toleration of the cordon, and an affinity to the node.
        type: path
      smoke_timeout:
        description: Seconds to wait for the smoke pod to complete, V(0) for no limit.
        type: int
        default: 300
  namespace:
    description: Where the Lease C(npu-maintenance) is, which all runs share.
    type: str
    default: npu-operator
  root:
    description: The directory on the host with the links C(driver), C(good) and C(next).
    type: path
    default: /var/lib/Ascend
  library_path:
    description: As for M(npuops.ascend.npu_validate).
    type: str
    choices: [hook, env, none]
  failure:
    description:
      - Why the maintenance must not continue, such as the failure of a hook. Before the reboot the node is given back; after it, it
        rolls back to the previous driver.
    type: str
  pool:
    description:
      - Nodes with the same value are of the same kind and have the same target. One of them goes first; whatever
        O(policy.max_parallel) is, no other is cordoned before that one is confirmed. If it fails, the next one is tried alone.
      - By default, the O(resource) and the release.
    type: str
  proved:
    description: Whether a node of the O(pool) already runs the O(target), so that none of them must go first.
    type: bool
    default: false
  in_flight:
    description:
      - Nodes whose maintenance this run continues. While one of them is the cause of a halt, the others wait until it is done.
    type: list
    elements: str
    default: []
  heartbeat_limit:
    description:
      - Seconds without a heartbeat after which another run counts as dead. They are counted from the first look of this run, by
        its own monotonic clock; clocks of other machines do not matter.
    type: int
    default: 90
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
    policy:
      auto: true
  register: maintenance

- name: Show the outcome
  ansible.builtin.debug:
    msg: "{{ maintenance.outcome }}: {{ maintenance.reason }}"
"""

RETURN = r"""
outcome:
  description:
    - V(under-way), O(until) is reached. V(done), the node is upgraded. V(up-to-date), nothing was due.
    - V(withdrawn), what another run had begun was given back before its reboot, and nothing else is wanted of the node.
    - V(awaiting-approval), nobody approved the reboot; the node is in service.
    - V(deferred), something blocks the drain; the node is in service again and still due.
    - V(failed), it did not work. After the reboot the node has the label state C(upgrade-failed); before, it is in service again.
    - V(halted), no maintenance may start until a person has looked. V(busy), another run has the node.
    - For recoveries, V(answers-again), the chips respond again and nothing was done. V(too-soon), the host has just booted.
      V(given-up), it was rebooted too often. V(failed), the reboot did not help and the node stays cordoned.
    - V(check-mode), nothing was tried.
  returned: always
  type: str
step:
  description: The step that is due, V(none) for an up-to-date node.
  returned: always
  type: str
reason:
  description: Why, and what to do; V(none) on success.
  returned: always
  type: str
blockers:
  description: What blocks the drain, one entry per pod or process, each with a C(text).
  returned: always
  type: list
  elements: dict
api_unreachable:
  description: Whether it ended because the Kubernetes API did not answer for ten minutes. Then no other node can succeed.
  returned: failure
  type: bool
seconds:
  description: Since the maintenance began.
  returned: always
  type: int
"""
