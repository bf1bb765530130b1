#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_join
short_description: "Step of a playbook: find nodes that have joined the cluster"
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - A node is to be set up if it is Ready and schedulable, and has no label that begins with C(npuops.ascend/), which
    npuops.ascend.install sets. It is to be accepted if it has the taint C(npuops.ascend/not-accepted).
  - A node that was not accepted at level 2 or 3 is left for a person, because these levels load its chips. At level 1, it is to be
    accepted again each time.
  - Asks the cluster with one list of its nodes, and no host. Changes nothing.
  - Runs inside Ansible on the controller, whatever host the task is for.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - npuops.ascend.attributes
  - npuops.ascend.attributes.info_module
  - npuops.ascend.attributes.cluster
  - npuops.ascend.hosts
"""

EXAMPLES = r"""
- name: Find the nodes that have joined
  npuops.ascend.npu_join:
    hosts: "{{ ansible_play_hosts_all | npuops.ascend.npu_hosts(hostvars, asked=false) }}"
  run_once: true
  register: joined
"""

RETURN = r"""
install:
  description: The hosts to be set up.
  returned: success
  type: list
  elements: str
accept:
  description: The hosts to be accepted.
  returned: success
  type: list
  elements: dict
  contains:
    host:
      description: Name of the host.
      type: str
    level:
      description: The level of its gate.
      type: int
lines:
  description: RV(install) and RV(accept), and which nodes are left for now, and why, as lines of text.
  returned: success
  type: list
  elements: str
"""
