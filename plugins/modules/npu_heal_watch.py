#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_heal_watch
short_description: Watch for wedged nodes and start this playbook when one is due for recovery
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Looks at the nodes every O(interval) seconds as M(npuops.ascend.npu_heal) does, and shows what changed.
  - When a node is due, starts the C(ansible-playbook) command that this task runs in once more, with
    C(npu_heal_watch=false), shows its output, and watches on when it has ended. What could not be done is tried again
    after twice the time, at most every ten minutes.
  - Does not end by itself. In check mode it looks once.
  - A node that none of O(hosts) stands for makes it start that command as well, because the command reads the inventory anew.
  - The command must not ask for passwords.
  - Runs inside Ansible on the controller, whatever host the task is for.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - npuops.ascend.attributes
  - npuops.ascend.attributes.cluster
  - npuops.ascend.hosts
  - npuops.ascend.heal
attributes:
  check_mode:
    support: partial
    details:
      - Looks once and returns what M(npuops.ascend.npu_heal) does.
  diff_mode:
    support: none
  idempotent:
    support: full
options:
  approval_max_age:
    description: Seconds after which an approval no longer counts, V(0) for never.
    type: int
    default: 0
  interval:
    description: Seconds between two looks.
    type: int
    default: 30
seealso:
  - module: npuops.ascend.npu_heal
"""

EXAMPLES = r"""
- name: Watch the nodes, until somebody stops this
  npuops.ascend.npu_heal_watch:
    hosts: "{{ ansible_play_hosts_all | npuops.ascend.npu_hosts(hostvars, asked=false) }}"
    recovery:
      auto: true
  run_once: true
"""

RETURN = r"""
table:
  description: In check mode, what there is to be done, for people.
  returned: in check mode
  type: list
  elements: str
"""
