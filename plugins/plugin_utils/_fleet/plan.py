# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One plan for the fleet before the first node is touched: who is due, in which order, and what is in the way.

Pure decisions on what hosts, cluster and registry said; only dry-run evictions ask anything.
"""

from __future__ import annotations

import heapq
import statistics

from ansible_collections.npuops.ascend.plugins.module_utils._driver import staging, version_info
from ansible_collections.npuops.ascend.plugins.module_utils._driver.releases import Layout
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, one_line
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.duration import duration
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import blocker as drain_blocker
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import pod as drain_pod
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import simulation as drain_simulation
from ansible_collections.npuops.ascend.plugins.plugin_utils._fleet import preflight
from ansible_collections.npuops.ascend.plugins.plugin_utils._fleet import snapshot as fleet_snapshot
from ansible_collections.npuops.ascend.plugins.plugin_utils._fleet.verdict import (
    AWAITING,
    BLOCKED,
    DUE,
    FAILED,
    IN_FLIGHT,
    ON_TRIAL,
    READY,
    SKIPPED,
    UNREACHABLE,
    UP_TO_DATE,
    VERDICTS,
)
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance import halt as maintenance_halt
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.record import version_of
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.slots import LEASE

REASONS = (maintenance_record.UPGRADE_REASON, maintenance_record.ROLLBACK_REASON)


class RolloutSettings:
    """What the run was asked for."""

    def __init__(
        self,
        policy,
        reason=REASONS[0],
        auto=False,
        approval_max_age=0,
        max_parallel=1,
        retry=False,
        park=False,
        canary=False,
        clear_halt=False,
    ):
        """``policy``: _drain.policy.DrainPolicy; ``reason``: upgrade or rollback; ``park``: whether npu_upgrade_workloads
        says so; the rest as the variables npu_upgrade_*."""
        self.policy, self.reason, self.canary = policy, reason, canary
        self.auto, self.approval_max_age = auto, approval_max_age
        self.max_parallel, self.retry, self.park, self.clear_halt = max_parallel, retry, park, clear_halt


class Tools:
    """What a plan asks while it is made.

    ``resolve(reference, config)`` -> digest; ``size(reference, digest, config, machine)`` -> bytes;
    ``support(version, facts, node_info, firmware, declared)`` -> (reasons, notes); ``confirm(pods)`` -> Blockers;
    ``now``: seconds since 1970; ``own_boot_id``: of the controller; ``own_pod``: its pod's name or None;
    ``white_list``: None where the cluster has none, else ``white_list(image)`` -> why it may not run, or None.
    """

    def __init__(self, resolve, size, support, confirm, now, own_boot_id=None, own_pod=None, white_list=None):
        self.resolve, self.size, self.support, self.confirm = resolve, size, support, confirm
        self.now, self.own_boot_id, self.own_pod, self.white_list = now, own_boot_id, own_pod, white_list


class PlannedNode:
    """One host with the verdict on it."""

    def __init__(self, checked, node):
        """``checked``: _fleet.preflight.CheckedHost; ``node``: the Node or None."""
        self.checked, self.node = checked, node
        self.name, self.node_name, self.facts = checked.name, checked.node_name, checked.facts
        self.verdict = None
        self.reasons = []  # why nothing can be done with it as it is
        self.blockers = []  # Blocker.result() dicts: pods that do not go now
        self.blocker_text = None
        self.notes = []
        self.target = None  # {version, release, digest, image}
        self.requested = False
        self.registry = None
        self.record = None
        self.evictions = {"npu": 0, "other": 0, "jobs": 0}
        self.order = None
        self.canary = False
        self.proved = False  # another host of its pool has what this one is to get
        self.later = False  # due, but not in a run for canaries only
        self.estimate = None

    @property
    def labels(self):
        return kube_client.labels(self.node) if self.node else {}

    @property
    def annotations(self):
        return kube_client.annotations(self.node) if self.node else {}

    @property
    def driver(self):
        return self.facts.get("driver") or {}

    @property
    def loaded_release(self):
        return self.driver.get("loaded_release") or (self.driver.get("release") if self.driver.get("loaded") else None)

    @property
    def loaded_version(self):
        return self.driver.get("loaded_version") or version_of(self.loaded_release) or None

    @property
    def pool(self):
        """Nodes that are alike: the first of each shows whether the release works there."""
        wanted = self.target or (self.record or {}).get("to") or {"release": (self.facts.get("upgrade") or {}).get("trial")}
        # A host that does not answer is of the kind that its Node has been labelled with.
        family = self.checked.family.get("name") or (
            kube_client.labels(self.node).get(kube_client.LABEL_CHIP) if self.node else None
        )
        return "%s %s" % (family, wanted.get("release"))

    @property
    def wedged(self):
        return kube_client.ANNOTATION_WEDGED in self.annotations

    @property
    def due(self):
        return self.verdict in DUE

    @property
    def deferrable(self):
        """Blocked by nothing but what may go away by itself: pods that cannot leave now."""
        return self.verdict == BLOCKED and not self.reasons

    @property
    def why(self):
        """All that is in the way, as clauses."""
        return self.reasons + ([self.blocker_text] if self.blocker_text else [])

    def result(self):
        return {
            "host": self.name,
            "node": self.node_name,
            "verdict": self.verdict,
            "reasons": self.why,
            "deferrable": self.deferrable,
            "blockers": self.blockers,
            "notes": self.notes,
            "order": self.order,
            "canary": self.canary,
            "later": self.later,
            "pool": self.pool if self.target else None,
            "proved": self.proved,
            "family": self.checked.family.get("name"),
            "family_key": self.checked.family.get("key"),
            "resource": self.checked.family.get("resource"),
            "chips": self.facts.get("chip_count", 0),
            "from": {"version": self.loaded_version, "release": self.loaded_release},
            "to": self.target,
            "profile": self.checked.profile,
            "requested": self.requested,
            "wedged": self.wedged,
            "evictions": self.evictions,
            "state": self.labels.get(maintenance_record.LABEL_STATE),
            "step": (self.record or {}).get("step"),
            "run": (self.record or {}).get("run"),
            "estimate_seconds": self.estimate,
        }


class RolloutPlan:
    """The whole of it. ``entries``: in the order of the inventory; ``cluster_reasons``: what stops every node."""

    def __init__(self, entries, cluster_reasons, cluster_notes, halted, estimate, settings, capacity):
        self.entries, self.cluster_reasons, self.cluster_notes = entries, cluster_reasons, cluster_notes
        self.halted, self.estimate, self.settings, self.capacity = halted, estimate, settings, capacity

    def of(self, *verdicts):
        return [entry for entry in self.entries if entry.verdict in verdicts]

    @property
    def ordered(self):
        """Those that something is done with, the first one first."""
        return sorted((entry for entry in self.entries if entry.order is not None), key=lambda entry: entry.order)

    @property
    def held(self):
        """Whether a halt keeps this run from beginning with a node. What is in maintenance already, it finishes."""
        return maintenance_halt.binds(self.halted, self.settings.reason) and not self.settings.clear_halt

    @property
    def deferred(self):
        return [entry for entry in self.entries if entry.deferrable and not self.settings.canary]

    @property
    def green(self):
        return not self.cluster_reasons and not self.of(BLOCKED, UNREACHABLE)

    def result(self):
        ordered = [entry.name for entry in self.ordered]
        return {
            "reason": self.settings.reason,
            "green": self.green,
            "summary": self.summary,
            "cluster_reasons": self.cluster_reasons,
            "cluster_notes": self.cluster_notes,
            "halted": self.halted,
            "counts": {verdict: len(self.of(verdict)) for verdict in VERDICTS},
            "order": ordered,
            "in_flight": [entry.node_name for entry in self.of(IN_FLIGHT, ON_TRIAL)],
            "deferred": [entry.name for entry in self.deferred],
            "max_parallel": self.settings.max_parallel,
            "park": self.park,
            "estimate_seconds": self.estimate,
            "capacity": self.capacity,
            "hosts": {entry.name: entry.result() for entry in self.entries},
        }

    @property
    def due_nodes(self):
        """Names of the Nodes that get the label upgrade-required: also those that are deferred."""
        return [entry.node_name for entry in self.entries if entry.verdict in (READY, AWAITING) or entry.deferrable]

    @property
    def settled_nodes(self):
        """Names of the Nodes that are not due, whatever an earlier run thought."""
        return [entry.node_name for entry in self.of(UP_TO_DATE, SKIPPED) if entry.node is not None]

    @property
    def park(self):
        """The resources whose workloads are to be parked: those of the nodes that begin without waiting for people."""
        verdicts = (IN_FLIGHT,) if self.held else (IN_FLIGHT, READY)
        begin = [entry for entry in self.of(*verdicts) if not entry.later] if self.settings.park else []
        begin += self.deferred if self.settings.park and self.settings.auto and not self.held else []
        return sorted({entry.checked.family["resource"] for entry in begin if entry.checked.family.get("resource")})

    @property
    def summary(self):
        """One sentence. A host without a chip does not count."""
        due, stuck = self.of(*DUE), self.of(BLOCKED, UNREACHABLE)
        total = sum(entry.checked.has_chips or not entry.facts for entry in self.entries)
        nodes = "%d node%s" % (total, "" if total == 1 else "s")
        if due:
            text = "%d of %s %s due" % (len(due), nodes, "is" if len(due) == 1 else "are")
        else:
            text = ("Nothing can be done on %s now" if stuck else "Nothing is due on %s") % nodes
        later = sum(entry.later for entry in self.entries)
        if later:
            text += ", %d of them later: this run takes only the first of each pool" % later
        words = (
            (IN_FLIGHT, "in maintenance already"),
            (ON_TRIAL, "on an unconfirmed trial"),
            (AWAITING, "awaiting approval"),
            (BLOCKED, "blocked"),
            (UNREACHABLE, "unreachable"),
            (FAILED, "failed before"),
        )
        parts = ["%d %s" % (len(self.of(verdict)), word) for verdict, word in words if self.of(verdict)]
        text = ", ".join([text] + parts)
        if due and self.estimate is not None:
            text += "; about %s" % duration(self.estimate)
        elif due:
            text += "; duration unknown before the first one is done"
        return text + "."

    @property
    def problem(self):
        """Why the plan is not green, as readable text; None when it is."""
        if self.green:
            return None
        lines = ["Nothing was changed: the plan is not green. %s" % self.summary]
        lines += ["  cluster: %s" % reason for reason in self.cluster_reasons]
        lines += ["  " + line for line in _shared((entry.name, entry.why) for entry in self.of(BLOCKED, UNREACHABLE))]
        if self.of(UNREACHABLE):
            lines.append("To continue without a host, exclude it: --limit 'npu_nodes:!<host>'.")
        if any(entry.deferrable for entry in self.entries) and not self.cluster_reasons:
            lines.append("To start with the others and try the blocked ones last: -e npu_upgrade_on_blocked=defer.")
        return "\n".join(lines)


def make(hosts, snapshot, slots, settings, tools):
    """The RolloutPlan.

    ``hosts``: as the filter npu_hosts makes them, facts with ``upgrade``; ``snapshot``: _fleet.snapshot.FleetSnapshot;
    ``slots``: {max, halted, holders} of the Lease.
    """
    resolve = tools.resolve if settings.reason == maintenance_record.UPGRADE_REASON else None
    explicit = settings.reason == maintenance_record.UPGRADE_REASON
    checked = preflight.inspect(hosts, snapshot.nodes, resolve, plugin_enabled=False, explicit=explicit)
    cluster_reasons = _unknown_variables(checked)
    entries = [PlannedNode(verdict, snapshot.nodes.get(verdict.node_name)) for verdict in checked]
    validations = {host["name"]: host.get("validation") or {} for host in hosts}
    sizes = _Sizes(tools)
    wave = _last_wave(entries) if settings.reason == maintenance_record.ROLLBACK_REASON else None
    for entry in entries:
        _judge(entry, validations[entry.name], snapshot, settings, tools, sizes, wave, slots["holders"])
    room = fleet_snapshot.Room(snapshot)
    _simulate([entry for entry in entries if entry.verdict in (READY, AWAITING)], snapshot, room, settings, tools)
    _order(entries, settings.canary)
    estimate = _estimate(entries, settings.max_parallel)
    notes = _cluster_notes(entries, snapshot, slots, settings)
    plan = RolloutPlan(entries, cluster_reasons, notes, slots["halted"], estimate, settings, room.totals)
    if plan.held and plan.of(IN_FLIGHT, ON_TRIAL):
        notes.append("while it is halted, this run only continues nodes already in maintenance")
    elif plan.held:
        cluster_reasons.append(maintenance_halt.text(plan.halted))
    return plan


def _unknown_variables(checked):
    """A mistyped variable is in the way of everything, also where nothing is due."""
    found = {}
    for verdict in checked:
        for sentence in preflight.unknown_variables(verdict.host.get("variables") or []):
            if sentence in verdict.reasons:
                verdict.reasons.remove(sentence)
            found.setdefault(sentence, []).append(verdict.name)
    return ["%s (%s)" % (sentence, ", ".join(names[:3])) for sentence, names in found.items()]


# --- one host ---


def _judge(entry, validation, snapshot, settings, tools, sizes, wave, holders):
    entry.requested = maintenance_record.is_true(entry.labels, maintenance_record.LABEL_REQUESTED)
    entry.verdict = _settled(entry, settings, tools.now, wave, holders)
    if entry.verdict is not None:
        return
    if settings.reason == maintenance_record.ROLLBACK_REASON:
        problem = _previous(entry) or _back_already(entry, settings) or _not_of(wave, entry)
        if problem:
            entry.verdict, entry.notes = SKIPPED, entry.notes + [problem]
            return
    elif entry.checked.digest:
        _configured(entry)
    reasons = list(entry.checked.reasons)
    # What a host says about its driver says nothing about a node that is another machine.
    if entry.target and not entry.requested and _same_machine(entry) and _is_there(entry, settings):
        entry.verdict = UP_TO_DATE
        entry.notes += reasons + _trouble(entry, validation)
        return
    if maintenance_record.state(entry.node or {"metadata": {}}) == maintenance_record.FAILED and not settings.retry:
        last = maintenance_record.last(entry.node)
        entry.verdict = FAILED
        entry.reasons.append(
            "%s; after fixing this: -e npu_upgrade_retry=true" % one_line(last.get("failure") or "its last upgrade failed")
        )
        return
    entry.reasons = reasons
    if entry.node is not None and entry.target:
        _look_closer(entry, validation, snapshot, settings, tools, sizes)
    if entry.reasons:
        entry.verdict = BLOCKED
        return
    _approve(entry, settings, tools)


def _same_machine(entry):
    return entry.node is not None and kube_client.boot_id(entry.node) == entry.facts.get("boot_id")


def _settled(entry, settings, now, wave, holders):
    """The verdict that needs no look at the target, or None."""
    host = entry.checked.host
    if entry.node is not None and kube_client.ANNOTATION_MAINTENANCE in entry.annotations:
        return _in_flight(entry, settings, now, wave)
    if entry.node is not None and _unreadable(entry):
        return BLOCKED
    if host.get("unreachable"):
        entry.reasons = list(entry.checked.reasons)
        return UNREACHABLE
    if entry.facts and not entry.checked.has_chips:
        entry.notes += entry.checked.notes
        return SKIPPED
    if entry.checked.config["driver_source"] == "preinstalled":
        entry.notes.append("its driver is preinstalled; npuops.ascend never upgrades it")
        return SKIPPED
    if maintenance_record.is_true(entry.labels, maintenance_record.LABEL_SKIP):
        entry.notes.append("is excluded by its label %s=true" % maintenance_record.LABEL_SKIP)
        return SKIPPED
    return _left_behind(entry, settings, holders) if entry.node is not None and _same_machine(entry) else None


def _left_behind(entry, settings, holders):
    """The verdict on a node that a maintenance has left without a record, or None."""
    trial, good = (entry.facts.get("upgrade") or {}).get("trial"), entry.driver.get("good")
    if trial and trial != good:
        entry.target = _of_trial(entry, settings, trial, good)
        entry.notes.append("runs %s on trial, unconfirmed; without confirmation its next boot uses %s" % (trial, good))
        if kube_client.LABEL_PRESENT not in entry.labels:
            entry.notes.append("lacks the labels of npuops.ascend.install (was the Node recreated?): run install afterwards")
        verdict = ON_TRIAL
    elif maintenance_record.is_lost(entry.node, lambda: holders) or entry.driver.get("next"):
        # A rollback takes nothing further back of which nobody knows how far it was.
        target = None if settings.reason == maintenance_record.ROLLBACK_REASON else _wanted_now(entry)
        entry.target = target
        if target and not entry.requested and _is_there(entry, settings):
            entry.target = None
        armed = "; its next boot would try %s" % entry.driver["next"] if entry.driver.get("next") else ""
        entry.notes.append("was left in the middle of a maintenance whose record is gone: it is given back first%s" % armed)
        verdict = IN_FLIGHT
    else:
        return None
    entry.notes += entry.checked.reasons
    return verdict


def _of_trial(entry, settings, trial, good):
    """What the host is to end on: a rollback confirms the trial of a rollback, and takes back any other."""
    if settings.reason == maintenance_record.UPGRADE_REASON:
        return _wanted_now(entry)
    release = trial if trial == (entry.facts.get("upgrade") or {}).get("previous") else good
    return _plain({"version": version_of(release), "release": release})


def _unreadable(entry):
    """Whether nobody knows what became of the node last; why is among its reasons then."""
    try:
        maintenance_record.check(entry.node)
    except NpuError as exc:
        entry.reasons.append(one_line(exc.message))
        return True
    return False


def _in_flight(entry, settings, now, wave):
    try:
        entry.record = maintenance_record.decode(entry.node)
    except NpuError as exc:
        entry.reasons.append(one_line(exc.message))
        return BLOCKED
    record = entry.record
    dead = maintenance_record.age(record, now) > maintenance_record.HEARTBEAT_LIMIT
    if record.get("reason") == maintenance_record.RECOVERY_REASON and (maintenance_record.intended(record) or not dead):
        # As pods that cannot leave now, it ends by itself.
        entry.blocker_text = (
            "is in recovery by the run %s (step %s, last heartbeat %s); if that run is dead: ansible-playbook npuops.ascend.heal"
            % (record["run"], record.get("step"), record.get("heartbeat"))
        )
        return BLOCKED
    entry.notes.append("step %s of run %s, last heartbeat %s" % (record.get("step"), record["run"], record.get("heartbeat")))
    intended = maintenance_record.intended(record)
    entry.target = _after_intent(entry, record, settings) if intended else _before_intent(entry, record, settings, wave)
    if maintenance_record.reason_of(record) != settings.reason:
        what = "its %s to %s" % (maintenance_record.reason_of(record), (record.get("to") or {}).get("version") or "the same")
        ends = " is ended first: back to the confirmed driver, unless its own is confirmed"
        entry.notes.append(what + (ends if intended else " is given back first"))
    elif entry.target is None:
        entry.notes.append("is given back: it runs %s already" % entry.loaded_version)
    entry.notes += entry.checked.reasons
    return IN_FLIGHT


def _after_intent(entry, record, settings):
    """The target of a run that goes on with a maintenance whose reboot is certain."""
    same = maintenance_record.reason_of(record) == settings.reason
    turned = maintenance_record.TURNED in (record.get("times") or {})
    if settings.reason == maintenance_record.ROLLBACK_REASON:
        return _plain(record.get("to" if same else "from"))
    if same and not turned:
        return _plain(record.get("to"))
    return _wanted_now(entry) or (_plain(record.get("to")) if same else None)


def _before_intent(entry, record, settings, wave):
    """The target of a run that finds a maintenance which can be given back; None when it is only given back."""
    same = maintenance_record.reason_of(record) == settings.reason
    if settings.reason == maintenance_record.ROLLBACK_REASON:
        if same:
            return _plain(record.get("to"))
        if maintenance_record.reason_of(record) == maintenance_record.UPGRADE_REASON:
            return None  # it has changed nothing: the host has the driver that it had before
        problem = not entry.facts or _previous(entry) or _not_of(wave, entry)
        return None if problem or _is_there(entry, settings) else entry.target
    target = _wanted_now(entry)
    if target is None:
        return _plain(record.get("to")) if same else None
    entry.target = target
    return None if not entry.requested and _same_machine(entry) and _is_there(entry, settings) else target


def _wanted_now(entry):
    """The target that the inventory configures, None when it cannot be told."""
    if not entry.facts or not entry.checked.digest:
        return None
    _configured(entry)
    return entry.target


def _plain(driver):
    """A target of a record's ``to`` or ``from``, which was staged long ago."""
    if not driver or not driver.get("release"):
        return None
    return dict({"digest": None}, **driver, image=None)


