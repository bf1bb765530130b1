#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_validate
short_description: Verify that a host provides its NPUs to containers
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Checks that everything agrees. The checks cover the chips on the PCI bus, the device nodes, the chips and their health in
    C(npu-smi), the driver versions in C(version.info), in the kernel and in C(npu-smi), the release that the links point to, the
    marker of the boot unit, the firmware range that the driver declares, the owner and mode of the driver's libraries, the CDI spec
    and the files it mounts, and CDI in the configuration of containerd and in the running containerd.
  - Where M(npuops.ascend.ascend_docker_runtime) has said that containers get their chips by C(ascend-docker-runtime), it checks
    that runtime instead of CDI.
  - Optionally checks the network ports of the chips, see O(network).
  - Always runs all checks, so that one run shows everything that is wrong.
  - Chips that C(npu-smi) lists with another health than C(OK) are named in RV(chip_health) and RV(msg), with their fault codes. The
    host is invalid only if all of its chips are C(Critical) or unknown, because it serves with the others.
  - A host without chips is valid without any checks, unless install has recorded chips there. Then the check V(chips) fails.
extends_documentation_fragment:
  - npuops.ascend.attributes
  - npuops.ascend.attributes.info_module
  - npuops.ascend.attributes.host
  - npuops.ascend.driver
options:
  version:
    description:
      - Driver version that is required. By default any version is valid, if it is the same in all places.
    type: str
  library_path:
    description:
      - The value that M(npuops.ascend.npu_cdi_spec) was called with.
    type: str
    choices: [hook, env, none]
    default: hook
  trial:
    description:
      - Whether to accept a trial boot, in which the link C(good) does not point to the active release.
      - Only M(npuops.ascend.npu_maintenance) sets this, because only a maintenance knows that a boot is its trial.
    type: bool
    default: false
  timeout:
    description:
      - Seconds to wait for each call of C(npu-smi).
    type: int
    default: 30
  network:
    description:
      - Whether to check the network ports of 910 chips, as M(npuops.ascend.npu_hccn_info) returns them.
      - With V(warn), the checks of the network ports are in RV(network.checks), what is wrong is in RV(msg), and the host can be
        valid without them. With V(strict), they are among RV(checks), and the host is invalid if one of them fails. With V(off),
        C(hccn_tool) is not run.
      - Hosts without such ports, and hosts on which no port has a link or an optical module, pass.
    type: str
    choices: ["off", warn, strict]
    default: "off"
  fail:
    description:
      - Whether the module fails if a check fails. The message lists the failed checks and what to do.
      - With V(false), the result is in RV(valid).
    type: bool
    default: true
seealso:
  - module: npuops.ascend.npu_facts
  - module: npuops.ascend.npu_hccn_info
  - module: npuops.ascend.npu_cdi_spec
  - module: npuops.ascend.containerd_cdi
  - module: npuops.ascend.ascend_docker_runtime
"""

EXAMPLES = r"""
- name: Validate the host
  npuops.ascend.npu_validate:
    version: 25.5.0

- name: Validate the host without failing
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
  description: The results of all checks, in the order in which to investigate them.
  returned: always
  type: list
  elements: dict
  contains:
    name:
      description:
        - Name of the check, one of V(chips), V(device_nodes), V(device_permissions), V(npu_smi), V(health),
          V(driver_version), V(loaded_driver), V(npu_smi_version), V(release), V(loaded_release), V(driver_ready),
          V(firmware), V(library_ownership), V(virtual_npus), V(cdi_spec), V(cdi_mounts), V(cdi_hook), V(cdi_driver_version),
          V(cdi_files), V(cdi_config), V(cdi_running), or instead of the last seven V(ascend_runtime_config),
          V(ascend_runtime_files), V(ascend_runtime_running). With O(network=strict) also V(network_ports), V(network_config),
          V(network_address), V(network_link), V(network_health), V(network_optical).
        - A check without input is omitted. The check for that input has failed in this case.
      type: str
    ok:
      description: Whether the check passed.
      type: bool
    expected:
      description: The expected state.
      type: str
    seen:
      description: The actual state.
      type: str
    message:
      description: What to do, V(none) if the check passed.
      type: str
  sample:
    - name: cdi_running
      ok: false
      expected: CDI enabled in the running containerd
      seen: "off, cdi_spec_dirs = /etc/cdi, /var/run/cdi"
      message: "containerd has not been restarted since its configuration was changed: run npuops.ascend.install"
