#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_driver_condition
short_description: "Step of a playbook: remove the conditions that the node agents wrote"
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Removes the conditions C(npuops.ascend/DriverReady), C(npuops.ascend/ChipsHealthy) and C(npuops.ascend/NetworkReady), with which
    the node agent says whether driver, chips and network ports work, from all nodes.
  - Use it after the DaemonSet of the agent was deleted, because the conditions are no longer updated. The module removes those of
    each node when the pod of the agent has ended there, and keeps all other conditions.
  - To remove single nodes from service, use M(npuops.ascend.npu_withdraw), which does the same for these nodes.
  - Runs inside Ansible on the controller, whatever host the task is for.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - npuops.ascend.attributes
  - npuops.ascend.attributes.full
  - npuops.ascend.attributes.cluster
options:
  state:
    description: V(absent) removes the conditions. Only the agents write them.
    type: str
    choices: [absent]
    required: true
  namespace:
    description: Namespace of the node agent.
    type: str
    default: npu-operator
  timeout:
    description:
      - Seconds to wait until the pods of the agent have ended.
      - A node whose pod has not ended by then keeps the conditions, and the task fails after the other nodes.
    type: int
    default: 120
seealso:
  - module: npuops.ascend.npu_withdraw
"""

EXAMPLES = r"""
- name: Remove the conditions of the node agents
  npuops.ascend.npu_driver_condition:
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
