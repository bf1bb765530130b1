#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ascend_docker_runtime
short_description: Give NPUs to containers by Huawei's Ascend Docker Runtime
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Says on the host that its containers get their chips by C(ascend-docker-runtime) and not by CDI. The node agent and
    M(npuops.ascend.npu_validate) act on that.
  - Neither installs that runtime nor changes containerd. It fails, and changes nothing, unless the runtime is the default one of
    the host's containerd, in its configuration and in the running process, and can start containers with chips.
  - The CDI spec stays where there is one, because containers that were started with it need it when they restart.
extends_documentation_fragment:
  - npuops.ascend.attributes
  - npuops.ascend.attributes.full
  - npuops.ascend.attributes.host
options:
  state:
    description:
      - V(present) checks the runtime, and has it used. V(absent) has CDI used again.
    type: str
    choices: [present, absent]
    default: present
  source:
    description:
      - Where the driver comes from. The runtime needs V(preinstalled), because it mounts nothing that is reached through a link, as
        the drivers are that M(npuops.ascend.npu_driver_stage) staged.
    type: str
    choices: [image, package, preinstalled]
    default: image
seealso:
  - module: npuops.ascend.npu_cdi_spec
  - module: npuops.ascend.containerd_cdi
"""

EXAMPLES = r"""
- name: Give chips to containers by the runtime that is on the host
  npuops.ascend.ascend_docker_runtime:
    source: preinstalled

- name: Give chips to containers by CDI again
  npuops.ascend.ascend_docker_runtime:
    state: absent
"""

RETURN = r"""
msg:
  description: Why something changed, or that no change was necessary; on failure, what is wrong with the runtime.
  returned: always
  type: str
mode:
  description: How containers get their chips now, or would after a run without check mode. V(cdi) on a host without chips.
  returned: success
  type: str
  sample: ascend
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import ascend_runtime, cdi_spec
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import make_directory, remove_file, write_atomic
from ansible_collections.npuops.ascend.plugins.module_utils._runtime import runtime_mode


def main():
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "source": {"type": "str", "choices": ["image", "package", "preinstalled"], "default": "image"},
        },
        supports_check_mode=True,
    )
    try:
        run(module)
    except NpuError as exc:
        module.fail_json(msg=exc.message, **exc.details)


def run(module):
    wanted = runtime_mode.CDI
    if module.params["state"] == "present" and cdi_spec.look().chips:
        problem = next(ascend_runtime.problems(module.params["source"]), None)
        if problem:
            raise NpuError(problem)
        wanted = runtime_mode.ASCEND
    before = runtime_mode.of_host()
    changed = wanted != before
    if changed and not module.check_mode:
        set_mode(wanted)
    module.exit_json(
        changed=changed,
        msg="containers with chips get them by %s" % ("CDI" if wanted == runtime_mode.CDI else ascend_runtime.PROGRAM),
        mode=wanted,
        diff={
            "before_header": runtime_mode.PATH,
            "after_header": runtime_mode.PATH,
            "before": before + "\n",
            "after": wanted + "\n",
        },
    )


def set_mode(mode):
    if mode == runtime_mode.ASCEND:
        make_directory(os.path.dirname(runtime_mode.PATH))
        write_atomic(runtime_mode.PATH, mode + "\n")
    else:
        remove_file(runtime_mode.PATH)


if __name__ == "__main__":
    main()
