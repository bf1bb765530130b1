# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The containerd that serves this host's kubelet: which process it is, what it runs with, and starting it again."""

from __future__ import annotations

import os
import re
import time

from ansible_collections.npuops.ascend.plugins.module_utils._containerd import config as containerd_config
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import config_secrets, cri
from ansible_collections.npuops.ascend.plugins.module_utils._host import command as host_command
from ansible_collections.npuops.ascend.plugins.module_utils._host import facts as host_facts
from ansible_collections.npuops.ascend.plugins.module_utils._host import process as host_process
from ansible_collections.npuops.ascend.plugins.module_utils._host import systemd
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError

DEFAULT_ADDRESS = "/run/containerd/containerd.sock"
DEFAULT_UNIT = "containerd.service"

_DUMP_SECONDS = 20
_JOURNAL_SECONDS = 20
_MAX_TEXT = 4000
_TEMPLATES = {
    "k3s": "systemctl restart k3s (or k3s-agent)",
    "rke2": "systemctl restart rke2-agent (or rke2-server)",
}


# In a comment, however that begins.
_GENERATED = re.compile(r"^[ \t]*#.*\b(k0s_managed=true|DO NOT (EDIT|MODIFY))", re.MULTILINE)
_GENERATED_PLACES = ("/run/", "/nix/store/")


class Daemon:
    """One containerd.

    ``pid``: of its main process, None when it does not run. ``binary``: the program. ``config``: its configuration
    file; ``explicit``: that was given on its command line. ``address``: its socket, None for what the configuration
    says. ``unit``: the systemd unit it runs in, None when none. ``kind``: containerd, k3s or rke2.
    """

    def __init__(self, pid, binary, config, explicit, address, unit, kind="containerd"):
        self.pid = pid
        self.binary = binary
        self.config = config
        self.explicit = explicit
        self.address = address
        self.unit = unit
        self.kind = kind

    def dump(self, config=None):
        """The _containerd.config.Dump of the file ``config``, by default the daemon's own; NpuError with its errors."""
        if config or self.explicit or os.path.exists(self.config):
            argv = [self.binary, "-c", config or self.config, "config", "dump"]
        else:
            argv = [self.binary, "config", "default"]  # containerd runs without a file, but 1.7 does not dump that
        result = host_command.run(argv, _DUMP_SECONDS)
        if result.timed_out:
            raise NpuError("%s config dump gave no answer within %d s" % (self.binary, _DUMP_SECONDS))
        if result.rc != 0:
            said = (result.stderr.strip() or result.stdout.strip())[-_MAX_TEXT:]
            raise NpuError(self.masked(said) or "config dump failed (%d)" % result.rc)
        try:
            return containerd_config.Dump(result.stdout)
        except ValueError as exc:
            raise NpuError("what %s config dump prints cannot be followed: %s" % (self.binary, exc)) from None

    def masked(self, text):
        """``text``, of containerd, without the secrets of its configuration."""
        return config_secrets.mask(text, containerd_config.texts(self.config))

    def version(self):
        """What the program calls its version, or None."""
        result = host_command.run([self.binary, "--version"], _DUMP_SECONDS)
        match = re.search(r"\bv?([0-9]+\.[0-9]+\.[0-9]+\S*)", result.stdout)
        return match.group(1) if match else None


def find(fs=""):
    """The Daemon that serves the kubelet; NpuError, saying what to do, for a host that has another runtime or none."""
    runtime = host_facts.runtime_facts(fs)
    if runtime["name"] == "cri-o":
        raise NpuError(
            "This host's kubelet uses CRI-O (%s), which npuops.ascend does not configure. CRI-O has CDI on by default "
            "(crio config | grep cdi_spec_dirs), but driver images are pulled through containerd: use containerd 1.7 "
            "or newer on NPU hosts" % runtime["address"],
            runtime=runtime,
        )
    if runtime["name"] == "docker":
        raise NpuError(
            "This host runs Docker without a containerd that serves Kubernetes (the CRI plugin). Join it to the "
            "cluster with containerd 1.7 or newer as its runtime first",
            runtime=runtime,
        )
    process = host_process.containerd(runtime["address"] or DEFAULT_ADDRESS, fs)
    daemon = _of(process, runtime, fs) if process else _installed(fs)
    if daemon is None:
        raise NpuError(
            "There is no containerd on this host: neither a process nor the unit %s. Join it to the cluster with "
            "containerd 1.7 or newer as its runtime first" % DEFAULT_UNIT,
            runtime=runtime,
        )
    problem = host_process.unsafe(daemon.binary)
    if problem:
        raise NpuError(
            "containerd's program %s can be changed by others than root, so it is not run: %s. Let it and the directories "
            "above it belong to root, with no write permission for others, then run again" % (daemon.binary, problem),
            runtime=runtime,
        )
    version = runtime["version"] or ""
    if re.match(r"(0|1\.[0-6])\.", version):
        raise NpuError(
            "containerd %s on this host knows no CDI. Upgrade containerd to 1.7 or newer (its package is often called "
            "containerd.io), then run again" % version,
            runtime=runtime,
        )
    return daemon


