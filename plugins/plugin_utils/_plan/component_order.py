# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether MindCluster's components change before the drivers or after them, as the table of what supports what demands."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.npuops.ascend.plugins.plugin_utils._components.rollout_failure import printable
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import mindcluster
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import support as mindcluster_support
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import lines as plan_lines
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.mindcluster_version_lines import MindClusterVersionLines
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.planned_node import PlannedNode

BEFORE, AFTER = "before", "after"

# Characters of an error of Ansible's or of the API server's.
_MOST = 1000
_ANSIBLES = re.compile(r"^Task failed: .*? The filter plugin '[^']*' failed: ", re.S)


@dataclasses.dataclass
class ComponentPlan:
    """What the run does with the components.

    ``order``: BEFORE, AFTER, or None if they stay; ``version_lines``: which run now; ``version_line``: which one is wanted;
    ``changes``: what
    npu_objects says it would change; ``reasons``: why there is no order, as sentences; ``notes``: what a person should know.
    """

    version_line: str | None = None
    version_lines: Sequence[str] = ()
    changes: Sequence[str] = ()
    order: str | None = None
    reasons: list[str] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)

    def result(self) -> dict[str, Any]:
        return {"order": self.order, "from": list(self.version_lines), "to": self.version_line, "changes": list(self.changes)}

    def lines(self, drivers: bool) -> list[str]:
        """For people; [] if nothing changes. ``drivers``: whether any driver changes, too."""
        if not self.order:
            return []
        when = "%s the drivers: " % self.order if drivers else ""
        return [when + self._what()] + ["  " + text for text in self.changes]

    def _what(self) -> str:
        others = [version_line for version_line in self.version_lines if version_line != self.version_line]
        if self.version_line and others:
            return "MindCluster %s -> %s" % (", ".join(others), self.version_line)
        return "MindCluster %s" % self.version_line if self.version_line else "the node agent"


@dataclasses.dataclass(frozen=True)
class _Drivers:
    """What a node has and what it is to get: ``now`` and ``then`` are versions, or None where unknown."""

    node: str
    family: str | None
    now: str | None
    then: str | None
    version_lines: Sequence[str]


def decide(
    entries: Iterable[PlannedNode], version_lines: MindClusterVersionLines, wanted: Mapping[str, Any], held: bool
) -> ComponentPlan:
    """The ComponentPlan. ``wanted``: {version_line, changes, left_alone, problem}; ``held``: whether a halt keeps this run from
    beginning."""
    plan = ComponentPlan(wanted.get("version_line") or None, version_lines.all(), wanted.get("changes") or ())
    if wanted.get("problem"):
        told = printable(_without_ansibles(wanted["problem"]), _MOST).rstrip(".")
        plan.reasons.append(
            "the components cannot be compared with their definitions: %s. Correct this, or set npu_upgrade_components: false"
            % told
        )
        return plan
    if wanted.get("left_alone"):
        plan.notes.append("the components are not changed: %s" % wanted["left_alone"])
    if not plan.changes or wanted.get("left_alone"):
        return plan
    if held:
        plan.notes.append("the components are not changed while the rollout is halted")
        return plan
    version_line = plan.version_line
    # Images whose tags name no release tell of no version line; then any may run.
    if version_line is None or set(plan.version_lines) == {version_line}:
        plan.order = BEFORE
        return plan
    drivers = [_drivers_of(entry, version_lines) for entry in entries]
    never = _unsupported(version_line, drivers, "then")
    first = _unsupported(version_line, drivers, "now")
    last = [
        text
        for old in plan.version_lines
        for text in _unsupported(old, [one for one in drivers if old in one.version_lines], "then")
    ]
    if never:
        plan.reasons.append("%s. %s" % ("; ".join(never), _other_target(version_line, drivers)))
    elif not first:
        plan.order = BEFORE
    elif not last:
        plan.order = AFTER
    else:
        plan.reasons.append(_way_round(version_line, plan.version_lines, first + last, drivers))
    return plan


