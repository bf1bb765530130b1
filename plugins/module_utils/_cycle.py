# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One node's way through its maintenance, from whatever the Node says to the step that is asked for.

The state is on the node, not here. Every step looks, decides, and makes one mutating call at a time, so that a run
killed before or after any of them and started again comes to the same end.

Runs on the controller. Private to npuops.ascend: no API, may change without notice.
"""

from __future__ import annotations

import dataclasses


from ansible_collections.npuops.ascend.plugins.module_utils import _cluster, _cycle_host, _maintenance, _slots
from ansible_collections.npuops.ascend.plugins.module_utils._cycle_host import HostSide, HostUnreachable
from ansible_collections.npuops.ascend.plugins.module_utils._errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._eviction import Blocked
from ansible_collections.npuops.ascend.plugins.module_utils._maintenance import Change
from ansible_collections.npuops.ascend.plugins.module_utils._patience import PatientCluster

# Outcomes.
UNDER_WAY = "under-way"  # the step asked for is reached
DONE = "done"
UP_TO_DATE = "up-to-date"
AWAITING = "awaiting-approval"
DEFERRED = "deferred"  # given back untouched; due still
FAILED = "failed"
HALTED = "halted"
BUSY = "busy"  # another run has it

# What ``until`` may say, and the steps before which it stops.
UNTIL = ("cordon", "reboot", "validation", "done")
_ORDER = (
    _maintenance.CORDON,
    _maintenance.JOBS,
    _maintenance.PODS,
    _maintenance.DRAIN,
    _maintenance.REBOOT,
    _maintenance.VALIDATION,
    _maintenance.UNCORDON,
)
# Marks among the record's times that are no steps.
VALIDATED, PAUSED, INTENT = "validated", "components-paused", "reboot"

MOST_ATTEMPTS = 3
_COMPONENTS_LIMIT = 120  # seconds until paused components have left
_ALLOCATABLE_LIMIT = 300
_TELL = 60  # seconds after which what is waited for is told again
_POLL = 2.0
# What install puts on a node, for a Node object that was made anew.
_INSTALLED_LABELS = (
    _cluster.LABEL_PRESENT,
    _cluster.LABEL_CHIP,
    _cluster.LABEL_DRIVER_VERSION,
    "accelerator",
    "workerselector",
    "node-role.kubernetes.io/worker",
    "host-arch",
    _maintenance.LABEL_KEEP_CORDONED,
    _maintenance.LABEL_SKIP,
    _maintenance.LABEL_REQUESTED,
)


class Uncordoned(Exception):
    """Somebody uncordoned the node before its reboot was certain."""


class Withdrawn(NpuError):
    """The approval is not there any more."""


class Invalid(NpuError):
    """The node is not in order on the driver it has now."""


@dataclasses.dataclass(frozen=True)
class Order:
    """What this run wants of the node. ``target``: {version, release, digest}, or {} for a recovery."""

    node: str
    run: str
    reason: str = _maintenance.UPGRADE_REASON
    target: dict = dataclasses.field(default_factory=dict)
    resource: str = ""  # what the node offers, such as huawei.com/Ascend910; "": nothing is waited for
    chips: int = 0
    namespace: str = "npu-operator"
    job: str | None = None  # AWX job, for the record
    failure: str | None = None  # what a hook of the user's found wrong: the node goes back
    approval_not_before: float | None = None


@dataclasses.dataclass(frozen=True)
class Policy:
    auto: bool = False
    max_parallel: int = 1
    reboot_timeout: int = 1800
    max_failures: int = 1
    approval_wait: int = 0
    approval_max_age: int = 0
    heartbeat_limit: int = _maintenance.HEARTBEAT_LIMIT


class Cycle:
    """``cluster``: Cluster; ``host``: the port of _cycle_host; ``pods(cluster, beat, say)``: a Drain; ``smoke(cluster, beat,
    say)``: runs the user's own pod and raises NpuError, or None; ``say(step, seconds, sentence)``."""

    def __init__(self, cluster, host, pods, order, policy, clock, say, smoke=None):
        self._order, self._policy, self._clock, self._say_to = order, policy, clock, say
        self._started = clock.now()
        self._cluster = PatientCluster(cluster, self._say, clock)
        self._log = _maintenance.NodeLog(self._cluster, order.node, order.run, clock)
        self._slots = _slots.Slots(
            self._cluster, order.namespace, clock, min(_slots.HOLDER_LIMIT, policy.heartbeat_limit)
        )
        self._host = HostSide(host, self._log, clock, self._say)
        self._pods = pods(self._cluster, self._beat, self._say)
        self._smoke = smoke
        self._handlers = {
            _maintenance.CORDON: self._cordon,
            _maintenance.JOBS: self._wait_for_jobs,
            _maintenance.PODS: self._evict_npu_pods,
            _maintenance.DRAIN: self._drain,
            _maintenance.REBOOT: self._reboot,
            _maintenance.VALIDATION: self._validate,
            _maintenance.ROLLBACK: self._roll_back,
            _maintenance.UNCORDON: self._uncordon,
        }

    @property
    def changed(self):
        """Whether the Node was written."""
        return self._log.writes > 0

    def run(self, until="done"):
        """Returns {outcome, step, reason, seconds, blockers}: how far it came and why, in one sentence."""
        try:
            outcome = self._enter()
            while outcome is None:
                outcome = self._stop(until) or self._step()
            return outcome
        except _maintenance.Lost as exc:
            return self._outcome(BUSY, exc.message)
        except _maintenance.Gone as exc:
            # Without a Node there is nothing that could be given back but the slot.
            self._slots.give(self._order.node, self._order.run)
            return self._outcome(FAILED, exc.message)
        except _cluster.Unreachable as exc:
            raise NpuError(
                "%s The maintenance of %s stays as it is; run again, which goes on with it."
                % (exc.message, self._order.node),
                **self._outcome(FAILED, exc.message)
            )

    # --- in and out ---

    def _enter(self):
        """Have a record of this run on the node; else the outcome."""
        found = self._log.open()
        if found is not None and found["run"] != self._order.run:
            found = self._wait_for_silence(found)
        if found is None:
            return self._begin()
        foreign = found["run"] != self._order.run
        self._log.adopt(found)
        if foreign or self._retarget(found) != found:
            generation = max(found["generation"], self._host.generation()) + 1 if foreign else found["generation"]
            self._log.write(
                lambda _node, record: Change(
                    dict(self._retarget(record), run=self._order.run, generation=generation, heartbeat=self._log.now())
                )
            )
        self._slots.hold(self._order.node, self._order.run)
        if foreign:
            self._say("goes on with the maintenance that the run %s left" % found["run"])
        return None

    def _retarget(self, record):
        """The record with what this run wants, as long as no reboot is intended."""
        if record["boot_id"] is not None or record["step"] not in _ORDER[:5]:
            return record
        return dict(record, to=self._order.target, reason=self._order.reason)

    def _wait_for_silence(self, found):
        """Wait until a foreign record is so old that its run must be dead; returns it, or None when it has ended.

        Raises Lost as soon as its run shows that it lives.
        """
        run, beat, told = found["run"], found["heartbeat"], False
        while True:
            if found is None:
                return None
            if found["run"] == self._order.run:
                return found
            if (found["run"], found["heartbeat"]) != (run, beat):
                raise _maintenance.Lost(_maintenance.lost_text(self._order.node, found, self._order.run))
            age = _maintenance.age(found, self._clock.now())
            if age > self._policy.heartbeat_limit:
                return found
            if not told:
                self._say(
                    "the run %s was here %d s ago: waits until it shows that it lives, at most %d s"
                    % (run, max(age, 0), self._policy.heartbeat_limit - age)
                )
                told = True
            self._clock.sleep(_POLL)
            found = self._log.open()

    def _begin(self):
        order, node = self._order, self._log.node
        if _maintenance.state(node) is None:
            self._slots.sweep()
            return self._outcome(UP_TO_DATE)
        if _maintenance.state(node) == _maintenance.FAILED:
            self._slots.sweep()
            return self._outcome(FAILED, _failed_before(node))
        if _maintenance.is_true(_cluster.labels(node), _maintenance.LABEL_SKIP):
            return self._outcome(DEFERRED, "It has the label %s=true." % _maintenance.LABEL_SKIP)
        missing = self._missing_approval(node)
        if missing:
            missing = self._ask_for_approval()
            if missing:
                return self._outcome(AWAITING, missing)
        view = self._view_of_this_node()
        halted = self._wait_for_slot()
        if halted:
            return self._outcome(HALTED, halted)
        try:
            self._log.look()
            self._log.write(lambda node, _none: self._first_change(node, view))
        except (_maintenance.Lost, NpuError):
            self._slots.give(order.node, order.run)
            raise
        self._say("begins: %s" % _way(self._log.record))
        return None

    def _first_change(self, node, view):
        generation = max(_maintenance.last(node).get("generation", 0), view["generation"]) + 1
        before = {"version": view["loaded_version"], "release": view["good"] or view["driver"]}
        record = _maintenance.new_record(
            node, self._order.run, self._log.now(), generation, self._order.reason, before, self._order.target
        )
        labels = {_maintenance.LABEL_REBOOT_REQUIRED: _maintenance.reboot_required(node, False)}
        return Change(record, labels)

    def _wait_for_slot(self):
        """None with a slot; the sentence about a halt otherwise."""
        told, when, dead_since = None, 0.0, None
        while True:
            try:
                why = self._slots.take(self._order.node, self._order.run, self._policy.max_parallel)
            except _slots.Halted as exc:
                return exc.message
            if why is None:
                return None
            now = self._clock.monotonic()
            if why != told or now - when >= _TELL:
                self._say("waits for its turn: %s" % why)
                told, when = why, now
            dead = self._dead_holders()
            dead_since = (now if dead_since is None else dead_since) if dead else None
            if dead and now - dead_since > self._policy.heartbeat_limit + _TELL:
                raise NpuError(
                    "There is no slot: %s was left in the middle of a maintenance by a run that died. Finish it first:"
                    " ansible-playbook npuops.ascend.upgrade --limit %s" % (" and ".join(dead), ",".join(dead))
                )
            self._clock.sleep(_POLL)

    def _dead_holders(self):
        """The names of all nodes with a slot, when all of them were left by dead runs; else []."""
        names = []
        for name in sorted(self._slots.view()["holders"]):
            node = self._cluster.get(_maintenance.path_of(name))
            record = node and _maintenance.decode(node)
            if not record or _maintenance.age(record, self._clock.now()) <= self._policy.heartbeat_limit:
                return []
            names.append(name)
        return names

    def _stop(self, until):
        """The outcome when the step asked for is reached."""
        record = self._log.record
        if until == "done" or record["step"] == _maintenance.ROLLBACK:
            return None
        last = {"cordon": _maintenance.CORDON, "reboot": _maintenance.REBOOT, "validation": _maintenance.VALIDATION}
        at, stop = _ORDER.index(record["step"]), _ORDER.index(last[until])
        if at < stop or (until == "validation" and at == stop and not self._marked(VALIDATED)):
            return None
        return self._outcome(UNDER_WAY) if not self._order.failure else None

    def _step(self):
        """Do what is due. None, or the outcome with which the node is let go."""
        step, intended = self._log.record["step"], self._log.record["boot_id"] is not None
        try:
            if self._order.failure and step != _maintenance.ROLLBACK:
                return self._user_says_no(intended)
            return self._handlers[step]()
        except Uncordoned:
            self._say("somebody uncordoned the node: begins again")
            self._log.step(_maintenance.CORDON)
        except _maintenance.Recreated:
            self._record_anew()
        except (_maintenance.Lost, _maintenance.Gone, _cluster.Unreachable):
            raise
        except Withdrawn as exc:
            return self._give_back(AWAITING, exc.message)
        except (Blocked, _cycle_host.Held) as exc:
            return self._give_back(DEFERRED, exc.message, exc.details.get("blockers"))
        except _cycle_host.NotSent as exc:
            return self._give_back(FAILED, exc.message)
        except HostUnreachable as exc:
            return self._halt(exc) if intended else self._give_back(DEFERRED, exc.message)
        except NpuError as exc:
            return self._halt(exc) if intended else self._give_back(FAILED, exc.message)
        return None

    def _user_says_no(self, intended):
        """A hook failed."""
        if intended:
            self._to_rollback(self._order.failure)
            return None
        return self._give_back(FAILED, self._order.failure)

    # --- until the node is empty ---

    def _cordon(self):
        halted = self._slots.halted()
        if halted:
            return self._give_back(HALTED, halted)
        blockers = self._pods.simulate()
        if blockers:
            text = "; ".join(blocker.text for blocker in blockers)
            return self._give_back(DEFERRED, "Not cordoned: %s." % text, [blocker.result() for blocker in blockers])

        def decide(node, record):
            before = _maintenance.unschedulable(node) and not _cordon_is_ours(node)
            changed = self._due(record, _maintenance.JOBS, unschedulable=before)
            return Change(changed, cordon=True)

        self._log.write(decide)
        return None

    def _wait_for_jobs(self):
        remaining = self._pods.wait_for_jobs()
        if remaining:
            self._say("goes on without waiting longer for %d pods" % len(remaining))
        self._log.step(_maintenance.PODS, guard=_cordoned)

    def _evict_npu_pods(self):
        count = self._pods.evict_npu_pods()
        if count:
            self._say("NPU pods evicted: %d" % count)
        self._log.step(_maintenance.DRAIN, guard=_cordoned)

    def _drain(self):
        count = self._pods.evict_others()
        if count:
            self._say("pods evicted: %d" % count)
        self._pause_components()
        self._pods.wait_components_gone(_COMPONENTS_LIMIT)
        holders = self._host.wait_free()
        if holders:
            blockers = _cycle_host.holder_blockers(holders)
            raise _cycle_host.Held("Not rebooted: %s." % _cycle_host.held_text(holders), blockers=blockers)
        self._log.step(_maintenance.REBOOT, guard=_cordoned)

    def _pause_components(self):
        if self._components() == "enabled":
            times = dict(self._log.record["times"], **{PAUSED: self._log.now()})
            labels = {_cluster.LABEL_COMPONENTS: "paused"}
            self._log.step(self._log.record["step"], labels=labels, guard=_cordoned, times=times)

    # --- reboot ---

    def _reboot(self):
        if self._log.record["boot_id"] is None:
            self._intend()
            return
        view = self._host.reboot(self._log.record["to"].get("release"), self._policy.reboot_timeout, refuse_held=True)
        self._say("is back")
        record = self._log.record
        release = record["to"].get("release")
        if release is None or view["driver"] == release:
            self._log.step(_maintenance.VALIDATION)
        elif not _cycle_host.came_without_trial(view, record):
            self._to_rollback("the trial of %s ended by itself: the host was rebooted once more" % release, rebooted=True)
        elif record["attempt"] >= MOST_ATTEMPTS:
            why = "the host booted %d times without trying %s; see journalctl -u npu-driver-select there"
            self._to_rollback(why % (record["attempt"], release), rebooted=True)
        else:
            self._say("the host booted without trying %s (a power loss?): once more" % release)
            self._log.step(_maintenance.REBOOT, boot_id=None, attempt=record["attempt"] + 1)

    def _intend(self):
        """The one patch after which the host will be rebooted: the boot ID it has now, and the approval consumed."""
        view = self._view_of_this_node()
        if _cycle_host.trial_runs(view, self._log.record["to"].get("release")):
            self._log.step(_maintenance.VALIDATION, guard=_cordoned)
            return
        if view["holders"]:
            text = _cycle_host.held_text(view["holders"])
            raise _cycle_host.Held("Not rebooted: %s." % text, blockers=_cycle_host.holder_blockers(view["holders"]))

        def decide(node, record):
            _cordoned(node, record)
            given, why = self._approval(node)
            if given is None and record["approval"] is None and not self._policy.auto:
                raise Withdrawn(_sentence(why))
            changed = self._due(record, record["step"], boot_id=view["boot_id"])
            changed["times"] = dict(changed["times"], **{INTENT: self._log.now()})
            if given is not None:
                changed["approval"] = dict(given, job=self._order.job)
            labels = {_maintenance.LABEL_REBOOT_REQUIRED: _maintenance.reboot_required(node, False)}
            gone = {_maintenance.ANNOTATION_APPROVE: None, _maintenance.ANNOTATION_APPROVED_BY: None}
            return Change(changed, labels, gone)

        self._log.write(decide)

    # --- validation and the ways out ---

    def _validate(self):
        record = self._log.record
        release = record["to"].get("release")
        try:
            if not self._marked(VALIDATED):
                self._in_order(record["to"].get("version"), release)
                if self._smoke is not None:
                    self._say("runs the smoke pod")
                    self._smoke(self._cluster, self._beat, self._say)
                times = dict(self._log.record["times"], **{VALIDATED: self._log.now()})
                self._log.step(_maintenance.VALIDATION, times=times)
                return
            if release is not None:
                self._confirm(release)
        except Invalid as exc:
            self._to_rollback(exc.message, rebooted=exc.details.get("trial_over", False))
            return
        self._log.step(_maintenance.UNCORDON)

    def _confirm(self, release):
        _same_driver(self._host.view(), release)
        try:
            self._host.confirmed(self._log.record["generation"], release)
        except HostUnreachable:
            raise
        except NpuError as exc:
            raise Invalid("the release could not be confirmed: %s" % exc.message)

    def _in_order(self, version, release):
        """Raise Invalid unless host and node are as they should be with this driver."""
        view, why = self._host.wait_driver()
        _same_driver(view, release)
        if why:
            raise Invalid(why)
        self._say("validates the host")
        result = self._host.validate(version)
        if not result["valid"]:
            raise Invalid("the host is not in order: %s" % result["msg"])
        self._resume_components()
        self._wait_allocatable()

    def _resume_components(self):
        if self._marked(PAUSED) and self._components() == "paused":
            self._log.step(self._log.record["step"], labels={_cluster.LABEL_COMPONENTS: "enabled"})

    def _wait_allocatable(self):
        resource, chips = self._order.resource, self._order.chips
        if not resource or self._components() != "enabled":
            return
        deadline, told = self._clock.monotonic() + _ALLOCATABLE_LIMIT, False
        while True:
            offered = _cluster.allocatable(self._log.look(), resource)
            if offered == chips:
                return
            if self._clock.monotonic() >= deadline:
                raise Invalid(
                    "the node offers %d of %d %s after %d s; see the device plugin's pod there"
                    % (offered, chips, resource, _ALLOCATABLE_LIMIT)
                )
            if not told:
                self._say("waits until the node offers %d %s" % (chips, resource))
                told = True
            self._beat()
            self._clock.sleep(_POLL / 2)

    def _to_rollback(self, why, rebooted=False):
        """``rebooted``: the host is back on its good driver already, so no other reboot is needed."""
        self._say("goes back: %s" % why)
        record = self._log.record
        labels, times = {}, dict(record["times"])
        if self._components() == "enabled":
            labels[_cluster.LABEL_COMPONENTS] = "paused"
            times[PAUSED] = self._log.now()
        boot_id = record["boot_id"] if rebooted else None
        self._log.step(_maintenance.ROLLBACK, labels=labels, times=times, boot_id=boot_id, failure=why)

    def _roll_back(self):
        record = self._log.record
        if record["boot_id"] is None:
            view = self._host.view()
            if view["good"] is None:
                return self._fail("There is no good release to go back to.")
            if view["good"] != view["driver"]:
                self._leave_quietly()
                self._log.step(_maintenance.ROLLBACK, boot_id=view["boot_id"])
                return None
        else:
            view = self._host.reboot(None, self._policy.reboot_timeout, refuse_held=False)
        try:
            if view["driver"] != view["good"]:
                raise Invalid("the host still has %s, its good release is %s" % (view["driver"], view["good"]))
            self._in_order(record["from"]["version"], view["good"])
        except Invalid as exc:
            return self._fail("After going back: %s." % exc.message.rstrip("."))
        self._host.withdrawn(record["generation"])
        return self._end_failed("rolled-back", "It is back on %s and healthy." % record["from"]["version"], True)

    def _leave_quietly(self):
        """The components shall not be cut off in the middle, but nobody keeps a node from going back."""
        try:
            self._pods.wait_components_gone(_COMPONENTS_LIMIT)
        except Blocked:
            pass

    def _fail(self, why):
        return self._end_failed("failed", "%s It stays cordoned." % why, False)

    def _end_failed(self, outcome, addition, healthy):
        """The driver did not work. Halted first: a run killed after that has not gone on to the next node."""
        record = self._log.record
        reason = "%s on %s: %s. %s" % (
            "The %s to %s failed" % (record["reason"], record["to"].get("version")),
            self._order.node,
            (record["failure"] or "unknown").rstrip("."),
            addition,
        )
        if not healthy or 0 < self._policy.max_failures <= self._failures() + 1:
            self._slots.halt("the run " + self._order.run, reason)

        def decide(node, record):
            labels = {
                _maintenance.LABEL_STATE: _maintenance.FAILED,
                _maintenance.LABEL_REBOOT_REQUIRED: _maintenance.reboot_required(node, False),
                _maintenance.LABEL_REQUESTED: None,
            }
            if not healthy and self._components() == "enabled" and PAUSED in record["times"]:
                labels[_cluster.LABEL_COMPONENTS] = "paused"
            return self._end(node, record, outcome, labels, _gives_cordon_back(node, record) if healthy else None, reason)

        self._log.write(decide)
        self._slots.give(self._order.node, self._order.run)
        return self._outcome(FAILED, reason)

    def _failures(self):
        """How many other nodes failed in this run."""
        selector = "%s=%s" % (_maintenance.LABEL_STATE, _maintenance.FAILED)
        nodes = self._cluster.list("/api/v1/nodes", label_selector=selector)
        return sum(
            _maintenance.last(node).get("run") == self._order.run and node["metadata"]["name"] != self._order.node
            for node in nodes
        )

    def _uncordon(self):
        started = _maintenance.seconds_of(self._log.record["started"])

        def decide(node, record):
            labels = {
                _maintenance.LABEL_STATE: None,
                _maintenance.LABEL_REBOOT_REQUIRED: _maintenance.reboot_required(node, False),
                _maintenance.LABEL_REQUESTED: None,
            }
            if record["to"].get("version"):
                labels[_cluster.LABEL_DRIVER_VERSION] = record["to"]["version"]
            return self._end(node, record, "success", labels, _gives_cordon_back(node, record), None)

        way = _way(self._log.record)
        self._log.write(decide)
        self._slots.give(self._order.node, self._order.run)
        kept = _maintenance.unschedulable(self._log.node)
        self._say("done: %s%s" % (way, "; the node stays cordoned, as it was" if kept else ""), _maintenance.UNCORDON)
        return self._outcome(DONE, seconds=self._clock.now() - started)

    def _give_back(self, outcome, why, blockers=()):
        """Before the reboot is certain: everything as it was, and the node is due still."""

        def decide(node, record):
            waits = outcome == AWAITING
            labels = {
                _maintenance.LABEL_STATE: _maintenance.APPROVAL if waits else _maintenance.UPGRADE,
                _maintenance.LABEL_REBOOT_REQUIRED: _maintenance.reboot_required(node, waits),
            }
            if PAUSED in record["times"] and _cluster.labels(node).get(_cluster.LABEL_COMPONENTS) == "paused":
                labels[_cluster.LABEL_COMPONENTS] = "enabled"
            cordoned = record["unschedulable"] is not None
            cordon = _gives_cordon_back(node, record) if cordoned else None
            change = self._end(node, record, outcome, labels, cordon, why)
            if record["approval"] is not None:
                # It was for a reboot that did not take place.
                change.annotations[_maintenance.ANNOTATION_APPROVE] = "true"
                change.annotations[_maintenance.ANNOTATION_APPROVED_BY] = record["approval"].get("by")
            return change

        step = self._log.record["step"]
        if self._log.record["boot_id"] is not None:
            self._host.withdrawn(self._log.record["generation"])
        self._log.write(decide)
        self._slots.give(self._order.node, self._order.run)
        self._say("given back: %s" % why, step)
        if outcome == AWAITING:
            self._event()
        return self._outcome(outcome, why, blockers, step=step)

    def _end(self, node, record, outcome, labels, cordon, why):
        """The Change with which the record becomes the last one."""
        closed = dict(record, heartbeat=self._log.now())
        if why is not None:
            closed["failure"] = why
        annotations = {_maintenance.ANNOTATION_LAST: _maintenance.ended(closed, outcome, self._log.now())}
        return Change(None, labels, annotations, cordon)

    def _halt(self, exc):
        """The node is neither on the new driver nor back: its record and slot stay, and nobody goes on."""
        record, node = self._log.record, self._order.node
        why = "%s is in the middle of its maintenance (%s). %s See to the host %s (console, power); then run again." % (
            node,
            record["step"],
            _sentence(exc.message),
            node,
        )
        self._slots.halt("the run " + self._order.run, why)
        self._log.step(record["step"], failure=exc.message)
        self._say("halted: %s" % exc.message)
        return self._outcome(HALTED, why)

    def _record_anew(self):
        """Somebody deleted the Node and the kubelet registered it again: what is under way is written on the new one."""
        self._say("the Node object was made anew: writes down again what is under way")
        previous = _cluster.labels(self._log.previous)
        labels = {name: previous[name] for name in _INSTALLED_LABELS if name in previous}
        node = self._log.node

        def change_of(record):
            record.update(uid=node["metadata"].get("uid"), heartbeat=self._log.now())
            if record["boot_id"] is None and record["step"] in _ORDER:
                record.update(step=_maintenance.CORDON)
                labels[_cluster.LABEL_COMPONENTS] = previous.get(_cluster.LABEL_COMPONENTS)
                return Change(record, labels)
            if PAUSED in record["times"]:
                labels[_cluster.LABEL_COMPONENTS] = "paused"
            return Change(record, labels, cordon=True)

        self._log.adopt_new_node(change_of)

    # --- approval ---

    def _approval(self, node):
        return _maintenance.approval(
            node, self._clock.now(), self._policy.approval_max_age, self._order.approval_not_before
        )

    def _missing_approval(self, node):
        """Why the node may not be rebooted yet, or None."""
        if self._policy.auto:
            return None
        given, why = self._approval(node)
        return None if given is not None else _sentence(why)

    def _ask_for_approval(self):
        """Label and Event, then wait as long as the policy says; returns why there is none, or None."""
        labels = {_maintenance.LABEL_STATE: _maintenance.APPROVAL, _maintenance.LABEL_REBOOT_REQUIRED: "true"}
        if any(_cluster.labels(self._log.node).get(name) != value for name, value in labels.items()):
            self._log.write(lambda _node, _none: Change(None, labels))
        self._event()
        deadline, told = self._clock.monotonic() + self._policy.approval_wait, False
        while True:
            missing = self._missing_approval(self._log.look())
            if not missing or self._clock.monotonic() >= deadline:
                return missing
            if not told:
                self._say("waits %d s for its approval: %s" % (self._policy.approval_wait, missing))
                told = True
            self._clock.sleep(_POLL)

    def _event(self):
        text = "to=%s: kubectl annotate node %s %s=true --overwrite" % (
            self._order.target.get("version"),
            self._order.node,
            _maintenance.ANNOTATION_APPROVE,
        )
        _maintenance.request_reboot(self._cluster, self._log.node, self._order.reason, text, self._log.now())

    # --- small things ---

    def _view_of_this_node(self):
        """The host's view. Raises NpuError when the host is not the one the Node stands for."""
        view = self._host.view()
        boot_id = _cluster.boot_id(self._log.look())
        if view["boot_id"] != boot_id:
            raise NpuError(
                "The host that the inventory reaches for %s is not the node %s of the cluster: its boot ID is %s, the node's"
                " is %s. Correct ansible_host or npu_node_name; nothing was done to either."
                % (self._order.node, self._order.node, view["boot_id"], boot_id)
            )
        return view

    def _due(self, record, step, **fields):
        times = record["times"] if step == record["step"] else dict(record["times"], **{step: self._log.now()})
        return dict(record, step=step, heartbeat=self._log.now(), times=dict(times), **fields)

    def _components(self):
        return _cluster.labels(self._log.node).get(_cluster.LABEL_COMPONENTS)

    def _marked(self, mark):
        return mark in self._log.record["times"]

    def _beat(self):
        self._log.beat()
        record = self._log.record
        if record and record["boot_id"] is None and record["unschedulable"] is not None:
            if record["step"] in _ORDER[1:5]:
                _cordoned(self._log.node, record)

    def _say(self, sentence, step=None):
        record = self._log.record
        if step is None:
            step = record["step"] if record else _maintenance.state(self._log.node or {"metadata": {}}) or ""
        self._say_to(step, self._seconds(), sentence)

    def _seconds(self):
        record = self._log.record
        started = _maintenance.seconds_of(record["started"]) if record else self._started
        return max(0, self._clock.now() - (started or self._started))

    def _outcome(self, outcome, reason=None, blockers=(), step=None, seconds=None):
        node = self._log.node
        return {
            "outcome": outcome,
            "step": step or (_maintenance.state(node) if node else None),
            "reason": reason,
            "seconds": round(self._seconds() if seconds is None else seconds),
            "blockers": list(blockers or ()),
        }


