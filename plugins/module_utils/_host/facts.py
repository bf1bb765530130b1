# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts about a host that are needed before anything is changed on it.

Only reads files, except for one ``--version`` of the container runtime, one ``systemctl show``, and with CRI-O one question to it.
All paths are below ``fs``, the host's / (empty: this machine's).
"""

from __future__ import annotations

import json
import os
import platform
import re
import time

from ansible_collections.npuops.ascend.plugins.module_utils._chips import (
    chip_memory,
    device_nodes,
    kernel_modules,
    pci,
    reservations,
    vnpu_change,
    vnpu_layout,
    vnpu_record,
)
from ansible_collections.npuops.ascend.plugins.module_utils._chips.holders import holders
from ansible_collections.npuops.ascend.plugins.module_utils._crio import runtime as crio_runtime
from ansible_collections.npuops.ascend.plugins.module_utils._driver import firmware, flash_state, version_info
from ansible_collections.npuops.ascend.plugins.module_utils._driver import profile as driver_profile
from ansible_collections.npuops.ascend.plugins.module_utils._driver.releases import Layout
from ansible_collections.npuops.ascend.plugins.module_utils._host import ascend_docker_runtime, distributions, runtime_mode
from ansible_collections.npuops.ascend.plugins.module_utils._host import command as host_command
from ansible_collections.npuops.ascend.plugins.module_utils._host import kernels as host_kernels
from ansible_collections.npuops.ascend.plugins.module_utils._host import mounts as host_mounts
from ansible_collections.npuops.ascend.plugins.module_utils._host import process as host_process
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import read_text

IMAGE_ROOT = "/var/lib/Ascend"
PACKAGE_ROOT = "/usr/local/Ascend"

# Modules that all generations of the driver have.
PROBE_MODULES = ("drv_pcie_host", "drv_pcie_hdc_host")

# Prefixes of the driver's modules, in old and new driver packages.
MODULE_PREFIXES = ("drv_", "asdrv_", "ascend_")

# Sockets of container runtimes, for a kubelet without a configured socket. The one of containerd comes after that of k3s, because
# k3s hosts may also have Docker.
SOCKETS = (
    distributions.K3S.address,
    distributions.PLAIN.address,
    distributions.K0S.address,
    distributions.MICROK8S.address,
    "/var/run/crio/crio.sock",
)


def gather(root=IMAGE_ROOT, source="image", fs=""):
    """Everything that ``npu_facts`` returns as ``npu``. Does not raise; ``problems`` lists what the user must fix."""
    problems = []
    uname = os.uname()
    os_release = read_os_release(fs)
    kernel_key, os_key = driver_profile.kernel_and_os(uname.release, os_release)
    functions = pci.chip_functions(fs + "/sys/bus/pci/devices")
    family = None
    try:
        family = pci.family_of(functions)
    except NpuError as exc:
        problems.append(exc.message)
    driver = driver_facts(root, source, fs)
    if functions:
        problems.extend(_unfit(driver["root"], source, fs))
        if driver["problem"]:
            problems.append(driver["problem"])
    runtime = runtime_facts(fs)
    if functions and runtime["conflict"]:
        problems.append(runtime["conflict"])
    elif functions and runtime["name"] == crio_runtime.NAME:
        problems.extend(_crio_problems(runtime, fs))
    vnpus = vnpu_record.Record([], [])
    try:
        vnpus = vnpu_record.read(fs)
    except NpuError as exc:
        problems.append(exc.message)
    return {
        "hostname": uname.nodename,
        "boot_id": boot_id(fs),
        "uptime": uptime(fs),
        "kernel": uname.release,
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
        "chips_before": chips_before(functions, fs),
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


def upgrade_facts(root=IMAGE_ROOT, fs=""):
    """The facts that only an upgrade needs, as {previous, trial, staged, holders, flash}.

    previous: the release that was confirmed before good, or None. trial: the release that this boot tries, if it is not confirmed
    yet, or None. staged: {release: {version, kernel, digest, firmware, brings}} of the complete releases; firmware: the range
    [lowest, highest] that it declares, or None; brings: {version, drivers, sha256} of its firmware package, or None. holders: the
    processes that have a chip open, as {pid, command, device, pod}; pod: whether the process belongs to a pod. flash: the last
    write of firmware into the chips, or None.
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
    found = [dict(entry, pod=in_pod(entry["pid"], fs)) for entry in holders(fs)]
    open_in = [entry["pid"] for entry in found]
    # The driver keeps these chips as long as the container exists, whether a process has them open or not.
    for entry in reservations.read(fs):
        if entry["command"] is not None and entry["pid"] not in open_in:
            device = ", ".join("davinci%d" % number for number in entry["chips"])
            found.append({"pid": entry["pid"], "command": entry["command"], "device": device, "pod": in_pod(entry["pid"], fs)})
    return {
        "previous": layout.target("previous"),
        "trial": trial(fs),
        "staged": staged,
        "holders": found,
        "flash": flash_state.view(boot_id(fs), fs),
    }


