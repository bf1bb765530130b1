# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What becomes of each node, and what is in the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import one_line
from ansible_collections.npuops.ascend.plugins.plugin_utils._adopt import left_daemonset, sides
from ansible_collections.npuops.ascend.plugins.plugin_utils._adopt.findings import Survey, is_adopted
from ansible_collections.npuops.ascend.plugins.plugin_utils._components.rollout_failure import printable
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.columns import aligned
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import AskedHost, Facts
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import daemonsets as kube_daemonsets
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import shared_chips
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Object, Objects
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster.foreign import ANNOTATION_ADOPTION
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import missing_chips
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import offers as node_offers
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods import npu_use
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import host_config

MOVES, CONTINUES, JOINS, ADOPTED, PAUSED = "moves", "continues to move", "joins", "has moved", "is paused"
RETURNS, STAYS, NO_CHIP, BLOCKED = "returns", "stays", "no chip", "conflict"
_HEAD = ("NODE", "CHIPS", "DRIVER", "RUNTIME", "PLUGIN", "OFFERS", "PODS", "")
_CLUSTER_HEAD = ("IN THE CLUSTER", "WHAT", "")


class Plan:
    """``hosts``: as the filter npu_hosts makes them; ``pods``: of the whole cluster; ``back``: whether nodes are to return."""

    def __init__(self, survey: Survey, hosts: Sequence[AskedHost], nodes: Mapping[str, Object], pods: Objects, back: bool) -> None:
        self._survey, self.back = survey, back
        by_node: dict[str | None, Objects] = {}
        for pod in pods:
            by_node.setdefault(kube_daemonsets.pod_node(pod), []).append(pod)
        self.nodes = [PlannedNode(survey, host, nodes, by_node, back) for host in hosts]

    @property
    def due(self) -> list[str]:
        """The names of the nodes that move, those that have begun first."""
        due = [node for node in self.nodes if node.action in (MOVES, CONTINUES, JOINS, RETURNS)]
        return [node.name for node in sorted(due, key=lambda one: (not one.begun, one.users, one.name))]

    @property
    def conflicts(self) -> list[str]:
        told: dict[str, list[str]] = {}
        for node in self.nodes:
            for conflict in node.conflicts:
                told.setdefault(conflict, []).append(node.host)
        return self._survey.conflicts + ["%s: %s" % (", ".join(names), conflict) for conflict, names in told.items()]

    def lines(self, conflicts: Sequence[str]) -> list[str]:
        """For people. ``conflicts``: all, also those that others have found."""
        if not self._survey.found:
            return ["The cluster has no other device plugin or exporter: there is nothing to adopt."]
        lines = aligned([_CLUSTER_HEAD, *self._survey.rows()])
        lines += ["", *aligned([_HEAD, *(node.row() for node in self.nodes)])]
        if conflicts:
            lines += ["", "Conflicts:", *("  " + told for told in conflicts)]
        if self._survey.notes:
            lines += ["", "Notes:", *("  " + told for told in self._survey.notes)]
        return lines


