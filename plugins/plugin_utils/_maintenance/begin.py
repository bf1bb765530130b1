# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a run comes to have a node: its own record there, another's that died, or a new one, with approval and slot."""

from __future__ import annotations

import random

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, sentence
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import this_run
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.annotations import Record
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import View
from ansible_collections.npuops.ascend.plugins.plugin_utils._heal import wedged_reboot
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import LabelChanges, Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance import host_side as maintenance_host_side
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance import purpose as maintenance_purpose
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.adopt import Adoption
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.context import (
    TELL,
    Skipped,
    Work,
    check_skip,
)
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.end import Ending
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import approval, node_log, run_process
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import slots as maintenance_slots
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.node_log import Change
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.outcome import (
    AWAITING,
    BUSY,
    DEFERRED,
    FAILED,
    HALTED,
    NotDue,
    Outcome,
)
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.record import LEFT, PAUSED
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.slot_watch import SlotHolders

# Seconds.
SILENCE_POLL = 5
_SHORT = 300  # after which who waits for chips to become allocatable gives up if no maintenance is to give any back
LOOK = 30  # after which a run that waits for a person or an alert looks again, although no watch reports a change
_LOOK_FOR_SLOT = 60  # the same of one that waits for a slot, at the Lease and at its node: hundreds may wait for hours
_TURN_PAUSES = 2, 15
_TURNS = 5  # a second, of those that wait for the same slot


def turn_pause(waited: float) -> float:
    """Seconds until it is asked for a slot again: a twentieth of what was ``waited``, within bounds. Never quite the same, so that
    many who began to wait together do not ask together."""
    least, most = _TURN_PAUSES
    return min(max(waited / 20, least), most) * random.uniform(0.8, 1.2)


