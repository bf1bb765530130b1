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
  - Identifies the Ascend chips of a host by their PCI IDs, and gathers the facts on which the installation of a driver depends.
    Does not use the names that C(npu-smi) prints, and runs C(npu-smi) only with O(validate=true) or O(vnpu_layout).
  - RV(npu.problems) lists the problems that must be fixed before a driver can be installed. The module does not fail because of
    them.
extends_documentation_fragment:
  - npuops.ascend.attributes
  - npuops.ascend.attributes.host
  - npuops.ascend.attributes.info_module
options:
  driver_root:
    description:
      - The directory that contains C(driver), or will contain it.
    type: path
    default: /var/lib/Ascend
  driver_source:
    description:
      - Where the driver comes from. With V(preinstalled) the driver is searched for in O(driver_root), C(/var/lib/Ascend) and
        C(/usr/local/Ascend), and where C(/etc/ascend_install.info) says that a package installed it.
      - V(image) and V(package) are drivers that M(npuops.ascend.npu_driver_stage) staged.
    type: str
    choices: [image, package, preinstalled]
    default: image
  upgrade:
    description:
      - Whether to gather the facts on which an upgrade of the driver depends, in RV(npu.upgrade).
    type: bool
    default: false
  validate:
    description:
      - Whether to also run the checks of M(npuops.ascend.npu_validate), with O(npuops.ascend.npu_validate#module:fail=false). This
        is faster than calling both modules.
    type: bool
    default: false
  library_path:
    description:
      - The option of the same name of M(npuops.ascend.npu_validate). Only used with O(validate=true).
    type: str
    choices: [hook, env, none]
    default: hook
  network:
    description:
      - The option of the same name of M(npuops.ascend.npu_validate). Only used with O(validate=true).
    type: str
    choices: ["off", warn, strict]
    default: "off"
  runtime_mode:
    description:
      - How containers are to get their chips. With V(ascend), RV(npu.problems) also says why the host cannot give them by
        C(ascend-docker-runtime).
    type: str
    choices: [cdi, ascend]
    default: cdi
  runtime_package:
    description:
      - With O(runtime_mode=ascend), whether that runtime is to be installed from its package, and so need not be on the host.
    type: bool
    default: false
  vnpu_layout:
    description:
      - The option O(npuops.ascend.npu_vnpu#module:layout) of M(npuops.ascend.npu_vnpu). With it, RV(npu.vnpu_plan) says what would
        have to change, and C(npu-smi) is run.
    type: raw
seealso:
  - module: npuops.ascend.npu_smi_info
  - module: npuops.ascend.npu_driver
  - module: npuops.ascend.npu_validate
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
  description: The facts of the host.
  returned: success
  type: dict
  contains:
    hostname:
      description: Host name, as of C(uname -n).
      type: str
    boot_id:
      description: ID of this boot. It equals C(status.nodeInfo.bootID) of the host's Node.
      type: str
    uptime:
      description: Seconds since the kernel started.
      type: float
    kernel:
      description: The kernel release, as of C(uname -r).
      type: str
    symvers:
      description:
        - The file with the CRCs of the symbols that the running kernel exports, V(none) without one. With it, modules for another
          release of the kernel can be used if their symbols are the same.
      type: str
    next_kernel:
      description:
        - The kernel that the next boot loads by default, according to GRUB's configuration, if it is not the running one.
        - V(none) if it is the running one, or unknown, and on hosts without chips.
      type: dict
      contains:
        kernel:
          description: Its release, as C(uname -r) will print it.
          type: str
        release:
          description: The staged driver release that the next boot selects for that kernel, V(none) without one.
          type: str
        symvers:
          description: The file with the CRCs of the symbols that that kernel exports, V(none) without one.
          type: str
    machine:
      description: The machine, as of C(uname -m).
      type: str
    cgroup_version:
      description: V(2) if the host has cgroup v2, V(1) if it has cgroup v1, which includes the hybrid mode; null without cgroups.
      type: int
    os:
      description: Fields of C(os-release).
      type: dict
      contains:
        id:
          description: The distribution.
          type: str
        version_id:
          description: Version of the distribution.
          type: str
        pretty_name:
          description: Distribution and version in one string.
          type: str
    kernel_key:
      description: The kernel in the tags of driver images.
      type: str
      sample: 6.6.0-145.0.4.135
    os_key:
      description: The operating system in the tags of driver images.
      type: str
      sample: oe2403sp3
    python:
      description: Version of the Python that runs modules on the host.
      type: str
    chips:
      description: The PCI functions of Ascend chips, without virtual functions.
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
          description: Number of chips behind the function, 2 on an Atlas 300I Duo.
          type: int
    chip_count:
      description: Number of chips of the host.
      type: int
    family:
      description: Chip family. V(none) if the host has no chips, or chips of different families.
      type: dict
      contains:
        name:
          description: Huawei's name of the family.
          type: str
          sample: 910B
        key:
          description: The family in the tags of driver images.
          type: str
          sample: 910b
        resource:
          description: The extended resource that pods request.
          type: str
          sample: huawei.com/Ascend910
        accelerator:
          description: The value of the node label C(accelerator).
          type: str
          sample: huawei-Ascend910
    chips_before:
      description: The chips that install has found on the host before.
      type: dict
      contains:
        count:
          description: How many there were, V(0) if none are recorded.
          type: int
        gone:
          description:
            - The PCI addresses of those that are missing, if the host has fewer chips than before. Empty if it is not known which
              ones they are, because the PCI bus was renumbered.
          type: list
          elements: str
        boot:
          description: The time of the last boot of the host.
          type: str
          sample: "2026-11-25T22:00:00Z"
    vnpus:
      description: The virtual NPUs that M(npuops.ascend.npu_vnpu) has recorded, with C(chip), C(id) and C(template).
      type: list
      elements: dict
    vnpus_missing:
      description: Those that it was to create and could not, with C(chip), C(id) and C(template).
      type: list
      elements: dict
    vnpu_record:
      description: Whether M(npuops.ascend.npu_vnpu) has a record on the host; also one of a change that was interrupted.
      type: bool
    chip_numbers:
      description: The numbers N of C(/dev/davinciN). Empty while the driver is not loaded.
      type: list
      elements: int
    vnpu_plan:
      description: What has to change until the host has the virtual NPUs of O(vnpu_layout). V(none) while the driver is not loaded.
      returned: with O(vnpu_layout)
      type: dict
      contains:
        changed:
          description: Whether anything has to change.
          type: bool
        target:
          description: The virtual NPUs that the host is to have, with C(chip), C(id) and C(template).
          type: list
          elements: dict
        destroy:
          description: Those that go.
          type: list
          elements: dict
        create:
          description: Those that come.
          type: list
          elements: dict
        problem:
          description: Why it cannot be done, V(none) if it can. Pods that use the chips are no problem here.
          type: str
    runtime:
      description: The container runtime of the kubelet. Unknown values are V(none).
      type: dict
      contains:
        name:
          description:
            - One of V(containerd), V(k3s), V(rke2), V(k0s), V(microk8s), V(cri-o), V(docker), V(none).
            - The names of Kubernetes distributions stand for the containerd that they bring. V(containerd) is any other.
          type: str
        version:
          description: Version of containerd or CRI-O.
          type: str
        address:
          description: Path of the CRI socket.
          type: str
        ctr:
          description: Command line of containerd's C(ctr), such as C(/usr/bin/ctr) or C(/usr/local/bin/k0s ctr).
          type: str
        config_path:
          description: The configuration file that containerd or CRI-O was started with.
          type: str
        kubelet:
          description: Whether a kubelet runs on the host.
          type: bool
        control_plane:
          description:
            - Whether the systemd unit of the kubelet also runs the API server, as with k3s, RKE2 and k0s on servers. A restart of
              their containerd restarts it, too.
          type: bool
        kubelet_dir:
          description: The kubelet's root directory.
          type: str
          sample: /var/lib/kubelet
        conflict:
          description: Why it is not clear which runtime to use. V(none) unless the kubelets of several distributions run.
          type: str
        ascend_docker_runtime:
          description: The files of containerd and Docker that configure C(ascend-docker-runtime).
          type: list
          elements: str
        mode:
          description:
            - How containers get their chips. V(cdi), or V(ascend) where M(npuops.ascend.ascend_docker_runtime) has said so.
          type: str
    driver:
      description: The driver on the host.
      type: dict
      contains:
        root:
          description: The directory that contains C(driver).
          type: str
        managed:
          description: Whether C(driver) is a link that M(npuops.ascend.npu_driver) created.
          type: bool
        package:
          description: The directory in which a C(.run) package installed C(driver), V(none) without one.
          type: str
        tree:
          description: Path of the driver tree, V(none) if there is none.
          type: str
        version:
          description: Version of the driver tree.
          type: str
        release:
          description: The release that C(driver) points to.
          type: str
        complete:
          description: Whether that release is complete on the host.
          type: bool
        good:
          description: The last confirmed release.
          type: str
        next:
          description: The release that the next boot will try.
          type: str
        loaded:
          description: Whether a driver is loaded.
          type: bool
        loaded_release:
          description: The release that the driver was loaded from.
          type: str
        loaded_version:
          description: Version of the loaded kernel modules, V(none) if they have none.
          type: str
        ready:
          description: What the boot unit published if the driver works in this boot.
          type: dict
        failed:
          description: What the boot unit published if the driver does not work in this boot, with the C(reason).
          type: dict
        problem:
          description: Why no driver can be installed from O(driver_source).
          type: str
    firmware_version:
      description: Version of the firmware package on the host, V(none) without one.
      type: str
    disk:
      description: The file system that contains the driver.
      type: dict
      contains:
        path:
          description: The driver's directory, or the closest parent directory that exists.
          type: str
        free_bytes:
          description: Free space in bytes.
          type: int
    upgrade:
      description: Facts on which an upgrade depends.
      returned: with O(upgrade=true)
      type: dict
      contains:
        generation:
          description: The largest generation of a maintenance that has been at the host, 0 for none.
          type: int
        previous:
          description: The release that was confirmed before C(good).
          type: str
        trial:
          description: The release that this boot tries, if it is not confirmed yet.
          type: str
        staged:
          description:
            - The complete releases on the host by name, each with C(version), C(kernel), C(digest), the range of firmware that it
              declares (C(firmware)), and the firmware package with it (C(brings)), with C(version), the C(drivers) which that
              declares, and the C(sha256) of its file.
          type: dict
        flash:
          description:
            - The last write of firmware into the chips, with C(state) (V(writing), V(written) or V(failed)), C(release),
              C(version), C(boot_id) and C(reason), or V(none).
          type: dict
        holders:
          description:
            - The processes that have a device of a chip open, each with C(pid), C(command), C(device), and C(pod), which is whether
              the process belongs to a pod.
          type: list
          elements: dict
    problems:
      description: Problems that must be fixed before a driver can be installed. Empty on a host without chips.
      type: list
      elements: str
    notes:
      description: Unknown accelerators of Huawei on the PCI bus, which may be newer chips. They are not counted.
      type: list
      elements: str
validation:
  description: What M(npuops.ascend.npu_validate) returns.
  returned: with O(validate=true)
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.npuops.ascend.plugins.module_utils._ascend_runtime import preconditions
from ansible_collections.npuops.ascend.plugins.module_utils._chips.npu_smi import NpuSmi
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import ascend_runtime
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._inspect import facts as host_facts
from ansible_collections.npuops.ascend.plugins.module_utils._inspect import host_validation


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
            "network": {"type": "str", "choices": ["off", "warn", "strict"], "default": "off"},
            "runtime_mode": {"type": "str", "choices": ["cdi", "ascend"], "default": "cdi"},
            "runtime_package": {"type": "bool", "default": False},
            "vnpu_layout": {"type": "raw"},
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
        if params["vnpu_layout"] not in (None, "") and facts["family"]:
            facts["vnpu_plan"] = host_facts.vnpu_facts(params["vnpu_layout"], NpuSmi(facts["driver"]["root"] + "/driver"))
        if params["runtime_mode"] == "ascend" and facts["family"]:
            facts["problems"].extend((preconditions if params["runtime_package"] else ascend_runtime).problems(source))
            if params["vnpu_layout"]:
                facts["problems"].append("npu_vnpu is only supported with npu_runtime_mode: cdi")
        if params["validate"]:
            result["validation"] = host_validation.validate(
                root, source, library_path=params["library_path"], runtime=facts["runtime"], network=params["network"]
            )
    except NpuError as exc:
        module.fail_json(msg=exc.message, **exc.details)
    module.exit_json(changed=False, npu=facts, **result)


if __name__ == "__main__":
    main()
