# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a wedged node is rebooted: the guards that keep recoveries from doing more harm than a wedged chip, decided by what the
nodes' records say.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import this_run
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.and_more import and_more
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import approval, wedged_annotation
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record

DAY = 24 * 3600
# Seconds. A time that is further ahead is of a clock that was wrong.
_AHEAD = 300

REBOOTED_SINCE = "The host was rebooted since it wedged; the node agent will report whether its chips respond."


@dataclasses.dataclass(frozen=True)
class Guards:
    """The variables npu_heal_*. Times in seconds."""

    min_uptime: int
    attempts: int  # a day and node, 0 = any number
    max_parallel: int  # nodes in recovery at once, 0 = any number
    storm_percent: int
    storm_window: int
    old_approvals: bool

    # --- each returns a sentence, or None ---

    def tired(self, node: Object, now: float) -> str | None:
        """The node has been tried often enough."""
        tried = attempts(node, now)
        if not self.attempts or len(tried) < self.attempts:
            return None
        again = maintenance_record.rfc3339((maintenance_record.seconds_of(tried[-self.attempts]) or 0) + DAY)
        # The annotation with the attempts also tells that the cordon is ours, so it is not to be removed.
        now_command = this_run.again("heal", {"npu_heal_attempts": 0}, node=node["metadata"]["name"])
        return (
            "%s and it is wedged again; npu_heal_attempts allows %d a day, so the next is at %s. Check its chips. To try now: %s"
            % (
                _times(tried),
                self.attempts,
                again,
                now_command,
            )
        )

    def fresh(self, uptime: float) -> str | None:
        """The host has booted just now."""
        if uptime >= self.min_uptime:
            return None
        text = "The host has been up for %d s only; it is rebooted after %d s (npu_heal_min_uptime)."
        return text % (uptime, self.min_uptime)

    def storm(self, nodes: Iterable[Object], now: float) -> str | None:
        """More of the fleet fails than chips do by themselves."""
        fleet = [node for node in nodes if kube_client.LABEL_PRESENT in kube_client.labels(node)]
        names = sorted(node["metadata"]["name"] for node in fleet if self._hit(node, now))
        # One node alone is no storm, however small the fleet.
        if len(names) < 2 or len(names) * 100 <= self.storm_percent * len(fleet):
            return None
        return (
            "%d of %d NPU nodes wedged within %d s (%s): that is more than %d %% (npu_heal_storm_percent), so the cause is"
            " most likely not their chips. No node is touched; look for what they have in common."
            % (len(names), len(fleet), self.storm_window, and_more(names, 8), self.storm_percent)
        )

    def _hit(self, node: Object, now: float) -> bool:
        """Whether it wedged within the window, be it that it was recovered since."""
        wedge, begin = wedged_annotation.of(node), now - self.storm_window
        if wedge is not None and (wedge.told_at is None or wedge.told_at >= begin):
            return True
        return any((maintenance_record.seconds_of(when) or 0) >= begin for when in attempts(node, now))

    def approval_not_before(self, node: Object) -> float | None:
        """Seconds since 1970 before which an approval was meant for something else, infinite if that is not known; or None. By the
        clock of the API server, as the time of the approval: that of the host may be wrong."""
        wedge = wedged_annotation.of(node)
        if self.old_approvals or wedge is None:
            return None
        return float("inf") if wedge.told_at is None else wedge.told_at

    def approval_purpose(self, node: Object) -> str | None:
        """What an approval of the node's recovery is for, None if one for something else counts, too."""
        return None if self.old_approvals else approval.recovery_of(node)


def attempts(node: Object, now: float) -> list[str]:
    """When the node was rebooted to recover it, within the last day: RFC 3339, the oldest first."""
    try:
        record = maintenance_record.decode(node) or maintenance_record.last(node)
    except NpuError:
        record = {}
    return recent(record.get("recoveries"), now)


def recent(times: Iterable[str] | None, now: float) -> list[str]:
    """Those of ``times`` that are of the last day."""
    return sorted(text for text in times or () if -_AHEAD <= now - (maintenance_record.seconds_of(text) or 0) < DAY)


def left(node: Object) -> bool:
    """Whether its last recovery did not help, and left it out of service."""
    record = maintenance_record.last(node)
    return record.get("reason") == maintenance_record.RECOVERY_REASON and maintenance_record.left_cordoned(node)


def history(node: Object, now: float) -> str | None:
    """What a person wants to know of the recoveries of a node, as a phrase, or None."""
    tried, record = attempts(node, now), maintenance_record.last(node)
    if not tried:
        return None
    text = _times(tried)
    if left(node) and record.get("failure"):
        text += "; %s" % record["failure"]
    return text


def _times(tried: Sequence[str]) -> str:
    number = "once" if len(tried) == 1 else "%d times" % len(tried)
    return "It was rebooted %s within a day to recover it, the last time at %s" % (number, tried[-1])