def _configured(entry):
    checked = entry.checked
    try:
        release = Layout.release_name(checked.config["driver_version"], entry.facts["kernel"], checked.digest)
    except NpuError as exc:
        checked.reasons.append(one_line(exc.message))
        return
    entry.target = {
        "version": checked.config["driver_version"],
        "release": release,
        "digest": checked.digest,
        "image": checked.image,
    }


def _previous(entry):
    """Take the host's previous release as the target. Returns why there is none, or None."""
    if not entry.facts:
        return None  # why there are none is among the reasons
    upgrade = entry.facts.get("upgrade") or {}
    release = upgrade.get("previous")
    if not release:
        return "has no previous release to roll back to"
    manifest = (upgrade.get("staged") or {}).get(release)
    if manifest is None:
        entry.checked.reasons.append("its previous release %s is no longer complete on the host" % release)
        return None
    release, manifest = _for_kernel(release, upgrade["staged"], entry.facts.get("kernel"))
    if manifest.get("kernel") != entry.facts.get("kernel"):
        entry.checked.reasons.append(
            "its previous release %s is for the kernel %s, the host runs %s"
            % (release, manifest.get("kernel"), entry.facts.get("kernel"))
        )
    entry.target = {
        "version": manifest.get("version") or version_of(release),
        "release": release,
        "digest": manifest.get("digest"),
        "image": None,
    }
    return None


