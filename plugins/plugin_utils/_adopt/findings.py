# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The components for the chips that this collection did not deploy, and what adoption does with each of them."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterable, Mapping
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, one_line
from ansible_collections.npuops.ascend.plugins.plugin_utils._adopt import flags, left_daemonset
from ansible_collections.npuops.ascend.plugins.plugin_utils._components.rollout_failure import printable
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import permissions as kube_permissions
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.permissions import Permission
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object, Objects
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import foreign as mindcluster_foreign
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight import managers

REPLACED, KEPT, ASIDE, CONFLICT = "replaced", "kept", "set aside", "conflict"
_MOST = 100
_LONGEST_IMAGE = 120

# By the last part of their images' names.
_BESIDE = re.compile(
    r"(noded|clusterd|ascend-operator|infer-operator|vc-scheduler|vc-controller-manager|vc-webhook-manager|resilience-controller"
    r"|hccl-controller|container-manager|npu-driver-installer|npu-feature-discovery|npu-node-provision|npu-operator|npu-dra-plugin)\Z"
)
_OPERATOR = "npu-operator"


@dataclasses.dataclass(frozen=True)
class Entry:
    """An object of the cluster: what it is, and what becomes of it. ``conflicts``: why that cannot be, as sentences."""

    label: str
    what: str
    action: str
    notes: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()


class Survey:
    """``plugins``, ``exporters``: DaemonSets of others; ``entries``: all that was found, for people."""

    def __init__(self, daemonsets: Objects, deployments: Objects, namespace: str, settings: Mapping[str, Any], back: bool) -> None:
        """``settings``: of the device plugin, without prefix; ``back``: whether nodes are to return."""
        self.plugins = mindcluster_foreign.device_plugins(daemonsets, namespace)
        self.exporters = mindcluster_foreign.exporters(daemonsets, namespace)
        operators = [item for item in deployments if _beside(item) == _OPERATOR]
        self.entries = [_plugin(item, settings, back, operators) for item in self.plugins]
        self.entries += [_replaced(item, "exporter", (), back, operators) for item in self.exporters]
        known = {item["metadata"]["uid"] for item in [*self.plugins, *self.exporters]}
        for kind, items in (("DaemonSet", daemonsets), ("Deployment", deployments)):
            for item in items:
                what = _beside(item)
                if what and item["metadata"].get("uid") not in known and item["metadata"]["namespace"] != namespace:
                    self.entries.append(Entry(_label(kind, item), what, KEPT))

    @property
    def found(self) -> Objects:
        return [*self.plugins, *self.exporters]

    @property
    def conflicts(self) -> list[str]:
        return ["%s: %s" % (entry.label, told) for entry in self.entries for told in entry.conflicts]

    @property
    def notes(self) -> list[str]:
        return ["%s: %s" % (entry.label, told) for entry in self.entries for told in entry.notes]

    def rows(self) -> list[tuple[str, str, str]]:
        rows = [(entry.label, entry.what, CONFLICT if entry.conflicts else entry.action) for entry in self.entries[:_MOST]]
        if len(self.entries) > _MOST:
            rows.append(("and %d more" % (len(self.entries) - _MOST), "", ""))
        return rows


def refused(cluster: AnyCluster, found: Iterable[Object]) -> list[str]:
    """Why their DaemonSets cannot be changed, as sentences: by the rights of this user, then by a dry run."""
    found, told = list(found), []
    needed = {left_daemonset.label_of(item): _permissions(item) for item in found}
    missing = kube_permissions.missing(cluster, itertools.chain.from_iterable(needed.values()))
    for item in found:
        label = left_daemonset.label_of(item)
        verbs = [entry[0] for entry in needed[label] if entry in missing]
        if verbs:
            told.append(
                "%s: the Kubernetes user may not %s it. docs/controller-access-adopt.yml grants that; docs/access.md tells how to"
                " adapt it" % (label, " or ".join(verbs))
            )
            continue
        if left_daemonset.is_held(item, left_daemonset.ASIDE):
            continue
        try:
            left_daemonset.hold(cluster, item, left_daemonset.MOVING, dry_run=True)
        except NpuError as exc:
            told.append("%s: a dry run of its change is refused: %s" % (label, one_line(exc.message)))
    return told


def _permissions(daemonset: Object) -> list[Permission]:
    metadata = daemonset["metadata"]
    return [(verb, "daemonsets", "apps", metadata["namespace"], metadata["name"]) for verb in ("get", "patch")]


def _plugin(item: Object, settings: Mapping[str, Any], back: bool, operators: Objects) -> Entry:
    return _replaced(item, "device plugin", tuple(flags.conflicts(item, settings)) if not back else (), back, operators)


def _replaced(item: Object, what: str, conflicts: tuple[str, ...], back: bool, operators: Objects) -> Entry:
    aside = left_daemonset.is_held(item, left_daemonset.ASIDE)
    keeper, release = managers.keeper(item), managers.helm_release(item)
    notes: list[str] = []
    if keeper:
        told = (
            "it is managed by %s, which would undo what adoption changes. Take it out of that first, without deleting it" % keeper
        )
        if operators:
            told += "; %s is its operator" % _label("Deployment", operators[0])
        conflicts = (told, *conflicts)
    elif release:
        notes.append(
            "Helm has deployed it with the release %s: an upgrade of that release undoes the adoption. Remove it from there when"
            " all nodes have moved" % release
        )
    counts = (item.get("status") or {}).get("desiredNumberScheduled", 0)
    told = "%s %s, %s" % (what, _image(item), "1 node" if counts == 1 else "%s nodes" % counts)
    action = "returns" if back else ASIDE if aside else REPLACED
    return Entry(left_daemonset.label_of(item), told, action, tuple(notes), () if aside and not back and not keeper else conflicts)


def _beside(item: Object) -> str | None:
    for container in item["spec"]["template"]["spec"].get("containers") or []:
        found = _BESIDE.match(str(container.get("image", "")).partition("@")[0].rpartition("/")[2].partition(":")[0])
        if found:
            return found[1]
    return None


def _image(item: Object) -> str:
    containers = item["spec"]["template"]["spec"].get("containers") or [{}]
    return printable(containers[0].get("image", ""), _LONGEST_IMAGE)


def _label(kind: str, item: Object) -> str:
    return "%s %s/%s" % (kind, item["metadata"]["namespace"], item["metadata"]["name"])


def look(cluster: AnyCluster, namespace: str, settings: Mapping[str, Any], back: bool = False) -> Survey:
    """Survey the cluster."""
    return Survey(cluster.list("/apis/apps/v1/daemonsets"), cluster.list("/apis/apps/v1/deployments"), namespace, settings, back)


def is_adopted(node: Object) -> bool:
    """Whether the node has moved to our components."""
    labels = kube_client.labels(node)
    return (
        labels.get(mindcluster_foreign.LABEL_ADOPTED) == "true"
        and labels.get(kube_client.LABEL_COMPONENTS) in ("enabled", "paused")
        and mindcluster_foreign.ANNOTATION_ADOPTION not in kube_client.annotations(node)
    )
