#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_trial_boot
short_description: "Step of a playbook: reboot an NPU host into a driver release on trial"
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Performs the part of a maintenance that happens on the host. M(npuops.ascend.npu_maintenance) calls it; it is rarely used
    directly.
  - A release is tried by exactly one boot. Until it is confirmed, any further boot returns to the last confirmed release.
  - Each run of a maintenance has a generation. A host refuses requests with a smaller generation than it has already seen.
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
      - V(rebooted) reboots the host, unless the ID of the current boot differs from O(boot_id). So repeated calls reboot the host
        only once. The module returns before the host goes down.
      - V(confirmed) makes O(release), which must be the driver of this boot, the C(good) release. The release that was good before
        becomes C(previous).
      - V(withdrawn) ensures that the next boot does not try a release, and refuses later requests with a smaller O(generation).
        It does not stop a reboot that has already started.
    type: str
    choices: [view, rebooted, confirmed, withdrawn]
    default: view
  root:
    description:
      - The directory that contains the links C(driver), C(good), C(next) and C(previous).
    type: path
    default: /var/lib/Ascend
  wait:
    description:
      - Seconds to wait, with O(state=view), until the C(npu-driver.service) of this boot has succeeded or failed.
    type: int
    default: 0
  chips:
    description:
      - Whether to list the chips, with O(state=view), as C(npu-smi info) of the driver in use shows them.
    type: bool
    default: false
  network:
    description:
      - Whether to ask the network ports of the chips for link and address, with O(state=view).
    type: bool
    default: false
  boot_id:
    description:
      - ID of the boot to end. Required with O(state=rebooted).
      - With O(state=confirmed), ID of the boot whose driver was validated. The module fails if the host was rebooted since.
    type: str
  generation:
    description:
      - Generation of the calling run. Required unless O(state=view).
    type: int
  release:
    description:
      - With O(state=rebooted), the release that the next boot tries. By default, the host reboots into the C(good) release.
      - With O(state=confirmed), the release to confirm. Required.
    type: str
  refuse_held:
    description:
      - Whether to refuse the reboot while a process has a device of a chip open. RV(held) then lists these processes.
    type: bool
    default: true
seealso:
  - module: npuops.ascend.npu_maintenance
  - module: npuops.ascend.npu_driver
"""

EXAMPLES = r"""
- name: Get the release that the next boot will try
  npuops.ascend.npu_trial_boot:
  register: boot

- name: Withdraw the release of the next boot
  npuops.ascend.npu_trial_boot:
    state: withdrawn
    generation: "{{ boot.view.generation }}"
