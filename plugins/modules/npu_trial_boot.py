#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_trial_boot
short_description: Reboot an NPU host into a driver release on trial
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - The host part of M(npuops.ascend.npu_maintenance), which calls it. Rarely used by itself.
  - A release is tried by one boot. Until it is confirmed, any further boot ends on the release that was good before.
  - Each run of a maintenance has a generation. Once a host has seen one, it refuses requests of smaller ones.
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
options:
  state:
    description:
      - V(view) changes nothing.
      - V(rebooted) reboots the host, unless O(boot_id) is no longer the ID of its boot. However often it is called, a boot ends
        once. The module returns before the host goes down.
      - V(confirmed) takes O(release), which must be the driver of this boot, as good. The good one becomes C(previous).
      - V(withdrawn) ensures that the next boot tries nothing, whatever runs with a smaller O(generation) request from then on.
        A reboot that has started takes place.
    type: str
    choices: [view, rebooted, confirmed, withdrawn]
    default: view
  root:
    description:
      - The directory with the links C(driver), C(good), C(next) and C(previous).
    type: path
    default: /var/lib/Ascend
  wait:
    description:
      - Seconds to wait, with O(state=view), until C(npu-driver.service) of this boot has decided whether the driver works.
    type: int
    default: 0
  boot_id:
    description:
      - The boot to end. Required with O(state=rebooted).
      - With O(state=confirmed), the boot whose driver was validated; another one is refused.
    type: str
  generation:
    description:
      - The generation of the run that calls. Required unless O(state=view).
    type: int
  release:
    description:
      - What the next boot tries, with O(state=rebooted). Without it the host reboots into the good release, and nothing is tried.
      - The release to confirm as good, with O(state=confirmed); required there.
    type: str
  refuse_held:
    description:
      - Whether O(state=rebooted) does nothing while a process holds a chip, and returns RV(held).
    type: bool
    default: true
seealso:
  - module: npuops.ascend.npu_maintenance
  - module: npuops.ascend.npu_driver
"""

EXAMPLES = r"""
- name: Show what the next boot would try
  npuops.ascend.npu_trial_boot:
  register: boot

- name: Withdraw the release of the next boot
  npuops.ascend.npu_trial_boot:
    state: withdrawn
    generation: "{{ boot.view.generation }}"
"""

RETURN = r"""
view:
  description: The host after the call. With RV(queued), before it goes down.
  returned: success
  type: dict
  contains:
    boot_id:
      description: The kernel's ID of this boot.
      type: str
    generation:
      description: The largest generation that asked for a reboot; 0 when none did.
      type: int
    driver:
      description: The release of this boot, or V(none).
      type: str
    good:
      description: The release that was confirmed last, or V(none).
      type: str
    next:
      description: The release that the next boot will try, or V(none).
      type: str
    previous:
      description: The release that was good before, or V(none).
      type: str
    releases:
      description: The releases that are completely there.
      type: list
      elements: str
    trial:
      description:
        - The last boot that tried a release without a confirmation since, with C(generation), C(release) and C(boot_id), or
          V(none). When its C(boot_id) is not that of this boot, that trial has ended.
      type: dict
    holders:
      description: The processes that hold a chip, with C(pid), C(command) and C(device).
      type: list
      elements: dict
    ready:
      description: What the boot unit published when the driver worked in this boot, or V(none).
      type: dict
    failed:
      description: What the boot unit published when it did not, with its C(reason), or V(none).
      type: dict
    loaded_version:
      description: The version that the loaded modules tell, or V(none).
      type: str
    unit:
      description: The state of C(npu-driver.service), as of C(systemctl is-active).
      type: str
      sample: active
    uptime:
      description: Seconds since the boot.
      type: float
    kernel:
      description: The release of the running kernel.
      type: str
    going_down:
      description: Whether this boot is about to end.
      type: bool
already:
  description: Whether the boot O(boot_id) had ended before.
  returned: with O(state=rebooted)
  type: bool
queued:
  description: Whether the host is about to go down, by this call or an earlier one.
  returned: with O(state=rebooted)
  type: bool
held:
  description: The processes that kept the host from being rebooted.
  returned: with O(state=rebooted)
  type: list
  elements: dict
msg:
  description: What was done, or why nothing was.
  returned: always
  type: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.npuops.ascend.plugins.module_utils._driver import trial_boot
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError


def main():
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["view", "rebooted", "confirmed", "withdrawn"], "default": "view"},
            "root": {"type": "path", "default": "/var/lib/Ascend"},
            "wait": {"type": "int", "default": 0},
            "boot_id": {"type": "str"},
            "generation": {"type": "int"},
            "release": {"type": "str"},
            "refuse_held": {"type": "bool", "default": True},
        },
        required_if=[
            ("state", "rebooted", ["boot_id", "generation"]),
            ("state", "confirmed", ["generation", "release"]),
            ("state", "withdrawn", ["generation"]),
        ],
        supports_check_mode=True,
    )
    params = dict(module.params, root=module.params["root"].rstrip("/"))
    try:
        result = STATES[params["state"]](params, module.check_mode)
        module.exit_json(view=trial_boot.view(params["root"]), **result)
    except NpuError as exc:
        module.fail_json(msg=exc.message, **exc.details)


def view(params, check_mode):
    trial_boot.wait_decided(params["root"], params["wait"])
    return {"changed": False, "msg": "nothing was asked for"}


def rebooted(params, check_mode):
    arguments = (params["root"], params["boot_id"], params["generation"], params["release"] or None)
    if check_mode:
        reason = trial_boot.reboot_reason(*arguments)
        return {"changed": reason is not None, "msg": reason or "nothing to do", "already": False, "queued": False, "held": []}
    result = trial_boot.reboot(*arguments, refuse_held=params["refuse_held"])
    reason = result.pop("reason")
    text = reason
    if result["held"]:
        text = "not rebooted: chips are held by " + ", ".join("%(command)s (PID %(pid)d)" % entry for entry in result["held"])
    elif result["already"]:
        text = "the host was rebooted already"
    elif reason is None:
        text = "the reboot is already on its way"
    return dict(result, changed=reason is not None, queued=result["queued"] or reason is not None, msg=text)


def confirmed(params, check_mode):
    call = trial_boot.confirm_reason if check_mode else trial_boot.confirm_boot
    reason = call(params["root"], params["generation"], params["release"], params["boot_id"])
    return {"changed": reason is not None, "msg": reason or "%s is good already" % params["release"]}


def withdrawn(params, check_mode):
    call = trial_boot.withdraw_reason if check_mode else trial_boot.withdraw
    reason = call(params["root"], params["generation"])
    return {"changed": reason is not None, "msg": reason or "nothing to withdraw"}


STATES = {"view": view, "rebooted": rebooted, "confirmed": confirmed, "withdrawn": withdrawn}


if __name__ == "__main__":
    main()