def _for_kernel(release, staged, kernel):
    """(the release, or the staged one of its version for the running kernel, its manifest), as npu-driver-select chooses."""
    if staged[release].get("kernel") == kernel:
        return release, staged[release]
    version = version_of(release)
    fit = [name for name in sorted(staged) if version_of(name) == version and staged[name].get("kernel") == kernel]
    return (fit[-1], staged[fit[-1]]) if fit else (release, staged[release])


# Where a record has the driver that an upgrade brought, which a rollback takes back.
_WAVE = {maintenance_record.UPGRADE_REASON: "to", maintenance_record.ROLLBACK_REASON: "from"}


def _last_wave(entries):
    """(version, run) of what the last upgrade among these hosts brought, also when some of them went back since; or None.

    Every host has a previous release. One that the last upgrade has not reached must not go back to what was before the
    one before.
    """
    newest = None
    for entry in entries:
        record = _record_of(entry)
        key = _WAVE.get((record or {}).get("reason"))
        if key:
            # One that is under way is the last one.
            newest = (float("inf"), (record.get(key) or {}).get("version"), record["run"])
            continue
        last = maintenance_record.last(entry.node) if entry.node else {}
        key = _WAVE.get(last.get("reason"))
        over = maintenance_record.seconds_of(last.get("ended"))
        counts = last.get("outcome") == "success" or _withdrawn_by_rollback(last)
        if key and over is not None and counts and (newest is None or over > newest[0]):
            newest = (over, (last.get(key) or {}).get("version"), last.get("run"))
    return newest[1:] if newest else None


