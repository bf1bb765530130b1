#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_firmware
short_description: "Step of a playbook: write the firmware of a staged driver release into the chips of an NPU host"
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Runs the firmware package of a release (C(Ascend-hdk-<chip>-npu-firmware_<version>.run)), which writes the flash memory of all
    chips. The chips run the new firmware after the next boot. M(npuops.ascend.npu_maintenance) calls this module on a drained node,
    before the reboot; it is rarely used directly.
  - The package runs in the transient systemd unit C(npuops-firmware.service), so a lost connection does not interrupt it. Call the
    module again until RV(state) is not V(writing).
  - A write that failed or was interrupted is not repeated unless O(again=true).
  - The firmware does not return to the previous version together with the driver.
extends_documentation_fragment:
  - npuops.ascend.attributes
  - npuops.ascend.attributes.host
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
    details:
      - Nothing is written if all chips run the version already.
options:
  release:
    description:
      - The staged release whose firmware is written.
    type: str
    required: true
  root:
    description:
      - The directory that contains C(releases) and the links C(driver) and C(good). The package uses the driver of this boot.
    type: path
    default: /var/lib/Ascend
  boot_id:
    description:
      - ID of the boot in which the firmware is to be written. In any other boot, the module does nothing.
    type: str
    required: true
  generation:
    description:
      - Generation of the calling run. The host refuses a smaller generation than it has already seen.
    type: int
    required: true
  version:
    description:
      - The version that the firmware of the release must have. The module fails if it differs. By default, any version is accepted.
    type: str
  again:
    description:
      - Whether to repeat a write that failed or was interrupted. Check the chips first.
    type: bool
    default: false
  wait:
    description:
      - Seconds to wait for the end of the package.
    type: int
    default: 30
seealso:
  - module: npuops.ascend.npu_trial_boot
  - module: npuops.ascend.npu_driver_stage
"""

EXAMPLES = r"""
- name: Get the boot and the generation of the host
  npuops.ascend.npu_trial_boot:
  register: boot

- name: Write the firmware of a release
  npuops.ascend.npu_firmware:
    release: 25.5.2-6.6.0-145.0.4.135.oe2403sp3.aarch64-0123456789ab
    boot_id: "{{ boot.view.boot_id }}"
    generation: "{{ boot.view.generation + 1 }}"
  register: firmware
  until: firmware.state != 'writing'
  retries: 60
"""

RETURN = r"""
state:
  description:
    - V(writing) while the package runs, V(written) if the next boot has the firmware, V(failed) if the package failed.
    - V(none) if nothing has to be written, if chips are in use, or in check mode.
  type: str
  returned: success
version:
  description: Version of the firmware of the release.
  type: str
  returned: success
held:
  description: The processes because of which nothing was written, with C(pid), C(command) and C(device).
  type: list
  elements: dict
  returned: success
msg:
  description: What was done, or why nothing was done, or why the package failed.
  type: str
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.npuops.ascend.plugins.module_utils._activation import firmware_flash
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError


def main():
    module = AnsibleModule(
        argument_spec={
            "release": {"type": "str", "required": True},
            "root": {"type": "path", "default": "/var/lib/Ascend"},
            "boot_id": {"type": "str", "required": True},
            "generation": {"type": "int", "required": True},
            "version": {"type": "str"},
            "again": {"type": "bool", "default": False},
            "wait": {"type": "int", "default": 30},
        },
        supports_check_mode=True,
    )
    try:
        module.exit_json(**run(dict(module.params, root=module.params["root"].rstrip("/")), module.check_mode))
    except NpuError as exc:
        module.fail_json(msg=exc.message, **exc.details)


def run(params, check_mode):
    flash = firmware_flash.Flash(
        params["root"],
        params["release"],
        params["boot_id"],
        params["generation"],
        params["again"],
        version=params.get("version"),
    )
    version = flash.firmware.version
    if check_mode:
        reason = flash.reason()
        return {
            "changed": reason is not None,
            "state": None,
            "version": version,
            "held": [],
            "msg": reason or "nothing to write",
        }
    result = flash.write(params["wait"])
    if result["held"]:
        text = "not written: chips are in use by " + ", ".join("%(command)s (PID %(pid)d)" % entry for entry in result["held"])
    else:
        text = result.get("told") or result["reason"] or "nothing to write"
    changed = result["reason"] is not None
    return {"changed": changed, "state": result["state"], "version": version, "held": result["held"], "msg": text}


if __name__ == "__main__":
    main()
