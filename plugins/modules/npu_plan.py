#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_plan
short_description: "Step of a playbook: plan a driver upgrade or rollback of the whole fleet"
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Evaluates all hosts in one call, from their facts (M(npuops.ascend.npu_facts) with O(npuops.ascend.npu_facts#module:upgrade),
    M(npuops.ascend.npu_validate)), one look at the cluster, and the registry.
  - Changes nothing. Evictions, and the smoke pod of O(settings), are tried with C(dryRun=All) only.
  - Runs inside Ansible on the controller, whatever host the task is for.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - npuops.ascend.attributes
  - npuops.ascend.attributes.cluster
  - npuops.ascend.attributes.info_module
  - npuops.ascend.hosts
  - npuops.ascend.settings
options:
  namespace:
    description: Namespace of the Lease C(npu-maintenance).
    type: str
    default: npu-operator
  reason:
    description: Whether the hosts move to the configured driver or to their previous one.
    type: str
    choices: [upgrade, rollback]
    default: upgrade
  components:
    description: What M(npuops.ascend.npu_components) and a comparison of the components with their definitions came to.
    type: dict
    default: {}
    suboptions:
      version_line:
        description: RV(npuops.ascend.npu_components#module:version_line).
        type: str
      changes:
        description: What the comparison would change, RV(npuops.ascend.npu_objects#module:changes).
        type: list
        elements: str
        default: []
      left_alone:
        description: RV(npuops.ascend.npu_components#module:left_alone).
        type: str
      problem:
        description: Why the comparison failed. It becomes one of RV(cluster_reasons).
        type: str
      device_plugin_settings:
        description:
          - Variables of the role P(npuops.ascend.npu_device_plugin#role) without their prefix. What the chips of a host exclude
            becomes one of RV(cluster_reasons). By default, the device plugin is taken as not deployed.
        type: dict
  enforce:
    description:
      - Whether blocked nodes set RV(refusal). If so, C(on_blocked) in O(settings) decides. With V(refuse), a plan that is not
        green is refused; with V(defer), only what blocks every node is.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Gather facts from the hosts
  npuops.ascend.npu_facts:
    upgrade: true
  register: __npu_facts

- name: Plan the upgrade
  npuops.ascend.npu_plan:
    hosts: "{{ ansible_play_hosts_all | npuops.ascend.npu_hosts(hostvars, credentials=true) }}"
  run_once: true
  register: plan

- name: Show the plan
  ansible.builtin.debug:
    msg: "{{ plan.table }}"
  run_once: true
"""

RETURN = r"""
green:
  description: Whether no host is blocked.
  returned: always
  type: bool
summary:
  description: The plan in one sentence.
  returned: always
  type: str
problem:
  description: Why the plan is not green, null when it is.
  returned: always
  type: str
refusal:
  description: Why the run must stop, as set by C(on_blocked) in O(settings); null if it may continue.
  returned: always
  type: str
table:
  description: The plan as aligned lines of text.
  returned: always
  type: list
  elements: str
order:
  description: Inventory names of the hosts to process, in order.
  returned: always
  type: list
  elements: str
deferred:
  description: Inventory names of the blocked hosts that can be retried last, because only pods block them.
  returned: always
  type: list
  elements: str
due_nodes:
  description: Names of the nodes that get the label C(upgrade-required).
  returned: always
  type: list
  elements: str
due_versions:
  description: The driver version that each of these nodes is due for, by the name of the node.
  returned: always
  type: dict
settled_nodes:
  description: Names of the nodes that are not due.
  returned: always
  type: list
  elements: str
counts:
  description: Number of hosts per verdict.
  returned: always
  type: dict
estimate_seconds:
  description: Estimated duration of the run, from past maintenances; null without any.
  returned: always
  type: int
components:
  description:
    - What the run does with the components.
    - C(order) is V(before) or V(after) if they change before or after the drivers, and null if they do not change. C(from) are
      the version lines of MindCluster that run now, C(to) is the wanted one, C(changes) are the objects that change.
  returned: always
  type: dict
capacity:
  description: Capacity of the schedulable nodes by resource, each with allocatable, requested and free.
  returned: always
  type: dict
max_parallel:
  description:
    - Maximum number of nodes in maintenance at once, 0 for no limit. If C(max_parallel) in O(settings) is a percentage, what that
      comes to.
  returned: always
  type: int
pace:
  description:
    - The keywords C(serial) and C(strategy) of the play that maintains the nodes, one at a time or side by side.
    - Set by C(max_parallel) in O(settings).
  returned: always
  type: dict
window:
  description:
    - The window in which a maintenance may begin, C(window) in O(settings). C(open) says whether it is open, C(opens) when it opens
      next, and C(closes) when it closes, now or after that. A time is null if it is more than two weeks ahead.
    - Null if there is no window, so that a maintenance may begin at any time.
  returned: always
  type: dict
park:
  description:
    - The resources whose workloads will be parked before the first maintenance. Empty unless C(workloads=park) in O(settings), and
      if all nodes that are due wait for approval.
  returned: always
  type: list
  elements: str
reason:
  description: V(upgrade) or V(rollback).
  returned: always
  type: str
halted:
  description:
    - The halt of the rollout, with C(who), C(why), C(when), C(reason) of that run, and C(node) if a node is in the middle of its
      maintenance. Null if the rollout is not halted.
  returned: always
  type: dict
cluster_reasons:
  description: What blocks every node.
  returned: always
  type: list
  elements: str
cluster_notes:
  description: Notes about the cluster.
  returned: always
  type: list
  elements: str
hosts:
  description: Each host by its inventory name.
  returned: always
  type: dict
  contains:
    verdict:
      description:
        - One of V(up-to-date), V(in-flight), V(on-trial), V(ready), V(awaiting-approval), V(skipped), V(blocked),
          V(unreachable), V(failed).
      type: str
    host:
      description: Inventory name.
      type: str
    node:
      description: Name of the Node object.
      type: str
    reasons:
      description: Why the host cannot be processed now.
      type: list
      elements: str
    deferrable:
      description: Whether only pods block the host.
      type: bool
    blockers:
      description: The pods that cannot leave, each with kind, pod, owner, budget (with its numbers) and text.
      type: list
      elements: dict
    notes:
      description: Notes about the host.
      type: list
      elements: str
    order:
      description: Position of the host in the order, from 1. Null if it is not processed.
      type: int
    canary:
      description: Whether the host is the first of its pool, which proves the driver for the others.
      type: bool
    later:
      description:
        - Whether this run leaves the host for a later one because of C(canary) in O(settings). The host is due, or only pods block
          it, or it failed before.
      type: bool
    pool:
      description: Name of the host's pool. Hosts of a pool are of the same kind.
      type: str
    family:
      description: Chip family.
      type: str
    family_key:
      description: Chip family as in the tag of an image.
      type: str
    resource:
      description: The resource that pods request.
      type: str
    chips:
      description: Number of chips.
      type: int
    offers:
      description: How many of each resource the node is to advertise, of whole chips and of virtual NPUs.
      type: dict
    vnpu_layout:
      description:
        - The option O(npuops.ascend.npu_vnpu#module:layout) of M(npuops.ascend.npu_vnpu), into which the chips are divided before
          the reboot; V(none) if C(npu_vnpu) is not set, and for a rollback.
      type: list
      elements: dict
    from:
      description: The running driver, with version and release.
      type: dict
    to:
      description:
        - The target driver, with version, release, digest and image, and C(firmware) if it is to be written. Null if unknown.
      type: dict
    upstream:
      description: Reference of the configured driver image without a registry mirror, or null.
      type: str
    firmware:
      description: How the firmware of the chips changes, with C(from) and C(to), or V(none) if it stays.
      type: dict
    other_kernels:
      description:
        - What is to be staged for kernels that do not run yet, the next one above all, with C(kernel), C(version), C(image),
          C(upstream), C(digest) and C(release).
      type: list
      elements: dict
    profile:
      description: Tag of the driver image.
      type: str
    requested:
      description: Whether a label requests maintenance even at the same version.
      type: bool
    wedged:
      description: Whether its driver no longer responds.
      type: bool
    evictions:
      description: Number of pods to evict (C(npu) and C(other)) and to wait for (C(jobs)).
      type: dict
    state:
      description: Value of the node's label C(npu.openfuyao.com/driver-upgrade-state).
      type: str
    step:
      description: The current step of the node's maintenance.
      type: str
    run:
      description: The run that the maintenance belongs to.
      type: str
    estimate_seconds:
      description: Estimated duration of the maintenance in seconds.
      type: int
"""