def _record_of(entry):
    try:
        return maintenance_record.decode(entry.node) if entry.node else None
    except NpuError:
        return None  # told with the verdict


def _withdrawn_by_rollback(last):
    """A second rollback must not go on to the upgrade before."""
    return last.get("outcome") == "withdrawn" and last.get("withdrawn_for") == maintenance_record.ROLLBACK_REASON


def _back_already(entry, settings):
    """Why a host whose upgrade failed is not taken to the release before the one that it went back to by itself, or None."""
    if entry.node is None or entry.requested or settings.retry or maintenance_record.state(entry.node) != maintenance_record.FAILED:
        return None
    last = maintenance_record.last(entry.node)
    came_from, went_to = last.get("from") or {}, last.get("to") or {}
    if last.get("reason") != maintenance_record.UPGRADE_REASON or came_from.get("release") != entry.loaded_release:
        return None
    return "is back on %s already: its upgrade to %s failed; -e npu_upgrade_retry=true takes it to the release before" % (
        entry.loaded_version,
        went_to.get("version"),
    )


def _not_of(wave, entry):
    """Why the host has no part in undoing the ``wave``, or None."""
    if wave is None or entry.requested or entry.loaded_version in (None, wave[0]):
        return None
    last = maintenance_record.last(entry.node) if entry.node else {}
    if _withdrawn_by_rollback(last):
        return "runs %s; its upgrade to %s was withdrawn before its reboot" % (
            entry.loaded_version,
            (last.get("to") or {}).get("version"),
        )
    back = last.get("reason") == maintenance_record.ROLLBACK_REASON
    if back or (last.get("run") == wave[1] and last.get("outcome") == "success"):
        return None
    return "runs %s and was not part of the last upgrade, to %s; use --limit to roll back this host alone" % (
        entry.loaded_version,
        wave[0],
    )


