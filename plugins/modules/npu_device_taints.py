#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_device_taints
short_description: "Step of a playbook: remove the DeviceTaintRules of the node agents"
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Removes the DeviceTaintRules in which node agents say which chips do not serve
    (O(npuops.ascend.npu_node_agent#role:main:npu_node_agent_device_taints)), of all nodes.
  - Use it after the agents have lost the permission to make them. Keeps a rule if a person has given it an effect.
  - Changes nothing in a cluster without the API C(resource.k8s.io/v1), or if the Kubernetes user may not list the rules.
  - To remove single nodes from service, use M(npuops.ascend.npu_withdraw), which does the same for these nodes.
  - Runs inside Ansible on the controller, whatever host the task is for.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - npuops.ascend.attributes
  - npuops.ascend.attributes.full
  - npuops.ascend.attributes.cluster
options:
  state:
    description: V(absent) removes the rules. Only the agents make them.
    type: str
    choices: [absent]
    required: true
seealso:
  - module: npuops.ascend.npu_withdraw
"""

EXAMPLES = r"""
- name: Remove the DeviceTaintRules of the node agents
  npuops.ascend.npu_device_taints:
    state: absent
  run_once: true
"""

RETURN = r"""
done:
  description: The changes that were made, or would be made in check mode.
  returned: success
  type: list
  elements: str
"""
