#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: containerd_cdi
short_description: Switch CDI on in the host's containerd
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Makes sure that the containerd which serves this host's kubelet injects CDI devices and looks for them in
    C(/etc/cdi). With CDI off, pods start without their devices and without an error.
  - Asks containerd itself, both its configuration (C(containerd config dump)) and the running process (its CRI socket),
    so that a run which was interrupted between edit and restart is finished by the next one.
  - Edits the file that already holds the CRI section, the main one or one of its C(imports), and there one line. All
    else stays byte for byte, and containerd has to confirm on a copy, before anything is written, that CDI is all
    that changes.
  - Keeps the original as C(<name>.npuops-backup) beside the main configuration file, or in C(/var/lib/npuops/containerd) where
    another file is edited or where containerd would import what lies there.
  - When the CRI does not answer after the restart, the old file is put back, containerd is restarted again, and the
    module fails with what containerd said both times. Running pods are not touched by a restart. A unit whose
    C(KillMode) says otherwise is refused.
  - Refuses, without changing anything, containerd 1.6 and older, CRI-O, Docker without Kubernetes, and files that
    k3s, RKE2, MicroK8s or k0s generate, that say DO NOT EDIT, or that cannot be replaced, and says what to do instead.
extends_documentation_fragment:
  - npuops.ascend.attributes
  - npuops.ascend.attributes.host
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
    details:
      - The diff has the changed lines only, and of these only the keys that are changed. All else may hold a registry's password.
  idempotent:
    support: full
options:
  state:
    description:
      - V(present) switches CDI on.
      - V(absent) puts back the file as it was before V(present), and only if that was the last change of it. Where CDI was on
        already, where the file was changed since, and where other CDI specs than ours are on the host, everything stays, and
        RV(left) says why.
    type: str
    choices: [present, absent]
    default: present
  restart:
    description:
      - Whether containerd is restarted when it has to be.
      - With V(false) the file is edited and RV(restart_required) says that this is not in effect yet. The next call with
        V(true) then restarts, also with O(state=absent).
    type: bool
    default: true
  timeout:
    description:
      - Seconds that one restart may take until the CRI answers. There are two of them when the first one fails.
    type: int
    default: 25
seealso:
  - module: npuops.ascend.npu_cdi_spec
  - module: npuops.ascend.npu_validate
"""

EXAMPLES = r"""
- name: Switch CDI on
  npuops.ascend.containerd_cdi:

- name: Take that back
  npuops.ascend.containerd_cdi:
    state: absent

- name: Edit the configuration now, restart in a maintenance window
  npuops.ascend.containerd_cdi:
    restart: false
"""

RETURN = r"""
msg:
  description: Why something changed, or that nothing had to.
  returned: always
  type: str
reason:
  description: The same, V(none) when nothing has to change.
  returned: success
  type: str
edited:
  description: The file that was edited, or would be; V(none) when none.
  returned: success
  type: str
would_change:
  description: The same as C(changed), for a task that overrides that with C(changed_when).
  returned: success
  type: bool
config:
  description: The configuration file containerd was started with.
  returned: success
  type: str
restart_required:
  description: Whether the running containerd does not have its configuration yet, so that CDI is still off, or with
    O(state=absent) still on.
  returned: success
  type: bool
left:
  description: Why CDI stays on although this collection switched it on; V(none) when it does not, or did not.
  returned: success, with O(state=absent)
  type: str
restored:
  description: The file that was put back because containerd did not come up with the edit.
  returned: failure, when that happened
  type: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import enable as containerd_enable
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import revert as containerd_revert
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import runtime as containerd_runtime
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError


def main():
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "restart": {"type": "bool", "default": True},
            "timeout": {"type": "int", "default": 25},
        },
        supports_check_mode=True,
    )
    try:
        (run if module.params["state"] == "present" else revert)(module)
    except NpuError as exc:
        module.fail_json(msg=exc.message, **exc.details)


def run(module):
    switch = containerd_enable.Switch(containerd_runtime.find(), module.params["timeout"])
    reason = switch.examine()
    changed = switch.would_change(module.params["restart"])
    if changed and not module.check_mode:
        switch.apply(module.params["restart"])
    result = {}
    if switch.edit:
        result["diff"] = {"prepared": switch.edit.diff()}
    module.exit_json(
        changed=changed,
        msg=reason or "CDI is on",
        reason=reason,
        would_change=changed,
        edited=switch.edit.path if switch.edit else None,
        config=switch.daemon.config,
        restart_required=switch.restart_required,
        **result,
    )


def revert(module):
    try:
        daemon = containerd_runtime.find()
    except NpuError as exc:
        # What cannot have been edited need not be put back.
        module.exit_json(changed=False, msg=exc.message, reason=None, left=None, edited=None, restart_required=False)
    switch = containerd_revert.Revert(daemon, module.params["timeout"])
    reason = switch.examine()
    changed = switch.would_change(module.params["restart"])
    if changed and not module.check_mode:
        switch.apply(module.params["restart"])
    if switch.left:
        module.warn(switch.left)
    module.exit_json(
        changed=changed,
        msg=reason or switch.left or "nothing of npuops.ascend is in containerd's configuration",
        reason=reason,
        would_change=changed,
        left=switch.left,
        edited=switch.edit.path if switch.edit else None,
        config=switch.daemon.config,
        restart_required=switch.restart_required,
        diff={"prepared": switch.edit.diff()} if switch.edit else {},
    )


if __name__ == "__main__":
    main()