def _is_there(entry, settings):
    """Whether the host runs what it is to run, and that is confirmed."""
    if settings.reason == maintenance_record.ROLLBACK_REASON:
        # Going back exchanges good and previous: a second run must not go forward again.
        last = maintenance_record.last(entry.node) if entry.node else {}
        back = last.get("reason") == maintenance_record.ROLLBACK_REASON and last.get("outcome") == "success"
        return back and not settings.retry and (last.get("to") or {}).get("release") == entry.loaded_release
    return entry.loaded_release == entry.target["release"] and entry.driver.get("good") in (None, entry.loaded_release)


def _look_closer(entry, validation, snapshot, settings, tools, sizes):
    """Everything about a host that is due. Adds reasons and notes."""
    if not entry.driver.get("managed"):
        entry.reasons.append("it has no driver of npuops.ascend; run npuops.ascend.install first")
    _check_health(entry, validation)
    _check_space(entry, sizes)
    _check_support(entry, validation, tools)
    if tools.white_list is not None and entry.target["image"]:
        problem = tools.white_list(entry.target["image"])
        if problem:
            entry.reasons.append(problem)
    for holder in (entry.facts.get("upgrade") or {}).get("holders") or []:
        if not holder.get("pod"):
            entry.reasons.append("the process %(pid)s (%(command)s) has %(device)s open and belongs to no pod; stop it" % holder)
    own = kube_client.boot_id(entry.node)
    if own and own == tools.own_boot_id:
        entry.reasons.append("Ansible itself runs on it and would not survive the reboot; run it elsewhere")
    entry.registry = snapshot.registry_nodes.get(entry.node_name)
    if entry.registry:
        entry.notes.append("%s runs on it: it goes last, when all images are staged" % entry.registry)
    loaded = entry.loaded_version
    if (
        settings.reason == maintenance_record.UPGRADE_REASON
        and loaded
        and version_info.compare(entry.target["version"], loaded) < 0
    ):
        entry.notes.append("goes back from %s to the older %s" % (loaded, entry.target["version"]))
    if entry.requested:
        entry.notes.append("its label %s=true asks for it" % maintenance_record.LABEL_REQUESTED)
    if entry.node["metadata"].get("labels", {}).get(maintenance_record.LABEL_KEEP_CORDONED) == "true":
        entry.notes.append("will stay cordoned (%s=true)" % maintenance_record.LABEL_KEEP_CORDONED)
    elif maintenance_record.unschedulable(entry.node):
        entry.notes.append(
            "is cordoned because neither driver worked; uncordoned if this one works"
            if maintenance_record.left_cordoned(entry.node)
            else "is already cordoned and stays cordoned"
        )


