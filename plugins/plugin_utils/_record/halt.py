# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A halt of the rollout: whom it stops, and the ways out of it.

It is {who, why, when, reason, node}: ``reason`` is that of the run, upgrade or rollback; ``node`` is there when it stands in the
middle of its maintenance. An older version wrote neither.
"""

from __future__ import annotations

from typing import Any

from ansible_collections.npuops.ascend.plugins.plugin_utils._data import annotations as data_annotations
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import this_run
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record

Halt = dict[str, Any]
# Characters. A halt is written whatever else the Lease has: slots leave it half of the room.
_WHO, _WHY = 256, 4096


def made(who: str, why: str, when: str, reason: str, node: str | None = None) -> Halt:
    halted = {"who": data_annotations.cut(who, _WHO), "why": data_annotations.cut(why, _WHY), "when": when, "reason": reason}
    return dict(halted, node=node) if node else halted


def binds(halted: Halt | None, reason: str) -> bool:
    """Whether a run with this reason may not begin with a node.

    A recovery may: it brings no driver, and its node is out of service already. An upgrade that failed is no reason not to go back.
    """
    if not halted or reason == maintenance_record.RECOVERY_REASON:
        return False
    return reason != maintenance_record.ROLLBACK_REASON or of_rollback(halted)


def of_rollback(halted: Halt) -> bool:
    return halted.get("reason") == maintenance_record.ROLLBACK_REASON


def outweighs(new: Halt, old: Halt | None) -> bool:
    """Whether the ``new`` halt takes the place of the ``old`` one: the first reason stays, unless it stops fewer runs, or is an
    older word about the same node."""
    if not old or (of_rollback(new) and not of_rollback(old)):
        return True
    return new.get("node") is not None and new.get("node") == old.get("node") and of_rollback(new) == of_rollback(old)


def text(halted: Halt) -> str:
    """The sentences for people."""
    return "The rollout is halted since %(when)s by %(who)s: %(why)s " % halted + ways_out(halted)


def ways_out(halted: Halt) -> str:
    """What to do now."""
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