def vnpu_facts(layout, npu_smi, fs=""):
    """What has to change until the host has the virtual NPUs of ``layout`` (as vnpu_layout.parse takes it), as {changed, target,
    destroy, create, problem}; None while no driver is loaded, or none is there, which could be asked: after an uninstall, the
    modules stay loaded until the host reboots.

    problem: why it cannot be done, or None. Pods that use the chips are none.
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
    others = [entry for entry in change.users(plan) if not in_pod(entry["pid"], fs)]
    if others:
        users = ", ".join("%(command)s (PID %(pid)d, %(device)s)" % entry for entry in others)
        told["problem"] = "processes that belong to no pod use the chips whose virtual NPUs change: %s. Stop them" % users
    told["changed"] = bool(plan.destroy or plan.create or change.record != vnpu_record.Record(plan.target, []))
    for name in ("target", "destroy", "create"):
        told[name] = [vnpu._asdict() for vnpu in getattr(plan, name)]
    return told


def next_kernel(root=IMAGE_ROOT, fs=""):
    """The kernel that the next boot loads, if it is not the running one, as {kernel, release}; otherwise, or if unknown, None.

    release: the staged driver release that the next boot would select for it, or None.
    """
    kernel = host_kernels.next_kernel(fs)
    if kernel is None or kernel == os.uname().release:
        return None
    layout = Layout(fs + root)
    selected = layout.selected()
    return {"kernel": kernel, "release": layout.for_kernel(selected, kernel) if selected else None}


def trial(fs=""):
    """The release that npu-driver-select recorded as the trial of this boot, or None."""
    try:
        found = json.loads(read_text(fs + "/var/lib/npuops/trial") or "{}")
        return found.get("release") if found.get("boot_id") == boot_id(fs) else None
    except (ValueError, AttributeError):
        return None


def in_pod(pid, fs):
    """Whether the process is in a cgroup of the kubelet."""
    return "kubepods" in (read_text("%s/proc/%d/cgroup" % (fs, pid)) or "")


def uptime(fs=""):
    """Seconds since the kernel started; 0.0 if unknown."""
    return float((read_text(fs + "/proc/uptime") or "0").split()[0])


def chips_before(functions, fs=""):
    """What install has recorded of the chips, as {count, gone, boot}: how many there were, 0 if unknown; the PCI addresses of those
    that are missing among ``functions``; when the host booted (RFC 3339)."""
    try:
        remembered = chip_memory.read(fs + chip_memory.PATH)
    except OSError:
        remembered = {}
    return {
        "count": sum(remembered.values()),
        "gone": chip_memory.gone(remembered, chip_memory.of(functions)),
        "boot": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - uptime(fs))),
    }


def cgroup_version(fs=""):
    """2 if the kubelet would use cgroup v2, 1 if v1; None without cgroups. A host with both, in hybrid mode, counts as v1."""
    root = fs + "/sys/fs/cgroup"
    if os.path.exists(root + "/cgroup.controllers"):
        return 2
    return 1 if os.path.isdir(root + "/cpu") or os.path.isdir(root + "/memory") else None


def boot_id(fs=""):
    """The ID of this boot, as in the Node's nodeInfo.bootID."""
    return (read_text(fs + "/proc/sys/kernel/random/boot_id") or "").strip()


def read_os_release(fs=""):
    """The fields of os-release as a dict; empty if there is no such file."""
    text = read_text(fs + "/etc/os-release")
    if text is None:
        text = read_text(fs + "/usr/lib/os-release", "")
    return driver_profile.parse_os_release(text)