def _check_health(entry, validation):
    """An upgrade of a host that is ill would look as if the new driver were to blame."""
    if entry.wedged:
        entry.notes.append("its driver no longer responds (%s); the reboot fixes that" % kube_client.ANNOTATION_WEDGED)
        return
    wrong = [check for check in validation.get("checks") or [] if not check["ok"]]
    wrong.sort(key=lambda check: check["name"] != "driver_ready")
    if wrong:
        told = "its current driver fails validation: %(name)s is %(seen)s, expected %(expected)s. %(message)s" % wrong[0]
    elif validation.get("msg") and "checks" not in validation:
        told = "its current driver could not be validated: %s" % one_line(validation.get("msg"))
    else:
        return
    if entry.requested:
        entry.notes.append(told)
    else:
        entry.reasons.append(
            "%s. If a reboot helps, request it: kubectl label node %s %s=true"
            % (told.rstrip("."), entry.node_name, maintenance_record.LABEL_REQUESTED)
        )


def _trouble(entry, validation):
    """What is wrong with a host that has its driver already; an upgrade does nothing about it. [note], [] when all is well."""
    if entry.wedged:
        return ["its driver no longer responds (%s): npuops.ascend.heal" % kube_client.ANNOTATION_WEDGED]
    if validation.get("valid") is False:
        return ["its driver fails validation: %s" % one_line(validation.get("msg"))]
    return []


class _Sizes:
    """Sizes of images, each asked for once."""

    def __init__(self, tools):
        self._tools, self._known = tools, {}

    def of(self, entry):
        """Bytes, or an NpuError."""
        checked = entry.checked
        key = (checked.image, checked.digest, entry.facts.get("machine"))
        if key not in self._known:
            try:
                self._known[key] = self._tools.size(checked.image, checked.digest, checked.config, key[2])
            except NpuError as exc:
                self._known[key] = exc
        return self._known[key]


