# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The container runtime that the kubelet of this host uses."""

from __future__ import annotations

import os
import re

from ansible_collections.npuops.ascend.plugins.module_utils._crio import crio_runtime
from ansible_collections.npuops.ascend.plugins.module_utils._host import command as host_command
from ansible_collections.npuops.ascend.plugins.module_utils._host import distributions
from ansible_collections.npuops.ascend.plugins.module_utils._host import process as host_process
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import read_text
from ansible_collections.npuops.ascend.plugins.module_utils._runtime import ascend_docker_runtime, runtime_mode

_NO_CRIO = (
    "The kubelet of this host uses CRI-O, but driver images are pulled and unpacked by containerd. Install the driver on the host "
    "and set npu_driver_source to preinstalled. If the host has a containerd besides, a task with npuops.ascend.npu_driver_stage "
    "can stage with its option containerd_address"
)

# Sockets of container runtimes, for a kubelet without a configured socket. The one of containerd comes after that of k3s, because
# k3s hosts may also have Docker.
SOCKETS = (
    distributions.K3S.address,
    distributions.PLAIN.address,
    distributions.K0S.address,
    distributions.MICROK8S.address,
    "/var/run/crio/crio.sock",
)


def runtime_facts(fs=""):
    """The container runtime of the kubelet, as {name, version, address, ctr, config_path, kubelet, control_plane, kubelet_dir,
    conflict, ascend_docker_runtime, mode}.

    name: one of _host.distributions, cri-o, docker or none; without a running kubelet, according to the sockets that exist.
    version, config_path: of containerd or CRI-O; the file that it was started with. ctr: the command line of ctr. kubelet: whether
    one runs. control_plane: whether its unit also runs the API server. conflict: why it is not clear which runtime is meant.
    ascend_docker_runtime: the files that configure that. mode: of _runtime.runtime_mode. Unknown values are None.
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
        "kubelet": bool(kubelets),
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
    """The crio_runtime.Daemon of the kubelet; None if it uses another runtime. ``runtime``: of runtime_facts, if they are known.

    Raises NpuError if the socket is not safe to use.
    """
    runtime = runtime or runtime_facts(fs)
    if runtime["conflict"] or runtime["name"] != crio_runtime.NAME:
        return None
    return crio_runtime.Daemon(runtime["address"], fs)


def containerd_access(fs="", no_crio=_NO_CRIO):
    """(address, argv of ctr) of the kubelet's containerd. What is unknown, or with Docker or no runtime all, is None.

    Raises NpuError if the socket is not safe to use, if it is not clear which one is meant, or with CRI-O, which ``no_crio`` says.
    """
    runtime = runtime_facts(fs)
    if runtime["conflict"]:
        raise NpuError(runtime["conflict"], runtime=runtime)
    if runtime["name"] == crio_runtime.NAME:
        raise NpuError(no_crio, runtime=runtime)
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


def crio_problems(runtime, fs):
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
