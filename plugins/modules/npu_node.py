#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_node
short_description: Manage labels and annotations of many nodes in one call
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Sets or removes labels and annotations of nodes, and keeps all other labels and annotations.
  - Reads all nodes in pages and writes only those that differ, each with one patch that carries the resourceVersion,
    so that no concurrent change is lost.
  - Does not change the label C(npuops.ascend/components) on a node with the annotation C(npuops.ascend/maintenance), or on a node
    on which it is V(paused).
  - Runs inside Ansible on the controller, whatever host the task is for.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - npuops.ascend.attributes
  - npuops.ascend.attributes.full
  - npuops.ascend.attributes.cluster
options:
  nodes:
    description: The nodes with their labels and annotations.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name of the Node object.
        type: str
        required: true
      labels:
        description: Labels by name. A null value removes the label.
        type: dict
        default: {}
      annotations:
        description: Annotations by name. A null value removes the annotation.
        type: dict
        default: {}
      boot_id:
        description:
          - Boot ID of the host from which the labels and annotations were determined. If the node reports another one, its host
            was rebooted since, perhaps into another driver. Then nothing is written to this node, and the task fails after the
            other nodes.
          - If not set, the boot ID is not compared.
        type: str
      gate:
        description:
          - The level at which a new node must be accepted before pods are scheduled onto it. A node is new if it has no label that
            begins with C(npuops.ascend/). Together with its labels, it gets the taint C(npuops.ascend/not-accepted) with this value
            and the effect C(NoSchedule), which M(npuops.ascend.npu_accept_node) removes.
          - With V(0), no node gets the taint.
        type: int
        choices: [0, 1, 2, 3]
        default: 0
"""

EXAMPLES = r"""
- name: Pause the components on two nodes
  npuops.ascend.npu_node:
    nodes:
      - name: npu-a
        labels:
          npuops.ascend/components: paused
      - name: npu-b
        labels:
          npuops.ascend/components: paused
  run_once: true
"""

RETURN = r"""
nodes:
  description: Names of the nodes that were changed, or would be in check mode.
  returned: success
  type: list
  elements: str
"""
