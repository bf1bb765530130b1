# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One node's way through its maintenance, from whatever the Node says to the step that is asked for.

The state is on the node, not here. Every step looks, decides, and makes one mutating call at a time, so that a run
killed before or after any of them and started again comes to the same end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._driver.releases import same_driver
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, one_line
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.annotations import Record
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import View
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import Clock
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Labels, Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance import host_side as maintenance_host_side
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance import problems, reboot
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.begin import Beginning
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.context import (
    ORDER,
    Invalid,
    MaintenancePolicy,
    MaintenanceRequest,
    MakeDrain,
    MakeSmokePod,
    Outdated,
    Uncordoned,
    Work,
    check_skip,
)
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.end import Ending
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.host_side import Port
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.purpose import Recovered, Recovery, Upgrade
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.validation import Check
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods.blocker import Blocked, told
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import node_log
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.node_log import Change
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.outcome import (
    BUSY,
    DEFERRED,
    DONE,
    FAILED,
    UNDER_WAY,
    Outcome,
)
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.record import PAUSED, TURNED, VALIDATED

__all__ = ["UNTIL", "Cycle", "MaintenanceRequest", "MaintenancePolicy", "Recovery", "Upgrade"]

# What ``until`` may say: before which step a call ends.
_STOPS = {
    "cordon": maintenance_record.CORDON,
    "drain": maintenance_record.JOBS,
    "reboot": maintenance_record.REBOOT,
    "validate": maintenance_record.VALIDATION,
    "confirm": maintenance_record.VALIDATION,
}
UNTIL = (*_STOPS, "done")

MOST_ATTEMPTS = 3
MOST_RETURNS = 3  # how often pods that come back onto the cordoned node are evicted again
_COMPONENTS_LIMIT = 120  # seconds until paused components have left
# What install and people put on a node, for a Node object that was made anew.
_LASTING_LABELS = (
    kube_client.LABEL_PRESENT,
    kube_client.LABEL_CHIP,
    kube_client.LABEL_DRIVER_VERSION,
    kube_client.LABEL_FIRMWARE_VERSION,
    "accelerator",
    "workerselector",
    "node-role.kubernetes.io/worker",
    "host-arch",
    maintenance_record.LABEL_KEEP_CORDONED,
    maintenance_record.LABEL_REQUESTED,
)


def before_hook(settings: Mapping[str, Any], reason: str) -> str:
    """What ``until`` must be to stop where the first tasks of the user run, if there are any. ``settings``: of npu_upgrade."""
    if settings["hook_before"]:
        return "cordon"
    if settings["with_os"] and reason == maintenance_record.UPGRADE_REASON:
        return "reboot"
    return "confirm" if settings["hook_after"] else "done"


