# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Workloads parked, scaled to zero or suspended, and restored to exactly what they were.

What a workload was is written on it in the same request that stops it, and taken off in the one that starts it: whenever a
controller dies, any other can restore. Of those that Commands stop, it is written before the first one and taken off when the
last one has worked.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import Clock, RetryingCluster
from ansible_collections.npuops.ascend.plugins.plugin_utils._park import volcano_jobs, workload_kinds
from ansible_collections.npuops.ascend.plugins.plugin_utils._park.kind_table import Key, Path, Stop
from ansible_collections.npuops.ascend.plugins.plugin_utils._park.parking_mark import MARK, Mark, Unreadable, nested, patch
from ansible_collections.npuops.ascend.plugins.plugin_utils._park.workload_kinds import Workload
from ansible_collections.npuops.ascend.plugins.plugin_utils._park.workload_search import Found
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import run_liveness

_POLL_SECONDS = 1.0
_SHOWN = 3  # workloads in a sentence

# Seconds before what failed is tried again, after all others.
_ROUNDS = (5.0, 10.0, 20.0)


class Outcome:
    """``parked``, ``restored``: lists of {object, was}; ``left``: of {object, reason, repair, command}, with whether a person has
    to see to it, and how; ``changes``: of {object, before, after}; ``unseen``: what could not be looked at, and why;
    ``forbidden``: what may not be; ``unlisted``: what should have been, and how a person does."""

    def __init__(self) -> None:
        self.parked: list[dict[str, Any]] = []
        self.restored: list[dict[str, Any]] = []
        self.left: list[dict[str, Any]] = []
        self.changes: list[dict[str, Any]] = []
        self.unseen: list[str] = []
        self.forbidden: list[str] = []
        self.unlisted: list[str] = []

    def leave(self, workload: Workload, reason: str, repair: bool = False) -> None:
        command = by_hand(workload) if repair else None
        self.left.append({"object": workload.label, "reason": reason.rstrip("."), "repair": repair, "command": command})

    @property
    def problem(self) -> str | None:
        """What could not be restored, as text; None when all could."""
        stay = [entry for entry in self.left if entry["repair"]]
        lines = []
        if stay:
            lines.append("%d parked workload%s not restored:" % (len(stay), " was" if len(stay) == 1 else "s were"))
        for entry in stay:
            lines.append("  %(object)s: %(reason)s" % entry)
            if entry["command"]:
                lines.append("    by hand: %(command)s" % entry)
        if self.unlisted:
            lines.append("More workloads may be parked:")
            lines += ["  " + sentence for sentence in self.unlisted]
        if not lines:
            return None
        return "\n".join(lines + ["After fixing this, any run of npuops.ascend.upgrade restores them."])

    def lines(self) -> list[str]:
        """For people."""
        words = [("parked", entry) for entry in self.parked] + [("restored", entry) for entry in self.restored]
        found = ["%s %s (%s)" % (word, entry["object"], shown(entry["was"])) for word, entry in words]
        found += ["left unchanged: %(object)s: %(reason)s" % entry for entry in self.left]
        return found + ["not checked: %s" % sentence for sentence in self.unseen + self.unlisted]


def by_hand(workload: Workload) -> str | None:
    """The command with which a person restores a parked workload; None when its previous state is unknown."""
    try:
        mark = Mark.read(workload)
    except Unreadable:
        mark = None
    if mark is None:
        return None
    if workload.kind.by_command:
        return volcano_jobs.by_hand(workload, MARK)
    body = patch(mark.restore, {"labels": {MARK: None}, "annotations": {MARK: None}})
    where = ["-n", workload.namespace] if workload.namespace else []
    what = ["patch", workload.kind.resource, workload.name, "--type=merge", "-p", json.dumps(body, separators=(",", ":"))]
    return shlex.join(["kubectl", *where, *what])


def shown(was: Any) -> str:
    """What a workload was, for people."""
    if isinstance(was, bool):
        return "suspended" if was else "running"
    if isinstance(was, str):
        return json.dumps(was)
    return "unset" if was is None else "1 replica" if was == 1 else "%d replicas" % was


