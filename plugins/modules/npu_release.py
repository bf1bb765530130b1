#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_release
short_description: Give nodes back that a maintenance left
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Ends the maintenance of nodes with which no run goes on, and takes nodes back into service that a failed maintenance left
    cordoned. Hosts are not asked, and nothing is rebooted. Who calls this answers for the driver that the host runs.
  - Removes the record and the state of the maintenance, enables the components that it paused, uncordons the node if a maintenance
    cordoned it, and gives its slot back. A node that another client cordoned, or with the label C(npuops.ascend/keep-cordoned),
    stays cordoned. A node that failed keeps the state C(upgrade-failed), so that only C(npu_upgrade_retry) tries it again.
  - Writes who released the node, and why, to its annotation C(npuops.ascend/last-maintenance) and to an Event.
  - Watches each run that has one of the nodes for O(heartbeat_limit) seconds. A node whose run is alive is not released.
  - Runs inside Ansible on the controller, whatever host the task is for.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - npuops.ascend.attributes
  - npuops.ascend.attributes.cluster
  - npuops.ascend.hosts
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
options:
  reason:
    description: Why, for all who look at the node later.
    type: str
    default: ""
  force:
    description:
      - Whether to also release nodes whose reboot is certain. Their hosts may be on trial with another driver. If so, the next boot
        of the host selects the last confirmed driver, and the next upgrade of the node validates the host.
    type: bool
    default: false
  heartbeat_limit:
    description: The number of seconds after which a run without a heartbeat is taken for dead.
    type: int
    default: 90
  namespace:
    description: Namespace of the Lease C(npu-maintenance), which stores the slots.
    type: str
    default: npu-operator
"""

EXAMPLES = r"""
- name: Give the nodes back
  npuops.ascend.npu_release:
    hosts: "{{ ansible_play_hosts_all | npuops.ascend.npu_hosts(hostvars, asked=false) }}"
    reason: incident 4711, the host was repaired
  run_once: true
"""

RETURN = r"""
released:
  description: Names of the nodes that were released, or would be in check mode.
  returned: success
  type: list
  elements: str
lines:
  description: What was done to each node, what stops rollouts, and RV(problems), as lines of text.
  returned: success
  type: list
  elements: str
problems:
  description: Which nodes were not released, and why.
  returned: success
  type: list
  elements: str
"""
