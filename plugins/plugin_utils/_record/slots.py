# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many nodes may be in maintenance at once, and whether the rollout is halted: a Lease that all runs share.

Every write is a compare-and-swap. A node's slot is taken before its record is written and given back after the record
has ended; so a holder without a record is either about to begin or left by a run that died.
"""

from __future__ import annotations

import copy
import functools
import json
import random
from collections.abc import Callable, Collection
from typing import Any, NamedTuple, TypeVar

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import annotations as data_annotations
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.annotations import Record
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.duration import duration
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.api_watch import Watch
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import Clock
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Labels, Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import halt as maintenance_halt
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.halt import Halt
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.min_available import MinAvailable
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.slot_watch import SlotHolder, SlotHolders, SlotWatch

LEASE = "npu-maintenance"
ANNOTATION = "npuops.ascend/slots"
ASIDE = "aside"  # of a holder: people go on without the node
# Seconds of silence after which a holder that has no record is taken for dead.
HOLDER_LIMIT = 60
# Seconds until a write that came after another one is tried again: at most the first, then twice as many each time.
_BACKOFF, _LONGEST_BACKOFF = 0.1, 2.0
# Kinds that are remembered as proved.
_MOST_PROVED = 20
# Characters that slots may fill on the Lease. The rest is for a halt, and for nodes that are in maintenance already.
_ROOM = data_annotations.LIMIT // 2


# What the Lease tells: {max, halted, holders, proved, served}. ``max``: how many slots, 0 = unlimited; ``halted``: a Halt or None;
# ``holders``: SlotHolders. Not always there: ``proved``, the pools of which a node was confirmed; ``served``, {node, when}: which
# node came back into service last, with a driver that works.
LeaseState = dict[str, Any]
Result = TypeVar("Result")


class Halted(NpuError):
    """The rollout is halted until a person clears it."""


class Refused(NpuError):
    """Another run works with another number of slots, or the Lease cannot be used."""


class NotYet(NpuError):
    """The first node of its kind is not confirmed yet, so no other one may be touched."""


class Wait(str):
    """Why there is no slot now, in a sentence. ``holders``: {name: holder} of those who are in the way; ``short``: whether too few
    chips would remain allocatable, which may last, also without any holder."""

    holders: SlotHolders
    short: bool

    def __new__(cls, text: str, holders: SlotHolders, short: bool = False) -> Wait:
        made = super().__new__(cls, text)
        made.holders, made.short = holders, short
        return made


class Domain(NamedTuple):
    """The nodes with one value of a label, such as those of a zone, a rack or a super pod."""

    label: str
    value: str
    most: int  # of its nodes in maintenance at once
    together: bool = False  # instead: any number of its nodes at once, and none of another domain

    def __str__(self) -> str:
        return "%s=%s" % (self.label, self.value)


class Slots:
    def __init__(self, cluster: AnyCluster, namespace: str, clock: Clock, holder_limit: float = HOLDER_LIMIT) -> None:
        self._cluster, self._clock, self._holder_limit = cluster, clock, holder_limit
        self._watch = SlotWatch(cluster, clock)
        self._first_halt: Halt | None = None
        self._namespace = namespace
        self._collection = "/apis/coordination.k8s.io/v1/namespaces/%s/leases" % namespace
        self._path = "%s/%s" % (self._collection, LEASE)
        self._changes = Watch(cluster, clock, self._collection, field_selector="metadata.name=" + LEASE)

    def wait(self, pause: float, least: float, most: float, spread: float) -> bool:
        """Sleep until the Lease changes, as Watch.wait. Return whether it may have changed since it was last read."""
        return self._changes.wait(pause, least, most, spread)

    def waited(self) -> None:
        """No more waits follow."""
        self._changes.end()

    def view(self) -> LeaseState:
        """{max, halted, holders} as they are."""
        return self._read()[1]

    def take(
        self,
        node: str,
        run: str,
        maximum: int,
        recoveries: int | None = None,
        reason: str = maintenance_record.UPGRADE_REASON,
        pool: str | None = None,
        in_flight: Collection[str] = (),
        soak: float = 0,
        domain: Domain | None = None,
        least: MinAvailable | None = None,
    ) -> Wait | None:
        """Take a slot for ``node``. None when this run has it; else a Wait.

        ``maximum``: slots of the cluster, 0 = unlimited. A node that has a slot of this run keeps it. Raises Halted, and
        Refused when another number is in force. ``recoveries``: for a recovery, how many of those there may be, 0 = any number;
        it takes a slot within whatever number other runs work with.
        ``pool``: the node's kind with what it is to get, unless that is known to work: one node of a kind goes first, and the
        others wait until it is confirmed.
        ``in_flight``: nodes that the caller's run goes on with. A halt because of one of them may end with its maintenance.
        ``soak``: seconds that the node which came back last has to serve before. ``domain``: the one that the node belongs to,
        which limits how many of its nodes have a slot. ``least``: how many chips are to remain allocatable.
        """
        recovers = recoveries is not None
        # Read only when nothing else is in the way. A run that begins meanwhile changes the Lease, and this one decides again.
        nodes = functools.cache(lambda: least.nodes(self._cluster) if least else {})

        def decide(slots: LeaseState) -> Wait | None:
            holders = slots["holders"]
            mine = holders.get(node)
            if mine is not None and mine["run"] == run:
                return None
            if mine is not None and not self._abandoned(node, mine):
                return Wait("the run %s has just resumed it" % mine["run"], {node: mine})
            if maintenance_halt.binds(slots["halted"], reason):
                return self._wait_for_halt(slots, in_flight)
            if mine is not None:
                self._drop(slots, node)
            number, why = _room(slots, maximum, recoveries)
            why = why or _first_of(slots, pool) or self._full(slots, domain) or _short(least, nodes, node, holders)
            if holders and (why or slots["max"] != maximum):
                self._watch.look_at(holders)
                self._drop(slots, *[name for name, holder in holders.items() if self._abandoned(name, holder)])
                number, why = _room(slots, maximum, recoveries)
            others = _upgrades(_counted(holders))
            if not recovers and others and slots["max"] != maximum:
                if not any(self._watch.has_begun(name, holder) for name, holder in others.items()):
                    # About to begin, or dead: then they are dropped before long.
                    told = _slots_text(slots["max"]), _holders_text(others)
                    return Wait("another run, with %s, is about to begin: %s" % told, others)
                raise Refused(
                    "Another run works with %s, this one was started with %s, and the number applies to the whole cluster: wait"
                    " until %s is done, or start this one with npu_upgrade_max_parallel=%d."
                    % (_slots_text(slots["max"]), _slots_text(maximum), ", ".join(sorted(holders)), slots["max"])
                )
            why = why or _first_of(slots, pool) or self._full(slots, domain) or self._soaks(slots, node, soak)
            why = why or _short(least, nodes, node, holders)
            if why:
                return why
            kind = _kind(pool, mine)
            holders[node] = self._holder(run, recovers, kind if kind not in _proved(slots) else None)
            if len(json.dumps(holders)) > _ROOM:
                del holders[node]
                return Wait("the Lease has no room for more than these %d nodes at once" % len(holders), dict(holders))
            slots["max"] = number
            return None

        return self._write(decide)

    def _full(self, slots: LeaseState, domain: Domain | None) -> Wait | None:
        """A Wait if as many nodes of the domain as it allows have a slot, or one of another domain if its nodes go together,
        whichever run and maintenance they are in."""
        if domain is None:
            return None
        counted = _counted(slots["holders"])
        self._watch.look_at(counted)
        values = {name: self._watch.label(name, holder, domain.label) for name, holder in counted.items()}
        if domain.together:
            others = {name: counted[name] for name, value in values.items() if value not in (None, domain.value)}
            told = "nodes of another domain than %s are in maintenance (npu_upgrade_domain.together): %s"
            return Wait(told % (domain, _holders_text(others)), others) if others else None
        same = {name: counted[name] for name, value in values.items() if value == domain.value}
        if len(same) < domain.most:
            return None
        return Wait("npu_upgrade_domain allows %d of %s at once: %s" % (domain.most, domain, _holders_text(same)), same)

    def _soaks(self, slots: LeaseState, node: str, soak: float) -> Wait | None:
        """A Wait for the node that came back last, until it has served long enough."""
        served = slots.get("served") or {}
        since = maintenance_record.seconds_of(served.get("when"))
        left = 0 if since is None else since + soak - self._clock.now()
        # More than all of it: the clock of the API server was set back.
        if not 0 < left <= soak or served["node"] == node:
            return None
        return Wait("%s was upgraded, and serves for %s before another node begins" % (served["node"], duration(soak)), {})

    def _wait_for_halt(self, slots: LeaseState, in_flight: Collection[str]) -> Wait:
        """A Wait as long as the node that was the reason of the halt is gone on with; Halted otherwise."""
        halted = slots["halted"]
        self._first_halt = self._first_halt or halted
        name = halted.get("node")
        if halted != self._first_halt or name not in in_flight or name not in slots["holders"]:
            raise Halted(maintenance_halt.text(halted), halted=halted)
        return Wait("%s, which caused the halt, comes first" % name, {name: slots["holders"][name]})

    def check(self, node: str, run: str, reason: str = maintenance_record.UPGRADE_REASON) -> bool:
        """Raise Halted or NotYet when the node may not go on to its reboot. One request.

        False when it has no slot of this ``run``: of one that is not heard of for a while the slot goes to who waits for it.
        """
        slots = self.view()
        if maintenance_halt.binds(slots["halted"], reason):
            raise Halted(maintenance_halt.text(slots["halted"]), halted=slots["halted"])
        mine = slots["holders"].get(node, {})
        others = {name: holder for name, holder in slots["holders"].items() if name != node}
        why = _first_of(dict(slots, holders=others), mine.get("pool"))
        if why:
            raise NotYet("It has to wait: %s." % why)
        return mine.get("run") == run

    def hold(self, node: str, run: str, recovers: bool = False, pool: str | None = None) -> None:
        """Have a slot for a node whose record is this run's already: it is in maintenance, however many others are."""

        def decide(slots: LeaseState) -> None:
            mine = slots["holders"].get(node)
            if mine is None or mine["run"] != run:
                kind = _kind(pool, mine)
                slots["holders"][node] = self._holder(run, recovers, kind if kind not in _proved(slots) else None)

        self._write(decide)

    def _holder(self, run: str, recovers: bool, pool: str | None) -> SlotHolder:
        holder = {"run": run, "since": maintenance_record.rfc3339(self._clock.now())}
        if recovers:
            return dict(holder, reason=maintenance_record.RECOVERY_REASON)
        return dict(holder, pool=pool) if pool else holder

    def give(self, node: str, run: str, works: str | None = None) -> None:
        """Give the node's slot back, if it is this run's. ``works``: the release that the node got and that is confirmed."""

        def decide(slots: LeaseState) -> None:
            if slots["holders"].get(node, {}).get("run") == run:
                _take_out(slots, node, works)
                if works:
                    slots["served"] = {"node": node, "when": maintenance_record.rfc3339(self._clock.now())}

        self._write(decide)

    def sweep(self) -> list[str]:
        """Drop the holders whose runs were killed when only giving the slot back was left; returns the names of their nodes."""

        def decide(slots: LeaseState) -> list[str]:
            self._watch.look_at(slots["holders"])
            dead = [name for name, holder in slots["holders"].items() if self._watch.ended(name, holder) is not None]
            self._drop(slots, *dead)
            return dead

        return self._write(decide)

    def dead(self, holders: SlotHolders, limit: float) -> dict[str, Record]:
        """{name: record} when dead runs left all of these ``holders`` in the middle of a maintenance, else {}.

        Raises NpuError when the record of one cannot be read, and all others are dead.
        """
        self._watch.look_at(holders)
        found = {name: self._watch.dead(name, holder, limit) for name, holder in sorted(holders.items())}
        if None in found.values():
            return {}
        for record in found.values():
            if isinstance(record, NpuError):
                raise record
        return {name: record for name, record in found.items() if isinstance(record, dict)}

    def halt(self, who: str, why: str, reason: str = maintenance_record.UPGRADE_REASON, node: str | None = None) -> None:
        """Stop every run before its next intent. ``node``: the one that stands in the middle of its maintenance."""

        def decide(slots: LeaseState) -> None:
            halted = maintenance_halt.made(who, why, maintenance_record.rfc3339(self._clock.now()), reason, node)
            if maintenance_halt.outweighs(halted, maintenance_halt.of_failure(slots["halted"])):
                slots["halted"] = maintenance_halt.with_failure(slots["halted"], halted)

        self._write(decide)

    def halted(self, reason: str = maintenance_record.UPGRADE_REASON) -> str | None:
        """The sentences about the halt, or None."""
        halted = self.view()["halted"]
        return maintenance_halt.text(halted) if maintenance_halt.binds(halted, reason) else None

    def clear_halt(self) -> Halt | None:
        """Returns what was cleared ({who, why, when, ...}), or None.

        After a halt, runs go on without the node that was its reason and is still in the middle of its maintenance. It is set
        aside: it takes no slot and is no longer the first of its kind, until a run goes on with it.
        """

        def decide(slots: LeaseState) -> Halt | None:
            cleared = maintenance_halt.of_failure(slots["halted"])
            slots["halted"] = maintenance_halt.with_failure(slots["halted"], None)
            node = (cleared or {}).get("node")
            if node in slots["holders"]:
                slots["holders"][node][ASIDE] = True
            return cleared

        return self._write(decide)

    def pause(self, who: str, why: str) -> Halt:
        """Stop every upgrade and rollback before its next intent, until ``resume``. Returns the pause."""

        def decide(slots: LeaseState) -> Halt:
            now = maintenance_record.rfc3339(self._clock.now())
            slots["halted"] = maintenance_halt.paused(slots["halted"], who, why, now)
            return slots["halted"]

        return self._write(decide)

    def resume(self) -> Halt | None:
        """End a pause; a halt by a maintenance that failed stays. Returns the pause that ended, or None."""

        def decide(slots: LeaseState) -> Halt | None:
            before = slots["halted"]
            if not maintenance_halt.is_pause(before):
                return None
            slots["halted"] = maintenance_halt.of_failure(before)
            return before

        return self._write(decide)

    def _abandoned(self, name: str, holder: SlotHolder) -> bool:
        return self._watch.abandoned(name, holder, self._holder_limit)

    def _drop(self, slots: LeaseState, *names: str) -> None:
        for name in names:
            ended = self._watch.ended(name, slots["holders"][name]) or {}
            _take_out(slots, name, (ended.get("to") or {}).get("release") if ended.get("outcome") == "success" else None)

    def _read(self) -> tuple[Object | None, LeaseState]:
        """(Lease or None, {max, halted, holders})."""
        lease = self._cluster.get(self._path)
        self._changes.read(lease["metadata"].get("resourceVersion") if lease is not None else None)
        slots: LeaseState = {"max": 1, "halted": None, "holders": {}}
        if lease is not None:
            text = kube_client.annotations(lease).get(ANNOTATION)
            try:
                slots.update(data_annotations.slots(text or "{}"))
            except data_annotations.Misfit as exc:
                raise Refused(
                    "The annotation %s of the Lease %s/%s cannot be read: %s. It was edited, or a newer version of"
                    " npuops.ascend wrote it: then use that one. Otherwise check which nodes have the annotation %s; when none"
                    " is in maintenance, kubectl -n %s delete lease %s and run again."
                    % (ANNOTATION, self._namespace, LEASE, exc, maintenance_record.ANNOTATION_RECORD, self._namespace, LEASE)
                )
        return lease, slots

    def _write(self, decide: Callable[[LeaseState], Result]) -> Result:
        """``decide(slots)`` changes the dict and returns the result; it is called again if another run was faster."""
        backoff = _BACKOFF
        while True:
            lease, before = self._read()
            after = copy.deepcopy(before)
            result = decide(after)
            if after == before:
                return result
            annotations = {ANNOTATION: json.dumps(after, sort_keys=True)}
            try:
                if lease is None:
                    self._create(annotations)
                else:
                    self._replace(lease, annotations)
                return result
            except kube_client.Conflict:
                # Many maintenances of a rollout may begin or end at the same moment.
                self._clock.sleep(random.uniform(0, backoff))
                backoff = min(2 * backoff, _LONGEST_BACKOFF)

    def _replace(self, lease: Object, annotations: Labels) -> None:
        metadata = {"annotations": annotations, "resourceVersion": lease["metadata"]["resourceVersion"]}
        try:
            self._cluster.merge_patch(self._path, {"metadata": metadata})
        except kube_client.NotFound as exc:
            raise kube_client.Conflict(exc.message)  # deleted in between: start over

    def _create(self, annotations: Labels) -> None:
        try:
            self._cluster.request("post", self._collection, body=new_lease(self._namespace, annotations))
        except kube_client.NotFound:
            raise Refused(
                "The cluster has no namespace %s, where the Lease %s belongs. Run npuops.ascend.install first, or set"
                " npu_namespace to the value used there." % (self._namespace, LEASE)
            )