def _cordoned(node, _record):
    if not _maintenance.unschedulable(node):
        raise Uncordoned()


def _cordon_is_ours(node):
    """Whether the node is cordoned because its last maintenance failed."""
    last = _maintenance.last(node)
    return last.get("outcome") == "failed" and last.get("unschedulable") is False


def _gives_cordon_back(node, record):
    """False (uncordon), or None (leave it): a cordon that was there before, or that a person wants, is not ours."""
    if record["unschedulable"] or _maintenance.is_true(_cluster.labels(node), _maintenance.LABEL_KEEP_CORDONED):
        return None
    return False


def _same_driver(view, release):
    if release is not None and view["driver"] != release:
        raise Invalid("the host was rebooted and is on %s again" % view["driver"], trial_over=True)


def _failed_before(node):
    why = _maintenance.last(node).get("failure") or "It failed before."
    return "%s To try again: ansible-playbook npuops.ascend.upgrade --limit %s -e npu_upgrade_retry=true" % (
        _sentence(why),
        node["metadata"]["name"],
    )


def _way(record):
    return "%s from %s to %s" % (record["reason"], record["from"].get("version"), record["to"].get("version"))


def _sentence(text):
    """With a capital and a full stop, unless it ends in a command."""
    text = text[:1].upper() + text[1:]
    return text if text.endswith(".") or "kubectl" in text else text + "."
