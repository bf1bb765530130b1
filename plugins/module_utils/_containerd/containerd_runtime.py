# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The containerd of this host's kubelet: find its process and configuration, and restart it."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import time

from ansible_collections.npuops.ascend.plugins.module_utils._containerd import config_files, config_secrets, containerd_config
from ansible_collections.npuops.ascend.plugins.module_utils._host import command as host_command
from ansible_collections.npuops.ascend.plugins.module_utils._host import distributions as host_distributions
from ansible_collections.npuops.ascend.plugins.module_utils._host import process as host_process
from ansible_collections.npuops.ascend.plugins.module_utils._host import systemd
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._kubelet import kubelet_runtime
from ansible_collections.npuops.ascend.plugins.module_utils._runtime import cri

DEFAULT_ADDRESS = "/run/containerd/containerd.sock"
DEFAULT_UNIT = "containerd.service"

_DUMP_SECONDS = 20
_JOURNAL_SECONDS = 20
_MAX_TEXT = 4000


class Daemon:
    """One containerd.

    ``pid``: ID of its main process, None if it does not run. ``binary``: its program. ``config``: its configuration file;
    ``explicit``: whether that is on its command line. ``address``: its socket, None for the one in the configuration. ``unit``: its
    systemd unit, or None. ``kind``: name of its _host.distributions.Distribution. ``state`` and ``root``: the directories of
    that name on its command line, None for those in the configuration.
    """

    def __init__(self, pid, binary, config, explicit, address, unit, kind="containerd", state=None, root=None):
        self.pid = pid
        self.binary = binary
        self.config = config
        self.explicit = explicit
        self.address = address
        self.unit = unit
        self.kind = kind
        self.state = state
        self.root = root

    def dump(self, config=None):
        """The containerd_config.Dump of the file ``config``, by default the daemon's; raises NpuError with its errors."""
        if config or self.explicit or os.path.exists(self.config):
            argv = [self.binary, "-c", config or self.config, "config", "dump"]
        else:
            argv = [self.binary, "config", "default"]  # without a file, 1.7 cannot dump its configuration
        result = host_command.run(argv, _DUMP_SECONDS)
        if result.timed_out:
            raise NpuError("%s config dump did not end within %d s" % (self.binary, _DUMP_SECONDS))
        if result.rc != 0:
            said = (result.stderr.strip() or result.stdout.strip())[-_MAX_TEXT:]
            raise NpuError(self.masked(said) or "config dump failed (%d)" % result.rc)
        try:
            return containerd_config.Dump(result.stdout)
        except ValueError as exc:
            raise NpuError("the output of %s config dump cannot be parsed: %s" % (self.binary, exc)) from None

    def masked(self, text):
        """``text``, which containerd printed, without the secrets of its configuration."""
        return config_secrets.mask(text, containerd_config.texts(self.config))

    def version(self):
        """The version that the program prints, or None."""
        result = host_command.run([self.binary, "--version"], _DUMP_SECONDS)
        match = re.search(r"\bv?([0-9]+\.[0-9]+\.[0-9]+\S*)", result.stdout)
        return match.group(1) if match else None


def find(fs="", runtime=None):
    """The Daemon of the kubelet; raises NpuError, with what to do, if the host has another runtime or none.

    ``runtime``: of kubelet_runtime.runtime_facts, if they are known.
    """
    runtime = runtime or kubelet_runtime.runtime_facts(fs)
    if runtime["conflict"]:
        raise NpuError(runtime["conflict"], runtime=runtime)
    if runtime["name"] == "cri-o":
        raise NpuError(
            "The kubelet of this host uses CRI-O (%s), whose configuration npuops.ascend does not change" % runtime["address"],
            runtime=runtime,
        )
    if runtime["name"] == "docker":
        raise NpuError(
            "This host runs Docker, but no containerd with the CRI plugin, which Kubernetes needs. First join the host to the "
            "cluster with containerd 1.7 or newer as its runtime",
            runtime=runtime,
        )
    process = host_process.containerd(runtime["address"] or DEFAULT_ADDRESS, fs)
    embedding = runtime["name"] in [one.name for one in host_distributions.EMBEDDING]
    daemon = _of(process, runtime, fs) if process else None if embedding else _installed(fs)
    if daemon is None and embedding:
        raise NpuError(
            "The containerd of %s does not run on this host: no process listens on %s. Repair it first: systemctl status %s"
            % (
                host_distributions.named(runtime["name"]).title,
                runtime["address"],
                " ".join(host_distributions.named(runtime["name"]).units),
            ),
            runtime=runtime,
        )
    if daemon is None:
        raise NpuError(
            "This host has no containerd: neither a process nor the unit %s. First join the host to the cluster with containerd "
            "1.7 or newer as its runtime" % DEFAULT_UNIT,
            runtime=runtime,
        )
    problem = host_process.unsafe(daemon.binary)
    if problem:
        raise NpuError(
            "Users other than root can change containerd's program %s, so it is not run: %s. Set the owner of the program and the "
            "directories above it to root, without write permission for others, then run again" % (daemon.binary, problem),
            runtime=runtime,
        )
    version = runtime["version"] or ""
    if re.match(r"(0|1\.[0-6])\.", version):
        raise NpuError(
            "containerd %s on this host does not support CDI. Upgrade containerd to 1.7 or newer (its package is often named "
            "containerd.io), then run again" % version,
            runtime=runtime,
        )
    return daemon