class Beginning:
    def __init__(self, work: Work) -> None:
        """``work``: Work."""
        self._adoption = Adoption(work)
        self._work, self._request, self._policy = work, work.request, work.policy
        self._log, self._slots, self._purpose = work.log, work.slots, work.request.purpose

    def enter(self) -> Outcome | None:
        """Have a record of this run on the node: None. Otherwise the outcome. Raises Lost, Gone or NpuError."""
        found = self._log.open()
        try:
            if found is not None and found["run"] != self._request.run:
                self._refuse_other(found)
                found = self._wait_for_silence(found)
            if found is not None:
                self._refuse_other(found)
                return self._take_up(found)
        except NotDue as exc:
            return self._work.outcome(exc.outcome, exc.reason)
        return self.begin()

    def begin(self) -> Outcome | None:
        """A maintenance of this run's own: None, or the outcome when there is to be none."""
        try:
            return self._begin()
        except NotDue as exc:
            self._slots.give(self._request.node, self._request.run)
            self._slots.sweep()
            return self._work.outcome(exc.outcome, exc.reason)
        finally:
            self._slots.waited()
            self._log.waited()

    # --- a record that exists ---

    def _refuse_other(self, found: Record) -> None:
        """Raise NotDue when the record is to be left to another playbook, whether its run is dead or not."""
        if maintenance_purpose.of_record(found).recovers == self._purpose.recovers:
            return
        if maintenance_record.intended(found):
            # What a recovery's reboot has come to only heal can tell; and heal has no driver to try.
            raise NotDue(BUSY, other_purpose(self._request.node, found))
        if self._purpose.recovers:
            self._purpose.check_due(self._log.node, self._work.clock.now())

    def _take_up(self, found: Record) -> Outcome | None:
        """Go on with it, or clear it away first when it was begun for something else."""
        other = maintenance_record.reason_of(found) != self._request.reason
        # Nothing is wanted any more: the version was set back, say.
        pointless = not self._purpose.recovers and self._request.release is None
        if maintenance_record.intended(found):
            self._go_on(found)
            return None
        if not other and not pointless:
            self._go_on(found, retarget=True)
            return None
        self._go_on(found)
        outcome = Ending(self._work).withdraw()
        return outcome if pointless else self.begin()

    def _go_on(self, found: Record, retarget: bool = False) -> None:
        foreign = found["run"] != self._request.run
        generation, intended, view = found["generation"], maintenance_record.intended(found), None
        if intended or foreign or "unseen" in found:
            # Without an intent, the host has not seen the record's own number.
            self._work.found_generation = found.get("unseen", generation if intended else generation - 1)
        if foreign:
            view = self._work.found_view = self._work.host.peek()
            generation = max(generation, view["generation"] if view else 0) + 1
        wanted: Record = {"to": self._request.target, "reason": self._request.reason} if retarget else {}
        if retarget and approval.given_for(found) not in (None, self._request.version):
            wanted["approval"] = None  # it was given for what the record was about before
        own = view is not None and view["boot_id"] == kube_client.boot_id(self._log.node)
        newer = view is not None and own and view["generation"] <= (self._work.found_generation or 0)
        if foreign and (intended or not newer):
            # Its host may stay silent, or this process end before it is heard: the number that this run gives the record makes it
            # no newer than the host for the next one.
            wanted["unseen"] = self._work.found_generation
        self._log.adopt(found)
        if foreign or dict(found, **wanted) != found:
            self._log.write(
                lambda _node, record: Change(
                    dict(
                        record,
                        **wanted,
                        run=self._request.run,
                        job=self._request.job,
                        generation=generation,
                        heartbeat=self._log.now(),
                    )
                )
            )
        self._slots.hold(self._request.node, self._request.run, self._purpose.recovers, self._work.pool(self._log.own["to"]))
        if foreign:
            self._work.say("continues the maintenance that the run %s left" % found["run"])

    def _wait_for_silence(self, begun: Record) -> Record | None:
        """Wait until nothing is heard of the run with this record, by the own monotonic clock: then it must be dead. What its
        machine took for the time does not count. Returns the record, or None when it has ended.

        Raises Lost as soon as its run shows that it lives.
        """
        found: Record | None = begun
        sign, clock, limit = _sign(begun), self._work.clock, self._policy.heartbeat_limit
        started, told = clock.monotonic(), False
        while found is not None and found["run"] != self._request.run:
            if _sign(found) != sign:
                raise node_log.Lost(node_log.lost_text(self._request.node, found, self._request.run))
            left = limit - (clock.monotonic() - started)
            if left <= 0:
                break
            if run_process.has_ended(found.get("process")):
                self._work.say("the run %s has ended on this machine" % found["run"])
                break
            if not told:
                text = "the run %s has the node, last heartbeat %s: waits %d s for the next one"
                self._work.say(text % (found["run"], found.get("heartbeat"), limit))
                told = True
            self._work.life.beat()
            clock.sleep(min(SILENCE_POLL, left))
            found = self._log.open()
        return found

    # --- a new one ---

    def _begin(self) -> Outcome | None:
        if self._adopt():
            return None
        self._check_due(self._log.node)
        now = self._work.clock.now()
        self._purpose.check_fleet(lambda: self._work.cluster.list("/api/v1/nodes"), now)
        missing = self._missing_approval(self._log.node)
        if missing:
            view = None if self._purpose.recovers else self._work.host.peek()
            if view is not None and self._adopt_unapproved(view):
                return None
            missing = self._ask_for_approval(missing, view)
        if missing:
            return self._work.outcome(AWAITING, missing)
        view = self._identified()
        if not self._purpose.recovers and maintenance_host_side.on_trial(view):
            self._adoption.adopt_trial(view, lost=False)
            return None
        used = self._used_approval(view)
        if used:
            if self._ask_for_approval(used, view):
                return self._work.outcome(AWAITING, used)
            view = self._identified()
        self._purpose.check_host(self._log.node, view)
        self._check_window()
        halted = self._wait_for_slot(view)
        if halted:
            return self._work.outcome(HALTED, halted)
        try:
            self._log.look()
            self._log.write(lambda node, _none: self._first_change(node, view))
        except NpuError:
            self._slots.give(self._request.node, self._request.run)
            raise
        self._work.say("begins: %s" % maintenance_record.way(self._log.own))
        return None

    def _adopt(self) -> bool:
        """Take up what a maintenance left whose record is gone. True when there is a record now. Raises NotDue."""
        node = self._log.node
        lost = self._adoption.is_lost(node)
        if not lost and (self._purpose.recovers or maintenance_record.state(node) in maintenance_record.DUE):
            return False
        view = self._identified()
        if maintenance_host_side.on_trial(view) and not self._purpose.recovers:
            self._adoption.adopt_trial(view, lost)
            return True
        if not lost and not view["next"]:
            if maintenance_record.state(node) is None:
                self._adoption.settle(view)
            return False
        given_back = self._adoption.give_back(view)
        there = maintenance_host_side.has_confirmed(view, self._request.release) and not self._work.lacks_firmware()
        asked = maintenance_record.is_true(kube_client.labels(self._log.node), maintenance_record.LABEL_REQUESTED)
        if not self._purpose.recovers and (self._request.release is None or (there and not asked)):
            raise NotDue(given_back["outcome"], given_back["reason"])
        return False

    def _adopt_unapproved(self, view: View) -> bool:
        """To validate a driver that is on trial takes no reboot, so it needs no approval. True when there is a record now."""
        if not maintenance_host_side.on_trial(view):
            return False
        self._work.check_identity(view)
        self._adoption.adopt_trial(view, lost=False)
        return True

    def _identified(self) -> View:
        view = self._work.host.view()
        self._work.check_identity(view)
        return view

    def _check_due(self, node: Object) -> None:
        if not self._purpose.recovers and maintenance_record.state(node) is None:
            self._adoption.settle(self._identified())
        self._purpose.check_due(node, self._work.clock.now())
        try:
            check_skip(node)
        except Skipped as exc:
            raise NotDue(DEFERRED, exc.message)
        if self._request.failure:
            raise NotDue(FAILED, self._request.failure)

    def _check_window(self) -> None:
        """Raise NotDue outside of the window. Approvals are asked for at any time, to be there when it opens."""
        closed = self._work.outside_window()
        if closed:
            raise NotDue(DEFERRED, closed)

    def _wait_for_alerts(self) -> None:
        """Return when no alert of the user's fires. Raise NotDue if one does for too long."""
        clock = self._work.clock
        told, when, looked = None, 0.0, clock.monotonic()
        end = looked + self._policy.alerts_wait
        while True:
            alert = self._work.alert()
            if alert is None:
                return
            now = clock.monotonic()
            if now >= end:
                raise NotDue(DEFERRED, "Not begun: %s. Run again when that has ended." % alert)
            if now - looked >= LOOK:
                # Another run may have begun with this very node.
                self._check_due(self._log.look())
                self._check_window()
                looked = now
            if alert != told or now - when >= TELL:
                self._work.say("waits: %s" % alert)
                told, when = alert, now
            self._work.life.beat()
            clock.sleep(min(LOOK, end - now))

    def _first_change(self, node: Object, view: View) -> Change:
        self._check_due(node)
        self._check_window()
        generation = max(maintenance_record.last(node).get("generation", 0), view["generation"]) + 1
        before = {"version": view["loaded_version"], "release": view["good"] or view["driver"]}
        last, now = maintenance_record.last(node), self._log.now()
        record = maintenance_record.new_record(
            node,
            self._request.run,
            now,
            generation,
            self._request.reason,
            before,
            self._request.target,
            wedged_reboot.recent(last.get("recoveries"), self._work.clock.now()),
            self._request.job,
        )
        marks = last.get("times", {})
        if maintenance_record.left_cordoned(node):
            record["times"][LEFT] = marks[LEFT]
        if maintenance_record.left_paused(node):
            record["times"][PAUSED] = marks[PAUSED]
        record = self._purpose.begin(record, node, view, now)
        # Where none is needed, an old one is not kept for later.
        old = approval.without_old(node, view["generation"])
        return Change(record, maintenance_record.reboot_required_label(node, record), old)

    # --- a slot ---

    def _wait_for_slot(self, view: View) -> str | None:
        """None with a slot; the sentence about a halt otherwise."""
        clock, pool = self._work.clock, self._work.pool(self._request.target)
        if pool and view["good"] == self._request.target["release"]:
            pool = None  # it has proved itself on this very node
        # Who goes back is in a hurry.
        soak = self._policy.node_soak if self._request.reason == maintenance_record.UPGRADE_REASON else 0
        told, when, started = None, 0.0, clock.monotonic()
        looked = started  # when the node was read last
        alone = started  # since when nothing that runs can give back any chip
        while True:
            self._wait_for_alerts()
            try:
                why = self._slots.take(
                    self._request.node,
                    self._request.run,
                    self._policy.max_parallel,
                    self._purpose.most_at_once,
                    self._request.reason,
                    pool,
                    self._request.in_flight,
                    soak,
                    self._work.domain(),
                    self._policy.min_available,
                )
            except maintenance_slots.Halted as exc:
                return exc.message
            if why is None:
                return None
            now = clock.monotonic()
            if now - looked >= _LOOK_FOR_SLOT:
                # Another run may have begun with this very node.
                self._check_due(self._log.look())
                self._check_window()
                looked = now
            alone = alone if why.short and not why.holders else now
            if now - alone >= _SHORT:
                raise NotDue(DEFERRED, "Not begun: %s. Run again when more nodes serve." % why)
            if why != told or now - when >= TELL:
                self._work.say("waits for its turn: %s" % why)
                told, when = why, now
            self._refuse_dead(why.holders)
            self._work.life.beat()
            pause = turn_pause(now - started)
            self._slots.wait(
                pause, turn_pause(0), _LOOK_FOR_SLOT if why.holders else pause, min(pause, self._request.at_once / _TURNS)
            )

    def _refuse_dead(self, holders: SlotHolders) -> None:
        """Raise NpuError when dead runs left all of these. The limit leaves another worker of this run the time to take one up."""
        limit = max(maintenance_record.HEARTBEAT_LIMIT, self._policy.heartbeat_limit) + TELL
        records = self._slots.dead(holders, limit)
        if records:
            told = "There is no slot: %s was left in the middle of a maintenance by a run that died. Finish it first: %s" % (
                " and ".join(records),
                this_run.in_order(maintenance_purpose.finish(record, name) for name, record in records.items()),
            )
            raise NpuError(told, no_slot=True)

    # --- approval ---

    def _missing_approval(self, node: Object) -> str | None:
        """Why the node may not be rebooted yet, or None."""
        if self._policy.auto or not self._purpose.needs_reboot(node):
            return None
        given, why = self._work.approval(node, self._request.version)
        return None if given is not None else sentence(why)

    def _used_approval(self, view: View) -> str | None:
        """Why the approval on the Node may have been used, or None. ``view``: of this node's own host."""
        if self._policy.auto or not self._purpose.needs_reboot(self._log.node):
            return None
        if not approval.without_old(self._log.node, view["generation"]):
            return None
        again = approval.command([self._request.node], self._purpose.approval_for(self._log.node, self._request.version))
        why = "its approval was removed: %s. To approve it again: %s"
        return sentence(why % (approval.may_be_used(view["generation"]), again))

    def _ask_for_approval(self, missing: str, view: View | None) -> str | None:
        """Label and Event, then wait as long as the policy says; returns why there is none, or None. ``view``: of the host that
        answers, None without one."""
        labels = {maintenance_record.LABEL_STATE: maintenance_record.APPROVAL, maintenance_record.LABEL_REBOOT_REQUIRED: "true"}
        if self._purpose.recovers:
            labels = {}  # the node agent has asked; the state is that of an upgrade
        version = self._request.version
        own = view is not None and view["boot_id"] == kube_client.boot_id(self._log.node)
        generation = view["generation"] if view is not None and own else 0

        def asked(node: Object) -> LabelChanges:
            return dict(approval.ask_for(node, version), **approval.caught_up(node, generation))

        new = any(kube_client.labels(self._log.node).get(name) != value for name, value in labels.items())
        asks = asked(self._log.node)
        if approval.ANNOTATION_APPROVE in asks:
            self._work.say(missing)
        if new or asks:
            self._log.write(lambda node, _none: Change(None, labels, asked(node)))
        self._work.tell_event()
        clock, told = self._work.clock, False
        started = clock.monotonic()
        while True:
            node = self._log.look()
            self._check_due(node)
            lacks, waited = self._missing_approval(node), clock.monotonic() - started
            if not lacks or waited >= self._policy.approval_wait:
                return lacks
            if not told:
                waits = "waits %d s for its approval: %s" % (self._policy.approval_wait, lacks)
                self._work.say(waits, maintenance_record.APPROVAL)
                told = True
            self._work.still()
            left = self._policy.approval_wait - waited
            self._log.wait(min(turn_pause(waited), left), turn_pause(0), min(LOOK, left))


def _sign(record: Record) -> object:
    """What changes as long as a run is at work on a node."""
    return record["run"], record.get("generation"), record.get("heartbeat")


def other_purpose(name: str, found: Record) -> str:
    """The sentence about a maintenance of the other kind that is under way."""
    return "%s is in %s by the run %s (step %s, last heartbeat %s). If that run is dead: %s" % (
        name,
        "recovery" if found["reason"] == maintenance_record.RECOVERY_REASON else found["reason"],
        found["run"],
        found.get("step"),
        found.get("heartbeat"),
        maintenance_purpose.finish(found, name),
    )
