# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the firmware of a node's chips changes together with its driver, and what is in the way of that.

Firmware does not return with the driver: what a failed upgrade returns to must work with the new one.
"""

from __future__ import annotations

from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._driver.releases import Layout, same_driver
from ansible_collections.npuops.ascend.plugins.module_utils._firmware import firmware as driver_firmware
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, one_line, printable
from ansible_collections.npuops.ascend.plugins.module_utils._run_package import version_info
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import support as mindcluster_support
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.driver_contents import DriverContents
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.planned_node import PlannedNode
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.rollout_settings import RolloutSettings

KEEP, MATCH = "keep", "match"


def look(entry: PlannedNode, contents: DriverContents) -> None:
    """Sets what the node gets with its driver and what its chips run, if they are to have it. Adds problems of the settings."""
    before = len(entry.checked.reasons)
    _look(entry, contents)
    entry.firmware_problem = len(entry.checked.reasons) > before


def _look(entry: PlannedNode, contents: DriverContents) -> None:
    config, problems = entry.checked.config, entry.checked.reasons
    wanted, policy = config["firmware_version"], config["firmware_policy"]
    if policy not in (KEEP, MATCH):
        problems.append("npu_firmware_policy is %s; it must be %s or %s" % (printable(str(policy)), KEEP, MATCH))
        return
    if policy != MATCH:
        if wanted:
            problems.append("npu_firmware_version is %s, but npu_firmware_policy is %s: set it to match" % (wanted, KEEP))
        return
    try:
        release = Layout.release_name(config["driver_version"], entry.facts["kernel"], entry.checked.digest)
        brings = contents.firmware(entry, release)
    except NpuError as exc:
        problems.append(one_line(exc.message))
        return
    if brings is None and wanted:
        problems.append("npu_firmware_version is %s, but %s" % (wanted, _without(entry)))
    elif brings is None:
        entry.notes.append("npu_firmware_policy is %s, but %s. The firmware of its chips stays" % (MATCH, _without(entry)))
    elif wanted and wanted != brings["version"]:
        origin = entry.firmware_package or entry.checked.image
        problems.append("npu_firmware_version is %s, but %s has the firmware %s" % (wanted, origin, brings["version"]))
    else:
        entry.brings, entry.running_firmware = brings, entry.validation.get("firmware_version")


def _without(entry: PlannedNode) -> str:
    """Why the node gets no firmware with its driver, and what to do, as a clause."""
    if entry.checked.package:
        return "npu_firmware_package, which brings firmware to hosts with a driver package, is not set"
    also = ". npu_firmware_package is for driver packages only" if entry.checked.config["firmware_package"] else ""
    return "%s declares no firmware: build the image with the option firmware%s" % (entry.checked.image, also)


def check(entry: PlannedNode, target: dict[str, Any], settings: RolloutSettings) -> None:
    """Adds reasons and notes to a node that is due and gets other firmware."""
    change = entry.firmware
    if change is None:
        return
    new = change["to"]
    if change["from"] is None:
        entry.reasons.append(
            "npu-smi does not report the firmware of its chips, which is to become %s: run npuops.ascend.heal first, or set "
            "npu_firmware_policy: keep" % new
        )
        return
    if not driver_firmware.supports(change["drivers"], target["version"]):
        entry.reasons.append(
            "its %s the firmware %s, which works with drivers %s, not with %s: %s"
            % (
                "firmware package has" if entry.firmware_package else "image has",
                new,
                ", ".join(change["drivers"]),
                target["version"],
                "set npu_firmware_package to one that does" if entry.firmware_package else "build the image with matching packages",
            )
        )
    _check_way_back(entry, target, new, change["drivers"])
    flash = (entry.facts.get("upgrade") or {}).get("flash") or {}
    if flash.get("state") == "failed" and flash.get("version") == new and not settings.retry:
        entry.reasons.append(
            "the firmware %s could not be written before: %s; after checking its chips: -e npu_upgrade_retry=true"
            % (new, one_line(flash.get("reason")))
        )
    older = "," not in change["from"] and version_info.compare(new, change["from"]) < 0
    entry.notes.append(
        "firmware %s -> %s%s: written after the drain, in use after the reboot, and kept if the driver returns to %s"
        % (change["from"], new, " (older)" if older else "", entry.loaded_version)
    )


def keep_unless_possible(entry: PlannedNode, settings: RolloutSettings, on_trial: bool = False) -> None:
    """A maintenance that goes on is not blocked, but gets the driver alone if the firmware of a new one would be."""
    target, change = entry.target, entry.firmware
    if change is None or not target or not target.get("firmware"):
        return
    reasons = entry.reasons
    entry.reasons = []
    check(entry, target, settings)
    problems, entry.reasons = entry.reasons, reasons
    if on_trial and same_driver(entry.loaded_release, target["release"]):
        problems.append("its driver is on trial already; another run writes it")
    if problems:
        entry.notes.append("the firmware of its chips stays for now: %s" % "; ".join(problems))
        del target["firmware"]
        entry.brings = None


def _check_way_back(entry: PlannedNode, target: dict[str, Any], new: str, drivers: list[str]) -> None:
    """If the new driver does not work, the node boots the one it has now, with the new firmware."""
    back = entry.loaded_version
    if not back or same_driver(entry.loaded_release, target["release"]):
        return
    staged = ((entry.facts.get("upgrade") or {}).get("staged") or {}).get(entry.loaded_release or "") or {}
    bounds = staged.get("firmware") or mindcluster_support.firmware_range(back, (entry.facts.get("family") or {}).get("name"))
    if bounds is None and not drivers:
        entry.notes.append("it is not known whether driver %s, the way back, works with the firmware %s" % (back, new))
    problem = None
    if bounds is not None and not version_info.in_range(new, bounds[0], bounds[1]):
        problem = "it works with %s to %s" % (bounds[0], bounds[1])
    elif not driver_firmware.supports(drivers, back):
        problem = "that firmware works with drivers %s" % ", ".join(drivers)
    if problem:
        entry.reasons.append(
            "there would be no way back: a failed upgrade returns to driver %s, which does not work with the firmware %s (%s). "
            "Upgrade to a driver that works with both versions of the firmware first, or set npu_firmware_policy: keep"
            % (back, new, problem)
        )
