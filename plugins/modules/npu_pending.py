#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_pending
short_description: "Step of a playbook: label all nodes that are due for a driver upgrade"
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Sets the node label C(npu.openfuyao.com/driver-upgrade-state=upgrade-required) on all nodes that are due, before the first
    of them is changed. So a run that ends early does not appear complete.
  - Removes the label from nodes that are no longer due, and releases stale slots of killed runs.
  - C(clear_halt) in O(settings) decides whether a halt of the rollout is cleared first.
  - Does not change nodes under maintenance, or a step that another run has reached.
  - Runs inside Ansible on the controller, whatever host the task is for.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - npuops.ascend.attributes
  - npuops.ascend.attributes.full
  - npuops.ascend.attributes.cluster
  - npuops.ascend.settings
  - npuops.ascend.notify
options:
  due:
    description:
      - Names of the nodes that are due, RV(npuops.ascend.npu_plan#module:due_nodes).
    type: list
    elements: str
    required: true
  versions:
    description:
      - The driver version that each node is due for, by the name of the node,
        RV(npuops.ascend.npu_plan#module:due_versions).
      - Sets the annotation C(npuops.ascend/approval-for). An approval that was given for another version is removed.
    type: dict
    default: {}
  settled:
    description:
      - Names of the nodes that are not due, RV(npuops.ascend.npu_plan#module:settled_nodes).
    type: list
    elements: str
    default: []
  namespace:
    description: Namespace of the Lease C(npu-maintenance), which stores the halt.
    type: str
    default: npu-operator
  run:
    description: ID of this run, for O(notify).
    type: str
    default: ""
  reason:
    description: What the nodes are due for, for O(notify).
    type: str
    choices: [upgrade, rollback, recovery]
    default: upgrade
"""

EXAMPLES = r"""
- name: Label the nodes that are due
  npuops.ascend.npu_pending:
    due: "{{ plan.due_nodes }}"
    versions: "{{ plan.due_versions }}"
    settled: "{{ plan.settled_nodes }}"
  run_once: true
"""

RETURN = r"""
freed:
  description: The nodes whose stale slot was released. Empty in check mode.
  returned: success
  type: list
  elements: str
nodes:
  description: The nodes whose labels or annotations changed.
  returned: success
  type: list
  elements: str
cleared:
  description:
    - The halt that was cleared, with C(who), C(why) and C(when). V(none) without C(clear_halt) in O(settings), or without a
      halt.
  returned: success
  type: dict
"""
