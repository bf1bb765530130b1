# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The words for what became of a node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

UNDER_WAY = "under-way"  # the step asked for is reached
DONE = "done"
UP_TO_DATE = "up-to-date"
WITHDRAWN = "withdrawn"  # what another run had begun is given back, and nothing else is wanted
AWAITING = "awaiting-approval"
DEFERRED = "deferred"  # given back; due still
FAILED = "failed"
HALTED = "halted"
BUSY = "busy"  # another run has it
# Of recoveries alone.
ANSWERS = "answers-again"  # there is nothing to recover any more
TOO_SOON = "too-soon"  # it may be due later
GIVEN_UP = "given-up"  # it was tried often enough
CHECK_MODE = "check-mode"  # nothing was tried


class Outcome(TypedDict):
    """How far a run came with a node, and why."""

    outcome: str  # one of the words above
    step: str | None  # the one that is due; None: the node is up to date
    reason: str | None  # in a sentence
    seconds: int  # since the maintenance began
    blockers: list[dict[str, Any]]  # what kept the node from being emptied or rebooted
    intended: bool  # whether the reboot may have been sent


class NotDue(Exception):
    """Nothing is to be done to the node now; ``outcome``, ``reason``: what a run says of it."""

    def __init__(self, outcome: str, reason: str | None = None) -> None:
        super().__init__(reason or outcome)
        self.outcome, self.reason = outcome, reason


# What the steps after the last one still say.
_OF_THE_END = ("step", "seconds", "blockers", "api_unreachable", "no_slot")


def told(result: Mapping[str, Any]) -> dict[str, str | None]:
    """{outcome, reason} of a task's result, also of one that broke and names neither; both None when it was skipped."""
    failed = result.get("failed") or result.get("unreachable")
    return {
        "outcome": result.get("outcome") or (FAILED if failed else None),
        "reason": result.get("reason") or (result.get("msg") if failed else None),
    }


def handed_on(previous: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The result of a step that is skipped, because the step with the result ``previous`` ended the maintenance; or None."""
    if not previous or previous.get("outcome") == UNDER_WAY:
        return None
    return {
        **{name: previous[name] for name in _OF_THE_END if name in previous},
        **told(previous),
        "msg": "The maintenance of the node ended with the step before",
        "skipped": True,
    }
