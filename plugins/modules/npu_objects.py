#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_objects
short_description: Manage a list of Kubernetes objects in one call
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Applies several objects like M(kubernetes.core.k8s) with C(apply=true), with the code of kubernetes.core.
  - It is made for the roles of this collection, which often run without any changes. It takes a tenth of the time of
    M(kubernetes.core.k8s), names each object that changes, and shows a diff for each. In check mode, it supports namespaces that
    do not exist yet.
  - Runs inside Ansible on the controller, whatever host the task is for.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - npuops.ascend.attributes
  - npuops.ascend.attributes.full
  - npuops.ascend.attributes.cluster
options:
  definitions:
    description: The objects as YAML documents.
    type: str
    required: true
  state:
    description:
      - Whether the objects must exist. Fields that are not in a definition are not changed, unless they were in the definition that
        was applied before.
    type: str
    choices: [present, absent]
    default: present
  keep:
    description: Whether objects that exist are neither changed nor removed, so that only those that are missing are created.
    type: bool
    default: false
  rollout:
    description:
      - How a changed pod template of a DaemonSet is rolled out. The module then replaces the pods itself and waits for them, one
        node first. A node works when its pod is Ready and, with a device plugin or node agent, when it offers as many chips as
        before.
      - If the new template does not work on a node, the module restores the previous one, waits until it works, and fails.
      - Nodes that are NotReady, in maintenance or paused, and nodes whose pod did not work before, are not waited for.
      - A run that was interrupted is continued by the next one.
      - Also waits for a Deployment, whether it changes or not, until all its pods are of its present template and available. If a
        changed one does not work, the module restores the previous template and fails.
      - Without this option, Kubernetes replaces the pods according to the update strategy, and nothing is waited for.
    type: dict
    suboptions:
      max_unavailable:
        description:
          - Maximum number of nodes on which the pod is replaced at once, after the first node. A number of at least 1, or a
            percentage from V(1%) to V(100%) of the nodes of the DaemonSet.
        type: str
        default: "1"
      timeout:
        description: Seconds that each node, or a Deployment, may take to work.
        type: int
        default: 300
seealso:
  - module: kubernetes.core.k8s
"""

EXAMPLES = r"""
- name: Deploy the exporter
  npuops.ascend.npu_objects:
    definitions: "{{ lookup('ansible.builtin.template', 'npu-exporter.yaml.j2') }}"
    rollout:
      max_unavailable: 10%
  run_once: true
"""

RETURN = r"""
changes:
  description: What changed, or would change in check mode.
  returned: success
  type: list
  elements: str
  sample:
    - change DaemonSet npu-operator/npu-exporter
rollouts:
  description: The DaemonSets whose pod template was rolled out, or would be in check mode.
  returned: success
  type: list
  elements: dict
  contains:
    daemonset:
      description: Namespace and name.
      type: str
    from:
      description: The images before.
      type: str
    to:
      description: The images afterwards.
      type: str
    nodes:
      description: Number of nodes that run it.
      type: int
    first:
      description: The first node.
      type: str
    not_waited_for:
      description: The nodes that are not waited for, each with V(node) and V(why).
      type: list
      elements: dict
"""
