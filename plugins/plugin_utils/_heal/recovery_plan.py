# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes of the fleet are to be recovered now, which are not, and why: the verdict on each, before any is touched.

Pure decisions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, one_line, sentence
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import columns as data_columns
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import AskedHost, Facts
from ansible_collections.npuops.ascend.plugins.plugin_utils._heal import wedged_reboot
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import identity as node_identity
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import node_name
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import offers as node_offers
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import approval, wedged_annotation
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import outcome as maintenance_outcome
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.max_parallel import MaxParallel
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.pace import pace
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.verdict import (
    BLOCKED,
    GIVE_BACK,
    IN_FLIGHT,
    IN_UPGRADE,
    NO_HOST,
    NOT_READY,
    RECOVER,
    SKIPPED,
)

# Other verdicts are what the cycle calls its outcomes.
_DUE = (RECOVER, GIVE_BACK, IN_FLIGHT)


class UnhealthyNode:
    """One node that is not well. ``host``: its inventory name, or None."""

    def __init__(self, host: str | None, name: str, node: Object) -> None:
        self.host, self.name, self.node = host, name, node
        self.wedge = wedged_annotation.of(node)
        self.verdict = ""
        self.reason: str | None = None
        self.resource: str | None = None
        self.chips = 0
        self.offers: dict[str, int] = {}

    @property
    def due(self) -> bool:
        return self.verdict in _DUE

    def result(self, now: float) -> dict[str, Any]:
        before = kube_client.labels(self.node).get(kube_client.LABEL_DRIVER_VERSION)
        return {
            "host": self.host,
            "node": self.name,
            "since": self.wedge.since if self.wedge else None,
            "wedged": self.wedge.reason if self.wedge else None,
            "attempts": wedged_reboot.attempts(self.node, now),
            "verdict": self.verdict,
            "reasons": [self.reason] if self.reason else [],
            "from": {"version": before},
            "to": None,
            "resource": self.resource,
            "chips": self.chips,
            "offers": self.offers,
        }


class HealPlan:
    """``storm``: the sentence about one, or None; ``slots``: what recoveries share with upgrades."""

    def __init__(
        self, entries: list[UnhealthyNode], storm: str | None, slots: MaxParallel, guards: wedged_reboot.Guards, now: float
    ) -> None:
        self.entries, self.storm, self._slots, self._guards, self._now = entries, storm, slots, guards, now
        self._fleet = slots.fleet

    @property
    def due(self) -> list[UnhealthyNode]:
        """UnhealthyNodes, those that are half-way first, then in the order in which they wedged."""
        rank = {IN_FLIGHT: 0, GIVE_BACK: 1, RECOVER: 2}
        due = [] if self.storm else [entry for entry in self.entries if entry.due and entry.host]
        return sorted(due, key=lambda entry: (rank[entry.verdict], (entry.wedge and entry.wedge.since) or "", entry.name))

    @property
    def strangers(self) -> list[UnhealthyNode]:
        """UnhealthyNodes of wedged nodes that none of the hosts stands for."""
        return [] if self.storm else [entry for entry in self.entries if entry.verdict == NO_HOST]

    def result(self) -> dict[str, Any]:
        return {
            "hosts": {entry.host: entry.result(self._now) for entry in self.entries if entry.host},
            "order": [entry.host for entry in self.due],
            "max_parallel": self._slots.number,
            "pace": pace(self._guards.max_parallel),
            "look_at": [entry.host for entry in self.entries if entry.host and entry.verdict not in (SKIPPED, IN_UPGRADE)],
            "storm": self.storm,
            "table": self.table(),
        }

    def told(self) -> dict[str, str]:
        """{node: a phrase about its recovery}, for the status of the fleet."""
        told = {}
        for entry in self.entries:
            # That it was tried too often tells how often.
            tried = None if entry.verdict == maintenance_outcome.GIVEN_UP else wedged_reboot.history(entry.node, self._now)
            parts = ["recovery: %s" % entry.verdict, entry.reason, tried]
            if self.storm:
                parts = ["no recovery in a storm", tried]
            told[entry.name] = ". ".join(text.rstrip(".") for text in parts if text)
        return told

    def awaiting(self) -> set[str]:
        """The nodes that only the approval of their reboot keeps from their recovery."""
        return set() if self.storm else {entry.name for entry in self.entries if entry.verdict == maintenance_outcome.AWAITING}

    def table(self) -> list[str]:
        """Aligned lines, the heading first; below them why."""
        wedged = sum(entry.wedge is not None for entry in self.entries)
        summary = "%s wedged." % ("None of %d NPU nodes is" % self._fleet if not wedged else _of(wedged, self._fleet))
        lines = [summary]
        if self.entries:
            cells = [("NODE", "SINCE", "ATTEMPTS", "VERDICT")] + [self._cells(entry) for entry in self.entries]
            lines += ["", *data_columns.aligned(cells), ""]
            for entry in self.entries:
                told = [text for text in (entry.wedge and entry.wedge.reason, entry.reason) if text]
                lines.append("%s: %s" % (entry.name, " ".join(_ended(text) for text in told)))
        if self.storm:
            lines += ["", "STORM: %s" % self.storm]
        return lines

    def _cells(self, entry: UnhealthyNode) -> tuple[str, str, str, str]:
        most = self._guards.attempts
        number = len(wedged_reboot.attempts(entry.node, self._now))
        attempts = "%d of %d" % (number, most) if most else str(number)
        return entry.name, (entry.wedge and entry.wedge.since) or "-", attempts, entry.verdict


