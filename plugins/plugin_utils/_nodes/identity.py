# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes that say of themselves what can be true of one of them only.

Which machine a Node is, and at which address, is its kubelet's word. One that says the boot ID and the address of another node
would have that node's host rebooted in its place. But then two Nodes have one boot ID.

The systemUUID does not count: there is firmware that has the same one on every board.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Object

# What to do about a host that has another boot ID than its node.
ADVICE = "Correct ansible_host or npu_node_name; right after a reboot, wait until the kubelet has reported"
_UNIQUE = (("bootID", "boot ID"), ("machineID", "machine ID"))


def by_boot_id(nodes: Mapping[str, Object]) -> dict[str, str]:
    """{boot ID: name} of the Node objects that have reported one. ``nodes``: by name."""
    reported = {name: kube_client.boot_id(node) for name, node in nodes.items()}
    return {boot_id: name for name, boot_id in reported.items() if boot_id}


def twins(nodes: Mapping[str, Object]) -> dict[str, str]:
    """{name: why, as a phrase} of the Node objects that are one machine by what they say. ``nodes``: by name."""
    told: dict[str, str] = {}
    for field, called in _UNIQUE:
        claimed: dict[str, list[str]] = {}
        for name in sorted(nodes):
            value = kube_client.node_info(nodes[name]).get(field)
            if value:
                claimed.setdefault(value, []).append(name)
        for value, names in claimed.items():
            if len(names) > 1:
                for name in names:
                    told.setdefault(name, _why(names, called, value))
    return told


def _why(names: Sequence[str], called: str, value: str) -> str:
    text = (
        "the nodes %s report the same machine: their %s is %s. Find out which one it is. If a machine no longer exists, delete its"
        " Node: kubectl delete node <name>" % (_listed(names), called, value)
    )
    if called == "machine ID":
        text += ". Hosts cloned from one image need a unique /etc/machine-id each (man machine-id); restart the kubelet afterwards"
    return text


def same_host(boot_ids: Mapping[str, str | None]) -> dict[str, str]:
    """{name: why, as a phrase} of the hosts that are reached at one machine. ``boot_ids``: by the host's name."""
    reached: dict[str, list[str]] = {}
    for name in sorted(boot_ids):
        boot_id = boot_ids[name]
        if boot_id:
            reached.setdefault(boot_id, []).append(name)
    told: dict[str, str] = {}
    for boot_id, names in reached.items():
        if len(names) > 1:
            text = "the hosts %s are the same machine: its boot ID is %s. Correct ansible_host, or exclude one"
            text %= (_listed(names), boot_id)
            told.update(dict.fromkeys(names, text))
    return told


def _listed(names: Sequence[str]) -> str:
    shown = list(names[:5]) + (["%d more" % (len(names) - 5)] if len(names) > 5 else [])
    return "%s and %s" % (", ".join(shown[:-1]), shown[-1])
