# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a problem in the middle of a maintenance means for the node: before its reboot is certain, and from then on."""

from __future__ import annotations

from typing import NamedTuple

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.context import Skipped, Withdrawn, WrongHost
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.host_side import Held, HostUnreachable, NotSent
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.purpose import Recovered
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods.blocker import Blocked
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import slots as maintenance_slots
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.outcome import ANSWERS, AWAITING, DEFERRED, FAILED, HALTED

# What becomes of a node whose reboot is certain. GIVEN_BACK: the host was not rebooted after all. STUCK: it may be anywhere; an
# upgrade halts, a recovery leaves the node to the next one. FOREIGN: another machine answers, which says nothing of this one.
GIVEN_BACK, STUCK, FOREIGN = "given back", "stuck", "foreign"


class Meaning(NamedTuple):
    outcome: str  # with which the node is given back before its reboot is certain
    intended: str  # what becomes of it from then on


_MEANINGS: dict[type[Exception], Meaning] = {
    # The maintenance is not wanted any more: the chips respond, the approval was removed, people exclude the node.
    Recovered: Meaning(ANSWERS, GIVEN_BACK),
    Withdrawn: Meaning(AWAITING, GIVEN_BACK),
    Skipped: Meaning(DEFERRED, GIVEN_BACK),
    # Other nodes come first.
    maintenance_slots.Halted: Meaning(HALTED, GIVEN_BACK),
    maintenance_slots.NotYet: Meaning(DEFERRED, GIVEN_BACK),
    # The node is in use.
    Held: Meaning(DEFERRED, GIVEN_BACK),
    Blocked: Meaning(DEFERRED, STUCK),
    # The host does not do what it is asked for.
    NotSent: Meaning(FAILED, GIVEN_BACK),
    HostUnreachable: Meaning(DEFERRED, STUCK),
    WrongHost: Meaning(FAILED, FOREIGN),
    NpuError: Meaning(FAILED, STUCK),
}


def meaning(problem: Exception) -> Meaning:
    """That of the closest class."""
    return next(_MEANINGS[kind] for kind in type(problem).__mro__ if kind in _MEANINGS)
