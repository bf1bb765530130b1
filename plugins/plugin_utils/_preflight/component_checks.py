# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether what install deploys can be deployed: the device plugin, the node agent, the pace of a DaemonSet's rollout."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._components.rollout_pace import AT_ONCE
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Object, Objects
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import foreign as mindcluster_foreign
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import mindcluster
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster.wanted_components import (
    AGENT,
    NO_AGENT_IMAGE,
    SHARED,
    Wanted,
)
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight import managers
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import valid_settings


def device_plugins(daemonsets: Iterable[Object], namespace: str, adopting: bool = False) -> tuple[Objects, list[str]]:
    """(ours, reasons): our device plugin DaemonSets, in ``namespace``; and a sentence for each one of others that may run, and for
    each of ours that a controller keeps as it is. ``adopting``: nodes are about to move from those of others to ours."""
    found = list(daemonsets)
    ours = mindcluster_foreign.our_device_plugins(found, namespace)
    others = [item for item in mindcluster_foreign.device_plugins(found, namespace) if not mindcluster_foreign.is_set_aside(item)]
    reasons = [] if adopting else [_foreign_plugin(daemonset) for daemonset in others]
    return ours, reasons + [reason for reason in map(_kept_plugin, ours) if reason]


def _foreign_plugin(daemonset: Object) -> str:
    name, namespace = daemonset["metadata"]["name"], daemonset["metadata"]["namespace"]
    if mindcluster_foreign.ANNOTATION_ADOPTION in kube_client.annotations(daemonset):
        return (
            "nodes are being moved away from the device plugin of the DaemonSet %s in the namespace %s, or that was interrupted."
            " Continue with npuops.ascend.adopt" % (name, namespace)
        )
    what = "another device plugin is deployed, DaemonSet %s in the namespace %s; two of them on one node break each other." % (
        name,
        namespace,
    )
    keeper, release = managers.keeper(daemonset), managers.helm_release(daemonset)
    if keeper:
        return "%s It is managed by %s: remove it from that" % (what, keeper)
    if release:
        return "%s Uninstall it with the Helm release %s, or move the nodes with npuops.ascend.adopt" % (what, release)
    return "%s Move the nodes with npuops.ascend.adopt, or delete it" % what


def _kept_plugin(daemonset: Object) -> str | None:
    keeper = managers.keeper(daemonset)
    if keeper is None:
        return None
    return "the DaemonSet %s in the namespace %s is managed by %s, which would undo what install changes; remove it from that" % (
        daemonset["metadata"]["name"],
        daemonset["metadata"]["namespace"],
        keeper,
    )


def settings_reasons(version_line: str, components: Iterable[Wanted]) -> list[str]:
    """Why components cannot be deployed with their settings, as sentences. What they share is told once."""
    reasons = []
    for wanted in components:
        for name in SHARED:
            try:
                valid_settings.of_variable(name, wanted.common.get(name))
            except NpuError as exc:
                reasons.append(exc.message)
        reasons += agent_reasons(wanted) if wanted.part == AGENT else mindcluster_reasons(version_line, wanted)
    return list(dict.fromkeys(reasons))


def mindcluster_reasons(version_line: str, wanted: Wanted) -> list[str]:
    """Why a component of MindCluster cannot be deployed, as sentences."""
    reasons = mindcluster.mismatches(version_line, wanted.role, wanted.version, wanted.images)
    try:
        common = {name: value for name, value in wanted.common.items() if name not in SHARED}
        mindcluster.component(version_line, wanted.role, wanted.settings, common)
    except NpuError as exc:
        reasons.append(exc.message)
    return reasons


def share_count(settings: Mapping[str, Any]) -> int:
    """How often the device plugin is to offer each chip, by its settings; 1 for settings that mindcluster_reasons refuses."""
    try:
        return valid_settings.settings("npu_device_plugin", settings)["share_count"]
    except NpuError:
        return 1


def hot_reset(settings: Mapping[str, Any]) -> str:
    """Whether the device plugin resets faulty chips, by its settings; ``disabled`` for settings that are refused."""
    try:
        return valid_settings.settings("npu_device_plugin", settings)["hot_reset"]
    except NpuError:
        return "disabled"


def device_taints(settings: Mapping[str, Any]) -> bool:
    """Whether the node agent is to taint chips, by its settings; not by settings that agent_reasons refuses."""
    try:
        return valid_settings.settings("npu_node_agent", settings)["device_taints"]
    except NpuError:
        return False


def agent_reasons(wanted: Wanted) -> list[str]:
    """Why the node agent cannot be deployed, as sentences."""
    reasons = []
    if not wanted.images["image"]:
        reasons.append(NO_AGENT_IMAGE)
    try:
        settings = valid_settings.settings(wanted.role, wanted.settings)
    except NpuError as exc:
        return [*reasons, exc.message]
    if not 0 < settings["probe_timeout"] < settings["probe_interval"]:
        reasons.append(
            "npu_node_agent_probe_timeout is %d and npu_node_agent_probe_interval %d: a probe must end before the next one starts"
            % (settings["probe_timeout"], settings["probe_interval"])
        )
    return reasons


def rollout_reasons(max_unavailable: str | None) -> list[str]:
    """Why no DaemonSet can be replaced on ``max_unavailable`` nodes at once (a text, ``1`` or ``10%``), as sentences."""
    # A variable without a value is None.
    if AT_ONCE.match(max_unavailable or ""):
        return []
    return [
        "npu_rollout_max_unavailable is %s: it must be a number of nodes, 1 or more, or a percentage of them, such as 10%%"
        % json.dumps(max_unavailable)
    ]
