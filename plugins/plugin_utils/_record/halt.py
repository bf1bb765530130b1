# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A halt of the rollout: whom it stops, and the ways out of it.

It is {who, why, when, reason, node}: ``reason`` is that of the run, upgrade or rollback; ``node`` is there when it stands in the
middle of its maintenance. An older version wrote neither.

With the ``reason`` PAUSE, a person has paused all rollouts. That stops upgrades and rollbacks alike, and only resuming ends it.
``failure`` is the halt that there is besides, of a maintenance that failed.
"""

from __future__ import annotations

from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import one_line
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import annotations as data_annotations
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import this_run
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record

Halt = dict[str, Any]
PAUSE = "pause"
# Characters. A halt is written whatever else the Lease has: slots leave it half of the room.
_WHO, _WHY = 256, 4096


def made(who: str, why: str, when: str, reason: str, node: str | None = None) -> Halt:
    halted = {"who": data_annotations.cut(who, _WHO), "why": data_annotations.cut(why, _WHY), "when": when, "reason": reason}
    return dict(halted, node=node) if node else halted


def paused(before: Halt | None, who: str, why: str, when: str) -> Halt:
    """The halt of a person who pauses all rollouts. ``before``: the halt until now; the same pause by the same person stays."""
    pause = made(who, why, when, PAUSE)
    if before is not None and is_pause(before) and (before["who"], before["why"]) == (pause["who"], pause["why"]):
        return before
    failure = of_failure(before)
    return dict(pause, failure=failure) if failure else pause


def is_pause(halted: Halt | None) -> bool:
    return halted is not None and halted.get("reason") == PAUSE


def of_failure(halted: Halt | None) -> Halt | None:
    """The halt by a maintenance that failed, which there may be besides a pause."""
    return (halted or {}).get("failure") if is_pause(halted) else halted


def with_failure(halted: Halt | None, failure: Halt | None) -> Halt | None:
    """``halted`` with another halt by a failed maintenance, or none."""
    if halted is None or not is_pause(halted):
        return failure
    kept = {name: value for name, value in halted.items() if name != "failure"}
    return dict(kept, failure=failure) if failure else kept


def holds(halted: Halt | None, reason: str, cleared: bool) -> bool:
    """Whether a run with this reason may not begin with a node. ``cleared``: it clears the halt first, which ends no pause."""
    return binds(with_failure(halted, None) if cleared else halted, reason)


def binds(halted: Halt | None, reason: str) -> bool:
    """Whether a run with this reason may not begin with a node.

    A recovery may: it brings no driver, and its node is out of service already. An upgrade that failed is no reason not to go back.
    """
    if not halted or reason == maintenance_record.RECOVERY_REASON:
        return False
    if is_pause(halted):
        return True
    return reason != maintenance_record.ROLLBACK_REASON or of_rollback(halted)


def of_rollback(halted: Halt) -> bool:
    return halted.get("reason") == maintenance_record.ROLLBACK_REASON


def outweighs(new: Halt, old: Halt | None) -> bool:
    """Whether the ``new`` halt takes the place of the ``old`` one: the first reason stays, unless it stops fewer runs, or is an
    older word about the same node."""
    if not old or (of_rollback(new) and not of_rollback(old)):
        return True
    return new.get("node") is not None and new.get("node") == old.get("node") and of_rollback(new) == of_rollback(old)


def word(halted: Halt) -> str:
    return "paused" if is_pause(halted) else "halted"


def subject(halted: Halt) -> str:
    """The beginning of a sentence, such as ``The rollout is halted``."""
    return "All rollouts are paused" if is_pause(halted) else "The rollout is halted"


def text(halted: Halt) -> str:
    """The sentences for people."""
    why = one_line(halted["why"]) + "." if is_pause(halted) else halted["why"]
    return "%s since %s by %s: %s %s" % (subject(halted), halted["when"], halted["who"], why, ways_out(halted))


def ways_out(halted: Halt) -> str:
    """What to do now."""
    if is_pause(halted):
        return "To resume them: %s" % this_run.again("resume")
    playbook, clear = "rollback" if of_rollback(halted) else "upgrade", {"npu_upgrade_clear_halt": True}
    if halted.get("node"):
        told = "After fixing this, finish %s first: %s. To continue without it: %s" % (
            halted["node"],
            this_run.again(playbook),
            this_run.again(playbook, clear, without=halted["node"]),
        )
    else:
        told = "After fixing this, continue with: %s" % this_run.again(playbook, clear)
    return told if of_rollback(halted) else "%s. To go back instead: %s" % (told, this_run.again("rollback"))


def line(halted: Halt) -> str:
    """What people read of it below a table."""
    return "%s: %s" % (word(halted).upper(), text(halted))