def _of(process, runtime, fs):
    """The Daemon that is the Process ``process``."""
    config = host_process.option(process.argv, "config", "c")
    return Daemon(
        process.pid,
        fs + (process.program or ""),
        os.path.join(process.directory, config) if config else containerd_config.DEFAULT_PATH,
        bool(config),
        host_process.option(process.argv, "address", "a"),
        _unit(process.cgroup),
        runtime["name"] if runtime["name"] in _TEMPLATES else "containerd",
    )


def _installed(fs):
    """The Daemon of containerd.service although it does not run, or None."""
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
    )


def _unit(cgroup):
    """The .service in the text of /proc/PID/cgroup, of systemd's own hierarchy; or None."""
    for line in cgroup.splitlines():
        if line.startswith("0::") or ":name=systemd:" in line:
            services = [part for part in line.split("/") if part.endswith(".service")]
            if services:
                return services[-1]
    return None


def generated(daemon, path, text):
    """Why the file ``path`` of the configuration must not be edited: something writes it again. None when an edit stays.

    ``text``: of the file, or None. One that a generated file imports may be an administrator's own, and the other way round.
    """
    lines = "  enable_cdi = true   under   [%s]   in configuration version 2,\n" % containerd_config.V2[1]
    lines += "  the same under   [%s]   in version 3" % containerd_config.V3[1]
    if path == daemon.config and (daemon.kind in _TEMPLATES or "/rancher/" in path):
        kind = "rke2" if "/rke2/" in path else "k3s"
        three = "version = 3" in (text or "")
        template = os.path.join(os.path.dirname(path), "config-v3.toml.tmpl" if three else "config.toml.tmpl")
        return (
            "%s is generated by %s at each start. %s %s, set\n%s\nthere (the section exists already: add the line to "
            "it, TOML allows no second one), then: %s. Releases with containerd 2 have CDI on without any of this"
            % (
                path,
                kind,
                "Edit your template" if os.path.exists(template) else "Copy that file to",
                template,
                lines,
                _TEMPLATES[kind],
            )
        )
    if path == daemon.config and path.startswith("/var/snap/microk8s/"):
        return (
            "%s is generated by MicroK8s. Set\n%s\nin /var/snap/microk8s/current/args/containerd-template.toml, then: "
            "microk8s stop && microk8s start" % (path, lines)
        )
    if _GENERATED.search(text or "") or os.path.realpath(path).startswith(_GENERATED_PLACES) or path.startswith("/run/"):
        return "%s is generated: whatever writes it would undo an edit. Set\n%s\nthere at the source" % (path, lines)
    return None


def check_restartable(daemon):
    """NpuError unless a restart of the daemon leaves running pods alone."""
    if daemon.unit is None:
        raise NpuError(
            "containerd (process %s) does not run as a systemd service, so it cannot be restarted from here. Restart "
            "it as it was started, then run again" % daemon.pid
        )
    mode = systemd.show(daemon.unit, "KillMode").get("KillMode")
    if mode != "process":
        raise NpuError(
            "%s has KillMode=%s: a restart would end every pod on this host. Set KillMode=process (systemctl edit "
            "%s), or restart it yourself when the host is drained; npu_runtime_restart=false leaves that to you"
            % (daemon.unit, mode or "unknown", daemon.unit)
        )


def restart(daemon, address, timeout):
    """Start the daemon again; the _containerd.cri.CriStatus once its CRI is ready, or NpuError after ``timeout`` seconds."""
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
    """The last complaints of ``unit`` in the journal since the time ``since`` (seconds), as text."""
    argv = ["journalctl", "-u", unit, "--since", "@%d" % since, "-n", "200", "-o", "cat", "--no-pager", "-q"]
    try:
        host_command.run(["journalctl", "--sync"], _JOURNAL_SECONDS)
        result = host_command.run(argv, _JOURNAL_SECONDS)
    except FileNotFoundError:
        return ""
    # Not the rest: on level info containerd logs its whole configuration, with registry passwords.
    loud = re.compile(r'level"?[=:]"?(warn|error|fatal|panic)|\bpanic:|Failed|failed|exited')
    lines = [line[:400] for line in result.stdout.splitlines() if loud.search(line) and "with config" not in line]
    return "\n".join(lines[-12:])