def driver_facts(root=IMAGE_ROOT, source="image", fs=""):
    """The driver as {root, managed, package, tree, version, release, complete, good, next, loaded, loaded_release,
    loaded_version, ready, failed, problem}.

    managed: whether ``driver`` is a link of this collection. complete: whether the release that it points to is complete. package:
    the directory in which a .run package installed a driver, or None. ready, failed: what the boot unit published in this boot, or
    None. problem: why install cannot continue with ``source``, or None.
    """
    layout = Layout(fs + root)
    release = layout.target("driver")
    package = package_root(root, fs)
    if source == "preinstalled":
        root = preinstalled_root(root, fs) or root
    tree = root + "/driver"
    try:
        version = version_info.read(fs + tree)["Version"]
    except NpuError:
        version = None
    modules = kernel_modules.loaded(fs + "/sys/module")
    # A partially loaded driver counts as loaded, because no other driver can replace it in this boot.
    present = [name for name in PROBE_MODULES if name in modules]
    present += sorted(name for name in modules if name.startswith(MODULE_PREFIXES) and name not in present)
    facts = {
        "root": root,
        "managed": release is not None,
        "package": package,
        "tree": tree if version else None,
        "version": version,
        "release": release,
        "complete": release is not None and layout.damage(release) is None,
        "good": layout.target("good"),
        "next": layout.target("next"),
        "loaded": bool(present),
        "loaded_release": (read_text(fs + "/run/npuops/driver-loading") or "").strip() or None if present else None,
        "loaded_version": next((modules[name] for name in present if modules[name]), None),
        "ready": read_marker("driver-ready", fs),
        "failed": read_marker("driver-failed", fs),
    }
    facts["problem"] = _driver_problem(facts, source, fs)
    return facts


def read_marker(name, fs=""):
    """The content of /run/npuops/<name> as a dict; None if it is absent, unreadable or from another boot."""
    try:
        marker = json.loads(read_text("%s/run/npuops/%s" % (fs, name)) or "")
    except ValueError:
        return None
    if not isinstance(marker, dict) or marker.get("boot_id") != boot_id(fs):
        return None
    return marker


def preinstalled_root(root=IMAGE_ROOT, fs=""):
    """The directory that contains a preinstalled ``driver``; None if there is none."""
    for candidate in (root, IMAGE_ROOT, PACKAGE_ROOT, package_root(root, fs)):
        if candidate and os.path.isfile("%s%s/driver/version.info" % (fs, candidate)):
            return candidate
    return None


def package_root(root=IMAGE_ROOT, fs=""):
    """The directory in which a .run package installed a driver that still exists, or None. Ignores this collection's ``root``."""
    info = version_info.parse(read_text(fs + "/etc/ascend_install.info") or "")
    path = info.get("Driver_Install_Path_Param", "").rstrip("/")
    for candidate in (path, PACKAGE_ROOT):
        tree = "%s%s/driver" % (fs, candidate)
        # A link of this collection, or a link to its tree, is not a package.
        if candidate and candidate != root and not os.path.islink(tree) and os.path.isfile(tree + "/version.info"):
            if os.path.realpath(tree) != os.path.realpath("%s%s/driver" % (fs, root)):
                return candidate
    return None


def autoloading_module(fs="", kernel=None):
    """The path of a driver module in /lib/modules, which the host loads automatically, or None."""
    top = "/lib/modules/%s" % (kernel or os.uname().release)
    for directory in ("updates", "updates/dkms", "extra", "weak-updates"):
        try:
            names = os.listdir(fs + top + "/" + directory)
        except OSError:
            continue
        for name in names:
            if kernel_modules.is_module(name) and kernel_modules.module_name(name) in PROBE_MODULES:
                return "%s/%s/%s" % (top, directory, name)
    return None


def _driver_problem(facts, source, fs):
    if source == "preinstalled":
        if not facts["tree"]:
            return (
                "npu_driver_source is preinstalled, but neither %s/driver nor %s/driver contains a driver. Install the driver on "
                "the host, or set npu_driver_source to image" % (IMAGE_ROOT, PACKAGE_ROOT)
            )
        return None
    module = autoloading_module(fs)
    if facts["package"] or module:
        return (
            "The driver on this host was installed by a .run package (%s) and is loaded at boot. Migration from a package to "
            "driver images is not supported yet: set npu_driver_source to preinstalled to use the existing driver, or uninstall "
            "the package and reboot the host" % (facts["package"] + "/driver" if facts["package"] else module)
        )
    # If the release is known, this collection loaded the driver before an uninstall, and can activate it again.
    if facts["loaded"] and not facts["managed"] and not facts["loaded_release"]:
        return (
            "The loaded driver%s was not installed by npuops.ascend. Set npu_driver_source to preinstalled to use it, or remove it "
            "and reboot the host" % (" (version %s)" % facts["loaded_version"] if facts["loaded_version"] else "")
        )
    return None


