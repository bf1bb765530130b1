# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's network: one bridge on the machine, one network namespace per node, all named after the lab.

podman could do this too, but it would switch on forwarding on the machine and add to its firewall. Here nothing outside
the lab's own names changes, the nodes reach each other and the machine, and nothing else. A node's namespace
outlives the node's container, so a reboot of the node finds its address and routes as a real host finds its wiring.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from . import machine
from .settings import Lab, LabError, Node
from .tasks import Step


def namespace(lab: Lab, node: Node) -> Path:
    """What podman joins the node's container to."""
    return Path("/run/netns", lab.container(node))


def check_owner(lab: Lab) -> None:
    """Refuse to touch a lab of the same number that another checkout has started; its bridge says whose it is."""
    owner = Path("/sys/class/net", lab.name, "ifalias")
    if owner.exists() and owner.read_text(encoding="utf-8").strip() not in ("", str(lab.state)):
        raise LabError(
            f"{lab.name} is in use with the state directory {owner.read_text(encoding='utf-8').strip()}: "
            "choose another number with NPU_LAB"
        )


def make_network(lab: Lab, step: Step) -> None:
    """Bridge, namespaces, addresses and routes; what exists is kept."""
    if not _link_exists(lab.name):
        _check_range_is_free(lab)
        step.run("ip", "link", "add", lab.name, "type", "bridge")
    step.run("ip", "link", "set", lab.name, "alias", lab.state)
    machine.raise_limits()  # with the bridge there, no other lab that ends takes itself for the last one
    step.run("ip", "address", "replace", f"{lab.address}/24", "dev", lab.name)
    step.run("ip", "link", "set", lab.name, "up")
    for node in lab.nodes:
        _connect(lab, node, step)
        # The API server calls webhooks and aggregated APIs by pod address.
        step.run("ip", "route", "replace", lab.pod_range(node), "via", lab.node_address(node), "dev", lab.name)
    _let_bridge_through(lab, step, "-A")


def remove_network(lab: Lab, step: Step) -> None:
    for node in lab.nodes:
        if namespace(lab, node).exists():
            step.run("ip", "netns", "delete", lab.container(node))
        if _link_exists(_cable(lab, node)):  # goes with the namespace, but not at once
            step.run("ip", "link", "delete", _cable(lab, node), check=False)
    if _link_exists(lab.name):
        _let_bridge_through(lab, step, "-D")
        step.run("ip", "link", "delete", lab.name)
    if not labs():
        machine.restore_limits()


def labs() -> list[str]:
    """Names of the labs on this machine, those of other checkouts too."""
    return sorted(link.name for link in Path("/sys/class/net").iterdir() if re.fullmatch(r"npulab\d+", link.name))


def _connect(lab: Lab, node: Node, step: Step) -> None:
    name, cable = lab.container(node), _cable(lab, node)
    inside = ("ip", "-n", name)
    if not namespace(lab, node).exists():
        step.run("ip", "netns", "add", name)
    if not _link_exists(cable):
        step.run("ip", "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", name)
    step.run("ip", "link", "set", cable, "master", lab.name, "up")
    step.run(*inside, "link", "set", "lo", "up")
    step.run(*inside, "address", "replace", f"{lab.node_address(node)}/24", "dev", "eth0")
    step.run(*inside, "link", "set", "eth0", "up")
    # A default route, because the kubelet and kube-proxy look for one; the machine forwards nothing for the nodes.
    step.run(*inside, "route", "replace", "default", "via", lab.address)
    for other in lab.nodes:
        if other is not node:
            step.run(*inside, "route", "replace", lab.pod_range(other), "via", lab.node_address(other))
    step.run("ip", "netns", "exec", name, "sysctl", "-q", "-w", "net.ipv4.ip_forward=1")


def _cable(lab: Lab, node: Node) -> str:
    """The machine's end of a node's cable; interface names have at most 15 characters."""
    return f"{lab.name}-{node.host_number}"


def _link_exists(name: str) -> bool:
    return Path("/sys/class/net", name).exists()


def _check_range_is_free(lab: Lab) -> None:
    routes = json.loads(subprocess.run(["ip", "-j", "route"], capture_output=True, text=True, check=True).stdout)
    for route in routes:
        if route["dst"].startswith(f"{lab.prefix}."):
            raise LabError(
                f"{route['dst']} is already in use on this machine (device {route.get('dev')}): "
                "choose another lab number with NPU_LAB"
            )


def _let_bridge_through(lab: Lab, step: Step, action: str) -> None:
    """Where bridged frames pass the machine's firewall (Docker switches that on), allow those of our bridge."""
    setting = Path("/proc/sys/net/bridge/bridge-nf-call-iptables")
    if not setting.exists() or setting.read_text(encoding="ascii").strip() == "0":
        return
    rule = ("FORWARD", "-i", lab.name, "-o", lab.name, "-m", "comment", "--comment", lab.name, "-j", "ACCEPT")
    present = step.run("iptables", "-C", *rule, check=False).returncode == 0
    if present != (action == "-A"):
        step.run("iptables", *(("-I",) if action == "-A" else ("-D",)), *rule)
