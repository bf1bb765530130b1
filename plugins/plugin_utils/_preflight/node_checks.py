# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether each host is its node, and whether the node is Ready and runs what we need."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, one_line
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import foreign as mindcluster_foreign
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import support as mindcluster_support
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import acceptance_gate
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import identity as node_identity
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight.checked_host import HELD, CheckedHost
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import valid_settings
from ansible_collections.npuops.ascend.plugins.plugin_utils._withdrawal import vnpu_pause

# KubeletFineGrainedAuthz: there from 1.32 on, in effect by default from 1.33 on.
_KUBELET_PODS = (1, 33)
# A tenth of a second for each with the names of 1,000 nodes. Where more are absent, it is another cluster.
_MOST_SIMILAR = 20


def check(candidates: Sequence[CheckedHost], nodes: Mapping[str, Object]) -> None:
    """Adds what is wrong with the nodes of the hosts."""
    by_node: dict[str, list[CheckedHost]] = {}
    for verdict in candidates:
        by_node.setdefault(verdict.node_name, []).append(verdict)
    by_boot_id = node_identity.by_boot_id(nodes)
    twins = node_identity.twins(nodes)
    same = node_identity.same_host({verdict.name: verdict.facts.get("boot_id") for verdict in candidates})
    absent = [name for name in by_node if name not in nodes][:_MOST_SIMILAR]
    similar = {name: next(iter(difflib.get_close_matches(name, nodes, 1)), None) for name in absent}
    for node_name, verdicts in by_node.items():
        for verdict in verdicts:
            told = (twins.get(node_name), same.get(verdict.name) if len(verdicts) == 1 else None)
            verdict.reasons.extend(reason for reason in told if reason)
            if len(verdicts) > 1:
                others = ", ".join(other.name for other in verdicts if other is not verdict)
                verdict.reasons.append("shares the node name %s with %s; see npu_node_name" % (node_name, others))
            _check_node(verdict, nodes, by_boot_id, similar.get(node_name))


def _check_node(verdict: CheckedHost, nodes: Mapping[str, Object], by_boot_id: Mapping[str, str], similar: str | None) -> None:
    """``similar``: name of a node that the host may be meant to have."""
    boot_id = verdict.facts.get("boot_id")
    same_machine = by_boot_id.get(boot_id or "")
    node = nodes.get(verdict.node_name)
    if node is None:
        hint = ""
        if same_machine:
            hint = ": this machine is the node %s, set npu_node_name: %s" % (same_machine, same_machine)
        elif similar:
            hint = ": did you mean %s? See npu_node_name" % similar
        verdict.reasons.append("the cluster has no node %s%s" % (verdict.node_name, hint))
        return
    if kube_client.boot_id(node) != boot_id:
        verdict.reasons.append(
            "the host is not the node %s: the host's boot ID is %s, the node reports %s%s. %s"
            % (
                verdict.node_name,
                boot_id,
                kube_client.boot_id(node),
                ". This machine is the node %s" % same_machine if same_machine else "",
                node_identity.ADVICE,
            )
        )
        return
    ready, why = kube_client.node_ready(node)
    if not ready:
        verdict.reasons.append("the node %s is not Ready: %s" % (verdict.node_name, one_line(why)))
    _check_versions(verdict, kube_client.node_info(node))
    paused = kube_client.labels(node).get(kube_client.LABEL_COMPONENTS) == "paused" and not vnpu_pause.is_paused(node)
    if paused or kube_client.ANNOTATION_MAINTENANCE in kube_client.annotations(node):
        verdict.components = "paused"
        verdict.notes.append("is %s; its components are not changed" % ("paused" if paused else "under maintenance"))


def check_gate(verdict: CheckedHost, nodes: Mapping[str, Object]) -> None:
    """Find out whether pods are to wait until the node is accepted."""
    try:
        wanted = valid_settings.of_variable("npu_install_gate", verdict.config["install_gate"])
    except NpuError as exc:
        verdict.reasons.append(exc.message)
        return
    node = nodes.get(verdict.node_name)
    # A node that is held back serves with the components of others.
    if node is not None and verdict.components != HELD and acceptance_gate.closing(node, wanted):
        verdict.gate = wanted


def hold_back(verdicts: Iterable[CheckedHost], nodes: Mapping[str, Object]) -> None:
    """Nodes that adoption moves get our components by that, one after the other, and not by the labels of install."""
    for verdict in verdicts:
        node = nodes.get(verdict.node_name)
        if node is None or verdict.components != "enabled":
            continue
        has_ours = kube_client.labels(node).get(kube_client.LABEL_COMPONENTS) == "enabled"
        if not has_ours or mindcluster_foreign.ANNOTATION_ADOPTION in kube_client.annotations(node):
            verdict.components = HELD


def _check_versions(verdict: CheckedHost, info: Mapping[str, Any]) -> None:
    known = mindcluster_support.table()["kubernetes"]
    kubelet = mindcluster_support.numbers(info.get("kubeletVersion"))
    if kubelet and _older(kubelet, known["minimum"]):
        verdict.reasons.append("the kubelet is %s; at least %s is needed" % (info["kubeletVersion"], known["minimum"]))
    elif kubelet and _newer(kubelet, known["mindcluster"]["highest"]):
        verdict.notes.append(
            "runs kubelet %s, newer than MindCluster supports (%s)" % (info["kubeletVersion"], known["mindcluster"]["highest"])
        )
    note = mindcluster_support.cgroup_note(verdict.facts, info)
    if note:
        verdict.notes.append(note)
    name, _separator, version = (info.get("containerRuntimeVersion") or "").partition("://")
    told = " ".join(verdict.facts.get("problems") or [])
    if name == "containerd":
        minimum = mindcluster_support.table()["containerd"]["minimum"]
        if _older(mindcluster_support.numbers(version), minimum) and "containerd" not in told:
            verdict.reasons.append("containerd is %s; CDI needs %s or newer" % (version, minimum))
    elif name == "cri-o":
        _check_crio(verdict, version)
    elif name and name not in told:
        verdict.reasons.append("the node runs %s; only containerd 1.7 or newer and CRI-O are supported" % name)


def _check_crio(verdict: CheckedHost, version: str) -> None:
    minimum = mindcluster_support.table()["crio"]["minimum"]
    if _older(mindcluster_support.numbers(version), minimum):
        verdict.reasons.append("CRI-O is %s; at least %s is needed, which takes CDI devices from the kubelet" % (version, minimum))
    if verdict.config["driver_source"] == "image":
        verdict.reasons.append(
            "the node runs CRI-O, but driver images are pulled and unpacked by containerd. Install the driver on the host and set"
            " npu_driver_source: preinstalled"
        )


def _older(numbers: tuple[int, int] | None, release: str) -> bool:
    limit = mindcluster_support.numbers(release)
    return numbers is not None and limit is not None and numbers < limit


def _newer(numbers: tuple[int, int], release: str) -> bool:
    limit = mindcluster_support.numbers(release)
    return limit is not None and numbers > limit


def kubelets_tell_pods_apart(nodes: Iterable[Object]) -> bool:
    """Whether every kubelet knows a right to its list of pods beside that to everything it can do (KubeletFineGrainedAuthz)."""
    versions = [mindcluster_support.numbers(kube_client.node_info(node).get("kubeletVersion")) for node in nodes]
    return bool(versions) and all(version and version >= _KUBELET_PODS for version in versions)