def _unfit(root, source, fs):
    """Yield the reasons why this host cannot run an NPU driver, as sentences."""
    if source != "preinstalled":
        yield from host_mounts.unfit_for_driver(root, fs)
    if not os.path.isdir(fs + "/run/systemd/system"):
        yield "This host does not run systemd, which is required to load the driver at boot"


def disk_facts(root, fs=""):
    """{path, free_bytes} of the file system that contains the driver."""
    place = host_mounts.nearest(fs + root)
    usage = os.statvfs(place)
    return {"path": place[len(fs) :] or "/", "free_bytes": usage.f_bavail * usage.f_frsize}


def firmware_version(fs=""):
    """The version of the firmware package on the host, or None. Only npu-smi knows the version in the chips."""
    try:
        return version_info.read(fs + PACKAGE_ROOT + "/firmware")["Version"]
    except NpuError:
        return None


def runtime_facts(fs=""):
    """The container runtime of the kubelet, as {name, version, address, ctr, config_path, control_plane, kubelet_dir, conflict,
    ascend_docker_runtime, mode}.

    name: one of _host.distributions, cri-o, docker or none; without a running kubelet, according to the sockets that exist.
    version, config_path: of containerd or CRI-O; the file that it was started with. ctr: the command line of ctr. control_plane:
    whether the unit of the kubelet also runs the API server. conflict: why it is not clear which runtime is meant.
    ascend_docker_runtime: the files that configure that. mode: of _host.runtime_mode. Unknown values are None.
    """
    units = host_process.kubelet_units(fs)
    kubelets = list(host_process.kubelets(units, fs))
    running = distributions.of_units(units)
    only = next(iter(running)) if len(running) == 1 else None
    address = _kubelet_endpoint(kubelets, fs)
    if not address and only and os.path.exists(fs + only.address):
        address = only.address
    address = address or next((path for path in SOCKETS if os.path.exists(fs + path)), None)
    found = {
        "name": _runtime_name(address, fs),
        "version": None,
        "address": address,
        "ctr": None,
        "config_path": None,
        "control_plane": any(distributions.restarts_control_plane(unit) for unit in units),
        "kubelet_dir": _kubelet_dir(kubelets, only),
        "conflict": distributions.conflict(running),
    }
    if distributions.named(found["name"]):
        _add_containerd(found, fs)
    elif found["name"] == crio_runtime.NAME:
        _add_crio(found, fs)
    found["ascend_docker_runtime"] = ascend_docker_runtime.configured(found["config_path"], fs)
    found["mode"] = runtime_mode.of_host(fs)
    return found


def crio(fs="", runtime=None):
    """The _crio.runtime.Daemon of the kubelet; None if it uses another runtime. ``runtime``: of runtime_facts, if they are known.

    Raises NpuError if the socket is not safe to use.
    """
    runtime = runtime or runtime_facts(fs)
    if runtime["conflict"] or runtime["name"] != crio_runtime.NAME:
        return None
    return crio_runtime.Daemon(runtime["address"], fs)


def containerd_access(fs=""):
    """(address, argv of ctr) of the kubelet's containerd. What is unknown, or with Docker or no runtime all, is None.

    Raises NpuError if the socket is not safe to use, if it is not clear which one is meant, or with CRI-O.
    """
    runtime = runtime_facts(fs)
    if runtime["conflict"]:
        raise NpuError(runtime["conflict"], runtime=runtime)
    if runtime["name"] == crio_runtime.NAME:
        raise NpuError(
            "The kubelet of this host uses CRI-O, but driver images are pulled and unpacked by containerd. Install the driver on "
            "the host and set npu_driver_source to preinstalled. If the host has a containerd besides, a task with "
            "npuops.ascend.npu_driver_stage can stage with its option containerd_address",
            runtime=runtime,
        )
    if distributions.named(runtime["name"]) is None:
        return None, None
    address = runtime["address"]
    process = host_process.containerd(address, fs)
    # The kubelet may talk to a proxy, which serves only the CRI.
    if process and process.pid != host_process.peer(fs + address):
        address = host_process.option(process.argv, "address", "a")
    return address, runtime["ctr"].split(" ") if runtime["ctr"] else None


def _runtime_name(address, fs):
    if not address:
        return "docker" if os.path.exists(fs + "/var/run/docker.sock") else "none"
    if "crio" in address:
        return crio_runtime.NAME
    if "docker" in address:
        return "docker"
    return distributions.of_address(address).name


