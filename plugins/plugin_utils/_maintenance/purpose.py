# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a maintenance is for, and where that makes a difference: an upgrade (or rollback), or a recovery.

An upgrade has another driver to try and a way back. A recovery has neither: the reboot is all there is, and what it meets may
be hung in the kernel, so it does not wait for what cannot end.
"""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import sentence
from ansible_collections.npuops.ascend.plugins.plugin_utils._heal import guards as heal_guards
from ansible_collections.npuops.ascend.plugins.plugin_utils._heal import wedge as heal_wedge
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance import outcome as maintenance_outcome
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.outcome import NotDue


class Recovered(Exception):
    """The chips answer again, before the reboot."""


class Upgrade:
    recovers = False
    most_at_once = None  # but for the slots

    @staticmethod
    def check_due(node, _now):
        """Raise NotDue when there is nothing to be done to the node."""
        state = maintenance_record.state(node)
        if state is None:
            raise NotDue(maintenance_outcome.UP_TO_DATE)
        if state == maintenance_record.FAILED:
            raise NotDue(maintenance_outcome.FAILED, _failed_before(node))

    @staticmethod
    def check_fleet(_nodes, _now):
        """Raise NotDue when the state of all nodes forbids to begin with this one. ``nodes()`` lists them."""

    @staticmethod
    def check_host(_node, _view):
        """Raise NotDue when the host says that there is nothing to be done now."""

    @staticmethod
    def check_still_due(_node):
        """Raise Recovered when there is nothing to be done any more; asked until the reboot is certain."""

    @staticmethod
    def needs_reboot(_node):
        return True

    @staticmethod
    def begin(record, _node, _view, _now):
        """The first record, made fit."""
        return record

    @staticmethod
    def intend(record, _now):
        """The record with which the reboot becomes certain, made fit."""
        return record

    @staticmethod
    def approval_not_before(_node):
        return None

    @staticmethod
    def state_after(_record, state):
        """What the label driver-upgrade-state says when the maintenance has ended; ``state``: of an upgrade."""
        return state


class Recovery:
    recovers = True

    def __init__(self, guards):
        """``guards``: _heal.guards.Guards."""
        self._guards = guards
        self.most_at_once = guards.max_parallel

    def check_due(self, node, now):
        if heal_wedge.of(node) is None:
            if heal_guards.left(node):
                return  # only its cordon is to be given back
            raise NotDue(maintenance_outcome.ANSWERS, "Its chips respond again.")
        why = self._guards.tired(node, now)
        if why:
            raise NotDue(maintenance_outcome.GIVEN_UP, why)

    def check_fleet(self, nodes, now):
        storm = self._guards.storm(nodes(), now)
        if storm:
            raise NotDue(maintenance_outcome.HALTED, storm)

    def check_host(self, node, view):
        wedge = heal_wedge.of(node)
        if wedge is None:
            return
        # Without a driver the node agent has nothing to look at, and what it said before the reboot stays.
        if not wedge.is_of(view["boot_id"]) and view["unit"] != "failed":
            raise NotDue(maintenance_outcome.TOO_SOON, REBOOTED_SINCE)
        if view["ready"]:
            raise NotDue(maintenance_outcome.ANSWERS, "On the host its driver is ready again (/run/npuops/driver-ready).")
        why = self._guards.fresh(view["uptime"])
        if why:
            raise NotDue(maintenance_outcome.TOO_SOON, why)

    def check_still_due(self, node):
        if self.needs_reboot(node) and heal_wedge.of(node) is None:
            raise Recovered()

    @staticmethod
    def needs_reboot(node):
        return heal_wedge.of(node) is not None or not heal_guards.left(node)

    def begin(self, record, node, view, now):
        record["due"] = maintenance_record.state(node)
        if self.needs_reboot(node):
            return record
        # It was rebooted already, and answers now.
        step = maintenance_record.VALIDATION
        return dict(record, step=step, boot_id=view["boot_id"], unschedulable=False, times=dict(record["times"], **{step: now}))

    @staticmethod
    def intend(record, now):
        return dict(record, recoveries=record["recoveries"] + [now])

    def approval_not_before(self, node):
        return self._guards.approval_not_before(node)

    @staticmethod
    def state_after(record, _state):
        return record.get("due")


REBOOTED_SINCE = "The host was rebooted since it wedged; the node agent will report whether its chips respond."


_PLAYBOOKS = {maintenance_record.RECOVERY_REASON: "heal", maintenance_record.ROLLBACK_REASON: "rollback"}


def of_record(record):
    """Upgrade or Recovery, as a class."""
    return Recovery if record.get("reason") == maintenance_record.RECOVERY_REASON else Upgrade


def playbook_of(record):
    """The playbook that goes on with it in the direction in which it was begun."""
    return _PLAYBOOKS.get(record.get("reason"), "upgrade")


def _failed_before(node):
    why = maintenance_record.last(node).get("failure") or "It failed before."
    return "%s To try again: ansible-playbook npuops.ascend.upgrade --limit %s -e npu_upgrade_retry=true" % (
        sentence(why),
        node["metadata"]["name"],
    )
