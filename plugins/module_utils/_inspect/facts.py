# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts about a host that are needed before anything is changed on it.

Only reads files, except for one ``--version`` of the container runtime, one ``systemctl show``, and with CRI-O one question to it.
All paths are below ``fs``, the host's / (empty: this machine's).
"""

from __future__ import annotations

import os
import platform

from ansible_collections.npuops.ascend.plugins.module_utils._chips import (
    chip_losses,
    device_nodes,
    pci,
    reservations,
    symvers,
)
from ansible_collections.npuops.ascend.plugins.module_utils._chips.holders import holders
from ansible_collections.npuops.ascend.plugins.module_utils._crio import crio_runtime
from ansible_collections.npuops.ascend.plugins.module_utils._driver import loaded_driver
from ansible_collections.npuops.ascend.plugins.module_utils._driver import profile as driver_profile
from ansible_collections.npuops.ascend.plugins.module_utils._driver.releases import Layout
from ansible_collections.npuops.ascend.plugins.module_utils._firmware import firmware, flash_state
from ansible_collections.npuops.ascend.plugins.module_utils._host import boot as host_boot
from ansible_collections.npuops.ascend.plugins.module_utils._host import fence as host_fence
from ansible_collections.npuops.ascend.plugins.module_utils._host import kernels as host_kernels
from ansible_collections.npuops.ascend.plugins.module_utils._host import mounts as host_mounts
from ansible_collections.npuops.ascend.plugins.module_utils._host import process as host_process
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._kubelet import kubelet_runtime
from ansible_collections.npuops.ascend.plugins.module_utils._run_package import version_info
from ansible_collections.npuops.ascend.plugins.module_utils._vnpu import vnpu_change, vnpu_layout, vnpu_record


def gather(root=loaded_driver.IMAGE_ROOT, source="image", fs=""):
    """Everything that ``npu_facts`` returns as ``npu``. Does not raise; ``problems`` lists what the user must fix."""
    problems = []
    uname = os.uname()
    os_release = driver_profile.read_os_release(fs)
    kernel_key, os_key = driver_profile.kernel_and_os(uname.release, os_release)
    functions = pci.chip_functions(fs + "/sys/bus/pci/devices")
    family = None
    try:
        family = pci.family_of(functions)
    except NpuError as exc:
        problems.append(exc.message)
    driver = loaded_driver.driver_facts(root, source, fs)
    if functions:
        problems.extend(_unfit(driver["root"], source, fs))
        if driver["problem"]:
            problems.append(driver["problem"])
    runtime = kubelet_runtime.runtime_facts(fs)
    if functions and runtime["conflict"]:
        problems.append(runtime["conflict"])
    elif functions and runtime["name"] == crio_runtime.NAME:
        problems.extend(kubelet_runtime.crio_problems(runtime, fs))
    vnpus = vnpu_record.Record([], [])
    try:
        vnpus = vnpu_record.read(fs)
    except NpuError as exc:
        problems.append(exc.message)
    return {
        "hostname": uname.nodename,
        "boot_id": host_boot.boot_id(fs),
        "uptime": host_boot.uptime(fs),
        "kernel": uname.release,
        "symvers": symvers.place_of(uname.release, fs or "/"),
        "next_kernel": next_kernel(driver["root"], fs) if functions and source != "preinstalled" else None,
        "machine": uname.machine,
        "cgroup_version": cgroup_version(fs),
        "os": {
            "id": os_release.get("ID", ""),
            "version_id": os_release.get("VERSION_ID", ""),
            "pretty_name": os_release.get("PRETTY_NAME", ""),
        },
        "kernel_key": kernel_key,
        "os_key": os_key,
        "python": platform.python_version(),
        "chips": [
            {
                "pci_address": function.address,
                "device_id": function.device,
                "subsystem_device_id": function.subsystem_device,
                "chips": pci.chips_of(function),
            }
            for function in functions
        ],
        "chip_count": pci.chip_count(functions),
        "chips_before": chip_losses.chips_before(functions, fs),
        "family": family._asdict() if family else None,
        "chip_numbers": device_nodes.numbers(fs),
        "vnpus": [vnpu._asdict() for vnpu in vnpus.target],
        "vnpus_missing": [vnpu._asdict() for vnpu in vnpus.missing],
        "vnpu_record": vnpu_record.exists(fs),
        "runtime": runtime,
        "driver": driver,
        "firmware_version": firmware_version(fs),
        "disk": disk_facts(driver["root"], fs),
        "problems": problems,
        "notes": pci.notes(fs + "/sys/bus/pci/devices"),
    }


def upgrade_facts(root=loaded_driver.IMAGE_ROOT, fs=""):
    """The facts that only an upgrade needs, as {generation, previous, trial, staged, holders, flash}.

    generation: the largest of a maintenance that has been at the host, 0 for none. previous: the release that was confirmed before
    good, or None. trial: the release that this boot tries, if it is not confirmed yet, or None. staged: {release: {version,
    kernel, digest, firmware, brings}} of the complete releases; firmware: the range [lowest, highest] that it declares, or None;
    brings: {version, drivers, sha256} of its firmware package, or None. holders: the processes that have a chip open, as {pid,
    command, device, pod}; pod: whether the process belongs to a pod. flash: the last write of firmware into the chips, or None.
    """
    layout = Layout(fs + root)
    staged = {}
    for name in layout.releases():
        manifest = layout.manifest(name)
        try:
            bounds = version_info.firmware_range(version_info.read(layout.tree(name)))
        except NpuError:
            bounds = None
        staged[name] = {key: manifest.get(key) for key in ("version", "kernel", "digest")}
        staged[name]["firmware"] = list(bounds) if bounds else None
        brings = firmware.of_manifest(manifest)
        staged[name]["brings"] = {key: brings[key] for key in ("version", "drivers", "sha256")} if brings else None
    found = [dict(entry, pod=host_process.in_pod(entry["pid"], fs)) for entry in holders(fs)]
    open_in = [entry["pid"] for entry in found]
    # The driver keeps these chips as long as the container exists, whether a process has them open or not.
    for entry in reservations.read(fs):
        if entry["command"] is not None and entry["pid"] not in open_in:
            device = ", ".join("davinci%d" % number for number in entry["chips"])
            found.append(
                {"pid": entry["pid"], "command": entry["command"], "device": device, "pod": host_process.in_pod(entry["pid"], fs)}
            )
    return {
        "generation": host_fence.generation(fs),
        "previous": layout.target("previous"),
        "trial": loaded_driver.trial(fs),
        "staged": staged,
        "holders": found,
        "flash": flash_state.view(host_boot.boot_id(fs), fs),
    }


def vnpu_facts(layout, npu_smi, fs=""):
    """What has to change until the host has the virtual NPUs of ``layout`` (as vnpu_layout.parse takes it), as {changed, target,
    destroy, create, problem}; None while no driver is loaded, or there is no npu-smi: after an uninstall, the modules stay loaded
    until the host reboots.

    problem: why it cannot be done, or None. Pods that use the chips are not a problem.
    """
    if not device_nodes.numbers(fs):
        return None
    try:
        npu_smi.program()
    except NpuError:
        return None
    told = {"changed": False, "target": [], "destroy": [], "create": [], "problem": None}
    try:
        change = vnpu_change.Layout(vnpu_layout.parse(layout), npu_smi, fs=fs)
        plan = change.plan(check_unused=False)
    except NpuError as exc:
        return dict(told, problem=exc.message)
    others = [entry for entry in change.users(plan) if not host_process.in_pod(entry["pid"], fs)]
    if others:
        users = ", ".join("%(command)s (PID %(pid)d, %(device)s)" % entry for entry in others)
        told["problem"] = "processes that belong to no pod use the chips whose virtual NPUs change: %s. Stop them" % users
    told["changed"] = bool(plan.destroy or plan.create or change.record != vnpu_record.Record(plan.target, []))
    for name in ("target", "destroy", "create"):
        told[name] = [vnpu._asdict() for vnpu in getattr(plan, name)]
    return told


def next_kernel(root=loaded_driver.IMAGE_ROOT, fs=""):
    """The kernel that the next boot loads, if it is not the running one; otherwise, or if unknown, None.

    {kernel, release, symvers}. release: the staged driver release that the next boot would select for it, or None. symvers: the
    file with the symbols that it exports, or None.
    """
    kernel = host_kernels.next_kernel(fs)
    if kernel is None or kernel == os.uname().release:
        return None
    layout = Layout(fs + root)
    selected = layout.selected()
    return {
        "kernel": kernel,
        "release": layout.for_kernel(selected, kernel) if selected else None,
        "symvers": symvers.place_of(kernel, fs or "/"),
    }


def cgroup_version(fs=""):
    """2 if the kubelet would use cgroup v2, 1 if v1; None without cgroups. A host with both, in hybrid mode, counts as v1."""
    root = fs + "/sys/fs/cgroup"
    if os.path.exists(root + "/cgroup.controllers"):
        return 2
    return 1 if os.path.isdir(root + "/cpu") or os.path.isdir(root + "/memory") else None


def _unfit(root, source, fs):
    """Yield the reasons why this host cannot run an NPU driver, as sentences."""
    if source != "preinstalled":
        yield from host_mounts.unfit_for_driver(root, fs)
    if not os.path.isdir(fs + "/run/systemd/system"):
        yield "This host does not run systemd, which is required to load the driver at boot"


def disk_facts(root, fs=""):
    """{path, free_bytes} of the file system that contains the driver."""
    place = host_mounts.nearest(fs + root)
    return {"path": place[len(fs) :] or "/", "free_bytes": host_mounts.free_bytes(place)}


def firmware_version(fs=""):
    """The version of the firmware package on the host, or None. Only npu-smi knows the version in the chips."""
    try:
        return version_info.read(fs + loaded_driver.PACKAGE_ROOT + "/firmware")["Version"]
    except NpuError:
        return None