def _add_containerd(found, fs):
    """Add to the facts ``found`` what the process of containerd says."""
    try:
        process = host_process.containerd(found["address"], fs)
    except NpuError:
        return  # the code that uses the runtime reports the error
    if found["name"] == "k3s":
        found["name"] = _k3s_or_rke2(process, fs)
    distribution = distributions.named(found["name"])
    if process:
        program = process.program
    elif distribution is distributions.PLAIN:
        program = _which("containerd", fs)
    else:
        # Their programs are where the distribution keeps them, whatever the PATH has.
        program = distribution.binaries + "/containerd"
    if program and host_process.unsafe(fs + program) is None:
        found["version"] = _version(fs + program)
        found["ctr"] = _ctr(distribution, os.path.dirname(program), fs)
    config = host_process.option(process.argv, "config", "c") if process else None
    found["config_path"] = os.path.join(process.directory, config) if config else distribution.config


def _add_crio(found, fs):
    """Add to the facts ``found`` what the process of CRI-O says."""
    try:
        daemon = crio_runtime.Daemon(found["address"], fs)
    except NpuError:
        return  # the code that uses the runtime reports the error
    program = daemon.process.program if daemon.process else _which("crio", fs)
    if program and host_process.unsafe(fs + program) is None:
        found["version"] = _version(fs + program)
    found["config_path"] = daemon.config or None


def _crio_problems(runtime, fs):
    """Why containers of this CRI-O would not get their chips, as a list of sentences."""
    try:
        problem = crio_runtime.Daemon(runtime["address"], fs).problem()
    except NpuError as exc:
        problem = exc.message
    return [problem] if problem else []


def _k3s_or_rke2(process, fs):
    """They use the same socket."""
    if process:
        return "rke2" if "/rke2/" in (process.program or "") or "/rke2-" in process.cgroup else "k3s"
    return "rke2" if os.path.isdir(fs + "/var/lib/rancher/rke2/agent") else "k3s"


def _ctr(distribution, directory, fs):
    """The command line of ctr: beside containerd, of the distribution, or in the usual places."""
    for argv in ((directory + "/ctr",),) + distribution.ctr:
        if os.access(fs + argv[0], os.X_OK) and host_process.unsafe(fs + argv[0]) is None:
            return " ".join(argv)
    return _which("ctr", fs)


def _kubelet_dir(kubelets, distribution):
    """The kubelet's root directory; ``distribution``: the one whose kubelet runs, or None."""
    for process in kubelets:
        if process.name == "kubelet" or os.path.basename(process.program or "") == "kubelet":
            directory = host_process.option(process.argv, "root-dir")
            if directory:
                return directory
    return (distribution or distributions.PLAIN).kubelet_dir


def _kubelet_endpoint(kubelets, fs):
    """The path of the CRI socket of the first of ``kubelets`` that names one; None if none does."""
    for process in kubelets:
        endpoint = host_process.option(process.argv, "container-runtime-endpoint")
        if not endpoint and process.name == "kubelet":
            path = host_process.option(process.argv, "config") or "/var/lib/kubelet/config.yaml"
            config = read_text(fs + os.path.join(process.directory, path), "")
            match = re.search(r"^\s*[\"']?containerRuntimeEndpoint[\"']?\s*:\s*[\"']?([^\"'\s,}]+)", config, re.MULTILINE)
            endpoint = match.group(1) if match else None
        if endpoint:
            return (endpoint[len("unix://") :] if endpoint.startswith("unix://") else endpoint) or None
    return None


def _which(program, fs, first=None):
    """The path of ``program`` that only root can change, or None; ``first`` is tried before the usual directories."""
    places = ["/usr/local/bin", "/usr/bin", "/usr/local/sbin", "/usr/sbin", "/opt/containerd/bin", "/opt/bin"]
    candidates = [first] if first and first.startswith("/") else []
    for path in candidates + [place + "/" + program for place in places]:
        if os.access(fs + path, os.X_OK) and host_process.unsafe(fs + path) is None:
            return path
    return None


def _version(program):
    """The version that the container runtime ``program`` prints with --version, without v, or None."""
    try:
        result = host_command.run([program, "--version"], 10)
    except OSError:
        return None
    match = re.search(r"\bv?([0-9]+\.[0-9]+\.[0-9]+\S*)", result.stdout)
    return match.group(1) if match else None
