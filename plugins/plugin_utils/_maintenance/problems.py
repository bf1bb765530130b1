# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a problem in the middle of a maintenance means for the node: before its reboot is certain, and from then on."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, NoReturn, Union

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.adopt import Adoption
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.context import (
    Outdated,
    OutsideWindow,
    Skipped,
    Uncordoned,
    Withdrawn,
    Work,
    WrongHost,
)
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.end import Ending
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.host_side import Held, HostUnreachable, NotSent
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.purpose import Recovered
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods.blocker import Blocked
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import node_log
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import slots as maintenance_slots
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.outcome import (
    ANSWERS,
    AWAITING,
    DEFERRED,
    FAILED,
    HALTED,
    Outcome,
)

# After that, it is no person who changed their mind.
_MOST_UNCORDONS = 3
_UNCORDONED_AGAIN = (
    "Another client uncordons the node each time. Find it (kubectl get node %(node)s -o yaml --show-managed-fields) and stop it, or"
    " leave the node out: kubectl label node %(node)s %(skip)s=true"
)

Problem = Union[Uncordoned, Recovered, NpuError]
PROBLEMS = (Uncordoned, Recovered, NpuError)
# Returns the outcome with which the node is let go, or None: the maintenance goes on.
Answer = Callable[[Work, Problem], Union[Outcome, None]]


class Meaning(NamedTuple):
    before: Answer  # as long as everything can be given back
    intended: Answer  # the host may be anywhere


def answer(work: Work, problem: Problem, intended: bool) -> Outcome | None:
    """Do what the problem means, by its closest class. ``intended``: whether the reboot was certain before it."""
    meaning = next(_MEANINGS[kind] for kind in type(problem).__mro__ if kind in _MEANINGS)
    return (meaning.intended if intended else meaning.before)(work, problem)


def _give_back(outcome: str) -> Answer:
    """The host was not rebooted, or not after all."""
    return lambda work, problem: Ending(work).give_back(outcome, problem.message, problem.details.get("blockers"))


def _stuck(work: Work, problem: Problem) -> Outcome:
    """The host is gone, or something unforeseen went wrong: a rollout halts, a recovery leaves the node to the next one."""
    return Ending(work).leave(problem.message) if work.request.purpose.recovers else Ending(work).halt(problem.message)


def _another_host(work: Work, problem: Problem) -> Outcome:
    """Another machine answers, which says nothing of this one."""
    return work.outcome(FAILED, problem.message) if work.request.purpose.recovers else Ending(work).halt(problem.message)


def _start_over(work: Work, problem: Problem) -> Outcome | None:
    work.remembered.uncordons += 1
    if work.remembered.uncordons > _MOST_UNCORDONS:
        return Ending(work).give_back(
            DEFERRED, _UNCORDONED_AGAIN % {"node": work.request.node, "skip": maintenance_record.LABEL_SKIP}
        )
    work.say(problem.message)
    work.log.step(maintenance_record.CORDON)
    return None


def _record_again(work: Work, _problem: Problem) -> None:
    Adoption(work).record_again()


def _drop(work: Work, problem: Problem) -> Outcome | None:
    if not isinstance(problem, Outdated):
        raise problem
    return Adoption(work).drop(problem)


def _let_go(_work: Work, problem: Problem) -> NoReturn:
    """Nothing more is done to the node; Cycle.run tells why."""
    raise problem


_MEANINGS: dict[type[Exception], Meaning] = {
    # The maintenance is not wanted any more: the chips respond, the approval was removed, people exclude the node.
    Recovered: Meaning(_give_back(ANSWERS), _give_back(ANSWERS)),
    Withdrawn: Meaning(_give_back(AWAITING), _give_back(AWAITING)),
    Skipped: Meaning(_give_back(DEFERRED), _give_back(DEFERRED)),
    OutsideWindow: Meaning(_give_back(DEFERRED), _give_back(DEFERRED)),
    # Other nodes come first.
    maintenance_slots.Halted: Meaning(_give_back(HALTED), _give_back(HALTED)),
    maintenance_slots.NotYet: Meaning(_give_back(DEFERRED), _give_back(DEFERRED)),
    # The node is in use.
    Held: Meaning(_give_back(DEFERRED), _give_back(DEFERRED)),
    Blocked: Meaning(_give_back(DEFERRED), _stuck),
    # The host does not do what it is asked for.
    NotSent: Meaning(_give_back(FAILED), _give_back(FAILED)),
    HostUnreachable: Meaning(_give_back(DEFERRED), _stuck),
    WrongHost: Meaning(_give_back(FAILED), _another_host),
    NpuError: Meaning(_give_back(FAILED), _stuck),
    # The Node is not as this run left it, or cannot be asked.
    Uncordoned: Meaning(_start_over, _start_over),
    Outdated: Meaning(_drop, _drop),
    node_log.Recreated: Meaning(_record_again, _record_again),
    node_log.Lost: Meaning(_let_go, _let_go),
    node_log.Gone: Meaning(_let_go, _let_go),
    kube_client.Unreachable: Meaning(_let_go, _let_go),
}
