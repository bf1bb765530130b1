#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_cdi_spec
short_description: Manage the CDI spec of a host's NPUs
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Writes C(/etc/cdi/huawei.com-npu.json), from which the container runtime learns what a container with the CDI device
    C(huawei.com/npu=N) gets. That is C(/dev/davinciN), the device nodes that all chips share, the driver tree (read-only, at
    C(/usr/local/Ascend/driver)) and C(npu-smi).
  - The spec has one device per chip, named by its number, and the device C(all).
  - Paths in the spec go through the link C(driver) below O(root), and the runtime determines the device numbers. So neither another
    driver release nor a reboot changes the file.
  - Removes the file on a host without chips.
  - Fails if another file describes devices of the kind C(huawei.com/npu), because containerd does not resolve a device that two
    files describe.
extends_documentation_fragment:
  - npuops.ascend.attributes
  - npuops.ascend.attributes.full
  - npuops.ascend.attributes.host
  - npuops.ascend.driver
options:
  state:
    description:
      - V(present) writes the spec for the chips of this host. V(absent) removes it.
    type: str
    choices: [present, absent]
    default: present
  library_path:
    description:
      - How containers find the driver's libraries.
      - V(hook) runs a hook on the host that adds the libraries to the container's loader cache before the container starts.
        C(LD_LIBRARY_PATH) of the image or pod is kept.
      - V(env) sets C(LD_LIBRARY_PATH) in the container. The value from the image is lost.
      - V(none) does neither. The image must set C(LD_LIBRARY_PATH) or have the paths in its loader cache.
    type: str
    choices: [hook, env, none]
    default: hook
  hook_script:
    description:
      - The content of the hook, which is a file of the role P(npuops.ascend.npu_runtime#role).
      - It is written to C(/var/lib/npuops/bin/npu-cdi-hook) before the spec that refers to it, and removed after the spec.
      - Without this option an existing hook is kept. If there is none, O(library_path=hook) fails.
    type: str
  mounts_script:
    description:
      - The content of the script that renews the spec when a file that it mounts, and that not every host has, appears or
        disappears. These are C(/etc/hccn.conf), C(/etc/hccl_rootinfo.json), C(/etc/ascend_install.info) and C(/usr/local/dcmi).
        The script is a file of the role P(npuops.ascend.npu_runtime#role).
      - Without the renewal, a container with a chip does not start after such a file was removed.
      - It is written to C(/var/lib/npuops/bin/npu-cdi-mounts), and run by the unit C(npu-cdi-mounts.path) and at each boot. Both
        are removed with the spec.
      - Without this option an existing script is kept. If there is none, the spec is not renewed.
    type: str
  check_runtime:
    description:
      - Whether to return what is still to be done in the container runtime, as RV(would_change) and RV(settled). The runtime is not
        changed.
      - Fails as M(npuops.ascend.containerd_cdi) does if CDI cannot be enabled in it.
    type: bool
    default: false
  restart:
    description:
      - The option O(npuops.ascend.containerd_cdi#module:restart) of M(npuops.ascend.containerd_cdi). Only with
        O(check_runtime=true).
    type: bool
    default: true
seealso:
  - module: npuops.ascend.containerd_cdi
  - module: npuops.ascend.npu_validate
"""

EXAMPLES = r"""
- name: Write the CDI spec for the chips of this host
  npuops.ascend.npu_cdi_spec:
    hook_script: "{{ lookup('ansible.builtin.file', 'npu-cdi-hook', rstrip=false) }}"

- name: Write the CDI spec for a preinstalled driver, and set LD_LIBRARY_PATH in containers
  npuops.ascend.npu_cdi_spec:
    source: preinstalled
    library_path: env

- name: Remove the CDI spec
  npuops.ascend.npu_cdi_spec:
    state: absent
"""

RETURN = r"""
msg:
  description: Why something changed, or that no change was necessary.
  returned: always
  type: str
devices:
  description: The names of the CDI devices.
  returned: success
  type: list
  elements: str
  sample: [huawei.com/npu=0, huawei.com/npu=1, huawei.com/npu=all]
missing_nodes:
  description: Device nodes that do not exist although their chip is on the PCI bus. Containers with such a chip do not start.
  returned: success
  type: list
  elements: str
  sample: [/dev/davinci3]
root:
  description: The directory whose C(driver) is mounted into containers.
  returned: success
  type: str
runtime_mode:
  description: How containers get their chips, see RV(npuops.ascend.npu_facts#module:npu.runtime.mode).
  returned: success
  type: str
installed_runtime:
  description:
    - Version of the Ascend Docker Runtime that M(npuops.ascend.ascend_docker_runtime_package) has installed on the host, V(none) if
      there is none.
  returned: success
  type: str
would_change:
  description: Whether M(npuops.ascend.containerd_cdi) would change the container runtime.
  returned: O(check_runtime=true)
  type: bool
control_plane:
  description: Whether a restart of containerd also restarts an API server, as with k3s.
  returned: O(check_runtime=true)
  type: bool
settled:
  description: Whether nothing is left to be done. The runtime has CDI enabled, and the host does not use the Ascend Docker Runtime.
  returned: O(check_runtime=true)
  type: bool
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.npuops.ascend.plugins.module_utils._ascend_runtime import installation
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import (
    cdi_mounts,
    cdi_spec,
    containerd_runtime,
    enable_cdi,
    hook_place,
)
from ansible_collections.npuops.ascend.plugins.module_utils._driver import loaded_driver
from ansible_collections.npuops.ascend.plugins.module_utils._host import distributions as host_distributions
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import read_text
from ansible_collections.npuops.ascend.plugins.module_utils._kubelet import kubelet_runtime
from ansible_collections.npuops.ascend.plugins.module_utils._runtime import runtime_mode


def main():
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "source": {"type": "str", "choices": ["image", "package", "preinstalled"], "default": "image"},
            "root": {"type": "path", "default": "/var/lib/Ascend"},
            "library_path": {"type": "str", "choices": ["hook", "env", "none"], "default": "hook"},
            "hook_script": {"type": "str"},
            "mounts_script": {"type": "str"},
            "check_runtime": {"type": "bool", "default": False},
            "restart": {"type": "bool", "default": True},
        },
        supports_check_mode=True,
    )
    try:
        run(module)
    except NpuError as exc:
        module.fail_json(msg=exc.message, **exc.details)


def run(module):
    params = module.params
    root = params["root"]
    if params["source"] == "preinstalled":
        root = loaded_driver.preinstalled_root(root) or root
    host = cdi_spec.look()
    installed = installation.find()
    wanted = None
    if params["state"] == "present" and host.chips:
        wanted = cdi_spec.spec(host, root, params["library_path"])
    script = None
    if wanted and params["library_path"] == "hook":
        script = params["hook_script"] or read_text(cdi_spec.HOOK)
        if script is None:
            raise NpuError(
                "npu_runtime_library_path is hook, but %s does not exist: run npuops.ascend.install, which passes its content as"
                " the option hook_script of this module" % cdi_spec.HOOK
            )
        hook_place.check()
    runtime = {}
    if params["check_runtime"]:
        runtime = check_runtime(params["restart"]) if wanted else {"would_change": False, "control_plane": False}
        runtime["settled"] = not runtime["would_change"] and installed is None and runtime_mode.of_host() != "ascend"
    spec_reason = cdi_spec.reason(cdi_spec.PATH, wanted)
    hook_reason = cdi_spec.hook_reason(script)
    complete = cdi_spec.spec(host, root, params["library_path"], complete=True) if wanted else None
    renewal = cdi_mounts.Renewal(complete, params["mounts_script"])
    renewal_reason = renewal.reason()
    reason = spec_reason or hook_reason or renewal_reason
    before = read_text(cdi_spec.PATH, "")
    if not module.check_mode:
        # The spec must never refer to a hook that does not exist.
        if hook_reason and script is not None:
            cdi_spec.write_hook(script)
        if renewal_reason:
            renewal.apply()
        if spec_reason:
            cdi_spec.write(cdi_spec.PATH, wanted)
        if hook_reason and script is None:
            cdi_spec.write_hook(None)
    missing = ["/dev/davinci%d" % number for number in host.missing] if wanted else []
    if missing and not module.check_mode:
        module.warn(
            "%d chips are on the PCI bus, but %s does not exist: the driver is not loaded, or these chips do not respond. Check"
            " systemctl status npu-driver and dmesg" % (host.chips, ", ".join(missing))
        )
    if wanted and not module.check_mode and not os.path.isdir(root + "/driver"):
        module.warn("%s/driver does not exist: containers with a chip do not start until it does. Run npuops.ascend.install" % root)
    module.exit_json(
        changed=reason is not None,
        msg=reason or ("the CDI spec is up to date" if wanted else "there is no CDI spec, as requested"),
        devices=["%s=%s" % (cdi_spec.KIND, device["name"]) for device in wanted["devices"]] if wanted else [],
        missing_nodes=missing,
        root=root,
        runtime_mode=runtime_mode.of_host(),
        installed_runtime=installed.version if installed else None,
        diff={
            "before_header": cdi_spec.PATH,
            "after_header": cdi_spec.PATH,
            "before": before,
            "after": (cdi_spec.text(wanted) if wanted else "") if spec_reason else before,
        },
        **runtime,
    )


def check_runtime(restart):
    """What containerd_cdi would do."""
    crio = kubelet_runtime.crio()
    if crio:
        if crio.problem():
            raise NpuError(crio.problem())
        return {"would_change": False, "control_plane": False}
    switch = enable_cdi.Switch(containerd_runtime.find())
    switch.examine()
    return {
        "would_change": switch.would_change(restart),
        "control_plane": host_distributions.restarts_control_plane(switch.daemon.unit),
    }


if __name__ == "__main__":
    main()
