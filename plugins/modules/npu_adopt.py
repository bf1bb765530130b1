#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_adopt
short_description: "Step of a playbook: move nodes from other NPU components to those of this collection, and back"
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Finds the device plugins and exporters for Ascend chips that this collection has not deployed, whatever their names, and shows
    what happens to them and to each node. With O(act=true), moves the nodes to the components of this collection, which must have
    been deployed before, the first node alone and then O(max_unavailable) at a time.
  - A node moves with its pods. First it gets the label C(npuops.ascend/adopted=true), which keeps the other DaemonSets off it;
    when their pods have left, it gets the label C(npuops.ascend/components=enabled). It has moved when the pods of this
    collection are Ready and it offers as many devices as before for 11 seconds. Otherwise it moves back, and the module fails.
  - Before the first node moves, each of these DaemonSets gets a node affinity for that label and the update strategy C(OnDelete),
    so that pods on other nodes are not replaced. When no node is left to one, it is set aside, that is, runs nowhere, and is kept
    for the way back.
  - Runs inside Ansible on the controller, whatever host the task is for.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - npuops.ascend.attributes
  - npuops.ascend.attributes.full
  - npuops.ascend.attributes.cluster
  - npuops.ascend.hosts
options:
  state:
    description:
      - V(adopted) moves nodes to the components of this collection.
      - V(returned) moves them back, and restores the DaemonSets when no node is left here.
    type: str
    choices: [adopted, returned]
    default: adopted
  act:
    description: Whether to move nodes. Otherwise the module changes nothing.
    type: bool
    default: false
  components:
    description:
      - For each Node, the names of the DaemonSets of this collection that are waited for, as RV(ignore:adopt) of
        P(npuops.ascend.npu_targets#filter).
    type: dict
    default: {}
  namespace:
    description: Namespace of the components of this collection.
    type: str
    default: npu-operator
  device_plugin_settings:
    description:
      - The settings of the role C(npu_device_plugin) without their prefix. They are compared with the flags of the device plugins
        that are found.
    type: dict
    default: {}
  max_unavailable:
    description: On how many nodes at once, after the first one, as a number or as a percentage such as V(10%).
    type: str
    default: "1"
  timeout:
    description: Seconds that each step of a node may take.
    type: int
    default: 300
seealso:
  - module: npuops.ascend.npu_preflight
"""

EXAMPLES = r"""
- name: Look for other NPU components
  npuops.ascend.npu_adopt:
    hosts: "{{ ansible_play_hosts_all | npuops.ascend.npu_hosts(hostvars) }}"
  run_once: true
  register: adoption

- name: Move the nodes back
  npuops.ascend.npu_adopt:
    hosts: "{{ ansible_play_hosts_all | npuops.ascend.npu_hosts(hostvars) }}"
    state: returned
    act: true
  run_once: true
"""

RETURN = r"""
plan:
  description: What was found and what becomes of it, for people.
  returned: success
  type: list
  elements: str
found:
  description: Whether the cluster has other NPU components.
  returned: success
  type: bool
conflicts:
  description: What is in the way, as sentences. With O(act=true) the module fails if there is anything.
  returned: always
  type: list
  elements: str
due:
  description: The Nodes that are to move.
  returned: success
  type: list
  elements: str
todo:
  description: What is to be done, as phrases.
  returned: success
  type: list
  elements: str
carry_out:
  description: What to do to carry it out, a command with the inventory, the hosts and the variables of this run.
  returned: success
  type: str
done:
  description: What was done, as phrases.
  returned: success
  type: list
  elements: str
"""
