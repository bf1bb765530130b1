#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_many_hosts
short_description: "Step of a playbook: run a module on many hosts in one task"
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Runs O(module) on all O(hosts) from one process, in as many threads as Ansible has C(forks). Each host is reached as by a task
    of its own, with its connection plugin, its user, its become plugin and its Python, by its variables. In check mode, the module
    runs in check mode.
  - For a fleet this takes a small part of the CPU time and of the memory of a task for each host.
  - Must be delegated to C(localhost), so that no variable of a host becomes the default of others.
  - Runs inside Ansible on the controller.
extends_documentation_fragment:
  - npuops.ascend.attributes
  - npuops.ascend.attributes.host
  - npuops.ascend.attributes.info_module
options:
  module:
    description: The module, of this collection.
    type: str
    choices: [npu_facts, npu_driver, npu_cdi_spec, npu_validate]
    required: true
  hosts:
    description: The inventory names of the hosts.
    type: list
    elements: str
    required: true
  options:
    description: Its options for all hosts.
    type: dict
    default: {}
  variables:
    description:
      - Its options that are set for each host by a variable of the roles, with the name of the variable. For suboptions, a
        dictionary of such names.
      - A variable that is empty, or that the host does not have, has the default of the roles.
    type: dict
    default: {}
  host_options:
    description: Its options for single hosts, by the name of the host.
    type: dict
    default: {}
  timeout:
    description: Seconds that each host has to answer. One that does not is unreachable, and delays no other host.
    type: int
    default: 300
seealso:
  - module: npuops.ascend.npu_facts
"""

EXAMPLES = r"""
- name: Gather facts from the hosts
  npuops.ascend.npu_many_hosts:
    module: npu_facts
    hosts: "{{ ansible_play_hosts }}"
    options:
      validate: true
    variables:
      driver_root: npu_driver_root
  delegate_to: localhost
  run_once: true
  register: fleet

- name: Show the hosts that did not answer
  ansible.builtin.debug:
    msg: "{{ fleet.answers | dict2items | selectattr('value.unreachable', 'defined') | map(attribute='key') }}"
  run_once: true
"""

RETURN = r"""
answers:
  description:
    - By inventory name, what O(module) returned for the host, or C(msg) with C(unreachable) or C(failed).
    - The task does not fail because of a host.
    - Without the warnings of O(module), which the task shows, each once with its hosts.
  returned: success
  type: dict
"""
