#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_wait
short_description: Wait for DaemonSets to run and nodes to advertise their chips
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Waits until the newest generation of every DaemonSet is ready on every node that it should run on, and until the nodes advertise
    their chips as allocatable resources.
  - On timeout, fails with the reason for each node, from the states, Events and last log lines of the pods. Fails immediately if an
    image does not exist or may not be pulled.
  - Runs inside Ansible on the controller, whatever host the task is for.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - npuops.ascend.attributes
  - npuops.ascend.attributes.cluster
  - npuops.ascend.attributes.info_module
options:
  daemonsets:
    description: The DaemonSets to wait for.
    type: list
    elements: dict
    default: []
    suboptions:
      namespace:
        description: Namespace of the DaemonSet.
        type: str
        required: true
      name:
        description: Name of the DaemonSet.
        type: str
        required: true
      nodes:
        description:
          - Nodes that must have a ready pod of the newest generation, whatever the state of others. By default, as many nodes as
            the status of the DaemonSet requires, which also counts nodes that are not Ready.
        type: list
        elements: str
  nodes:
    description: The nodes that must advertise chips.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the Node object.
        type: str
        required: true
      resource:
        description: The extended resource, such as V(huawei.com/Ascend910).
        type: str
        required: true
      count:
        description:
          - Number of chips that must be allocatable. If the device plugin on the node offers each chip several times, that many
            devices for each of them must be.
        type: int
        required: true
      least:
        description:
          - The number of chips that is enough, for a node with chips that the device plugin may report as unhealthy. By default,
            all of O(nodes[].count).
        type: int
  timeout:
    description: Seconds to wait without progress. Every pod that becomes ready restarts the timeout.
    type: int
    default: 300
"""

EXAMPLES = r"""
- name: Wait for the device plugin
  npuops.ascend.npu_wait:
    daemonsets:
      - namespace: npu-operator
        name: ascend-device-plugin-daemonset
        nodes: [npu-a, npu-b]
    nodes:
      - {name: npu-a, resource: huawei.com/Ascend910, count: 8}
      - {name: npu-b, resource: huawei.com/Ascend910, count: 8}
  run_once: true
"""

RETURN = r"""
daemonsets:
  description: The status of the DaemonSets.
  returned: success, not in check mode
  type: list
  elements: dict
  contains:
    namespace:
      description: Namespace.
      type: str
    name:
      description: Name.
      type: str
    image:
      description: The image.
      type: str
    desired:
      description: Number of nodes that should run a pod.
      type: int
    ready:
      description: Number of nodes with a ready pod.
      type: int
nodes:
  description: The status of each node in the cluster, by name, as input for P(npuops.ascend.npu_table#filter).
  returned: success, not in check mode
  type: dict
"""