class Cycle:
    def __init__(
        self,
        cluster: AnyCluster,
        host: Port,
        pods: MakeDrain,
        request: MaintenanceRequest,
        policy: MaintenancePolicy,
        clock: Clock,
        say: Callable[[str, float, str], None],
        smoke: MakeSmokePod | None = None,
    ) -> None:
        """``cluster``: Cluster; ``host``: the port of _cycle_host; ``pods(cluster, beat, say)`` and ``smoke(cluster, beat,
        say)`` (or None) make the Drain and the SmokePod; ``say(step, seconds, sentence)``; ``clock``: as Clock."""
        self._work = Work(cluster, host, pods, request, policy, clock, say, smoke)
        self._log, self._request, self._policy, self._purpose = self._work.log, request, policy, request.purpose
        self._beginning, self._check, self._ending = Beginning(self._work), Check(self._work), Ending(self._work)
        self._ends_as_begun = self._more = False  # of a record that is cleared away
        self._boot_id: str | None = None  # of the boot whose driver this run validates
        self._asked = False  # whether the intent is this run's own
        self._handlers = {
            maintenance_record.CORDON: self._cordon,
            maintenance_record.JOBS: self._wait_for_jobs,
            maintenance_record.PODS: self._evict_npu_pods,
            maintenance_record.DRAIN: self._drain,
            maintenance_record.REBOOT: self._reboot,
            maintenance_record.VALIDATION: self._validate,
            maintenance_record.ROLLBACK: self._roll_back,
            maintenance_record.UNCORDON: self._finish,
        }

    @property
    def changed(self) -> bool:
        """Whether the Node was written."""
        return self._log.writes > 0

    def run(self, until: str = "done") -> Outcome:
        """Returns {outcome, step, reason, seconds, blockers}: how far it came and why, in one sentence.

        Raises NpuError when it could not begin, or could not even write down what is wrong; the next run goes on.
        """
        work = self._work
        try:
            outcome = self._beginning.enter()
            while outcome is None:
                outcome = self._stop(until) or self._step()
                if outcome is not None and outcome["outcome"] == DONE and self._more:
                    # What another run had begun is out of the way.
                    self._work.clears = self._more = self._ends_as_begun = self._asked = False
                    self._boot_id = None
                    outcome = self._beginning.begin()
            return outcome
        except node_log.Lost as exc:
            return work.outcome(BUSY, exc.message)
        except node_log.Gone as exc:
            # Without a Node there is nothing that could be given back but the slot.
            work.slots.give(self._request.node, self._request.run)
            return work.outcome(FAILED, exc.message)
        except kube_client.Unreachable as exc:
            text = "%s The maintenance of %s is not changed; run again to continue it."
            outcome = work.outcome(FAILED, exc.message)
            raise NpuError(text % (exc.message, self._request.node), api_unreachable=True, **outcome)

    def _stop(self, until: str) -> Outcome | None:
        """The outcome when the step asked for is reached."""
        step = self._log.own["step"]
        if until not in _STOPS or step == maintenance_record.ROLLBACK or self._fails(step) or self._work.clears:
            return None
        at, stop = ORDER.index(step), ORDER.index(_STOPS[until])
        if at < stop or (at == stop and until == "confirm" and not self._work.marked(VALIDATED)):
            return None
        return self._work.outcome(UNDER_WAY)

    def _fails(self, step: str) -> str | None:
        """A hook's failure that is to be heeded: not any more once the release is confirmed."""
        if self._work.clears or step in (maintenance_record.ROLLBACK, maintenance_record.UNCORDON):
            return None
        return self._request.failure

    def _step(self) -> Outcome | None:
        """Do what is due. None, or the outcome with which the node is let go."""
        step, intended = self._log.own["step"], maintenance_record.intended(self._log.own)
        ending = self._ending
        try:
            self._work.check_found()
            if (
                self._work.clears
                and not self._ends_as_begun
                and maintenance_record.reason_of(self._log.own) != self._request.reason
            ):
                return self._turn()
            failure = self._fails(step)
            if failure:
                if not intended:
                    return ending.give_back(FAILED, failure)
                return self._to_rollback(failure)
            return self._handlers[step]()
        except Uncordoned:
            self._work.say("the node was uncordoned; starting over")
            self._log.step(maintenance_record.CORDON)
        except node_log.Recreated:
            self._record_anew()
        except (node_log.Lost, node_log.Gone, kube_client.Unreachable):
            raise
        except Outdated as exc:
            return self._beginning.drop(exc)
        except (Recovered, NpuError) as exc:
            return self._end_early(exc, step, intended)
        return None

    def _end_early(self, problem: Recovered | NpuError, step: str, intended: bool) -> Outcome:
        """The outcome with which the node is let go because of a problem."""
        outcome, then = problems.meaning(problem)
        if isinstance(problem, Recovered):
            return self._ending.give_back(outcome, "Its chips respond again.")
        # A rollback that could not be sent leaves the host between two drivers.
        if intended and step == maintenance_record.ROLLBACK and isinstance(problem, maintenance_host_side.NotSent):
            return self._ending.halt(problem)
        if not intended or then == problems.GIVEN_BACK:
            return self._ending.give_back(outcome, problem.message, problem.details.get("blockers"))
        if then == problems.FOREIGN:
            return self._work.outcome(outcome, problem.message) if self._purpose.recovers else self._ending.halt(problem)
        return self._stuck(problem)

    def _stuck(self, exc: NpuError) -> Outcome:
        """Between intent and end something went wrong that nobody foresaw, or the host is gone."""
        return self._ending.leave(exc.message) if self._purpose.recovers else self._ending.halt(exc)

    # --- until the node is empty ---

    def _cordon(self) -> Outcome | None:
        self._work.check_slot()
        found = self._work.pods.simulate()
        blockers = [blocker for blocker in found if not blocker.may_give_way]
        if blockers:
            text = "; ".join(blocker.text for blocker in blockers)
            return self._ending.give_back(
                DEFERRED, "Not cordoned: %s." % text.rstrip("."), [blocker.result() for blocker in blockers]
            )

        def decide(node: Object, record: Record) -> Change:
            self._purpose.check_still_due(node)
            check_skip(node)
            # By now, for it may have waited: an earlier maintenance's cordon may have become somebody else's. One of ours whose
            # record somebody took away is ours still.
            ours = maintenance_record.cordoned_by(node) == maintenance_record.CORDON_MANAGER
            before = maintenance_record.unschedulable(node) and not ours
            return Change(self._work.due(record, maintenance_record.JOBS, unschedulable=before), cordon=True)

        self._log.write(decide)
        self._work.say("cordoned", maintenance_record.CORDON)
        if found:
            self._work.say("may give way to the cordon: %s" % told(found))
        return None

    def _wait_for_jobs(self) -> None:
        remaining = self._work.pods.wait_for_jobs()
        if remaining:
            self._work.say("no longer waits for %d pods" % len(remaining))
        self._log.step(maintenance_record.PODS, guard=self._work.may_go_on)

    def _evict_npu_pods(self) -> None:
        count = self._work.pods.evict_npu_pods()
        if count:
            self._work.say("NPU pods gone: %d" % count)
        self._log.step(maintenance_record.DRAIN, guard=self._work.may_go_on)

    def _drain(self) -> None:
        count = self._work.pods.evict_others()
        if count:
            self._work.say("other pods gone: %d" % count)
        if self._work.components() == "enabled":
            times = dict(self._log.own["times"], **{PAUSED: self._log.now()})
            labels = {kube_client.LABEL_COMPONENTS: "paused"}
            self._log.step(maintenance_record.DRAIN, labels=labels, guard=self._work.may_go_on, times=times)
        self._work.pods.wait_components_gone(_COMPONENTS_LIMIT)
        self._divide()
        self._log.step(maintenance_record.REBOOT, guard=self._work.may_go_on)

    def _divide(self) -> None:
        """Give the host its virtual NPUs, now that nobody uses its chips. After the reboot it has to have them again."""
        layout = self._request.vnpu_layout
        if layout is None or self._purpose.recovers or self._work.clears:
            return
        view = self._work.host.wait_free()
        if view["holders"]:
            raise reboot.held(view)
        # They stay when the node is given back, so whoever wants that is heard first.
        self._work.may_go_on(self._log.look(), self._log.own)
        self._work.check_slot()
        reboot.approved(self._work, self._log.node, self._log.own)
        answer = self._work.host.divide(layout)
        if answer["changed"]:
            changed = one_line(answer["msg"])
            self._work.say("virtual NPUs: %s" % changed)
            self._log.step(maintenance_record.DRAIN, vnpus=changed)

    # --- reboot ---

    def _reboot(self) -> Outcome | None:
        if self._log.own["boot_id"] is None:
            self._intend()
            return None
        release = self._log.own["to"].get("release")
        if not self._asked:
            self._work.refuse_another_node()
            self._work.check_not_older()
        problem = self._write_firmware(release)
        if problem:
            return self._to_rollback(problem)
        view = self._work.host.reboot(release, self._policy.reboot_timeout, refuse_held=not self._purpose.recovers)
        self._work.check_generation(view)
        self._work.say("is back")
        record = self._log.own
        if release is None or maintenance_host_side.runs(view, release):
            # Pods start while the host is validated: the kubelet takes its time to tell what they offer. But not before the driver
            # is ready: a device plugin that finds none ends, and is started again after ever longer pauses.
            labels = self._work.components_back() if view["ready"] else {}
            self._log.step(maintenance_record.VALIDATION, labels=labels, **self._taken(view))
        elif not maintenance_host_side.came_without_trial(view, record):
            return self._to_rollback("the trial of %s ended by itself: the host was rebooted again" % release, rebooted=True)
        elif record["attempt"] >= MOST_ATTEMPTS:
            why = "the host booted %d times without trying %s; see journalctl -u npu-driver-select there"
            return self._to_rollback(why % (record["attempt"], release), rebooted=True)
        else:
            self._work.say("the host booted without trying %s (a power loss?): trying again" % release)
            self._log.step(maintenance_record.REBOOT, boot_id=None, attempt=record["attempt"] + 1)
        return None

    def _write_firmware(self, release: str | None) -> str | None:
        """Write the firmware of the release into the chips, unless that is done. Returns why it failed, as a clause, or None."""
        wanted = self._log.own["to"].get("firmware")
        if not wanted or not release:
            return None
        # By its version: of a host whose kernel has changed since the plan, the record names another release of the driver.
        if not same_driver(release, self._request.release) or wanted != self._request.firmware:
            return self._leave_firmware(wanted)
        try:
            answer = self._work.host.write_firmware(release, wanted, self._policy.retry)
        except maintenance_host_side.HostUnreachable:
            raise
        except NpuError as exc:
            view = self._work.host.view(retry_seconds=self._policy.reboot_timeout)
            if view["going_down"] or view["boot_id"] != self._log.own["boot_id"]:
                self._work.say("the host goes down by itself: the firmware %s is written after that" % wanted)
                return None
            return "the firmware %s was not written: %s" % (wanted, exc.message)
        if answer["held"]:
            return "the firmware %s was not written: %s" % (wanted, maintenance_host_side.held_text(answer["held"]))
        if answer["state"] not in (None, "written"):
            return "the firmware %s could not be written: %s" % (wanted, answer["msg"])
        if answer["state"] == "written":
            self._work.say("firmware %s written; the reboot activates it" % wanted)
        return None

    def _write_after_all(self) -> None:
        """The host went down between intent and write, and is back on its confirmed driver: it is drained and rebooted again."""
        attempt = self._log.own["attempt"] + 1
        self._work.say("the host was rebooted before its firmware was written: trying again")
        self._boot_id, self._asked = None, False
        self._log.step(maintenance_record.DRAIN, boot_id=None, attempt=attempt)

    def _leave_firmware(self, wanted: str) -> str | None:
        """The record asks for firmware for which this run's own plan does not: it begins no write, and one that has begun ends
        first. Returns why that one failed, as a clause, or None."""
        record, flash = self._log.own, self._work.host.wait_firmware().get("firmware") or {}
        if (flash.get("boot_id"), flash.get("version")) == (record["boot_id"], wanted):
            if flash.get("state") == "written":
                self._work.say("firmware %s was written before; the reboot activates it" % wanted)
                return None
            return "the firmware %s could not be written: %s" % (wanted, flash.get("reason"))
        self._work.say("does not write the firmware %s, which the settings of this run do not ask for" % wanted)
        to = {name: value for name, value in record["to"].items() if name != "firmware"}
        self._log.step(maintenance_record.REBOOT, to=to)
        return None

    def _taken(self, view: View) -> dict[str, Any]:
        """What changes in the record when the host tries another release of the version: that for its new kernel."""
        to = self._log.own["to"]
        if not to.get("release") or view["driver"] == to["release"]:
            return {}
        self._work.say("its kernel is %s now: tries %s" % (view["kernel"], view["driver"]))
        return {"to": dict(to, release=view["driver"], digest=None)}

    def _intend(self) -> None:
        """Nothing runs on the node any more: make its reboot certain, if everything still allows it."""
        count = self._work.pods.evict_returned(MOST_RETURNS)
        if count:
            self._work.say("pods that had come back gone: %d" % count)
        view = self._work.host.wait_free()
        reboot.check(self._work, view, reboot.OF_THE_HOST)
        if maintenance_host_side.trial_runs(view, self._log.own["to"].get("release")):
            self._log.step(maintenance_record.VALIDATION, guard=self._work.may_go_on, **self._taken(view))
            return
        reboot.check(self._work, view, reboot.OF_THE_REBOOT)
        reboot.intend(self._work, view)
        self._asked = True

    # --- validation, and the way back ---

    def _validate(self) -> Outcome | None:
        to = self._log.own["to"]
        if self._boot_id is None:
            self._boot_id = self._work.known_host()["boot_id"]
        try:
            if not self._work.marked(VALIDATED):
                trial = to.get("release") is not None
                self._check.in_order(to.get("version"), to.get("release"), to.get("firmware"), trial)
                self._check.run_smoke_pod()
                times = dict(self._log.own["times"], **{VALIDATED: self._log.now()})
                self._log.step(maintenance_record.VALIDATION, times=times)
                return None
            if to.get("release") is not None and not self._check.confirm(to["release"], self._boot_id):
                self._boot_id, times = None, dict(self._log.own["times"])
                del times[VALIDATED]
                self._work.say("the host was rebooted again: validating it again")
                self._log.step(maintenance_record.VALIDATION, times=times)
                return None
        except Invalid as exc:
            # What another machine says under this one's address is no reason to give up a driver.
            self._work.refuse_another_node()
            if exc.details.get("not_written") and self._log.own["attempt"] < MOST_ATTEMPTS:
                self._write_after_all()
                return None
            return self._to_rollback(exc.message, rebooted=exc.details.get("trial_over", False))
        self._log.step(maintenance_record.UNCORDON)
        return None

    def _finish(self) -> Outcome:
        self._work.check_not_older()
        self._more = self._work.wants_more()
        return self._ending.finish(self._more)

    # --- what was begun for something else ---

    def _turn(self) -> Outcome | None:
        """Its reboot is certain, so the host may be anywhere: it ends on the driver that is confirmed.

        That is where it came from, unless it has confirmed its own already.
        """
        view, record = self._work.known_host(self._policy.reboot_timeout), self._log.own
        # Where only firmware changes, the release was confirmed before, and going on would write it.
        pending = record["step"] == maintenance_record.REBOOT and record["to"].get("firmware")
        if view["good"] is not None and view["good"] == record["to"].get("release") and not pending:
            self._ends_as_begun = True
            return None
        self._work.say("the %s to %s is withdrawn: rolls back" % (record["reason"], record["to"].get("version")))
        back = {"version": record["from"].get("version"), "release": view["good"] or record["from"].get("release"), "digest": None}
        labels, times = self._pausing(record)
        tried: dict[str, Any] = {"from": {key: record["to"].get(key) for key in ("version", "release")}}
        self._log.step(
            maintenance_record.ROLLBACK,
            labels=labels,
            times=dict(times, **{TURNED: self._log.now()}),
            boot_id=record["boot_id"] if record["step"] == maintenance_record.ROLLBACK else None,
            reason=self._request.reason,
            to=back,
            **tried,
        )
        return None

    def _pausing(self, record: Record) -> tuple[Labels, dict[str, str]]:
        """(labels, times) with which the components leave, as far as they run."""
        if self._work.components() != "enabled":
            return {}, dict(record["times"])
        return {kube_client.LABEL_COMPONENTS: "paused"}, dict(record["times"], **{PAUSED: self._log.now()})

    def _to_rollback(self, why: str, rebooted: bool = False) -> Outcome | None:
        """``rebooted``: the host is on its good driver already, so no other reboot is needed. A recovery has no way back."""
        if self._purpose.recovers:
            return self._ending.leave(why)
        self._work.say("rolls back: %s" % why)
        record = self._log.own
        labels, times = self._pausing(record)
        boot_id = record["boot_id"] if rebooted else None
        # What went wrong first, such as a host that did not come back in time, mostly is the cause of the rest.
        if record["failure"]:
            why = "%s; then %s" % (record["failure"].rstrip("."), why)
        self._log.step(maintenance_record.ROLLBACK, labels=labels, times=times, boot_id=boot_id, failure=why)
        return None

    def _roll_back(self) -> Outcome | None:
        record, turned = self._log.own, self._work.marked(TURNED)
        if record["boot_id"] is None:
            view = self._work.known_host()
            if maintenance_host_side.is_writing(view):
                view = self._work.host.wait_firmware()
                if maintenance_host_side.is_writing(view):
                    raise NpuError("The firmware is still being written into the chips of the host")
            if turned or view["next"]:
                # Its reboot may be on its way, or that of a run that wakes up: it shall try nothing.
                self._work.host.withdrawn(record["generation"])
                view = self._work.host.view()
            if view["good"] is None:
                return self._ending.fail("failed", "There is no good release to roll back to: it stays cordoned.", False)
            if view["going_down"] or not maintenance_host_side.runs(view, view["good"]):
                self._empty_again()
                self._log.step(maintenance_record.ROLLBACK, boot_id=view["boot_id"])
                return None
        else:
            self._work.check_not_older()
            view = self._work.host.reboot(None, self._policy.reboot_timeout, refuse_held=False)
            self._work.check_generation(view)
        try:
            good = view["driver"] if maintenance_host_side.runs(view, view["good"]) else view["good"]
            self._check.in_order(record["to" if turned else "from"]["version"], good)
        except Invalid as exc:
            if turned:
                self._log.step(maintenance_record.ROLLBACK, failure="the confirmed driver does not work: %s" % exc.message)
                return self._ending.fail("failed", "It stays cordoned.", False)
            text = "The previous driver does not work either (%s): it stays cordoned." % exc.message.rstrip(".")
            return self._ending.fail("failed", text, False)
        self._work.host.withdrawn(record["generation"])
        if turned:
            self._log.step(maintenance_record.UNCORDON)
            return None
        text = "It is back on %s and in service." % record["from"]["version"]
        return self._ending.fail("rolled-back", text, True)

    def _empty_again(self) -> None:
        """Nobody shall be cut off in the middle; but nobody who came onto a node in maintenance keeps it from going back.

        On one that was in service with a driver on trial they do: that ends in a halt.
        """
        labels, times = self._pausing(self._log.own)
        if labels:
            # Somebody let them run since, and they would hold the driver that is to be unloaded.
            self._log.step(maintenance_record.ROLLBACK, labels=labels, times=times)
        try:
            self._work.pods.evict_returned(MOST_RETURNS)
            self._work.pods.wait_components_gone(_COMPONENTS_LIMIT)
        except (Blocked, kube_client.Failing) as exc:
            if not self._work.marked(maintenance_record.DRAIN):
                raise
            self._work.say("rolls back anyway: %s" % exc.message)

    def _record_anew(self) -> None:
        """Somebody deleted the Node and the kubelet registered it again: what is under way is written on the new one."""
        self._work.say("the Node object was recreated: writes the record again")
        previous = kube_client.labels(self._log.previous)
        labels = {name: previous[name] for name in _LASTING_LABELS if name in previous}
        components = previous.get(kube_client.LABEL_COMPONENTS)

        def change_of(node: Object, record: Record) -> Change:
            record.update(uid=node["metadata"].get("uid"), heartbeat=self._log.now())
            if not maintenance_record.intended(record):
                record["step"] = maintenance_record.CORDON
                return Change(record, dict(labels, **{kube_client.LABEL_COMPONENTS: components}))
            return Change(record, dict(labels, **{kube_client.LABEL_COMPONENTS: components}), cordon=True)

        self._log.adopt_new_node(change_of)