def new_lease(namespace: str, annotations: Labels) -> Object:
    """The Lease of all runs, as the first run that needs it creates it."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": LEASE, "namespace": namespace, "annotations": annotations},
        "spec": {},
    }


def _proved(slots: LeaseState) -> list[str]:
    """The kinds that one node was confirmed with."""
    return slots.get("proved") or []


def _take_out(slots: LeaseState, node: str, works: str | None) -> None:
    """``works``: a release that does. That is remembered of the pool, and a halt that was because of this node is over."""
    pool = slots["holders"].pop(node).get("pool")
    failure = maintenance_halt.of_failure(slots["halted"])
    if works and failure and failure.get("node") == node:
        slots["halted"] = maintenance_halt.with_failure(slots["halted"], None)
    # The node may have got another one than it was first of its kind with.
    if works and pool and pool.split(" ")[-1] == works and pool not in _proved(slots):
        slots["proved"] = (_proved(slots) + [pool])[-_MOST_PROVED:]


def _kind(pool: str | None, before: SlotHolder | None) -> str | None:
    """``pool``, as the run ``before`` knew it: it may have asked the host, and this one planned while the host did not answer."""
    known = (before or {}).get("pool")
    return known if pool and known and known.split(" ")[-1] == pool.split(" ")[-1] else pool


def _first_of(slots: LeaseState, pool: str | None) -> Wait | None:
    """A Wait for the first node of this kind, or None."""
    if not pool or pool in _proved(slots):
        return None
    first = {name: holder for name, holder in _counted(slots["holders"]).items() if holder.get("pool") == pool}
    text = "%s is the first of its kind and not confirmed yet: %s"
    return Wait(text % (", ".join(sorted(first)), _holders_text(first)), first) if first else None


def _room(slots: LeaseState, maximum: int, recoveries: int | None) -> tuple[int, Wait | None]:
    """(the number of slots in force, why there is none free or None)."""
    holders = _counted(slots["holders"])
    if recoveries is not None:
        # A halt stops no recovery, so neither does the node that stands still because of it.
        halted = maintenance_halt.of_failure(slots["halted"]) or {}
        holders = {name: holder for name, holder in holders.items() if name != halted.get("node")}
    # Recoveries alone do not say how many an upgrade may take.
    number = slots["max"] if recoveries is not None and _upgrades(holders) else maximum
    if number and len(holders) >= number:
        return number, Wait("all %s taken: %s" % (_slots_text(number), _holders_text(holders)), dict(holders))
    recovering = {name: holder for name, holder in holders.items() if name not in _upgrades(holders)}
    if recoveries and len(recovering) >= recoveries:
        text = "as many nodes are in recovery as npu_heal_max_parallel allows (%d): %s"
        return number, Wait(text % (recoveries, _holders_text(recovering)), recovering)
    return number, None


def _short(least: MinAvailable | None, nodes: Callable[[], dict[str, Object]], node: str, holders: SlotHolders) -> Wait | None:
    """A Wait if too few chips would remain allocatable."""
    others = {name: holder for name, holder in holders.items() if name != node}
    why = least.shortage(nodes(), node, others) if least else None
    return Wait(why, _counted(others), short=True) if why else None


def _counted(holders: SlotHolders) -> SlotHolders:
    """Those that are not set aside."""
    return {name: holder for name, holder in holders.items() if not holder.get(ASIDE)}


def _upgrades(holders: SlotHolders) -> SlotHolders:
    """Those that are no recoveries."""
    return {name: holder for name, holder in holders.items() if holder.get("reason") != maintenance_record.RECOVERY_REASON}


def _slots_text(number: int) -> str:
    return "no limit (npu_upgrade_max_parallel=0)" if not number else "%d slot%s" % (number, "s" if number > 1 else "")


def _holders_text(holders: SlotHolders) -> str:
    return ", ".join(
        "%s (run %s since %s)" % (name, holder["run"], holder.get("since")) for name, holder in sorted(holders.items())
    )
