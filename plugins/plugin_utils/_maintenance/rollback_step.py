# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way back of a host whose reboot is certain: its new driver does not work, or is no longer wanted.

It is emptied again, rebooted into its confirmed driver, and validated.
"""

from __future__ import annotations

from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import View
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance import host_side as maintenance_host_side
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.context import (
    COMPONENTS_LIMIT,
    MOST_RETURNS,
    Invalid,
    Work,
)
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.end import Ending
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.validation import Check
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods.blocker import Blocked
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.outcome import Outcome
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.record import TURNED


def begin(work: Work, why: str, rebooted: bool = False) -> Outcome | None:
    """``rebooted``: the host is on its good driver already, so no other reboot is needed. A recovery has no way back."""
    if work.request.purpose.recovers:
        return Ending(work).leave(why)
    work.say("rolls back: %s" % why)
    record = work.log.own
    labels, times = work.pausing()
    boot_id = record["boot_id"] if rebooted else None
    # What went wrong first, such as a host that did not come back in time, mostly is the cause of the rest.
    if record["failure"]:
        why = "%s; then %s" % (record["failure"].rstrip("."), why)
    work.log.step(maintenance_record.ROLLBACK, labels=labels, times=times, boot_id=boot_id, failure=why)
    return None


def turn(work: Work) -> None:
    """Of a record that was begun for something else: its reboot is certain, so the host may be anywhere, and ends on the driver
    that is confirmed. That is where it came from, unless it has confirmed its own already."""
    view, record = work.known_host(work.policy.reboot_timeout), work.log.own
    # Where only firmware changes, the release was confirmed before, and going on would write it.
    only_firmware = record["to"].get("firmware") and record["from"].get("release") == record["to"].get("release")
    pending = record["step"] == maintenance_record.REBOOT and only_firmware
    if view["good"] is not None and view["good"] == record["to"].get("release") and not pending:
        work.remembered.confirmed_its_own = True
        return
    work.say("the %s to %s is withdrawn: rolls back" % (record["reason"], record["to"].get("version")))
    back = {"version": record["from"].get("version"), "release": view["good"] or record["from"].get("release"), "digest": None}
    labels, times = work.pausing()
    tried: dict[str, Any] = {"from": {key: record["to"].get(key) for key in ("version", "release")}}
    work.log.step(
        maintenance_record.ROLLBACK,
        labels=labels,
        times=dict(times, **{TURNED: work.log.now()}),
        boot_id=record["boot_id"] if record["step"] == maintenance_record.ROLLBACK else None,
        reason=work.request.reason,
        to=back,
        **tried,
    )


def roll_back(work: Work) -> Outcome | None:
    record, turned, ending = work.log.own, work.marked(TURNED), Ending(work)
    if record["boot_id"] is None:
        view = _host_at_rest(work, withdraw=turned)
        if view["good"] is None:
            return ending.fail("failed", "There is no good release to roll back to: it stays cordoned.", False)
        if view["going_down"] or not maintenance_host_side.runs(view, view["good"]):
            _empty_again(work)
            work.log.step(maintenance_record.ROLLBACK, boot_id=view["boot_id"])
            return None
    else:
        work.check_not_older()
        try:
            view = work.host.reboot(None, work.policy.reboot_timeout, refuse_held=False)
        except maintenance_host_side.NotSent as exc:
            return ending.halt(exc.message)  # the host is between two drivers
        work.check_generation(view)
    try:
        good = view["driver"] if maintenance_host_side.runs(view, view["good"]) else view["good"]
        Check(work).in_order(record["to" if turned else "from"]["version"], good)
    except Invalid as exc:
        if turned:
            work.log.step(maintenance_record.ROLLBACK, failure="the confirmed driver does not work: %s" % exc.message)
            return ending.fail("failed", "It stays cordoned.", False)
        text = "The previous driver does not work either (%s): it stays cordoned." % exc.message.rstrip(".")
        return ending.fail("failed", text, False)
    work.host.withdrawn(record["generation"])
    if turned:
        work.log.step(maintenance_record.UNCORDON)
        return None
    return ending.fail("rolled-back", "It is back on %s and in service." % record["from"]["version"], True)


def _host_at_rest(work: Work, withdraw: bool) -> View:
    """The host's view, when no firmware is being written, and no reboot that is on its way will try anything."""
    view = work.known_host()
    if maintenance_host_side.is_writing(view):
        view = work.host.wait_firmware()
        if maintenance_host_side.is_writing(view):
            raise NpuError("The firmware is still being written into the chips of the host")
    if withdraw or view["next"]:
        # The reboot may be this maintenance's, or that of a run that wakes up.
        work.host.withdrawn(work.log.own["generation"])
        view = work.host.view()
    return view


def _empty_again(work: Work) -> None:
    """Evict pods, so that the reboot interrupts none; but a pod that came onto a node in maintenance does not stop the rollback.

    On a node that was in service with a driver on trial it does: that ends in a halt.
    """
    labels, times = work.pausing()
    if labels:
        # The components were allowed to run since, and would hold the driver that is to be unloaded.
        work.log.step(maintenance_record.ROLLBACK, labels=labels, times=times)
    try:
        work.pods.evict_returned(MOST_RETURNS)
        work.pods.wait_components_gone(COMPONENTS_LIMIT)
    except (Blocked, kube_client.Failing) as exc:
        if not work.marked(maintenance_record.DRAIN):
            raise
        work.say("rolls back anyway: %s" % exc.message)
