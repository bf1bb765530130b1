#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_collect
short_description: "Step of a playbook: gather the diagnostic data of a host"
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Gathers what a bug report or Huawei's support needs from a host. These are the results of M(npuops.ascend.npu_facts) and
    M(npuops.ascend.npu_validate), the output of C(npu-smi) and C(hccn_tool), journals, logs of the driver, and the state files of
    this collection.
  - Returns it in memory, limited in size and time. What cannot be read is listed with the reason, and is not a failure.
  - Values that look like secrets are replaced with C(***) on the host. Only text is gathered, because secrets in other files cannot
    be found.
  - The playbook C(npuops.ascend.collect) runs it for each host, and writes the bundle.
extends_documentation_fragment:
  - npuops.ascend.attributes
  - npuops.ascend.attributes.host
  - npuops.ascend.attributes.info_module
  - npuops.ascend.driver
options:
  library_path:
    description: The option of the same name of M(npuops.ascend.npu_validate).
    type: str
    choices: [hook, env, none]
    default: hook
  limit:
    description: Maximum number of bytes of all texts together, before compression.
    type: int
    default: 20971520
  command_timeout:
    description: Seconds to wait until a command ends.
    type: int
    default: 30
  total_timeout:
    description: Seconds after which nothing more is begun.
    type: int
    default: 240
seealso:
  - module: npuops.ascend.npu_collect_bundle
"""

EXAMPLES = r"""
- name: Gather the diagnostic data of the host
  npuops.ascend.npu_collect:
    limit: 5242880
  register: collected
"""

RETURN = r"""
content:
  description:
    - What was gathered, as JSON, compressed with gzip and encoded in Base64. It has the keys C(schema), C(files), a list of
      dictionaries with C(name), C(source), C(cut) and C(text), C(left_out), a list of dictionaries with C(what), C(why) and
      C(absent), and C(more_left_out), how many are not in that list.
  returned: success
  type: str
"""

import base64
import gzip
import json

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.npuops.ascend.plugins.module_utils._collect.host_part import HostPart
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError


def main():
    module = AnsibleModule(
        argument_spec={
            "root": {"type": "path", "default": "/var/lib/Ascend"},
            "source": {"type": "str", "choices": ["image", "package", "preinstalled"], "default": "image"},
            "library_path": {"type": "str", "choices": ["hook", "env", "none"], "default": "hook"},
            "limit": {"type": "int", "default": 20 * 2**20},
            "command_timeout": {"type": "int", "default": 30},
            "total_timeout": {"type": "int", "default": 240},
        },
        supports_check_mode=True,
    )
    params = module.params
    try:
        part = HostPart(
            params["root"],
            params["source"],
            params["library_path"],
            limit=params["limit"],
            seconds=params["total_timeout"],
            command=params["command_timeout"],
        ).gather()
    except NpuError as exc:
        module.fail_json(msg=exc.message, **exc.details)
    text = json.dumps(part, ensure_ascii=False).encode("utf-8", "replace")
    module.exit_json(changed=False, content=base64.b64encode(gzip.compress(text)).decode("ascii"))


if __name__ == "__main__":
    main()
