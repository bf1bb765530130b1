# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes have joined the cluster and are not in service yet: install has not set them up, or accept has not accepted them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ansible_collections.npuops.ascend.plugins.module_utils._acceptance.verdicts import BAD
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import one_line
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import acceptance_gate

# A higher level loads the chips for minutes or hours, so it is not repeated until a node passes.
_REPEATED = 1


class Joined(NamedTuple):
    install: list[str]  # hosts
    accept: dict[str, int]  # the level for each host
    waiting: list[str]  # lines about nodes that are left out for now


def of(hosts: Iterable[tuple[str, str]], nodes: Mapping[str, Object]) -> Joined:
    """``hosts``: each with the name of its node; ``nodes``: those of the cluster. A host without a node is left out."""
    joined = Joined([], {}, [])
    for host, name in hosts:
        node = nodes.get(name)
        if node is None or node["metadata"].get("deletionTimestamp"):
            continue
        new, level = acceptance_gate.is_new(node), acceptance_gate.level(node)
        if not new and level is None:
            continue
        why = _obstacle(node, new, level)
        if why:
            joined.waiting.append("%s: %s" % (name, why))
        elif new:
            joined.install.append(host)
        elif level is not None:
            joined.accept[host] = level
    return joined


def _obstacle(node: Object, new: bool, level: int | None) -> str | None:
    """Why a node that is not in service is left alone, or None."""
    ready, why = kube_client.node_ready(node)
    if not ready:
        return "is not Ready: %s" % one_line(why)
    if new and (node.get("spec") or {}).get("unschedulable"):
        return "is cordoned; it is set up when it is uncordoned"
    last = acceptance_gate.last(node)
    if not new and level is not None and level > _REPEATED and last and last["level"] >= level and last["verdict"] in BAD:
        return "was not accepted at level %d: %s. Run npuops.ascend.accept when it is repaired" % (last["level"], last["verdict"])
    return None
