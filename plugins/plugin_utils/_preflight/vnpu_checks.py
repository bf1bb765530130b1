# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a host can have the virtual NPUs that npu_vnpu asks for, and what install changes for that."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import wanted_vnpus
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight.checked_host import HELD, CheckedHost
from ansible_collections.npuops.ascend.plugins.plugin_utils._withdrawal import vnpu_pause

# The pods that use the NPUs of nodes, by node.
Users = Callable[[Sequence[str]], Mapping[str, list[str]]]


def look(verdict: CheckedHost, node: Object | None) -> None:
    """Sets what install does to the virtual NPUs of the host; adds what is wrong with npu_vnpu."""
    goes_on = node is not None and vnpu_pause.is_paused(node) and verdict.components == "enabled"
    given = verdict.config["vnpu"]
    if given is None and not goes_on:
        return
    try:
        wanted = wanted_vnpus.Wanted(given, verdict.facts)
    except NpuError as exc:
        verdict.reasons.append("npu_vnpu: " + exc.message)
        return
    if wanted.problem:
        verdict.reasons.append("npu_vnpu: " + wanted.problem)
        return
    if verdict.components != "enabled":
        if wanted.changed:
            when = "change with the first install after the adoption" if verdict.components == HELD else "would change"
            verdict.notes.append("its virtual NPUs %s: %s" % (when, wanted.way))
        return
    verdict.vnpus = wanted
    if goes_on:
        verdict.notes.append("goes on with the change of its virtual NPUs that an earlier run began: %s" % wanted.way)
    elif wanted.changed:
        verdict.notes.append("its virtual NPUs change: %s" % wanted.way)
    if wanted.changed and not wanted.checked:
        verdict.notes.append("whether its chips can be divided so, npu-smi says when the driver is loaded")
    serves = node is not None and kube_client.labels(node).get(kube_client.LABEL_COMPONENTS) == "enabled"
    verdict.vnpu_pause = goes_on or (serves and wanted.changed)


def check_plugin(verdict: CheckedHost, share_count: int, hot_reset: str) -> None:
    """What the device plugin cannot do on a host with virtual NPUs."""
    verdict.reasons += wanted_vnpus.excluded(verdict.vnpus, verdict.facts, share_count, hot_reset)


def check_free(verdicts: Sequence[CheckedHost], users: Users) -> None:
    """No pod may use the NPUs of a node whose virtual NPUs change."""
    changing = [verdict for verdict in verdicts if verdict.vnpu_pause and not verdict.reasons]
    found = users([verdict.node_name for verdict in changing]) if changing else {}
    for verdict in changing:
        pods = found.get(verdict.node_name)
        if pods:
            verdict.reasons.append(vnpu_pause.advice(verdict.node_name, pods))
