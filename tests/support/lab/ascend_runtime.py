# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Huawei's ascend-docker-runtime on a node of the lab, simulated or upstream's: as its own installer sets it up, and its package."""

from __future__ import annotations

import hashlib
import os
import pathlib
from collections.abc import Mapping
from typing import Any

from support.host import runtime_packages
from support.lab.lab import Lab
from support.paths import CHECKOUT

HOME = "/usr/local/Ascend/Ascend-Docker-Runtime"
PROGRAM = f"{HOME}/ascend-docker-runtime"
BASE_LIST = "/etc/ascend-docker-runtime.d/base.list"
CONFIG = "/etc/containerd/config.toml"
KEPT = "/var/tmp/config.toml.before"

_FILES = f"""
set -e
mkdir -p {HOME} /etc/ascend-docker-runtime.d
for name in runtime hook cli; do
    install -m 550 /var/tmp/ascend-docker-$name {HOME}/ascend-docker-$name
    rm /var/tmp/ascend-docker-$name
done
printf '%s\\n' /usr/local/Ascend/driver/lib64 /usr/local/Ascend/driver/include /usr/local/dcmi /usr/local/bin/npu-smi \\
    /var/queue_schedule >{BASE_LIST}
# Upstream's follows links to runc, and the node's runc knows by its name what it is.
if [ -L /usr/local/sbin/runc ]; then
    program=$(readlink -f /usr/local/sbin/runc)
    cp --remove-destination "$program" /usr/local/sbin/runc
fi
"""

# For both formats of containerd's configuration.
_REGISTER = f"""
set -e
cp -a {CONFIG} {KEPT}
sed -i 's/default_runtime_name = .runc./default_runtime_name = "ascend"/' {CONFIG}
section=$(sed -n 's/^ *\\[\\(plugins.*\\.containerd\\.runtimes\\.\\)runc\\]$/\\1/p' {CONFIG})
cat >>{CONFIG} <<END

[${{section}}ascend]
  runtime_type = "io.containerd.runc.v2"

  [${{section}}ascend.options]
    SystemdCgroup = false
    BinaryName = "{PROGRAM}"
END
"""


def program_of(name: str) -> pathlib.Path:
    """The program: one and the same for all names if it is simulated."""
    given = os.environ.get("NPU_ASCEND_DOCKER_RUNTIME")
    simulated = CHECKOUT / "lab" / "sim" / "ascend-docker-runtime"
    upstream = pathlib.Path(given or "/") / name
    return upstream if given and upstream.exists() else simulated


class Package:
    """Makes packages (.run) in a directory. ``variables``: those of each host that is to get one."""

    def __init__(self, directory: pathlib.Path, variables: Mapping[str, Any]) -> None:
        self._directory, self._variables = directory, variables
        self._made: dict[tuple[str, bytes | None], dict[str, Any]] = {}

    def __call__(self, version: str, program: bytes | None = None) -> dict[str, Any]:
        """The variables of a host; ``program``: instead of each of the runtime's."""
        key = (version, program)
        if key not in self._made:
            self._made[key] = self._make(version, program)
        return self._made[key]

    def _make(self, version: str, program: bytes | None) -> dict[str, Any]:
        directory = self._directory / str(len(self._made))
        directory.mkdir()
        files = runtime_packages.members(version)
        for name in runtime_packages.PROGRAMS:
            files[name] = program_of(name).read_bytes() if program is None else program
        path = runtime_packages.write(directory, version, files)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        return dict(self._variables, npu_runtime_package=str(path), npu_runtime_package_sha256=digest)


class AscendRuntime:
    """The runtime on one node. NPU_ASCEND_DOCKER_RUNTIME names a directory with upstream's three programs."""

    def __init__(self, lab: Lab, node: str) -> None:
        self.lab, self.node = lab, node

    def install(self) -> None:
        """Its programs and its list; containerd does not know of it."""
        for name in ("runtime", "hook", "cli"):
            self.lab.copy(program_of(f"ascend-docker-{name}"), self.node, f"/var/tmp/ascend-docker-{name}")
        self.lab.ssh(self.node, _FILES)

    def register(self) -> None:
        """As containerd's default runtime, which takes effect with a restart."""
        self.lab.ssh(self.node, _REGISTER)

    def restart_containerd(self) -> None:
        self.lab.ssh(self.node, "systemctl restart containerd")

    def remove(self) -> None:
        self.lab.ssh(
            self.node,
            f"[ ! -e {KEPT} ] || mv {KEPT} {CONFIG}; rm -rf {HOME} /etc/ascend-docker-runtime.d /var/log/ascend-docker-runtime;"
            " systemctl restart containerd",
        )
