#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ascend_docker_runtime_package
short_description: Install Huawei's Ascend Docker Runtime from its package
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Installs C(ascend-docker-runtime) of one of Huawei's packages (C(.run)) in C(/usr/local/Ascend/Ascend-Docker-Runtime), and makes
    it the default runtime of the host's containerd. Its installer is never run; its programs are run in a trial first.
  - The controller downloads the package, verifies its checksum, and sends it to hosts that lack it. The host verifies it again.
  - Before containerd uses the runtime, it must create a container with a chip. After the restart of containerd, its CRI must
    respond with the runtime as the default one. Otherwise everything is as before, and the module fails.
  - Another package takes the place of the installed one in one step, and containerd is not restarted. Containers go on running.
  - Fails, and changes nothing, if the runtime was installed in another way, if containerd's default runtime is not runc, or if
    the configuration of containerd is generated, as with k3s, RKE2, k0s and MicroK8s.
  - Pods keep running while containerd restarts. Use M(npuops.ascend.ascend_docker_runtime) to have the runtime used.
extends_documentation_fragment:
  - npuops.ascend.attributes
  - npuops.ascend.attributes.host
  - npuops.ascend.registry
attributes:
  check_mode:
    support: full
    details:
      - The package is not downloaded. Its version is that in its name.
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  state:
    description:
      - V(present) installs the package, or puts it in the place of another one that this module has installed.
      - V(absent) gives containerd its former default runtime back, and removes the files, but only those that this module has
        installed, and only what no container needs any more. RV(left) says what stays, and why.
    type: str
    choices: [present, absent]
    default: present
  package:
    description:
      - The package, C(Ascend-docker-runtime_<version>_linux-<arch>.run), as the URL of a web server (C(https://) or C(http://)), as
        an absolute path on the controller, or as an artifact with exactly one file in a registry (C(oci://)). Required with
        O(state=present).
    type: str
  package_sha256:
    description:
      - The SHA-256 checksum of the package, as 64 hexadecimal digits. Required with O(state=present).
    type: str
  package_username:
    description:
      - User name for the web server of O(package). For a registry, it is O(registry_username).
    type: str
  package_password:
    description:
      - Password for the web server of O(package). It stays on the controller.
    type: str
  package_file:
    description:
      - Where the package is on the host. Set by the module itself.
    type: path
  version_line:
    description:
      - The version line of MindCluster that the package must be of, such as V(26.1). Without it, any is accepted.
    type: str
  force:
    description:
      - With O(state=absent), whether to give containerd its former default runtime back even though containers with chips need this
        one when they start again.
    type: bool
    default: false
  restart:
    description:
      - Whether to restart containerd if its default runtime changes. With V(false), the change takes effect at the next restart.
    type: bool
    default: true
  timeout:
    description:
      - Seconds to wait for containerd's CRI to respond again.
    type: int
    default: 25
  registry_mirror:
    description:
      - Where the artifact in O(package) is pulled from instead of the registry that its name has, as a prefix or as a dictionary of
        such prefixes by registry.
    type: raw
seealso:
  - module: npuops.ascend.ascend_docker_runtime
  - module: npuops.ascend.containerd_cdi
"""

EXAMPLES = r"""
- name: Install the Ascend Docker Runtime
  npuops.ascend.ascend_docker_runtime_package:
    package: https://files.example.com/Ascend-docker-runtime_26.1.0_linux-aarch64.run
    package_sha256: 3f0a7c1e5b9d2468ace013579bdf02468ace13579bdf02468ace13579bdf0246
    version_line: "26.1"

- name: Remove it where it was installed like that
  npuops.ascend.ascend_docker_runtime_package:
    state: absent
"""

RETURN = r"""
msg:
  description: Why something changed, or that no change was necessary; on failure, what is wrong.
  returned: always
  type: str
version:
  description: Version of the runtime that is installed, or would be after a run without check mode. V(none) if there is none.
  returned: success
  type: str
  sample: 26.1.0
restored:
  description: The file of containerd's configuration that was restored because containerd did not respond after the restart.
  returned: failure, if a file was restored
  type: str
unrestored:
  description: The file that still has the other default runtime, because it could not be restored.
  returned: failure, if a file could not be restored
  type: str
would_change:
  description: Whether a run would change something.
  returned: success
  type: bool
needs_package:
  description: Whether the package must be sent to the host first. The module does so by itself.
  returned: success
  type: bool
edited:
  description: The file of containerd's configuration that was changed, or would be in check mode. V(none) if there is none.
  returned: success
  type: str
control_plane:
  description: Whether the unit of containerd also runs the API server.
  returned: success
  type: bool
left:
  description: What was left unchanged although this module installed or changed it, or although it differs from the package's
    file, and why.
  returned: success
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.npuops.ascend.plugins.module_utils._ascend_runtime.engine import Install, Removal
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import cdi_spec
from ansible_collections.npuops.ascend.plugins.module_utils._host import distributions as host_distributions
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._run_package import package_name

_SETTING = "npu_runtime_package"


def main():
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "package": {"type": "str"},
            "package_sha256": {"type": "str"},
            "package_username": {"type": "str"},
            "package_password": {"type": "str", "no_log": True},
            "package_file": {"type": "path"},
            "version_line": {"type": "str"},
            "force": {"type": "bool", "default": False},
            "restart": {"type": "bool", "default": True},
            "timeout": {"type": "int", "default": 25},
            "registry_mirror": {"type": "raw"},
            "registry_username": {"type": "str"},
            "registry_password": {"type": "str", "no_log": True},
            "registry_plain_http": {"type": "bool", "default": False},
            "registry_ca_file": {"type": "path"},
        },
        required_if=[("state", "present", ["package", "package_sha256"])],
        supports_check_mode=True,
    )
    try:
        (install if module.params["state"] == "present" else remove)(module)
    except NpuError as exc:
        module.fail_json(msg=exc.message, **exc.details)


def install(module):
    params = module.params
    if not cdi_spec.look().chips:
        finish(module, False, "there are no chips on this host", None)
    digest = package_name.digest(params["package_sha256"], _SETTING)
    change = Install(params["package"], digest, params["package_file"], params["version_line"] or "", params["timeout"])
    reason = change.examine()
    changed = change.would_change(params["restart"])
    diff, edited = change.diff(), change.edit
    needed = change.files_differ and not params["package_file"]
    if changed and not module.check_mode and not needed:
        change.apply(params["restart"])
    finish(
        module,
        changed,
        reason or "the Ascend Docker Runtime %s is installed" % change.version,
        change.version,
        needs_package=needed,
        edited=edited,
        control_plane=host_distributions.restarts_control_plane(change.daemon.unit),
        left=change.notes,
        diff=diff,
    )


def remove(module):
    params = module.params
    change = Removal(params["timeout"])
    reason = change.examine(params["force"])
    changed = change.would_change(params["restart"])
    diff, edited = change.diff(), change.edit
    version = change.installed.version if change.installed else None
    if changed and not module.check_mode:
        change.apply(params["restart"])
    if change.kept:
        module.warn(change.kept)
    finish(
        module,
        changed,
        reason or change.kept or "npuops.ascend has not installed the Ascend Docker Runtime",
        version if change.kept else None,
        edited=edited,
        control_plane=host_distributions.restarts_control_plane(change.daemon.unit) if change.daemon else False,
        left=[change.kept] if change.kept else [],
        diff=diff,
    )


def finish(module, changed, msg, version, needs_package=False, edited=None, control_plane=False, left=(), diff=()):
    module.exit_json(
        changed=changed,
        msg=msg,
        version=version,
        would_change=changed,
        needs_package=needs_package,
        edited=edited,
        control_plane=control_plane,
        left=list(left),
        diff=list(diff),
    )


if __name__ == "__main__":
    main()
