#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: containerd_cdi
short_description: Enable CDI in the host's container runtime
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Ensures that the containerd of this host's kubelet injects CDI devices and reads CDI specs from C(/etc/cdi). If CDI is disabled,
    pods start without their devices and without an error.
  - Checks both the configuration (C(containerd config dump)) and the running process (its CRI socket). So the next run completes a
    run that was interrupted between the edit and the restart.
  - Edits only the lines for CDI, in the file that already has the CRI section, which is the main configuration file or one of its
    C(imports). Before that file is written, containerd must confirm on a copy that nothing but CDI changes.
  - Keeps the original as C(<name>.npuops-backup) beside the main configuration file. It is kept in C(/var/lib/npuops/containerd)
    if another file is edited, or if containerd would import it.
  - If the CRI does not respond after the restart, the module restores the original file, restarts containerd again, and fails with
    the messages of containerd from both restarts.
  - Restarting containerd does not affect running pods. The module refuses to restart a unit whose C(KillMode) would stop them.
  - Where k3s, RKE2, k0s or MicroK8s generates the configuration, the module edits what it is generated from, so that the edit
    survives restarts and upgrades, and restarts the unit of the distribution. That is C(config.toml.tmpl) with k3s and RKE2, a
    drop-in in C(/etc/k0s/containerd.d) with k0s, and C(containerd-template.toml) with MicroK8s. Their releases with containerd 2
    enable CDI by default, and are left alone.
  - CRI-O has CDI always enabled, so there is nothing to change. The module only checks that it reads specs from C(/etc/cdi), and
    fails with what to do if it does not.
  - Does not support containerd 1.6 and older, Docker without Kubernetes, templates of k3s and RKE2 from another source that
    have template statements, and configuration files that say DO NOT EDIT, or that cannot be replaced. In these cases the module
    changes nothing and fails with a message that says what to do instead.
extends_documentation_fragment:
  - npuops.ascend.attributes
  - npuops.ascend.attributes.host
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
    details:
      - The diff contains only the keys that change, because other lines may contain a registry's password.
  idempotent:
    support: full
options:
  state:
    description:
      - V(present) enables CDI.
      - V(absent) restores the file as it was before V(present). It changes nothing, and RV(left) says why, if CDI was already
        enabled before, if the file was changed since, or if the host has CDI specs of other software.
    type: str
    choices: [present, absent]
    default: present
  restart:
    description:
      - Whether to restart containerd if necessary.
      - With V(false) the file is edited, and RV(restart_required) is V(true) until containerd is restarted. The next call with
        V(true) restarts it, also with O(state=absent).
    type: bool
    default: true
  timeout:
    description:
      - Seconds to wait after a restart until the CRI responds. If the first restart fails, there is a second one.
      - The module waits longer if the unit runs more than containerd, at least 120 seconds with k3s and k0s, 300 seconds with RKE2,
        and 60 seconds with MicroK8s.
    type: int
    default: 25
seealso:
  - module: npuops.ascend.npu_cdi_spec
  - module: npuops.ascend.npu_validate
"""

EXAMPLES = r"""
- name: Enable CDI
  npuops.ascend.containerd_cdi:

- name: Restore the configuration from before
  npuops.ascend.containerd_cdi:
    state: absent

- name: Edit the configuration without restarting containerd
  npuops.ascend.containerd_cdi:
    restart: false
"""

RETURN = r"""
msg:
  description: Why something changed, or that no change was necessary.
  returned: always
  type: str
reason:
  description: Why a change is necessary, or V(none).
  returned: success
  type: str
edited:
  description:
    - The file that was edited, or would be in check mode. V(none) if no file has to be edited.
    - Where a distribution generates RV(config), it is the file that it is generated from.
  returned: success
  type: str
would_change:
  description: The same as C(changed), for tasks that override it with C(changed_when).
  returned: success
  type: bool
config:
  description: The configuration file that containerd or CRI-O was started with.
  returned: success, if the host has a container runtime that can be configured
  type: str
control_plane:
  description: Whether a restart of containerd also restarts the API server on this host, as on servers of k3s, RKE2 and k0s.
  returned: success, if the host has a container runtime that can be configured
  type: bool
restart_required:
  description: Whether containerd must be restarted before its configuration is in effect.
  returned: success
  type: bool
left:
  description:
    - Why CDI stays enabled although this collection enabled it. V(none) if it does not, or if the collection did not enable it.
  returned: success, with O(state=absent)
  type: str
restored:
  description: The file that was restored because containerd did not respond after the restart.
  returned: failure, if a file was restored
  type: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import containerd_runtime, disable_cdi, enable_cdi
from ansible_collections.npuops.ascend.plugins.module_utils._host import distributions as host_distributions
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._kubelet import kubelet_runtime


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
    crio = kubelet_runtime.crio()
    if crio:
        check_crio(module, crio)
    switch = enable_cdi.Switch(containerd_runtime.find(), module.params["timeout"])
    reason = switch.examine()
    changed = switch.would_change(module.params["restart"])
    if changed and not module.check_mode:
        switch.apply(module.params["restart"])
    result = {}
    if switch.edit:
        result["diff"] = {"prepared": switch.edit.diff()}
    module.exit_json(
        changed=changed,
        msg=reason or "CDI is enabled",
        reason=reason,
        would_change=changed,
        edited=switch.edit.path if switch.edit else None,
        config=switch.daemon.config,
        control_plane=host_distributions.restarts_control_plane(switch.daemon.unit),
        restart_required=switch.restart_required,
        **result,
    )


def check_crio(module, daemon):
    problem = daemon.problem()
    if problem:
        raise NpuError(problem)
    module.exit_json(
        changed=False,
        msg="CDI is enabled",
        reason=None,
        would_change=False,
        edited=None,
        config=daemon.config or None,
        control_plane=False,
        restart_required=False,
    )


def revert(module):
    try:
        daemon = containerd_runtime.find()
    except NpuError as exc:
        # A configuration that cannot be edited cannot have been edited.
        module.exit_json(changed=False, msg=exc.message, reason=None, left=None, edited=None, restart_required=False)
    switch = disable_cdi.Revert(daemon, module.params["timeout"])
    reason = switch.examine()
    changed = switch.would_change(module.params["restart"])
    if changed and not module.check_mode:
        switch.apply(module.params["restart"])
    if switch.left:
        module.warn(switch.left)
    module.exit_json(
        changed=changed,
        msg=reason or switch.left or "npuops.ascend did not change containerd's configuration",
        reason=reason,
        would_change=changed,
        left=switch.left,
        edited=switch.edit.path if switch.edit else None,
        config=switch.daemon.config,
        control_plane=host_distributions.restarts_control_plane(switch.daemon.unit),
        restart_required=switch.restart_required,
        diff={"prepared": switch.edit.diff()} if switch.edit else {},
    )


if __name__ == "__main__":
    main()