class PlannedNode:
    """``name``: of the Node; ``host``: in the inventory; ``users``: how many pods use its chips."""

    def __init__(
        self, survey: Survey, host: AskedHost, nodes: Mapping[str, Object], pods: Mapping[str | None, Objects], back: bool
    ) -> None:
        self.host: str = host["name"]
        self._config = host_config.complete(host.get("config") or {})
        self.name: str = self._config["node_name"] or self.host
        self._facts: Facts = host.get("facts") or Facts()
        self._node = nodes.get(self.name)
        mine = pods.get(self.name, [])
        uids = {item["metadata"]["uid"] for item in survey.plugins}
        self._plugins = [pod for pod in mine if sides.owner_of(pod).get("uid") in uids]
        # Whether one of their device plugins would run there, if nothing kept it off.
        self._is_theirs = self._node is not None and any(
            left_daemonset.selects(item, kube_client.labels(self._node)) for item in survey.plugins
        )
        self.users = sum(map(npu_use.uses_npus, mine))
        self.conflicts = self._conflicts(host, back)
        self.action = BLOCKED if self.conflicts else self._action(back)

    @property
    def begun(self) -> bool:
        return self._node is not None and ANNOTATION_ADOPTION in kube_client.annotations(self._node)

    def _action(self, back: bool) -> str:
        if self._node is None or not (self._facts.get("chip_count") or back):
            return NO_CHIP
        components = kube_client.labels(self._node).get(kube_client.LABEL_COMPONENTS)
        if back:
            return RETURNS if self.begun or (components and self._is_theirs) else STAYS
        if self.begun:
            return CONTINUES
        if is_adopted(self._node):
            return ADOPTED
        if components == "paused":
            return PAUSED
        if self._plugins:
            return MOVES
        return STAYS if components and not self._is_theirs else JOINS

    def _conflicts(self, host: AskedHost, back: bool) -> list[str]:
        if host.get("error") or host.get("unreachable"):
            return [] if back else [printable(one_line(host.get("error")))]
        node = self._node
        if node is None or back:
            return []
        if not self._facts.get("chip_count"):
            missing = missing_chips.missing(self._facts, self._config["chips"])
            return [missing] if missing else []
        told = [printable(one_line(problem)) for problem in self._facts.get("problems") or []]
        if is_adopted(node) and not self._plugins:
            return told
        if is_adopted(node) or (kube_client.labels(node).get(kube_client.LABEL_COMPONENTS) == "enabled" and not self.begun):
            if self._plugins:
                told.append(
                    "its node has both the components of npuops.ascend and another device plugin. Remove one of them: kubectl"
                    " label node %s npuops.ascend/components-" % self.name
                )
            return told
        if kube_client.ANNOTATION_MAINTENANCE in kube_client.annotations(node):
            told.append("its node is in maintenance. Wait until that ends")
        if self.begun:
            return told
        return told + self._offer_conflicts(node)

    def _offer_conflicts(self, node: Object) -> list[str]:
        offered, expected = sides.offers(node), node_offers.of(self._facts)
        if not self._plugins:
            if offered:
                return [
                    "its node offers %s, and none of the device plugins that were found runs there. Find out what offers them: a"
                    " static pod, or a program on the host" % _counts(offered)
                ]
            return []
        if not any(map(kube_daemonsets.pod_ready, self._plugins)):
            return [
                "the device plugin on its node does not work: there would be no way back. Repair it first, or delete its DaemonSet"
            ]
        each = shared_chips.devices_per_chip(self._plugins)
        more = {name: count for name, count in offered.items() if count > expected.get(name, 0) * each}
        if more:
            return [
                "its node offers %s, and would offer %s afterwards. If these are virtual NPUs, let their pods end and destroy them"
                " with npu-smi set -t destroy-vnpu; npu_vnpu can divide the chips again after the adoption"
                % (_counts(offered), _counts(expected) or "nothing")
            ]
        return []

    def row(self) -> tuple[str, ...]:
        chips, family = self._facts.get("chip_count") or 0, (self._facts.get("family") or {}).get("name")
        ready = any(map(kube_daemonsets.pod_ready, self._plugins))
        return (
            self.name,
            "%d x %s" % (chips, family) if chips else "-",
            self._driver() if chips else "-",
            self._runtime(),
            "%s" % ("running" if ready else "not ready") if self._plugins else "-",
            _counts(sides.offers(self._node)) if self._node else "-",
            str(self.users),
            self.action,
        )

    def _driver(self) -> str:
        """None of them is changed: adoption is about the components."""
        driver: Mapping[str, Any] = self._facts.get("driver") or {}
        if not driver.get("tree"):
            return "none"
        return "%s (%s)" % (
            printable(driver.get("version") or driver.get("loaded_version") or "?", 40),
            ".run" if driver.get("package") else "image" if driver.get("managed") else "preinstalled",
        )

    def _runtime(self) -> str:
        runtime: Mapping[str, Any] = self._facts.get("runtime") or {}
        text = printable(runtime.get("name") or "-", 40)
        return text + ", ascend-docker-runtime" if runtime.get("ascend_docker_runtime") else text


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join("%d %s" % (count, name) for name, count in sorted(counts.items())) or "-"