def _of(number: int, fleet: int) -> str:
    return "%d of %d NPU nodes %s" % (number, fleet, "is" if number == 1 else "are")


def _ended(text: str) -> str:
    return text if text.endswith((".", "true")) or "kubectl" in text else text + "."


def make(
    hosts: Iterable[AskedHost],
    nodes: dict[str, Object],
    guards: wedged_reboot.Guards,
    now: float,
    auto: bool = False,
    approval_max_age: float = 0,
    max_parallel: int | str = 1,
) -> HealPlan:
    """The HealPlan. ``hosts``: as the filter npu_hosts makes them, with or without facts; ``nodes``: Node objects by name;
    ``max_parallel``: that of upgrades."""
    by_node = {node_name.of_host(host): host for host in hosts}
    entries, twins = [], node_identity.twins(nodes)
    for name in sorted(nodes):
        node, host = nodes[name], by_node.get(name)
        if not _concerns(node):
            continue
        entry = UnhealthyNode(host["name"] if host else None, name, node)
        facts = (host or {}).get("facts") or {}
        entry.resource, entry.chips = (facts.get("family") or {}).get("resource"), facts.get("chip_count") or 0
        entry.offers = node_offers.of(facts)
        entry.verdict, entry.reason = _judge(entry, host, guards, now, auto, approval_max_age)
        if name in twins and entry.verdict in (RECOVER, maintenance_outcome.AWAITING):
            entry.verdict, entry.reason = BLOCKED, sentence(twins[name])
        entries.append(entry)
    return HealPlan(entries, guards.storm(nodes.values(), now), MaxParallel.of(max_parallel, nodes.values()), guards, now)


def _concerns(node: Object) -> bool:
    if wedged_annotation.of(node) is not None or wedged_reboot.left(node):
        return True
    try:
        return (maintenance_record.decode(node) or {}).get("reason") == maintenance_record.RECOVERY_REASON
    except NpuError:
        return False  # a wedged node's is told


def _judge(
    entry: UnhealthyNode, host: AskedHost | None, guards: wedged_reboot.Guards, now: float, auto: bool, approval_max_age: float
) -> tuple[str, str | None]:
    """(verdict, why)."""
    node = entry.node
    try:
        # How often it was tried stands in what ended last.
        maintenance_record.check(node)
        record = maintenance_record.decode(node)
    except NpuError as exc:
        return BLOCKED, one_line(exc.message)
    if record is not None and record.get("reason") != maintenance_record.RECOVERY_REASON:
        if maintenance_record.intended(record) or maintenance_record.age(record, now) <= maintenance_record.HEARTBEAT_LIMIT:
            told = (record.get("reason"), record["run"], record.get("step"))
            return IN_UPGRADE, "It is in %s by the run %s (step %s)." % told
        record = None  # left by a run that died: it is given back, and due still
    if host is None:
        return NO_HOST, "It matches no host of this run."
    if record is not None:
        told = (record.get("step"), record["run"], record.get("heartbeat"))
        return IN_FLIGHT, "Its recovery is at %s, by the run %s, last heartbeat %s." % told
    if (host.get("config") or {}).get("driver_source") == "preinstalled":
        return SKIPPED, "Its driver is preinstalled; npuops.ascend does not reboot it."
    if maintenance_record.is_true(kube_client.labels(node), maintenance_record.LABEL_SKIP):
        return SKIPPED, "It has the label %s=true." % maintenance_record.LABEL_SKIP
    if host.get("unreachable") or host.get("error"):
        return NOT_READY, "Its facts could not be gathered: %s" % one_line(host.get("error"))
    ready, why = kube_client.node_ready(node)
    if not ready:
        return NOT_READY, "The node is not Ready: %s." % why
    if entry.wedge is None:
        return GIVE_BACK, "Its chips respond again; its recovery had left it cordoned."
    return _judge_wedged(entry, entry.wedge, host.get("facts") or Facts(), guards, now, auto, approval_max_age)


def _judge_wedged(
    entry: UnhealthyNode,
    wedge: wedged_annotation.Wedge,
    facts: Facts,
    guards: wedged_reboot.Guards,
    now: float,
    auto: bool,
    approval_max_age: float,
) -> tuple[str, str | None]:
    node = entry.node
    no_driver = wedged_reboot.left(node) or (facts.get("driver") or {}).get("failed")
    if not wedge.is_of(kube_client.boot_id(node)) and not no_driver:
        return maintenance_outcome.TOO_SOON, wedged_reboot.REBOOTED_SINCE
    why = guards.tired(node, now)
    if why:
        return maintenance_outcome.GIVEN_UP, why
    following = facts.get("next_kernel")
    if following and not following.get("release"):
        return BLOCKED, (
            "Its reboot would be into kernel %s, for which no driver is staged. Let npuops.ascend.install stage it, or let the host"
            " boot %s." % (following["kernel"], facts.get("kernel"))
        )
    uptime = facts.get("uptime")
    why = guards.fresh(uptime) if uptime is not None else None
    if why:
        return maintenance_outcome.TOO_SOON, why
    if not auto:
        _given, why = approval.given(node, now, approval_max_age, guards.approval_not_before(node), guards.approval_purpose(node))
        if why is not None:
            return maintenance_outcome.AWAITING, why[:1].upper() + why[1:]
    return RECOVER, None
