# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a lab is made of: its names, addresses, paths, nodes and releases. Names and addresses come from one number, NPU_LAB."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from . import versions
from .versions import Release

CHECKOUT = Path(__file__).resolve().parents[2]
LAB_SOURCE = CHECKOUT / "lab"

SERVICE_RANGE = "10.96.0.0/16"
API_SERVICE_ADDRESS = "10.96.0.1"
REGISTRY_PORT = 5000
PAUSE_IMAGE = "localhost/pause:lab"
NAMESPACE = "npu-operator"
PULL_SECRET = "lab-registry"
CONTROLLER = "npu-controller"  # the service account of docs/controller-access.yml
# A lab mostly waits, and several share two cores: programs in Go wake one thread instead of a search for work on each core, and
# rather take memory than clean up.
GO_RUNTIME = {"GOMAXPROCS": "1", "GOGC": "400"}


class LabError(Exception):
    """Something a person has to know or repair; shown without a traceback."""


@dataclass(frozen=True)
class Node:
    """One host of the lab."""

    name: str
    host_number: int  # last octet of its address, third octet of its pods' range
    os_release: str  # file below lab/files/os-release
    containerd: str | None = None  # its release, whatever the lab's is
    card: str | None = None  # model of its NPU cards, see simulation.py
    cards: int = 0
    package_manager: bool = True
    immutable: bool = False  # /usr is a squashfs, as on an image-based OS
    python: bool = True


NODES = (
    Node("npu-a", 11, "openeuler-24.03-sp3", card="910B", cards=8, package_manager=False),
    Node("npu-b", 12, "ubuntu-22.04", "1.7", card="910B", cards=8),
    Node(
        "npu-c",
        13,
        "openeuler-24.03-sp3",
        card="310P-duo",
        cards=2,
        package_manager=False,
        immutable=True,
        python=False,
    ),
    Node("cpu-a", 14, "debian-12"),
)


@dataclass(frozen=True)
class Lab:
    """One lab on this machine. Several with different numbers live side by side and share only the cache."""

    number: int
    state: Path
    cache: Path
    kubernetes: Release
    containerd: Release
    nodes: tuple[Node, ...] = field(default=NODES)

    @property
    def name(self) -> str:
        """Prefix of everything the lab owns on the machine: containers, volumes, bridge, network namespaces."""
        return f"npulab{self.number}"

    @property
    def prefix(self) -> str:
        """First two octets: all nodes and pods of the lab live in this /16."""
        return f"10.{100 + self.number}"

    @property
    def address(self) -> str:
        """The machine's address on the lab's bridge; the API server and the registry listen there."""
        return f"{self.prefix}.0.1"

    @property
    def loopback(self) -> str:
        """Address for what only the machine itself may reach (etcd); each lab has its own, so ports never collide."""
        return f"127.{100 + self.number}.0.1"

    @property
    def api_url(self) -> str:
        return f"https://{self.address}:6443"

    @property
    def registry(self) -> str:
        return f"{self.address}:{REGISTRY_PORT}"

    def node_address(self, node: Node) -> str:
        return f"{self.prefix}.0.{node.host_number}"

    def pod_range(self, node: Node) -> str:
        return f"{self.prefix}.{node.host_number}.0/24"

    def container(self, node: Node) -> str:
        """Name of the podman container, of the network namespace and prefix of the volumes of a node."""
        return f"{self.name}-{node.name}"

    def node_containerd(self, node: Node) -> Release:
        return versions.known("containerd")[node.containerd] if node.containerd else self.containerd

    # Where things are in the state directory. The first four are the contract with users and tests.
    @property
    def kubeconfig(self) -> Path:
        return self.state / "kubeconfig"

    @property
    def controller_kubeconfig(self) -> Path:
        """The playbooks', with no more rights than docs/controller-access.yml grants; `kubeconfig` is the administrator's."""
        return self.state / "controller.kubeconfig"

    @property
    def inventory(self) -> Path:
        return self.state / "inventory.yml"

    @property
    def ssh_config(self) -> Path:
        return self.state / "ssh_config"

    @property
    def kubectl(self) -> Path:
        return self.state / "bin" / "kubectl"

    @property
    def pki(self) -> Path:
        return self.state / "pki"

    @property
    def logs(self) -> Path:
        return self.state / "log"


def current_lab() -> Lab:
    """The lab that the environment names: NPU_LAB (0..99), NPU_LAB_STATE (directory), NPU_LAB_CACHE (directory).

    NPU_LAB_KUBERNETES and NPU_LAB_CONTAINERD name the releases. A lab that exists keeps its own unless they name others.
    """
    text = os.environ.get("NPU_LAB", "0")
    if not text.isdigit() or int(text) > 99:
        raise LabError(f"NPU_LAB is '{text}': it must be a number from 0 to 99")
    number = int(text)
    state = os.environ.get("NPU_LAB_STATE") or CHECKOUT / (".lab" if number == 0 else f".lab{number}")
    state = Path(state).resolve()
    cache = os.environ.get("NPU_LAB_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "npuops-lab"
    return Lab(number, state, Path(cache).resolve(), _chosen("kubernetes", state), _chosen("containerd", state))


def _chosen(project: str, state: Path) -> Release:
    variable = f"NPU_LAB_{project.upper()}"
    known = versions.known(project)
    wanted = os.environ.get(variable)
    if wanted and wanted not in known:
        raise LabError(f"{variable} is '{wanted}': the lab knows {', '.join(known)}")
    recorded = versions.recorded(state).get(project, "")
    # Of a version that is no longer known, `up` says so.
    running = next((name for name, release in known.items() if release.version == recorded), None)
    return known[wanted or running or versions.default(project)]
