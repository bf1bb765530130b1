#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_heal_watch
short_description: "Step of a playbook: watch for wedged nodes and start this playbook when one is due for recovery"
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Checks the nodes every C(watch_interval) seconds (of O(heal_settings)) like M(npuops.ascend.npu_heal), and shows what changed.
  - When a node is due, runs the C(ansible-playbook) command of this task again with C(npu_heal_watch=false), shows its output, and
    continues to watch meanwhile. For other nodes, it runs the command beside that, at most as many times as C(max_parallel) of
    O(heal_settings) and of O(settings) allow, and at most 4 times. If the latter is a percentage, it does not
    count here, because the runs themselves wait for slots.
  - A failed recovery is retried, at intervals that double up to ten minutes.
  - Runs until it is stopped. In check mode it checks once.
  - A node without a host in O(hosts) also starts that command, because the command reloads the inventory.
  - The command must not ask for passwords.
  - Runs inside Ansible on the controller, whatever host the task is for.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - npuops.ascend.attributes
  - npuops.ascend.attributes.cluster
  - npuops.ascend.hosts
  - npuops.ascend.settings
  - npuops.ascend.heal_settings
attributes:
  check_mode:
    support: partial
    details:
      - Checks once and returns the same as M(npuops.ascend.npu_heal).
  diff_mode:
    support: none
  idempotent:
    support: full
seealso:
  - module: npuops.ascend.npu_heal
"""

EXAMPLES = r"""
- name: Watch the nodes
  npuops.ascend.npu_heal_watch:
    hosts: "{{ ansible_play_hosts_all | npuops.ascend.npu_hosts(hostvars, asked=false) }}"
    heal_settings:
      auto: true
  run_once: true
"""

RETURN = r"""
table:
  description: In check mode, the plan as text.
  returned: in check mode
  type: list
  elements: str
"""
