#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_heal_service
short_description: Manage the systemd service that runs the heal playbook
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Installs, enables and starts a service that runs C(ansible-playbook npuops.ascend.heal) with
    O(npuops.ascend.npu_heal#role:main:npu_heal_watch=true), or removes it.
  - Use it through the role P(npuops.ascend.npu_heal_service#role).
  - Before any change, checks for everything that would prevent the service from working, and reports all problems at once.
  - Never changes a unit that this module did not create.
  - A running service is stopped before its unit is changed, so that a call that is interrupted can be repeated.
extends_documentation_fragment:
  - npuops.ascend.attributes
  - npuops.ascend.attributes.full
  - npuops.ascend.attributes.host
options:
  state:
    description:
      - V(present) installs, enables and starts the service. V(absent) removes it.
    type: str
    choices: [present, absent]
    default: present
  name:
    description:
      - The name of the service, without C(.service).
    type: str
    default: npuops-heal
  user:
    description:
      - The account that runs Ansible. Required with O(state=present).
    type: str
    default: ""
  directory:
    description:
      - The working directory, as an absolute path. Required with O(state=present).
    type: str
    default: ""
  inventory:
    description:
      - The inventories, as absolute paths. Required with O(state=present).
    type: list
    elements: str
    default: []
  command:
    description:
      - The absolute path of C(ansible-playbook). By default it is searched for in O(command_directories), then in C(PATH).
    type: str
    default: ""
  command_directories:
    description:
      - Directories in which to search for C(ansible-playbook) first.
    type: list
    elements: str
    default: []
  arguments:
    description:
      - Further arguments of C(ansible-playbook), which are passed unchanged. Arguments that prompt for input, and values of
        secrets, are refused.
    type: list
    elements: str
    default: []
  environment:
    description:
      - Environment variables of the service. Names that look like secrets, and values that contain secrets, are refused, because
        every user can read a unit.
    type: dict
    default: {}
notes:
  - The host is the control machine, on which Ansible runs or will run. It needs systemd.
seealso:
  - module: npuops.ascend.npu_heal_watch
"""

EXAMPLES = r"""
- name: Run the service that watches for wedged nodes
  npuops.ascend.npu_heal_service:
    user: ansible
    directory: /home/ansible/my-fleet
    inventory: [/home/ansible/my-fleet/hosts.yml]
    environment:
      KUBECONFIG: /home/ansible/.kube/config

- name: Remove the service
  npuops.ascend.npu_heal_service:
    state: absent
"""

RETURN = r"""
path:
  description: Path of the unit.
  returned: success
  type: str
  sample: /etc/systemd/system/npuops-heal.service
msg:
  description: What was done, or that no change was necessary.
  returned: always
  type: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.common.process import get_bin_path
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._host.heal_service import Service, Setup


def main():
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "name": {"type": "str", "default": "npuops-heal"},
            "user": {"type": "str", "default": ""},
            "directory": {"type": "str", "default": ""},
            "inventory": {"type": "list", "elements": "str", "default": []},
            "command": {"type": "str", "default": ""},
            "command_directories": {"type": "list", "elements": "str", "default": []},
            "arguments": {"type": "list", "elements": "str", "default": []},
            "environment": {"type": "dict", "default": {}},
        },
        supports_check_mode=True,
    )
    try:
        run(module)
    except NpuError as exc:
        module.fail_json(msg=exc.message, **exc.details)


def run(module):
    params = module.params
    service = Service(params["name"])
    wanted = None
    if params["state"] == "present":
        setup = Setup(
            user=params["user"],
            directory=params["directory"],
            inventory=params["inventory"],
            command=params["command"] or find(params["command_directories"]),
            arguments=params["arguments"],
            environment=params["environment"],
        )
        setup.check()
        wanted = setup.unit()
    reasons = service.plan(wanted)
    if not module.check_mode:
        service.apply()
    module.exit_json(
        changed=bool(reasons),
        path=service.path,
        msg="; ".join(reasons) or ("%s is running" if wanted else "%s does not exist") % service.unit,
        diff={
            "before_header": service.path,
            "after_header": service.path,
            "before": service.text or "",
            "after": wanted or "",
        },
    )


def find(directories):
    """The path of ansible-playbook, empty if there is none."""
    try:
        return get_bin_path("ansible-playbook", opt_dirs=directories)
    except ValueError:
        return ""


if __name__ == "__main__":
    main()
