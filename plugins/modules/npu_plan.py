#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_plan
short_description: Plan a driver upgrade or rollback of the whole fleet before anything is touched
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Judges all hosts in one call from what they said (M(npuops.ascend.npu_facts) with O(npuops.ascend.npu_facts#module:upgrade),
    M(npuops.ascend.npu_validate)), one look at the cluster, and the registry.
  - Changes nothing. Evictions are tried with C(dryRun=All) only.
  - Runs inside Ansible on the controller, whatever host the task is for.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - npuops.ascend.attributes
  - npuops.ascend.attributes.cluster
  - npuops.ascend.attributes.info_module
  - npuops.ascend.hosts
notes:
  - All options of type raw may be strings; an empty one means the default.
options:
  namespace:
    description: Where the Lease of maintenances is.
    type: str
    default: npu-operator
  reason:
    description: Where the hosts shall go, to the configured driver or to their previous one.
    type: str
    choices: [upgrade, rollback]
    default: upgrade
  auto:
    description: Whether nodes are rebooted without the approval annotation. V(false) by default.
    type: raw
  max_parallel:
    description: Nodes in maintenance at once, V(0) is without limit. V(1) by default. For the estimated time.
    type: raw
  approval_max_age:
    description: Seconds after which an approval counts no more, V(0) is without limit. V(0) by default.
    type: raw
  wait_for_jobs:
    description: Pods that are waited for, with the keys C(selector) and C(timeout) in seconds.
    type: raw
  pod_deletion:
    description: How pods that use NPUs are evicted, with the keys C(force), C(timeout) and C(delete_empty_dir).
    type: raw
  drain:
    description:
      - How the other pods are evicted, with the keys C(enable), C(force), C(timeout), C(delete_empty_dir) and
        C(skip_selector).
    type: raw
  retry:
    description: Whether nodes that failed before are due again. V(false) by default.
    type: raw
  clear_halt:
    description: Whether the run that follows clears a halt. V(false) by default.
    type: raw
  workloads:
    description:
      - V(park) if workloads will be parked (M(npuops.ascend.npu_workloads)). Then their pods are in nobody's way and need no room
        elsewhere.
      - V(leave) by default.
    type: raw
  canary:
    description: Whether the run goes no further than the first node of each pool. V(false) by default.
    type: raw
  on_blocked:
    description:
      - What goes into RV(refusal). V(report) refuses nothing. V(refuse) does when the plan is not green. V(defer) only does for
        what stops every node.
      - V(report) by default.
    type: raw
"""

EXAMPLES = r"""
- name: Look at the hosts
  npuops.ascend.npu_facts:
    upgrade: true
  register: __npu_facts

- name: Plan
  npuops.ascend.npu_plan:
    hosts: "{{ ansible_play_hosts_all | npuops.ascend.npu_hosts(hostvars, credentials=true) }}"
  run_once: true
  register: plan

- name: Show it
  ansible.builtin.debug:
    msg: "{{ plan.table }}"
  run_once: true
"""

RETURN = r"""
green:
  description: Whether nothing is in the way of any host.
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
  description: Why the run should not go on, by O(on_blocked); null when it may.
  returned: always
  type: str
table:
  description: The plan as aligned lines for people.
  returned: always
  type: list
  elements: str
order:
  description: Inventory names of the hosts that something is done with, the first one first.
  returned: always
  type: list
  elements: str
deferred:
  description: Inventory names of the blocked hosts that could be tried last, because only pods are in the way.
  returned: always
  type: list
  elements: str
due_nodes:
  description: Names of the nodes that get the label C(upgrade-required).
  returned: always
  type: list
  elements: str
settled_nodes:
  description: Names of the nodes that are not due.
  returned: always
  type: list
  elements: str
counts:
  description: How many hosts have which verdict.
  returned: always
  type: dict
estimate_seconds:
  description: How long the whole will take, by what past maintenances took; null without any.
  returned: always
  type: int
capacity:
  description: What the nodes that take pods have, by resource, each with allocatable, requested and free.
  returned: always
  type: dict
max_parallel:
  description: Nodes in maintenance at once; 0 is without limit.
  returned: always
  type: int
park:
  description:
    - The resources whose workloads are to be parked before the first node is touched. Empty unless O(workloads=park), and while all
      nodes that are due wait for approval.
  returned: always
  type: list
  elements: str
reason:
  description: V(upgrade) or V(rollback).
  returned: always
  type: str
halted:
  description:
    - Who halted the rollout, why and when; C(reason) of that run; C(node), if one stands in the middle of its maintenance. Null
      when nobody did.
  returned: always
  type: dict
cluster_reasons:
  description: What stops every node.
  returned: always
  type: list
  elements: str
cluster_notes:
  description: What a person should know about the cluster.
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
      description: Why nothing can be done with it now.
      type: list
      elements: str
    deferrable:
      description: Whether only pods are in the way.
      type: bool
    blockers:
      description: The pods that cannot leave, each with kind, pod, owner, budget (with its numbers) and text.
      type: list
      elements: dict
    notes:
      description: What a person should know about it.
      type: list
      elements: str
    order:
      description: Its place, from 1; null when nothing is done with it.
      type: int
    canary:
      description: Whether it is the first of its kind, and shows whether the driver works there.
      type: bool
    later:
      description: Whether it is due, but not in this run, with O(canary).
      type: bool
    pool:
      description: Hosts with the same value are alike.
      type: str
    family:
      description: Chip family.
      type: str
    family_key:
      description: Chip family as in the tag of an image.
      type: str
    resource:
      description: What pods ask for.
      type: str
    chips:
      description: Number of chips.
      type: int
    from:
      description: The driver that runs, version and release.
      type: dict
    to:
      description: The driver that shall run, with version, release, digest and image. Null when that is not known.
      type: dict
    profile:
      description: Tag of the driver image.
      type: str
    requested:
      description: Whether a label asks for maintenance also at the same version.
      type: bool
    wedged:
      description: Whether its driver does not answer any more.
      type: bool
    evictions:
      description: How many pods would leave, by C(npu) and C(other), and how many of these are waited for, C(jobs).
      type: dict
    state:
      description: Its label C(npu.openfuyao.com/driver-upgrade-state).
      type: str
    step:
      description: The step of the maintenance under way.
      type: str
    run:
      description: The run that has it.
      type: str
    estimate_seconds:
      description: How long it will take.
      type: int
"""