def image_places(address=None, fs=""):
    """The directories where the containerd at the socket ``address`` keeps images: its root, and where that is not known, those of
    all distributions that exist."""
    with contextlib.suppress(NpuError, OSError):
        process = host_process.containerd(address or DEFAULT_ADDRESS, fs)
        daemon = _of(process, {"name": None}, fs) if process else None
        root = daemon.root or (None if host_process.unsafe(daemon.binary) else daemon.dump().root) if daemon else None
        if root and os.path.isdir(fs + root):
            return [root]
    return [place for place in host_distributions.STORAGE if os.path.isdir(fs + place)]


def _of(process, runtime, fs):
    """The Daemon of the Process ``process``."""
    config = host_process.option(process.argv, "config", "c")
    return Daemon(
        process.pid,
        fs + (process.program or ""),
        os.path.join(process.directory, config) if config else containerd_config.DEFAULT_PATH,
        bool(config),
        host_process.option(process.argv, "address", "a"),
        _unit(process.cgroup),
        runtime["name"] if host_distributions.named(runtime["name"]) else "containerd",
        host_process.option(process.argv, "state"),
        host_process.option(process.argv, "root"),
    )


def _installed(fs):
    """The Daemon of containerd.service if it is installed but not running, or None."""
    properties = systemd.show(DEFAULT_UNIT, "LoadState", "ExecStart") if not fs else {}
    match = re.search(r"argv\[\]=(.*?) ;", properties.get("ExecStart", ""))
    if properties.get("LoadState") != "loaded" or not match:
        return None
    argv = match.group(1).split()
    config = host_process.option(argv, "config", "c")
    return Daemon(
        None,
        argv[0],
        config or containerd_config.DEFAULT_PATH,
        bool(config),
        host_process.option(argv, "address", "a"),
        DEFAULT_UNIT,
        state=host_process.option(argv, "state"),
        root=host_process.option(argv, "root"),
    )


def _unit(cgroup):
    """The .service in the systemd hierarchy of /proc/PID/cgroup, or None."""
    for line in cgroup.splitlines():
        if line.startswith("0::") or ":name=systemd:" in line:
            services = [part for part in line.split("/") if part.endswith(".service")]
            if services:
                return services[-1]
    return None


def check_restartable(daemon):
    """Raise NpuError unless a restart of the daemon does not affect running pods."""
    if daemon.unit is None:
        raise NpuError(
            "containerd (process %s) does not run as a systemd service, so npuops.ascend cannot restart it. Restart it manually, "
            "then run again" % daemon.pid
        )
    mode = systemd.show(daemon.unit, "KillMode").get("KillMode")
    if mode != "process":
        raise NpuError(
            "%s has KillMode=%s: a restart would stop all pods on this host. Set KillMode=process (systemctl edit %s), or set "
            "npu_runtime_restart=false and restart it manually when the host is drained"
            % (daemon.unit, mode or "unknown", daemon.unit)
        )


def dump_with(daemon, files, edit):
    """The Dump that the ``daemon`` makes of a copy of its ``files`` with ``edit``; raises NpuError with its errors."""
    with tempfile.TemporaryDirectory(prefix="npuops-", dir=config_files.private_place()) as directory:
        return daemon.dump(containerd_config.write_candidate(directory, files, edit))


def broken_before(daemon, said):
    """The NpuError for a ``daemon`` that does not come back although nothing was changed; ``said``: what it reports."""
    return NpuError(
        "containerd's CRI does not respond after a restart of %s. This run did not change its configuration. containerd "
        "reports:\n%s" % (daemon.unit, said)
    )


def restart(daemon, address, timeout):
    """Restart the daemon; the _runtime.cri.CriStatus when its CRI is ready. Raises NpuError after ``timeout`` seconds."""
    deadline = time.monotonic() + timeout
    systemd.forget_failures(daemon.unit)
    started = time.time()
    result = host_command.run(["systemctl", "restart", daemon.unit], timeout)
    problem = "systemctl restart %s did not end within %d s" % (daemon.unit, timeout)
    if not result.timed_out:
        problem = result.text
        while result.rc == 0:
            try:
                status = cri.status(address, timeout=max(0.5, min(5, deadline - time.monotonic())))
                if status.ready:
                    return status
                problem = "its CRI is not ready"
            except cri.CriError as exc:
                problem = str(exc)
            if time.monotonic() > deadline:
                break
            time.sleep(0.1)
    raise NpuError(daemon.masked("\n".join(part for part in (problem, journal(daemon.unit, started)) if part)))


def journal(unit, since):
    """The last warnings and errors of ``unit`` in the journal since the time ``since`` (seconds), as text."""
    argv = ["journalctl", "-u", unit, "--since", "@%d" % since, "-n", "200", "-o", "cat", "--no-pager", "-q"]
    try:
        host_command.run(["journalctl", "--sync"], _JOURNAL_SECONDS)
        result = host_command.run(argv, _JOURNAL_SECONDS)
    except FileNotFoundError:
        return ""
    # Nothing else, because at level info, containerd logs its whole configuration including registry passwords.
    loud = re.compile(r'level"?[=:]"?(warn|error|fatal|panic)|\bpanic:|Failed|failed|exited')
    lines = [line[:400] for line in result.stdout.splitlines() if loud.search(line) and "with config" not in line]
    return "\n".join(lines[-12:])