class Parking:
    """``dry``: only tell what would be done."""

    def __init__(self, cluster: RetryingCluster, run: str, now: float, dry: bool = False) -> None:
        """``cluster``: _kube.retry.RetryingCluster; ``now``: seconds since 1970."""
        self._cluster, self._run, self._now, self.dry = cluster.retrying_outages_only, run, now, dry
        self._tried: dict[str, dict[str, Any]] = {}
        self._told: set[str] = set()  # Jobs whose controller has been told to resume them
        self.outcome = Outcome()

    def park(self, workloads: Sequence[Workload]) -> None:
        """Raises NpuError when there is no sense in going on."""

        def settle(workload: Workload, exc: NpuError) -> None:
            expected = isinstance(exc, (kube_client.Refused, Unreadable)) or exc.details.get("missing") is not None
            if not expected or getattr(exc, "outage", False):
                raise exc
            self.outcome.leave(workload, exc.message, repair=workload.marked)

        self._each(workloads, self._park, settle)

    def restore(self, workloads: Sequence[Workload]) -> None:
        """Restore all of them, even if some fail: what is not restored now stays stopped until a user notices."""
        gone: list[NpuError] = []  # the outage that keeps the rest; each would wait again for its end

        def act(workload: Workload) -> None:
            if gone:
                raise gone[0]
            self._restore(workload)

        def settle(workload: Workload, exc: NpuError) -> None:
            if getattr(exc, "outage", False):
                gone.append(exc)
            self.outcome.leave(workload, exc.message, repair=True)

        self._each(workloads, act, settle)

    def _each(
        self, workloads: Sequence[Workload], act: Callable[[Workload], None], settle: Callable[[Workload, NpuError], None]
    ) -> None:
        """``act`` on each; what fails alone again when all others have been, a few times. ``settle(workload, exc)``: it stays."""
        for pause in (*_ROUNDS, None):
            failed = []
            for workload in workloads:
                try:
                    self._repeat(workload, act)
                except kube_client.Failing as exc:
                    if pause is None:
                        settle(workload, exc)
                    else:
                        failed.append(workload)
                except NpuError as exc:
                    settle(workload, exc)
            if not failed:
                return
            if pause is None:
                raise AssertionError("in the last round nothing is put off")
            workloads = failed
            self._cluster.clock.sleep(pause)

    def _repeat(self, workload: Workload | None, act: Callable[[Workload], None]) -> None:
        """Repeat until no other client comes between: each write only applies to the version that was read."""
        while workload is not None:
            try:
                act(workload)
                return
            except kube_client.Conflict:
                item = self._cluster.get(workload.path)
                workload = workload_kinds.Workload(workload.kind, item) if item else None
            except kube_client.NotFound:
                return

    def _park(self, workload: Workload) -> None:
        if workload.kind.by_command:
            self._by_command(workload)
            return
        mark = Mark.read(workload)
        if mark is None and workload.stopped:
            return
        if mark is None:
            mark = Mark.of(workload, self._run, self._now)
        elif not workload.stopped and workload.value() != mark.was:
            self._changed(workload, mark)
            return
        if not workload.stopped:
            self._write(workload, mark.path, workload.kind.off, mark)
        self.outcome.parked.append({"object": workload.label, "was": mark.was})

    def _by_command(self, workload: Workload) -> None:
        """Park a workload that a Command stops."""
        mark = Mark.read(workload)
        if workload.over or (mark is None and workload.stopped):
            return
        fresh = mark is None
        if mark is None:
            mark = Mark.of(workload, self._run, self._now)
            self._write_marks(workload, mark)
        if not self.dry and not workload.stopped:
            try:
                volcano_jobs.abort(self._cluster, workload)
            except volcano_jobs.NoCommands:
                item = self._cluster.get(workload.path) if fresh else None
                if item:
                    self._write_marks(Workload(workload.kind, item), None)
                raise
        self.outcome.parked.append({"object": workload.label, "was": mark.was})

    def _resume(self, workload: Workload, mark: Mark) -> None:
        if workload.over:
            self._write_marks(workload, None)
            self.outcome.leave(workload, "it has ended: its phase is %s" % workload.phase)
            return
        entry = {"object": workload.label, "was": mark.was}
        self._tried[workload.path] = entry
        if not self.dry:
            # Once: the controller counts each as a restart. What failed has to be sent again.
            if workload.path not in self._told:
                volcano_jobs.tell_to_resume(self._cluster, workload)
                self._told.add(workload.path)
            now = volcano_jobs.resumed(self._cluster, workload)
            if now is None:
                return
            workload = now
        self._write_marks(workload, None)
        self.outcome.restored.append(entry)

    def _restore(self, workload: Workload) -> None:
        mark = Mark.read(workload)
        if mark is None:
            # Repeated because its answer was lost, a write finds its own effect.
            if workload.path in self._tried:
                self.outcome.restored.append(self._tried[workload.path])
            return
        if workload.kind.by_command:
            self._resume(workload, mark)
            return
        value = workload.value(mark.path)
        if value not in (workload.kind.off, mark.was):
            self._changed(workload, mark)
            return
        self._tried[workload.path] = entry = {"object": workload.label, "was": mark.was}
        self._write(workload, mark.path, mark.was, None)
        self.outcome.restored.append(entry)

    def _changed(self, workload: Workload, mark: Mark) -> None:
        """Another client has set another value: keep it, and remove the marks."""
        self._write(workload, mark.path, workload.value(mark.path), None)
        self.outcome.leave(
            workload,
            "it was changed while it was parked: %s was %s before, %s while parked, and is %s now"
            % (
                ".".join(mark.path),
                json.dumps(mark.was),
                json.dumps(workload.kind.off),
                json.dumps(workload.value(mark.path)),
            ),
        )

    def _write(self, workload: Workload, path: Path, value: Any, mark: Mark | None) -> None:
        """Patch the value and the marks in one request; it is refused if the object was changed since it was read."""
        before = workload.value(path)
        self._patch(workload, {} if value == before else nested(path, value), mark)
        self.outcome.changes.append({"object": workload.label, "before": before, "after": value})

    def _write_marks(self, workload: Workload, mark: Mark | None) -> None:
        self._patch(workload, {}, mark)
        self.outcome.changes.append({"object": workload.label, "before": mark is None, "after": mark is not None})

    def _patch(self, workload: Workload, body: dict[str, Any], mark: Mark | None) -> None:
        if self.dry:
            return
        metadata = {
            "resourceVersion": workload.item["metadata"]["resourceVersion"],
            "labels": {MARK: "true" if mark else None},
            "annotations": {MARK: mark.text() if mark else None},
        }
        self._cluster.merge_patch(workload.path, patch(body, metadata), field_manager=kube_client.FIELD_MANAGER)