def _without_ansibles(text: str) -> str:
    """An error without what Ansible says of where in a template it was."""
    return _ANSIBLES.sub("", text.strip())


def unfit(version_line: str, nodes: Iterable[Object]) -> list[str]:
    """Which of the Nodes, by their labels, have a driver that the version line does not support, as clauses."""
    drivers = []
    for node in nodes:
        labels = kube_client.labels(node)
        version = labels.get(kube_client.LABEL_DRIVER_VERSION)
        drivers.append(_Drivers(node["metadata"]["name"], labels.get(kube_client.LABEL_CHIP), version, version, ()))
    return _unsupported(version_line, drivers, "now")


def _drivers_of(entry: PlannedNode, version_lines: MindClusterVersionLines) -> _Drivers:
    family = entry.checked.family.get("name") or entry.labels.get(kube_client.LABEL_CHIP)
    now = entry.loaded_version or entry.labels.get(kube_client.LABEL_DRIVER_VERSION)
    wanted = entry.checked.config["driver_version"] if entry.checked.config["driver_source"] != "preinstalled" else None
    return _Drivers(entry.name, family, now, wanted or now, version_lines.on(entry.node_name))


def _unsupported(version_line: str, drivers: Iterable[_Drivers], when: str) -> list[str]:
    found: dict[str, list[str]] = {}
    for one in drivers:
        version = getattr(one, when)
        if version and mindcluster_support.version_line_supports(version_line, version, one.family) is False:
            found.setdefault(version, []).append(one.node)
    return [
        "MindCluster %s does not support driver %s (%s)" % (version_line, version, plan_lines.some(names))
        for version, names in found.items()
    ]


def _other_target(version_line: str, drivers: Iterable[_Drivers]) -> str:
    """What to set instead of a version line that does not support the drivers that the nodes are to get."""
    wanted = {(one.then, one.family) for one in drivers if one.then}
    fitting = [
        name
        for name in mindcluster.names()
        if all(mindcluster_support.version_line_supports(name, version, family) is not False for version, family in wanted)
    ]
    families = {
        family for version, family in wanted if mindcluster_support.version_line_supports(version_line, version, family) is False
    }
    versions = _common([version_line], families)
    ways = ['npu_mindcluster_version_line: "%s"' % fitting[-1]] if fitting else []
    ways += ["npu_driver_version to a release of %s" % " or ".join(versions)] if versions else []
    return "Set %s" % ", or ".join(ways) if ways else "This collection deploys no version line that supports all of these drivers"


def _common(version_lines: Iterable[str], families: Iterable[str | None]) -> list[str]:
    """The drivers that all these version lines support on chips of all these families."""
    all_of = [mindcluster_support.drivers_of(name, family) for name in version_lines for family in sorted(filter(None, families))]
    return [version for version in all_of[0] if all(version in versions for versions in all_of)] if all_of else []


def _way_round(version_line: str, version_lines: Sequence[str], problems: list[str], drivers: Sequence[_Drivers]) -> str:
    """What to do where neither components nor drivers can go first."""
    families = {one.family for one in drivers if _is_in_the_way(version_line, one)}
    common = _common(sorted({version_line, *version_lines}), families)
    if common:
        how = "Set npu_driver_version to a release of %s first, which both support" % " or ".join(common)
    else:
        between = [
            name
            for name in mindcluster.names()
            if name != version_line
            and _common([version_line, name], families)
            and all(_common([name, old], families) for old in version_lines)
        ]
        how = "No driver is supported by both. " + (
            'Set npu_mindcluster_version_line: "%s" and a driver that it supports first' % between[-1]
            if between
            else "This collection deploys no version line between them"
        )
    return "%s. %s" % ("; ".join(problems), how)


def _is_in_the_way(version_line: str, one: _Drivers) -> bool:
    pairs = [(version_line, one.now), *((old, one.then) for old in one.version_lines)]
    return any(version and mindcluster_support.version_line_supports(name, version, one.family) is False for name, version in pairs)