"""

RETURN = r"""
view:
  description: The state of the host after the call. With RV(queued=true), before it goes down.
  returned: success
  type: dict
  contains:
    boot_id:
      description: ID of this boot.
      type: str
    generation:
      description: The largest generation that has made a request, 0 if none has.
      type: int
    driver:
      description: The release that C(driver) points to, or V(none).
      type: str
    good:
      description: The last confirmed release, or V(none).
      type: str
    next:
      description: The release that the next boot will try, or V(none).
      type: str
    previous:
      description: The release that was confirmed before C(good), or V(none).
      type: str
    releases:
      description: The complete releases on the host.
      type: list
      elements: str
    trial:
      description:
        - The last trial boot, if its release was not confirmed, with C(generation), C(release) and C(boot_id), or V(none). If its
          C(boot_id) is not that of this boot, the trial has ended.
      type: dict
    holders:
      description: The processes that have a device of a chip open, with C(pid), C(command) and C(device).
      type: list
      elements: dict
    ready:
      description: What the boot unit published if the driver works in this boot, or V(none).
      type: dict
    failed:
      description: What the boot unit published if the driver does not work in this boot, with the C(reason), or V(none).
      type: dict
    loaded_version:
      description: Version of the loaded kernel modules, or V(none).
      type: str
    unit:
      description: State of C(npu-driver.service), as of C(systemctl is-active).
      type: str
      sample: active
    uptime:
      description: Seconds since the boot.
      type: float
    kernel:
      description: Release of the running kernel.
      type: str
    next_kernel:
      description: Release of the kernel that the next boot loads, V(none) if that is not known.
      type: str
    going_down:
      description: Whether the host is about to go down.
      type: bool
    firmware:
      description:
        - The last write of firmware into the chips by M(npuops.ascend.npu_firmware), with C(state), C(release), C(version),
          C(boot_id) and C(reason), or V(none). While it is V(writing), the host refuses to be rebooted.
      type: dict
    chips:
      description:
        - With O(chips=true), the RV(npuops.ascend.npu_smi_info#module:chips) of M(npuops.ascend.npu_smi_info), or V(none) if
          C(npu-smi) does not list them within 15 s.
      returned: with O(chips=true)
      type: list
      elements: dict
    ports:
      description:
        - With O(network=true), link and address of each network port by the number of its chip, such as V(UP 10.64.11.10), with
          V(-) for what it does not have or what is unknown. V(none) if the chips have no such ports, or if nothing is known.
      returned: with O(network=true)
      type: dict
already:
  description: Whether the boot O(boot_id) had already ended.
  returned: with O(state=rebooted)
  type: bool
queued:
  description: Whether the host is about to go down because of this call or an earlier one.
  returned: with O(state=rebooted)
  type: bool
held:
  description: The processes because of which the host was not rebooted.
  returned: with O(state=rebooted)
  type: list
  elements: dict
msg:
  description: What was done, or why nothing was done.
  returned: always
  type: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.npuops.ascend.plugins.module_utils._activation import trial_boot
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError


def main():
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["view", "rebooted", "confirmed", "withdrawn"], "default": "view"},
            "root": {"type": "path", "default": "/var/lib/Ascend"},
            "wait": {"type": "int", "default": 0},
            "chips": {"type": "bool", "default": False},
            "network": {"type": "bool", "default": False},
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
        module.exit_json(view=trial_boot.view(params["root"], chips=params["chips"], network=params["network"]), **result)
    except NpuError as exc:
        module.fail_json(msg=exc.message, **exc.details)


def view(params, check_mode):
    trial_boot.wait_decided(params["root"], params["wait"])
    return {"changed": False, "msg": "nothing to do for state view"}


def rebooted(params, check_mode):
    arguments = (params["root"], params["boot_id"], params["generation"], params["release"] or None)
    if check_mode:
        reason = trial_boot.reboot_reason(*arguments)
        return {"changed": reason is not None, "msg": reason or "nothing to do", "already": False, "queued": False, "held": []}
    result = trial_boot.reboot(*arguments, refuse_held=params["refuse_held"])
    reason = result.pop("reason")
    text = reason
    if result["held"]:
        text = "not rebooted: chips are in use by " + ", ".join("%(command)s (PID %(pid)d)" % entry for entry in result["held"])
    elif result["already"]:
        text = "the host was already rebooted"
    elif reason is None:
        text = "the reboot is already queued"
    return dict(result, changed=reason is not None, queued=result["queued"] or reason is not None, msg=text)


def confirmed(params, check_mode):
    call = trial_boot.confirm_reason if check_mode else trial_boot.confirm_boot
    reason = call(params["root"], params["generation"], params["release"], params["boot_id"])
    return {"changed": reason is not None, "msg": reason or "%s is already confirmed" % params["release"]}


def withdrawn(params, check_mode):
    call = trial_boot.withdraw_reason if check_mode else trial_boot.withdraw
    reason = call(params["root"], params["generation"])
    return {"changed": reason is not None, "msg": reason or "nothing to withdraw"}


STATES = {"view": view, "rebooted": rebooted, "confirmed": confirmed, "withdrawn": withdrawn}


if __name__ == "__main__":
    main()