chips:
  description: Number of chips of the host.
  returned: always
  type: int
version:
  description: Version of the driver tree, V(none) if there is none.
  returned: always
  type: str
firmware_version:
  description:
    - Firmware version of the chips according to C(npu-smi), with commas if they differ. V(none) unless every chip of the host
      reports it.
  returned: always
  type: str
chip_health:
  description: The health of the chips according to C(npu-smi), in its order. Empty if it does not respond.
  returned: always
  type: list
  elements: dict
  contains:
    npu:
      description: ID of the card.
      type: int
    chip:
      description: Number of the chip on its card.
      type: int
    bus_id:
      description: PCI address.
      type: str
    health:
      description: One of V(OK), V(Warning), V(Alarm), V(Critical), V(UNKNOWN).
      type: str
    codes:
      description:
        - Fault codes of a chip that is not V(OK), the worst first, at most 8. Missing if C(npu-smi) does not say which it has.
        - What they mean is in RV(msg), as far as this version knows it.
      type: list
      elements: str
    codes_left_out:
      description: How many other fault codes the chip has.
      type: int
vnpus:
  description: The virtual NPUs that are recorded on the host.
  returned: always
  type: list
  elements: dict
  contains:
    chip:
      description: Number of the chip, as in C(/dev/davinciN).
      type: int
    id:
      description: Number of the virtual NPU, as in C(/dev/vdavinciN).
      type: int
    template:
      description: Name of its template.
      type: str
network:
  description:
    - What M(npuops.ascend.npu_hccn_info) returns, and the checks of it.
    - V(none) with O(network=off), on a host without chips, and if C(npu-smi) does not respond.
  returned: always
  type: dict
  contains:
    mode:
      description: The value of O(network).
      type: str
    roce:
      description: Whether the chips have RoCE ports.
      type: bool
    reason:
      description: Why they have none, otherwise V(none).
      type: str
    cabled:
      description: Whether any port has a link or an optical module, or could not be read.
      type: bool
    config:
      description: The file C(/etc/hccn.conf).
      type: dict
      contains:
        exists:
          description: Whether the file exists.
          type: bool
        problems:
          description: Values in it that are not valid, or why it cannot be read.
          type: list
          elements: str
    chips:
      description: The ports, as in RV(npuops.ascend.npu_hccn_info#module:chips).
      type: list
      elements: dict
    checks:
      description: The checks of the network ports with O(network=warn), each as in RV(checks). Empty with O(network=strict).
      type: list
      elements: dict
reserved:
  description:
    - For which containers outside of Kubernetes the driver reserves chips, as sentences. Pods that get these chips fail with -8020.
    - They say whether device-share is off or on, if C(npu-smi) tells it.
  returned: always
  type: list
  elements: str
msg:
  description: The failed checks and what to do, or that all checks passed. Then what a person should know.
  returned: always
  type: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._inspect import host_validation


def main():
    module = AnsibleModule(
        argument_spec={
            "source": {"type": "str", "choices": ["image", "package", "preinstalled"], "default": "image"},
            "root": {"type": "path", "default": "/var/lib/Ascend"},
            "version": {"type": "str"},
            "library_path": {"type": "str", "choices": ["hook", "env", "none"], "default": "hook"},
            "trial": {"type": "bool", "default": False},
            "timeout": {"type": "int", "default": 30},
            "network": {"type": "str", "choices": ["off", "warn", "strict"], "default": "off"},
            "fail": {"type": "bool", "default": True},
        },
        supports_check_mode=True,
    )
    params = module.params
    try:
        result = host_validation.validate(
            params["root"],
            params["source"],
            version=params["version"],
            timeout=params["timeout"],
            library_path=params["library_path"],
            trial=params["trial"],
            network=params["network"],
        )
    except NpuError as exc:
        module.fail_json(msg=exc.message, **exc.details)
    if params["fail"] and not result["valid"]:
        module.fail_json(**result)
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
