#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_status
short_description: "Step of a playbook: show the status of the NPU fleet"
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Combines the facts of the hosts with the status of their nodes in the cluster.
  - The table also contains hosts that are down, nodes that are not C(Ready), and NPU nodes without a host in the inventory.
  - Runs inside Ansible on the controller, whatever host the task is for.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - npuops.ascend.attributes
  - npuops.ascend.attributes.cluster
  - npuops.ascend.settings
  - npuops.ascend.heal_settings
attributes:
  check_mode:
    support: full
    details:
      - The module changes nothing but the file O(metrics_file), which it does not write in check mode.
  diff_mode:
    support: none
  idempotent:
    support: full
    details:
      - O(metrics_file) is written each time, with a timestamp, which does not count as a change.
options:
  hosts:
    description: The hosts, as P(npuops.ascend.npu_hosts#filter) returns them.
    type: list
    elements: dict
    required: true
  namespace:
    description: Namespace of the components.
    type: str
    default: npu-operator
  wait_timeout:
    description: Maximum number of seconds to wait until every host is V(ready). Ends early if no state can improve by waiting.
    type: int
    default: 0
  metrics_file:
    description:
      - A file on the controller to which the status is written as metrics, for the textfile collector of node_exporter. Its name
        must end in C(.prom). It is replaced as a whole, and not written in check mode. C(docs/metrics.md) lists the metrics.
    type: path
"""

EXAMPLES = r"""
- name: Gather the status of the fleet
  npuops.ascend.npu_status:
    hosts: "{{ ansible_play_hosts_all | npuops.ascend.npu_hosts(hostvars) }}"
  run_once: true
  register: fleet

- name: Show the fleet
  ansible.builtin.debug:
    msg: "{{ fleet.table }}"
  run_once: true
"""

RETURN = r"""
fleet:
  description: One row per host.
  returned: success
  type: list
  elements: dict
  contains:
    host:
      description: Inventory name, null for a node that is not in the inventory.
      type: str
    node:
      description: Name of the Node object.
      type: str
    chips:
      description: Number of chips on the PCI bus of the host.
      type: int
    chip:
      description: Chip family.
      type: str
    resource:
      description: The resource that pods request.
      type: str
    driver_wanted:
      description: Configured driver version, or V(preinstalled).
      type: str
    driver_loaded:
      description: Version of the loaded driver.
      type: str
    next_kernel:
      description:
        - The kernel that the next boot loads, if it is known and not the running one, as C(kernel), the staged C(release) of
          the driver for it, and the file with its symbols as C(symvers), each V(none) without one.
      type: dict
    firmware:
      description: Version of the firmware that the chips run, with commas where they differ. Null when unknown.
      type: str
    containerd:
      description: Version of the container runtime.
      type: str
    cdi:
      description: V(on) or V(off), or V(ascend) where C(ascend-docker-runtime) gives chips to containers. Null when unknown.
      type: str
    agent:
      description: Status of the node agent, V(running) or V(failing), null without a pod.
      type: str
    plugin:
      description: Status of the device plugin, V(running) or V(failing), null without a pod.
      type: str
    allocatable:
      description: Number of allocatable devices of the node. Each chip is C(devices_per_chip) devices.
      type: int
    devices_per_chip:
      description:
        - How many times the device plugin of the node offers each whole chip, as C(npu_device_plugin_share_count) says. V(1)
          without a device plugin.
      type: int
    devices_expected:
      description: How many devices of RV(fleet[].resource) the node should offer. V(none) if the host has not reported its chips.
      type: int
    vnpus:
      description:
        - For each resource of virtual NPUs that the host has recorded, how many there should be (C(wanted)), and how many the
          node offers (C(allocatable)).
      type: dict
    healthy:
      description: Whether nothing is wrong with the node. A host that is to have no chips is healthy.
      type: bool
    unhealthy_pods:
      description:
        - Pods that run on chips that the device plugin reports as unhealthy, with the chips, such as V(train/job-0 (Ascend910-3\)).
        - The kubelet reports this by default since Kubernetes 1.36.
      type: list
      elements: str
    isolated_chips:
      description:
        - Which chips MindCluster withholds until a person acts, and how to release them, as clauses. Only of nodes that offer fewer
          devices than they have, and only if the Kubernetes user may read the ConfigMaps of MindCluster.
      type: list
      elements: str
    acceptance:
      description:
        - The last verdict of C(npuops.ascend.accept), as C(verdict), C(level) and C(ended). V(none) without one.
      type: dict
    gate:
      description: The level at which the node must be accepted before pods are scheduled onto it. V(none) for nodes that serve.
      type: int
    step:
      description:
        - The step of a maintenance that is due on the node, as its label C(npu.openfuyao.com/driver-upgrade-state) has it, such as
          V(upgrade-failed). V(none) for a node that is up to date.
      type: str
    awaiting_approval:
      description: What the node waits for an approval of, V(rollout) or V(recovery). V(none) if it does not wait.
      type: str
    missing_chips:
      description: Which of the chips that the host had, or that C(npu_chips) demands, are missing. V(none) if none are.
      type: str
    chip_health:
      description: The health of the chips, as RV(npuops.ascend.npu_validate#module:chip_health).
      type: list
      elements: dict
    checks:
      description: The results of the checks, as RV(npuops.ascend.npu_validate#module:checks).
      type: list
      elements: dict
    state:
      description: V(ready), V(no chip), or a word for the problem.
      type: str
    reason:
      description: The reason for the state.
      type: str
storm:
  description: Why no wedged node is recovered at the moment, V(none) if there is no such reason.
  returned: success
  type: str
halted:
  description:
    - Why no further node is upgraded or rolled back, as in RV(npuops.ascend.npu_report#module:halted), with who, why and when.
    - V(none) if nothing is halted, or if the Lease cannot be read, which RV(table) says.
  returned: success
  type: dict
rollouts:
  description:
    - The rollouts of components that have not ended. One that was interrupted ends with the next run that deploys the component.
    - Null if the Kubernetes user may not list DaemonSets.
  returned: success
  type: list
  elements: dict
  contains:
    daemonset:
      description: Namespace and name of the DaemonSet.
      type: str
    run:
      description: The run that rolls it out, or that was interrupted.
      type: str
    direction:
      description: V(forward), or V(back) if the new pods did not work and the previous ones are being restored.
      type: str
    image:
      description: The image of the pods that the rollout brings about.
      type: str
    revision:
      description:
        - The revision of these pods, the value of their label C(controller-revision-hash).
        - Null while it is not known, and if the Kubernetes user may not list ControllerRevisions.
      type: str
    previous:
      description: The revision that worked before, and that is restored if the new pods do not work.
      type: str
    updated:
      description: The number of nodes whose pod is of RV(rollouts[].revision), null while it is not known.
      type: int
    nodes:
      description: The number of nodes on which the component is to run.
      type: int
    replacing:
      description: The nodes whose pods are being replaced now.
      type: list
      elements: str
    heartbeat:
      description: When the run wrote its progress the last time. A run that works writes it every 10 seconds.
      type: str
    failure:
      description: Why the new pods do not work, with V(back).
      type: str
    text:
      description:
        - All this as a sentence.
        - If the annotation of the rollout cannot be read, the reason; all other fields but RV(rollouts[].daemonset) are empty then.
      type: str
table:
  description: The same as aligned lines of text.
  returned: success
  type: list
  elements: str
problems:
  description: One line per host that is neither V(ready) nor V(no chip).
  returned: success
  type: list
  elements: str
drift:
  description:
    - How the fleet differs from what it should be, as lines. First a summary, then RV(problems), a halt or pause of the rollouts,
      and a storm. Empty if nothing is wrong.
  returned: success
  type: list
  elements: str
unwritten:
  description: Why O(metrics_file) could not be written, V(none) if it was, or if it is not set.
  returned: success
  type: str
"""
