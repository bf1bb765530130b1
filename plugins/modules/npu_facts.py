#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_facts
short_description: Gather facts about an NPU host
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Identifies the Ascend chips of a host by their PCI IDs, and gathers what decides whether and how a driver can be installed
    on it. Names that C(npu-smi) prints are not used, and C(npu-smi) is called with O(validate) only.
  - RV(npu.problems) lists what must be fixed before an installation, as sentences. The module does not
    fail because of it.
extends_documentation_fragment:
  - npuops.ascend.attributes
  - npuops.ascend.attributes.host
  - npuops.ascend.attributes.info_module
options:
  driver_root:
    description:
      - The directory below which the driver tree C(driver) is or will be.
    type: path
    default: /var/lib/Ascend
  driver_source:
    description:
      - Where the driver comes from. With V(preinstalled) the tree is looked for in O(driver_root), then in
        C(/var/lib/Ascend) and C(/usr/local/Ascend).
    type: str
    choices: [image, package, preinstalled]
    default: image
  upgrade:
    description:
      - Also gather what an upgrade of the driver depends on, RV(npu.upgrade).
    type: bool
    default: false
  validate:
    description:
      - Also check the host as M(npuops.ascend.npu_validate) does with O(npuops.ascend.npu_validate#module:fail=false), which is
        quicker than both modules one after the other.
    type: bool
    default: false
  library_path:
    description:
      - As for M(npuops.ascend.npu_validate); counts with O(validate) only.
    type: str
    choices: [hook, env, none]
    default: hook
seealso:
  - module: npuops.ascend.npu_smi_info
  - module: npuops.ascend.npu_driver
"""

EXAMPLES = r"""
- name: Gather facts from the host
  npuops.ascend.npu_facts:
  register: host

- name: Show the facts
  ansible.builtin.debug:
    msg: "{{ host.npu.chip_count }} chips, {{ host.npu.kernel_key }}, {{ host.npu.problems }}"
"""

RETURN = r"""
npu:
  description: The host.
  returned: always
  type: dict
  contains:
    hostname:
      description: The kernel's name of the host.
      type: str
    boot_id:
      description: The kernel's ID of this boot; the same as C(status.nodeInfo.bootID) of its Node.
      type: str
    uptime:
      description: Seconds since the kernel started.
      type: float
    kernel:
      description: The kernel release, as of C(uname -r).
      type: str
    machine:
      description: The machine, as of C(uname -m).
      type: str
    os:
      description: What C(os-release) says.
      type: dict
      contains:
        id:
          description: The distribution.
          type: str
        version_id:
          description: Its version.
          type: str
        pretty_name:
          description: Distribution and version as one string.
          type: str
    kernel_key:
      description: The kernel's word in the tag of a driver image.
      type: str
      sample: 6.6.0-145.0.4.135
    os_key:
      description: The operating system's word in the tag of a driver image.
      type: str
      sample: oe2403sp3
    python:
      description: The Python that runs modules there.
      type: str
    chips:
      description: The PCI functions that are Ascend chips, without virtual functions.
      type: list
      elements: dict
      contains:
        pci_address:
          description: The PCI address.
          type: str
          sample: "0000:c1:00.0"
        device_id:
          description: The PCI device ID.
          type: str
          sample: d802
        subsystem_device_id:
          description: The PCI subsystem device ID.
          type: str
        chips:
          description: How many chips are behind the function; 2 on an Atlas 300I Duo.
          type: int
    chip_count:
      description: How many chips the host has.
      type: int
    family:
      description: The chips' family. V(none) without chips and with chips of two families.
      type: dict
      contains:
        name:
          description: Huawei's name.
          type: str
          sample: 910B
        key:
          description: The word in the tag of a driver image.
          type: str
          sample: 910b
        resource:
          description: The resource that pods ask for.
          type: str
          sample: huawei.com/Ascend910
        accelerator:
          description: The value of the node label C(accelerator).
          type: str
          sample: huawei-Ascend910
    runtime:
      description: The container runtime that the kubelet uses; what is unknown is V(none).
      type: dict
      contains:
        name:
          description: One of V(containerd), V(k3s), V(rke2), V(cri-o), V(docker), V(none).
          type: str
        version:
          description: The version of containerd.
          type: str
        address:
          description: The socket.
          type: str
        ctr:
          description: The path of containerd's command C(ctr).
          type: str
        config_path:
          description: The configuration file containerd was started with.
          type: str
    driver:
      description: The driver on the host.
      type: dict
      contains:
        root:
          description: The directory with C(driver) in it.
          type: str
        managed:
          description: Whether C(driver) is a link of M(npuops.ascend.npu_driver).
          type: bool
        package:
          description: The directory below which a C(.run) package installed a driver.
          type: str
        tree:
          description: The driver tree, if there is one.
          type: str
        version:
          description: The version of that tree.
          type: str
        release:
          description: The release that C(driver) names.
          type: str
        complete:
          description: Whether that release is on the host as it was staged.
          type: bool
        good:
          description: The release that validated last.
          type: str
        next:
          description: The release that the next boot will try.
          type: str
        loaded:
          description: Whether a driver is loaded.
          type: bool
        loaded_release:
          description: The release it was loaded from.
          type: str
        loaded_version:
          description: The version the loaded modules tell, if they do.
          type: str
        ready:
          description: What the boot unit published when the driver worked in this boot.
          type: dict
        failed:
          description: What the boot unit published when it did not, with its C(reason).
          type: dict
        problem:
          description: Why no driver can be installed from O(driver_source).
          type: str
    firmware_version:
      description: The version of the firmware package on the host, if there is one.
      type: str
    disk:
      description: The file system of the driver.
      type: dict
      contains:
        path:
          description: The nearest directory that exists.
          type: str
        free_bytes:
          description: What is free there.
          type: int
    upgrade:
      description: What an upgrade depends on.
      returned: with O(upgrade=true)
      type: dict
      contains:
        previous:
          description: The release that validated before the one that did last.
          type: str
        trial:
          description: The release that this boot tries and that nobody has confirmed.
          type: str
        staged:
          description: The releases that are complete on the host, each with version, kernel, digest and the range of firmware
            that it declares.
          type: dict
        holders:
          description: The processes that have a chip open, each with pid, command, device, and pod, whether it is a pod's.
          type: list
          elements: dict
    problems:
      description: What somebody must repair before a driver can be installed. Empty on a host without chips.
      type: list
      elements: str
validation:
  description: What M(npuops.ascend.npu_validate) returns.
  returned: with O(validate=true)
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.npuops.ascend.plugins.module_utils._host import checks as host_checks
from ansible_collections.npuops.ascend.plugins.module_utils._host import facts as host_facts
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError


def main():
    module = AnsibleModule(
        argument_spec={
            "driver_root": {"type": "path", "default": "/var/lib/Ascend"},
            "driver_source": {
                "type": "str",
                "choices": ["image", "package", "preinstalled"],
                "default": "image",
            },
            "upgrade": {"type": "bool", "default": False},
            "validate": {"type": "bool", "default": False},
            "library_path": {"type": "str", "choices": ["hook", "env", "none"], "default": "hook"},
        },
        supports_check_mode=True,
    )
    params = module.params
    root, source = params["driver_root"].rstrip("/"), params["driver_source"]
    result = {}
    try:
        facts = host_facts.gather(root, source)
        if params["upgrade"]:
            facts["upgrade"] = host_facts.upgrade_facts(root)
        if params["validate"]:
            result["validation"] = host_checks.validate(root, source, library_path=params["library_path"])
    except NpuError as exc:
        module.fail_json(msg=exc.message, **exc.details)
    module.exit_json(changed=False, npu=facts, **result)


if __name__ == "__main__":
    main()
