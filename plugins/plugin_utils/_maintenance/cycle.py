# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One node's way through its maintenance, from whatever the Node says to the step that is asked for.

The state is on the node, not here. Every step looks, decides, and makes one mutating call at a time, so that a run
killed before or after any of them and started again comes to the same end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.annotations import Record
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import Clock
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance import problems, rollback_step, steps
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.begin import Beginning
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.context import (
    Alerts,
    Course,
    MaintenancePolicy,
    MaintenanceRequest,
    MakeDrain,
    MakeSmokePod,
    Remembered,
    Work,
)
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.end import Ending
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.host_side import Port
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.purpose import Recovery, Upgrade
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import node_log
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.outcome import BUSY, FAILED, UNDER_WAY, Outcome
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.record import (
    CORDON,
    DRAIN,
    JOBS,
    PODS,
    REBOOT,
    ROLLBACK,
    UNCORDON,
    VALIDATED,
    VALIDATION,
)

__all__ = ["UNTIL", "Cycle", "MaintenanceRequest", "MaintenancePolicy", "Recovery", "Upgrade"]


class Step(NamedTuple):
    name: str  # in the record, and on the Node
    take: Callable[[Work], Outcome | None]
    until: str | None = None  # what ``until`` says to end a call before it
    taken: Callable[[Record], bool] = lambda record: False  # of two steps with one name: whether the second is due


# In this order. From the intent on, the host may be anywhere, and a node can only go forward, or back through the rollback.
STEPS = (
    Step(CORDON, steps.cordon, until="cordon"),
    Step(JOBS, steps.wait_for_jobs, until="drain"),
    Step(PODS, steps.evict_npu_pods),
    Step(DRAIN, steps.drain),
    Step(REBOOT, steps.intend, until="reboot", taken=lambda record: record["boot_id"] is not None),
    Step(REBOOT, steps.reboot_host),
    Step(VALIDATION, steps.validate, until="validate", taken=lambda record: VALIDATED in record["times"]),
    Step(VALIDATION, steps.confirm, until="confirm"),
    Step(UNCORDON, steps.finish),
    Step(ROLLBACK, rollback_step.roll_back),  # instead of what is left of the others; before the last one, if it was turned
)
UNTIL = (*(step.until for step in STEPS if step.until), "done")


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
        alerts: Alerts | None = None,
    ) -> None:
        """``cluster``: Cluster; ``host``: the port to its host; ``pods(cluster, beat, say)`` and ``smoke(cluster, beat,
        say)`` (or None) make the Drain and the SmokePod; ``say(step, seconds, sentence)``; ``clock``: as Clock; ``alerts``: as
        FiringAlerts.refusal."""
        self._work = Work(cluster, host, pods, request, policy, clock, say, smoke, alerts)
        self._log, self._request, self._beginning = self._work.log, request, Beginning(self._work)

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
                if self._log.record is None:
                    # What another run had begun is out of the way.
                    work.remembered = Remembered()
                    outcome = self._beginning.begin()
                else:
                    outcome = self._stop(until) or self._step()
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
        """The outcome when the step asked for is reached. What is cleared away, or on its way back, goes to its end."""
        back = self._log.own["step"] == ROLLBACK or self._work.course is not Course.FORWARD
        if until == "done" or back or self._failure():
            return None
        reached = STEPS[: STEPS.index(self._due()) + 1]
        return self._work.outcome(UNDER_WAY) if any(step.until == until for step in reached) else None

    def _due(self) -> Step:
        record = self._log.own
        return next(step for step in STEPS if step.name == record["step"] and not step.taken(record))

    def _failure(self) -> str | None:
        """A hook's failure that is to be heeded: not any more once the release is confirmed."""
        heeded = self._log.own["step"] not in (ROLLBACK, UNCORDON) and self._work.course is Course.FORWARD
        return self._request.failure if heeded else None

    def _step(self) -> Outcome | None:
        """Do what is due. None, or the outcome with which the node is let go."""
        work, intended = self._work, maintenance_record.intended(self._log.own)
        try:
            work.check_found()
            if work.course is Course.TO_BE_TURNED:
                rollback_step.turn(work)
                return None
            failure = self._failure()
            if failure and intended:
                return rollback_step.begin(work, failure)
            if failure:
                return Ending(work).give_back(FAILED, failure)
            return self._due().take(work)
        except problems.PROBLEMS as problem:
            return problems.answer(work, problem, intended)
