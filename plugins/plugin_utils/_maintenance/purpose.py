# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a maintenance is for, and where that makes a difference: an upgrade (or rollback), or a recovery.

An upgrade has another driver to try and a way back. A recovery has neither: the reboot is all there is, and what it meets may
be hung in the kernel, so it does not wait for what cannot end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import sentence
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import this_run
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.annotations import Record
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import View
from ansible_collections.npuops.ascend.plugins.plugin_utils._heal import wedged_reboot
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import outcome as maintenance_outcome
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import wedged_annotation
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.outcome import NotDue


class Recovered(Exception):
    """The chips answer again, before the reboot."""

    message = "Its chips respond again."
    details: Mapping[str, Any] = {}


class Purpose:
    """What upgrades and recoveries say of a node, as far as they do not say otherwise."""

    recovers = False  # whether it is a recovery
    most_at_once: int | None = None  # how many nodes at once, but for the slots; 0 = any number, None: the slots alone say

    def check_due(self, node: Object, now: float) -> None:
        """Raise NotDue when there is nothing to be done to the node."""

    def check_fleet(self, nodes: Callable[[], Iterable[Object]], now: float) -> None:
        """Raise NotDue when the state of all nodes forbids to begin with this one. ``nodes()`` lists them."""

    def check_host(self, node: Object, view: View) -> None:
        """Raise NotDue when the host says that there is nothing to be done now."""

    def check_still_due(self, node: Object) -> None:
        """Raise Recovered when there is nothing to be done any more; asked until the reboot is certain."""

    def needs_reboot(self, _node: Object) -> bool:
        """Whether the node still needs the reboot for which it was drained."""
        return True

    def begin(self, record: Record, _node: Object, _view: View, _now: str) -> Record:
        """The first record, made fit."""
        return record

    def intend(self, record: Record, _now: str) -> Record:
        """The record with which the reboot becomes certain, made fit."""
        return record

    def approval_not_before(self, _node: Object) -> float | None:
        """Seconds since 1970: an older approval was for something else. None: any will do."""
        return None

    def approval_for(self, _node: Object, version: str | None) -> str | None:
        """What the reboot is approved for, see ``approval.given``. ``version``: of the driver that it leads to."""
        return version

    def state_after(self, _record: Record, state: str | None) -> str | None:
        """What the label driver-upgrade-state says when the maintenance has ended; ``state``: of an upgrade."""
        return state


class Upgrade(Purpose):
    def check_due(self, node: Object, now: float) -> None:
        state = maintenance_record.state(node)
        if state is None:
            raise NotDue(maintenance_outcome.UP_TO_DATE)
        if state == maintenance_record.FAILED:
            raise NotDue(maintenance_outcome.FAILED, _failed_before(node))


class Recovery(Purpose):
    recovers = True

    def __init__(self, guards: wedged_reboot.Guards) -> None:
        """``guards``: _heal.wedged_reboot.Guards."""
        self._guards = guards
        self.most_at_once = guards.max_parallel

    def check_due(self, node: Object, now: float) -> None:
        if wedged_annotation.of(node) is None:
            if wedged_reboot.left(node):
                return  # only its cordon is to be given back
            raise NotDue(maintenance_outcome.ANSWERS, Recovered.message)
        why = self._guards.tired(node, now)
        if why:
            raise NotDue(maintenance_outcome.GIVEN_UP, why)

    def check_fleet(self, nodes: Callable[[], Iterable[Object]], now: float) -> None:
        storm = self._guards.storm(nodes(), now)
        if storm:
            raise NotDue(maintenance_outcome.HALTED, storm)

    def check_host(self, node: Object, view: View) -> None:
        wedge = wedged_annotation.of(node)
        if wedge is None:
            return
        # Without a driver the node agent has nothing to look at, and what it said before the reboot stays.
        if not wedge.is_of(view["boot_id"]) and view["unit"] != "failed":
            raise NotDue(maintenance_outcome.TOO_SOON, wedged_reboot.REBOOTED_SINCE)
        if view["ready"]:
            raise NotDue(maintenance_outcome.ANSWERS, "The driver of the host is ready again (/run/npuops/driver-ready).")
        why = self._guards.fresh(view["uptime"])
        if why:
            raise NotDue(maintenance_outcome.TOO_SOON, why)

    def check_still_due(self, node: Object) -> None:
        if self.needs_reboot(node) and wedged_annotation.of(node) is None:
            raise Recovered()

    def needs_reboot(self, node: Object) -> bool:
        return wedged_annotation.of(node) is not None or not wedged_reboot.left(node)

    def begin(self, record: Record, node: Object, view: View, now: str) -> Record:
        record["due"] = maintenance_record.state(node)
        if self.needs_reboot(node):
            return record
        # It was rebooted already, and answers now.
        step = maintenance_record.VALIDATION
        return dict(record, step=step, boot_id=view["boot_id"], unschedulable=False, times=dict(record["times"], **{step: now}))

    def intend(self, record: Record, now: str) -> Record:
        return dict(record, recoveries=record["recoveries"] + [now])

    def approval_not_before(self, node: Object) -> float | None:
        return self._guards.approval_not_before(node)

    def approval_for(self, node: Object, _version: str | None) -> str | None:
        return self._guards.approval_purpose(node)

    def state_after(self, record: Record, _state: str | None) -> str | None:
        return record.get("due")


_PLAYBOOKS: dict[str | None, str] = {maintenance_record.RECOVERY_REASON: "heal", maintenance_record.ROLLBACK_REASON: "rollback"}


def of_record(record: Record) -> type[Purpose]:
    return Recovery if record.get("reason") == maintenance_record.RECOVERY_REASON else Upgrade


def playbook_of(record: Record) -> str:
    """The playbook that goes on with it in the direction in which it was begun."""
    return _PLAYBOOKS.get(record.get("reason"), "upgrade")


def finish(record: Record, name: str) -> str:
    """The command that goes on with the maintenance of the node, to the driver that it was begun for."""
    version = (record.get("to") or {}).get("version") if playbook_of(record) == "upgrade" else None
    return this_run.again(playbook_of(record), {"npu_driver_version": version} if version else None, node=name)


def _failed_before(node: Object) -> str:
    why = maintenance_record.last(node).get("failure") or "It failed before."
    return "%s To try again: %s" % (
        sentence(why),
        this_run.again("upgrade", {"npu_upgrade_retry": True}, node=node["metadata"]["name"]),
    )