def notes(found: Found, resources: Iterable[str]) -> list[str]:
    """What a plan tells of the _park.workload_search.Found that are parked for ``resources``: sentences."""
    resources = list(resources)
    workloads, told = found.asking(resources), []
    if workloads:
        names = ", ".join(workload.label for workload in workloads[:_SHOWN]) + (", ..." if len(workloads) > _SHOWN else "")
        told.append("%s will be parked, and restored at the end: %s" % (_count(workloads), names))
    left = found.unstoppable(resources)
    if left:
        names = "; ".join("%s: %s" % entry for entry in left[:_SHOWN]) + ("; ..." if len(left) > _SHOWN else "")
        told.append("%s cannot be parked, and the pods will be evicted: %s" % (_count(left), names))
    return told


def _count(found: Sequence[Any]) -> str:
    return "1 workload" if len(found) == 1 else "%d workloads" % len(found)


def restore_all(
    cluster: RetryingCluster,
    parking: Parking,
    life: run_liveness.Life,
    run: str,
    heartbeat_limit: float,
    say: Callable[[str], None],
    declared: Mapping[Key, Stop],
) -> None:
    """Restore whatever is parked, by whichever run, unless that run is another than ``run`` and at work: shows within
    ``heartbeat_limit`` seconds that it lives. ``life``: the _record.run_liveness.Life of ``run``.

    A list by label for each kind that stops, and what is parked costs a request each. That a user may not look at workloads
    is no failure: an upgrade that does not park needs no such right.
    """
    found = _all_parked(cluster, parking.outcome, declared)
    runs = {name for name in map(run_of, found) if name is not None} - {run}
    busy = run_liveness.living(cluster, runs, life, heartbeat_limit, cluster.clock, say) if runs else ()
    free = []
    for workload in found:
        if run_of(workload) in busy:
            why = "it was parked by the run %s, which is still running and will restore it" % run_of(workload)
            parking.outcome.leave(workload, why)
        else:
            free.append(workload)
    parking.restore(free)
    if not parking.dry:
        _forget(life, runs - set(busy))


