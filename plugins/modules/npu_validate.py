#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_validate
short_description: Check that a host really offers its NPUs to containers
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Compares all places that must agree, namely the PCI bus, the device nodes, what C(npu-smi) lists and calls
    healthy, the versions in C(version.info), in the kernel and in C(npu-smi), the release the links name, the marker
    of the boot unit, the firmware range the driver declares, who may write the driver's libraries, the CDI spec with
    all it mounts, and CDI in containerd's configuration and in the containerd that runs.
  - Always runs all checks, so that one run tells everything that is wrong.
  - On a host without a chip there is nothing to check, and it is valid.
extends_documentation_fragment:
  - npuops.ascend.attributes
  - npuops.ascend.attributes.info_module
  - npuops.ascend.attributes.host
  - npuops.ascend.driver
options:
  version:
    description:
      - The version the driver must have. Without it, any version that is the same everywhere will do.
    type: str
  library_path:
    description:
      - As for M(npuops.ascend.npu_cdi_spec), whose file is checked.
    type: str
    choices: [hook, env, none]
    default: hook
  trial:
    description:
      - Whether this may be a trial boot, whose driver is not C(good) yet. Only a maintenance knows that it is one.
    type: bool
    default: false
  timeout:
    description:
      - Seconds to wait for one C(npu-smi).
    type: int
    default: 30
  fail:
    description:
      - Whether the module fails when a check does. Its message then lists the failed checks and what to do.
      - With V(false), look at RV(valid).
    type: bool
    default: true
seealso:
  - module: npuops.ascend.npu_facts
  - module: npuops.ascend.npu_cdi_spec
  - module: npuops.ascend.containerd_cdi
"""

EXAMPLES = r"""
- name: Validate the host
  npuops.ascend.npu_validate:
    version: 25.5.0

- name: Look what is wrong, and go on
  npuops.ascend.npu_validate:
    fail: false
  register: validation
"""

RETURN = r"""
valid:
  description: Whether all checks passed.
  returned: always
  type: bool
checks:
  description: All checks, in the order a person would look.
  returned: always
  type: list
  elements: dict
  contains:
    name:
      description:
        - The check's name. One of V(chips), V(device_nodes), V(device_permissions), V(npu_smi), V(health),
          V(driver_version), V(loaded_driver), V(npu_smi_version), V(release), V(loaded_release), V(driver_ready),
          V(firmware), V(library_ownership), V(cdi_spec), V(cdi_mounts), V(cdi_driver_version), V(cdi_files),
          V(cdi_config), V(cdi_running).
        - A check whose input is missing is left out. The one that looks for that input has failed then.
      type: str
    ok:
      description: Whether it passed.
      type: bool
    expected:
      description: What should be there.
      type: str
    seen:
      description: What is there.
      type: str
    message:
      description: What to do, V(none) when it passed.
      type: str
  sample:
    - name: cdi_running
      ok: false
      expected: the running containerd has CDI on
      seen: "off, cdi_spec_dirs = /etc/cdi, /var/run/cdi"
      message: "containerd has not been restarted since its configuration was changed: run npuops.ascend.install"
chips:
  description: How many chips the host has.
  returned: always
  type: int
version:
  description: The version of the driver tree, V(none) when there is none.
  returned: always
  type: str
firmware_version:
  description: The firmware the chips run, as C(npu-smi) says; V(none) when it was not told.
  returned: always
  type: str
msg:
  description: The failed checks and what to do, or that all passed.
  returned: always
  type: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.npuops.ascend.plugins.module_utils._host import checks as host_checks
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError


def main():
    module = AnsibleModule(
        argument_spec={
            "source": {"type": "str", "choices": ["image", "preinstalled"], "default": "image"},
            "root": {"type": "path", "default": "/var/lib/Ascend"},
            "version": {"type": "str"},
            "library_path": {"type": "str", "choices": ["hook", "env", "none"], "default": "hook"},
            "trial": {"type": "bool", "default": False},
            "timeout": {"type": "int", "default": 30},
            "fail": {"type": "bool", "default": True},
        },
        supports_check_mode=True,
    )
    params = module.params
    try:
        result = host_checks.validate(
            params["root"],
            params["source"],
            version=params["version"],
            timeout=params["timeout"],
            library_path=params["library_path"],
            trial=params["trial"],
        )
    except NpuError as exc:
        module.fail_json(msg=exc.message, **exc.details)
    if params["fail"] and not result["valid"]:
        module.fail_json(**result)
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