def _check_space(entry, sizes):
    staged = (entry.facts.get("upgrade") or {}).get("staged") or {}
    if entry.target["release"] in staged or not entry.target["image"]:
        return
    size = sizes.of(entry)
    if isinstance(size, NpuError):
        entry.reasons.append(one_line(size.message))
        return
    disk = entry.facts.get("disk") or {}
    needed, free = staging.space_needed(size), disk.get("free_bytes")
    if free is not None and free < needed:
        entry.reasons.append(
            "%s has %d MiB free, staging the image needs %d MiB" % (disk.get("path"), free // 2**20, -(-needed // 2**20))
        )


def _check_support(entry, validation, tools):
    staged = (entry.facts.get("upgrade") or {}).get("staged") or {}
    declared = (staged.get(entry.target["release"]) or {}).get("firmware")
    firmware = validation.get("firmware_version") or entry.facts.get("firmware_version")
    info = kube_client.node_info(entry.node)
    reasons, notes = tools.support(entry.target["version"], entry.facts, info, firmware, declared)
    entry.reasons += reasons
    entry.notes += notes


def _approve(entry, settings, tools):
    entry.verdict = READY
    if settings.auto:
        return
    approval, why = maintenance_record.approval(entry.node, tools.now, settings.approval_max_age)
    if approval is None:
        entry.verdict = AWAITING
        entry.reasons.append(why)


# --- the pods ---


def _simulate(due, snapshot, room, settings, tools):
    """Who cannot leave, and who would find no other place. Blocks entries."""
    policy = settings.policy
    found, open_pods = {}, []
    for entry in due:
        pods = snapshot.pods.get(entry.node_name, [])
        leaving = [pod for pod in pods if policy.goes(pod)]
        entry.evictions = {
            "npu": sum(pod.kind == drain_pod.NPU for pod in leaving),
            "other": sum(pod.kind == drain_pod.OTHER for pod in leaving),
            "jobs": sum(policy.jobs.matches(pod.labels) for pod in leaving),
        }
        # Jobs are waited for; what their budgets say now does not matter.
        pods = [pod for pod in pods if not policy.jobs.matches(pod.labels)]
        blockers = drain_simulation.objections(pods, policy, snapshot.budgets, tools.own_pod)
        found[entry.node_name] = blockers
        blocked = {blocker.pod.uid for blocker in blockers}
        open_pods += [pod for pod in pods if policy.goes(pod) and pod.uid not in blocked and not pod.terminating]
        _note_homeless(entry, room, [pod for pod in leaving if pod.requests and pod.owner])
    for blocker in tools.confirm(open_pods):
        found[blocker.pod.node].append(blocker)
    for entry in due:
        blockers = found[entry.node_name]
        if blockers:
            entry.verdict = BLOCKED
            entry.reasons = []  # a missing approval is told when it is the next thing to do
            entry.blockers = [blocker.result() for blocker in blockers]
            entry.blocker_text = drain_blocker.told(blockers)


def _note_homeless(entry, room, pods):
    homeless = room.homeless(entry.node_name, pods)
    if homeless:
        names = ", ".join(pod.label for pod in homeless[:3]) + (" ..." if len(homeless) > 3 else "")
        entry.notes.append(
            "%d of its %d pods that use NPUs fit on no other node now and will wait: %s" % (len(homeless), len(pods), names)
        )


# --- order and time ---


def _order(entries, canaries_only):
    """In flight first, then one node of each pool where none has the driver yet, then the wedged, then the rest; registry nodes and
    those that were deferred before last. Sets ``canary``, and ``order`` (from 1) or ``later``."""
    due = [entry for entry in entries if entry.due]
    proved = {entry.pool for entry in entries if entry.verdict == UP_TO_DATE}
    seen = proved | {entry.pool for entry in entries if entry.verdict in (IN_FLIGHT, ON_TRIAL)}
    for entry in sorted(due, key=lambda entry: (entry.verdict == AWAITING, entry.evictions["npu"] + entry.evictions["other"])):
        plain = entry.verdict in (READY, AWAITING) and not (entry.wedged or entry.registry or _deferred_before(entry))
        if plain and entry.pool not in seen:
            seen.add(entry.pool)
            entry.canary = True
    for entry in due:
        entry.proved = entry.pool in proved
        entry.later = canaries_only and not entry.canary and entry.verdict not in (IN_FLIGHT, ON_TRIAL)

    def rank(entry):
        if entry.verdict in (IN_FLIGHT, ON_TRIAL):
            return 0
        if entry.registry:
            return 5
        if _deferred_before(entry):
            return 4
        return 1 if entry.canary else 2 if entry.wedged else 3

    # Sorting is stable: within a rank it is the order of the inventory.
    for number, entry in enumerate(sorted((entry for entry in due if not entry.later), key=rank), 1):
        entry.order = number


def _deferred_before(entry):
    return entry.node is not None and maintenance_record.last(entry.node).get("outcome") == "deferred"


def _took(entry):
    """Seconds the node's last maintenance took, or None."""
    last = maintenance_record.last(entry.node) if entry.node is not None else {}
    begun, over = maintenance_record.seconds_of(last.get("started")), maintenance_record.seconds_of(last.get("ended"))
    if last.get("outcome") != "success" or begun is None or over is None or over < begun:
        return None
    return over - begun


def _estimate(entries, max_parallel):
    """Seconds until the last one is done, or None without any past. Sets each entry's own estimate."""
    taken = {entry.name: _took(entry) for entry in entries}
    known = [seconds for seconds in taken.values() if seconds is not None]
    due = sorted((entry for entry in entries if entry.order is not None), key=lambda entry: entry.order)
    if not due or not known:
        return None
    typical = statistics.median(known)
    slots = [0.0] * (min(max_parallel, len(due)) if max_parallel else len(due))
    for entry in due:
        entry.estimate = int(taken[entry.name] if taken[entry.name] is not None else typical)
        heapq.heappush(slots, heapq.heappop(slots) + entry.estimate)
    return int(max(slots))


def _cluster_notes(entries, snapshot, slots, settings):
    notes = []
    mine = {entry.node_name for entry in entries}
    # With --limit, for instance.
    others = [
        name for name, node in snapshot.nodes.items() if name not in mine and kube_client.LABEL_PRESENT in kube_client.labels(node)
    ]
    if others:
        notes.append("not among the hosts of this run: %s" % _some(others))
    if slots["holders"]:
        notes.append("in maintenance now: %s" % ", ".join(sorted(slots["holders"])))
        if slots["max"] != settings.max_parallel:
            notes.append("another run works with npu_upgrade_max_parallel=%d" % slots["max"])
    return notes


# --- for people ---

_COLUMNS = ("#", "NODE", "CHIPS", "FROM", "TO", "EVICTIONS", "VERDICT")


def table(plan):
    """The plan as aligned lines: heading, one line per host, reasons and notes beneath, the summary last."""
    entries = plan.ordered + [entry for entry in plan.entries if entry.order is None]
    rows = [_COLUMNS] + [_row(entry) for entry in entries]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    why = _shared((entry.name, entry.why) for entry in entries if entry.why)
    notes = _shared((entry.name, entry.notes) for entry in entries if entry.notes)
    cluster = [
        "cluster: %s" % text for text in plan.cluster_reasons if not plan.halted or text != maintenance_halt.text(plan.halted)
    ]
    if plan.halted:
        cluster.append(_halted(plan, why))
    notes = ["cluster: %s" % text for text in plan.cluster_notes] + notes
    for title, block in (("Blockers:", cluster + why), ("Notes:", notes)):
        if block:
            lines += ["", title] + ["  " + text for text in block]
    return lines + ["", plan.summary]


def _halted(plan, told):
    """``told``: the other lines. The reason mostly is that a node failed, and stands there."""
    text, why = "halted since %(when)s by %(who)s" % plan.halted, one_line(plan.halted["why"])
    text += "." if any(why in line for line in told) else ": %s." % why
    return "%s %s" % (text, maintenance_halt.ways_out(plan.halted)) if plan.held else text


def _row(entry):
    name = entry.node_name if entry.node_name == entry.name else "%s (%s)" % (entry.node_name, entry.name)
    chips = "%d x %s" % (entry.facts["chip_count"], entry.checked.family.get("name")) if entry.facts.get("chip_count") else "-"
    leaving = entry.evictions["npu"] + entry.evictions["other"]
    return (
        str(entry.order or "-"),
        name,
        chips,
        entry.loaded_version or "-",
        _wanted(entry) or "-",
        "%d (%d NPU)" % (leaving, entry.evictions["npu"]) if leaving else "-",
        entry.verdict + _remark(entry),
    )


def _remark(entry):
    """What a verdict alone would hide."""
    if entry.verdict == UP_TO_DATE and entry.wedged:
        return ", wedged"
    return ", first of its kind" if entry.canary else ", later" if entry.later else ""


def _wanted(entry):
    """The version it is to get, as far as that is known."""
    if entry.target:
        return entry.target["version"]
    return entry.checked.config["driver_version"] if entry.verdict == BLOCKED and entry.checked.wants_image else None


def _shared(pairs):
    """``a, b: clause`` lines; what several hosts have in common is told once. ``pairs``: (name, clauses)."""
    grouped = {}
    for name, clauses in pairs:
        for clause in clauses:
            grouped.setdefault(clause, []).append(name)
    lines = []
    for clause, names in grouped.items():
        lines.append("%s: %s" % (_some(names), clause))
    return lines


def _some(names, most=8):
    return ", ".join(sorted(names)[:most]) + (" and %d more" % (len(names) - most) if len(names) > most else "")


# --- what the plan needs to be carried out ---


def permissions(namespace):
    """What the Kubernetes user must be allowed to beyond reading: [(verb, resource, group, namespace or None, name or None)]."""
    # That something is created cannot be limited to a name.
    leases = [(verb, "leases", "coordination.k8s.io", namespace, name) for verb, name in (("create", None), ("patch", LEASE))]
    events = [(verb, "events", "", "default", None) for verb in ("get", "create", "patch")]
    return [("patch", "nodes", "", None, None), ("create", "pods/eviction", "", None, None)] + leases + events