def _forget(life: run_liveness.Life, dead: Iterable[str]) -> None:
    """The signs of life of runs of which nothing is parked that a later run should not restore at once."""
    try:
        life.end(dead)
    except NpuError:
        pass  # a sign that does not change is not taken for life


def run_of(workload: Workload) -> str | None:
    try:
        mark = Mark.read(workload)
    except (NpuError, AttributeError):
        return None
    return mark.run if mark else None


def _all_parked(cluster: RetryingCluster, outcome: Outcome, declared: Mapping[Key, Stop]) -> list[Workload]:
    found = []
    for kind in workload_kinds.stopping(_kinds(cluster, outcome, declared)):
        try:
            items = list(workload_kinds.each(cluster, kind, label_selector=MARK + "=true"))
        except kube_client.Unreachable as exc:
            if kind.built_in:
                raise
            outcome.unseen.append("%s: %s" % (kind.list_path, exc.message))
        except NpuError as exc:
            text = "%s: %s" % (kind.list_path, exc.message)
            if exc.details.get("missing") is not None:
                outcome.forbidden.append(text)
            elif kind.built_in:
                look = "kubectl get %s -A -l %s=true" % (kind.resource, MARK)
                outcome.unlisted.append("%s; look with %s" % (text.rstrip("."), look))
            else:
                outcome.unseen.append(text)
        else:
            found += [workload_kinds.Workload(kind, item) for item in items]
    return found


def _kinds(cluster: RetryingCluster, outcome: Outcome, declared: Mapping[Key, Stop]) -> dict[Key, workload_kinds.Kind]:
    """All kinds; those that Kubernetes itself has, when no more can be learnt."""
    try:
        return workload_kinds.discover(cluster, declared)
    except kube_client.Refused as exc:
        outcome.unlisted.append("/apis: the custom resources cannot be listed: %s" % exc.message.rstrip("."))
        return {}


def wait_until_stopped(
    cluster: RetryingCluster,
    workloads: Sequence[Workload],
    clock: Clock,
    timeout: float,
    say: Callable[[str], None],
    beat: Callable[[], None],
) -> list[Workload]:
    """Wait until none of the ``workloads`` has a pod that was not told to end. Returns those that still have at the limit.

    A drain waits for pods that end, but a budget speaks against one that does not. One list by label for each kind and
    second.
    """
    deadline, told = clock.monotonic() + timeout, False
    while True:
        waiting = _still_running(cluster, workloads)
        if not waiting or (timeout and clock.monotonic() >= deadline):
            return waiting
        if not told:
            say("waits for the pods of %s to end" % ", ".join(workload.label for workload in waiting[:3]))
            told = True
        beat()
        clock.sleep(_POLL_SECONDS)


def _still_running(cluster: RetryingCluster, workloads: Sequence[Workload]) -> list[Workload]:
    wanted: dict[workload_kinds.Kind, set[str]] = {}
    found = []
    for workload in workloads:
        wanted.setdefault(workload.kind, set()).add(workload.path)
    for kind, paths in wanted.items():
        for item in workload_kinds.each(cluster, kind, label_selector=MARK + "=true"):
            workload = workload_kinds.Workload(kind, item)
            stopped = workload.stopped or kind.by_command  # which takes a moment
            if workload.path in paths and stopped and workload.still_running():
                found.append(workload)
    return found
