# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""lab up, lab down, lab status: the order of things."""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from . import (
    addons,
    agent_image,
    binaries,
    collection,
    controlplane,
    daemons,
    machine,
    network,
    nodes,
    outputs,
    pki,
    registry,
    rootfs,
    simulation,
    versions,
)
from .files import write
from .settings import Lab, LabError, current_lab
from .tasks import Graph, Step


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="lab",
        description="A real Kubernetes with simulated NPUs on this machine.",
        epilog="NPU_LAB=0..99 chooses one of several labs side by side; default 0. "
        "NPU_LAB_KUBERNETES and NPU_LAB_CONTAINERD choose the releases of a new one: "
        f"{'; '.join(_known(project) for project in ('kubernetes', 'containerd'))}.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("up", help="start the lab, or repair what is missing of it")
    down_parser = commands.add_parser("down", help="remove the lab; the cache of built things stays")
    down_parser.add_argument("--purge", action="store_true", help="remove the cache and the node images as well")
    commands.add_parser("status", help="show the nodes and what runs")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # end what runs, as with Ctrl-C
    try:
        lab = current_lab()
        if arguments.command == "status":
            return status(lab)
        if os.geteuid() != 0:
            raise LabError("the lab needs root: it makes network namespaces and containers with systemd in them")
        with _alone(lab):
            network.check_owner(lab)
            if arguments.command == "up":
                up(lab)
                return status(lab)
            down(lab, purge=arguments.purge)
            return 0
    except LabError as exc:
        print(f"lab: {exc}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("lab: interrupted; 'lab up' goes on where it was", file=sys.stderr)
        return 130


def _known(project: str) -> str:
    return f"{project} {', '.join(versions.known(project))} (default {versions.default(project)})"


def up(lab: Lab) -> None:
    """Every step leaves alone what is already as it should be, so this is also the repair."""
    _settle_releases(lab)
    print(f"{lab.name}: starting Kubernetes {lab.kubernetes.version}; logs in {lab.logs}", flush=True)
    graph = Graph(lab.logs / "up")

    def add(name: str, function: Callable[..., None], *after: str, **keywords: Any) -> None:
        graph.add(name, functools.partial(_call, function, lab, keywords), after)

    graph.add("packages", machine.install_packages)
    previous: tuple[str, ...] = ()
    for module in binaries.modules(lab):
        add(module.name, binaries.build, *previous, module=module)
        previous = (module.name,)
    add("venv", collection.make_venv, "packages")
    add("simulation", simulation.build_simulation, "packages")
    add("node image", rootfs.make_image, "packages")
    add("certificates", pki.make_pki, "packages")
    add("network", network.make_network, "packages")
    add("control plane", controlplane.start_control_plane, lab.kubernetes.name, "certificates", "network")
    add("registry server", registry.start_registry, "registry", "network")
    for node in lab.nodes:
        add(
            node.name,
            nodes.start_node,
            "node image",
            "simulation",
            "certificates",
            "network",
            lab.kubernetes.name,
            lab.node_containerd(node).name,
            node=node,
        )
    add("files", outputs.write_outputs, "certificates", lab.kubernetes.name)
    add("nodes ready", nodes.wait_ready, "control plane", "files", *(node.name for node in lab.nodes))
    add("images", addons.push_images, "registry server", "simulation")
    add("pull secrets", addons.make_pull_secrets, "control plane", "files")
    add("controller account", addons.grant_access, "pull secrets")
    add("agent image", agent_image.push_agent_image, "registry server", "venv")
    add("driver images", addons.build_driver_images, "registry server", "simulation", "venv")
    graph.run()


def _settle_releases(lab: Lab) -> None:
    """Remember what a new lab is made of; refuse to change that of one that exists, as no step would change all of it."""
    own = {
        "kubernetes": lab.kubernetes.version,
        "containerd": lab.containerd.version,
        **{node.name: lab.node_containerd(node).version for node in lab.nodes},
    }
    recorded = versions.recorded(lab.state)
    if recorded != own and (recorded or (lab.state / "nodes").exists()):
        has = " and ".join(f"{project} {recorded[project]}" for project in ("kubernetes", "containerd") if project in recorded)
        raise LabError(
            f"{lab.name} was made with {has or 'other releases'}, and you want kubernetes {own['kubernetes']} and "
            f"containerd {own['containerd']}: remove it first (lab/lab down)"
        )
    write(lab.state / versions.RECORD, json.dumps(own, indent=2) + "\n")


def _call(function: Callable[..., None], lab: Lab, keywords: dict[str, Any], step: Step) -> None:
    function(lab, step=step, **keywords)


def down(lab: Lab, purge: bool = False) -> None:
    """Remove everything of the lab from the machine; works on half a lab, too."""
    others = [name for name in network.labs() if name != lab.name]
    if purge and others:
        raise LabError(f"--purge would remove the programs that {', '.join(others)} runs: take that down first")
    started = time.monotonic()
    if shutil.which("podman"):
        graph = Graph(lab.logs / "down")
        for node in lab.nodes:
            graph.add(f"remove {node.name}", functools.partial(nodes.remove_node, lab, node))
        graph.run()
    with Step("down", Path(tempfile.gettempdir()) / f"{lab.name}-down.log") as step:
        try:
            daemons.stop_all(lab, step)
            if shutil.which("ip"):
                network.remove_network(lab, step)
            shutil.rmtree(lab.state, ignore_errors=True)
            if purge:
                shutil.rmtree(lab.cache, ignore_errors=True)
                if shutil.which("podman"):
                    rootfs.remove_images(step)
        except LabError as exc:
            raise LabError(f"{exc}\n  whole log: {step.log}") from exc
    step.log.unlink(missing_ok=True)
    print(f"{lab.name}: removed ({time.monotonic() - started:.1f} s)")


def status(lab: Lab) -> int:
    """Print what there is; exit status 0 only if all of it works."""
    if not lab.state.exists():
        print(f"{lab.name}: not there")
        return 1
    seen = nodes.api_nodes(lab)
    row = "{:<8} {:<14} {:<8} {:<10} {:<22} {:<6}".format
    print(row("NODE", "ADDRESS", "READY", "KUBELET", "CONTAINER RUNTIME", "SSH"))
    good = True
    for node in lab.nodes:
        ssh, api = nodes.ssh_answers(lab, node), seen.get(node.name)
        good = good and ssh and api is not None and api.ready
        ready = "absent" if api is None else "yes" if api.ready else "no"
        running = (api.kubelet, api.runtime) if api else ("-", "-")
        print(row(node.name, lab.node_address(node), ready, *running, "yes" if ssh else "no"))
    programs = daemons.running(lab)
    missing = [
        name for name in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "registry") if name not in programs
    ]
    print(f"control plane and registry: {'running' if not missing else 'not running: ' + ', '.join(missing)}")
    print(f"export KUBECONFIG={lab.kubeconfig}   ssh -F {lab.ssh_config} {lab.nodes[0].name}")
    return 0 if good and not missing else 1


@contextlib.contextmanager
def _alone(lab: Lab) -> Iterator[None]:
    """One `up` or `down` at a time per lab. The lock is a name, not a file: it ends with the process."""
    with socket.socket(socket.AF_UNIX) as lock:
        told = False
        while True:
            try:
                lock.bind(f"\0{lab.name}.lock")
                break
            except OSError:
                if not told:
                    print(f"{lab.name}: another 'up' or 'down' is at work; waiting for it", flush=True)
                told = True
                time.sleep(1)
        yield
