# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The firmware that comes with a driver: written into the chips after the drain, and in use after the reboot."""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.module_utils._driver.releases import same_driver
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance import host_side as maintenance_host_side
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.context import Work
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record


def write(work: Work, release: str | None) -> str | None:
    """Write the firmware of the release, unless that is done. Returns why it failed, as a clause, or None."""
    wanted = work.log.own["to"].get("firmware")
    if not wanted or not release:
        return None
    # By its version: of a host whose kernel has changed since the plan, the record names another release of the driver.
    if not same_driver(release, work.request.release) or wanted != work.request.firmware:
        return _leave(work, wanted)
    # After a power loss it may have booted just now: npu-smi works only with the driver.
    work.host.wait_boot_unit()
    try:
        answer = work.host.write_firmware(release, wanted, work.policy.retry)
    except maintenance_host_side.HostUnreachable:
        raise
    except NpuError as exc:
        view = work.host.view(retry_seconds=work.policy.reboot_timeout)
        if view["going_down"] or view["boot_id"] != work.log.own["boot_id"]:
            work.say("the host goes down by itself: the firmware %s is written after that" % wanted)
            return None
        return "the firmware %s was not written: %s" % (wanted, exc.message)
    if answer["held"]:
        return "the firmware %s was not written: %s" % (wanted, maintenance_host_side.held_text(answer["held"]))
    if answer["state"] not in (None, "written"):
        return "the firmware %s could not be written: %s" % (wanted, answer["msg"])
    if answer["state"] == "written":
        work.say("firmware %s written; the reboot activates it" % wanted)
    return None


def _leave(work: Work, wanted: str) -> str | None:
    """The record asks for firmware for which this run's own plan does not: it begins no write, and one that has begun ends
    first. Returns why that one failed, as a clause, or None."""
    record, flash = work.log.own, work.host.wait_firmware().get("firmware") or {}
    if (flash.get("boot_id"), flash.get("version")) == (record["boot_id"], wanted):
        if flash.get("state") == "written":
            work.say("firmware %s was written before; the reboot activates it" % wanted)
            return None
        return "the firmware %s could not be written: %s" % (wanted, flash.get("reason"))
    work.say("does not write the firmware %s, which the settings of this run do not ask for" % wanted)
    to = {name: value for name, value in record["to"].items() if name != "firmware"}
    work.log.step(maintenance_record.REBOOT, to=to)
    return None
