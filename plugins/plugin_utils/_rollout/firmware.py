# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the firmware of a node's chips changes together with its driver, and what is in the way of that.

Firmware does not return with the driver: what a failed upgrade returns to must work with the new one.
"""

from __future__ import annotations

from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._driver import firmware as driver_firmware
from ansible_collections.npuops.ascend.plugins.module_utils._driver import version_info
from ansible_collections.npuops.ascend.plugins.module_utils._driver.releases import Layout
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, one_line, printable
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import Brings, Validation
from ansible_collections.npuops.ascend.plugins.plugin_utils._fleet import support as fleet_support
from ansible_collections.npuops.ascend.plugins.plugin_utils._fleet.verdict import ON_TRIAL
from ansible_collections.npuops.ascend.plugins.plugin_utils._rollout.planned_node import PlannedNode
from ansible_collections.npuops.ascend.plugins.plugin_utils._rollout.settings import Lookups, RolloutSettings

KEEP, MATCH = "keep", "match"


class Images:
    """The firmware that driver images bring, each asked for once."""

    def __init__(self, lookups: Lookups) -> None:
        self._lookups = lookups
        self._known: dict[tuple[Any, ...], Brings | NpuError | None] = {}

    def of(self, entry: PlannedNode, release: str) -> Brings | None:
        """What the image of the node, staged as ``release`` if it is, brings; None for nothing. Raises NpuError."""
        checked, staged = entry.checked, ((entry.facts.get("upgrade") or {}).get("staged") or {}).get(release)
        if staged:
            return staged.get("brings")
        # A package brings none.
        if self._lookups.firmware is None or not checked.image:
            return None
        key = (checked.image, checked.digest, entry.facts.get("machine"))
        if key not in self._known:
            try:
                self._known[key] = self._lookups.firmware(checked.image or "", checked.digest or "", checked.config, key[2])
            except NpuError as exc:
                self._known[key] = exc
        found = self._known[key]
        if isinstance(found, NpuError):
            raise found
        return found


def look(entry: PlannedNode, validation: Validation, images: Images) -> None:
    """Sets what the image of the node brings and its chips run, if they are to have it. Adds problems of the settings."""
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
        brings = images.of(entry, release)
    except NpuError as exc:
        problems.append(one_line(exc.message))
        return
    if brings is None and wanted:
        advice = "build the image with the option firmware" if entry.checked.image else "only driver images bring firmware"
        problems.append(
            "npu_firmware_version is %s, but %s declares no firmware: %s"
            % (wanted, entry.checked.image or entry.checked.package, advice)
        )
    elif brings is None:
        what = "image declares" if entry.checked.image else "package has"
        entry.notes.append("its %s no firmware; that of the chips stays" % what)
    elif wanted and wanted != brings["version"]:
        problems.append("npu_firmware_version is %s, but %s has the firmware %s" % (wanted, entry.checked.image, brings["version"]))
    else:
        entry.brings, entry.running_firmware = brings, validation.get("firmware_version")


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
            "its image has the firmware %s, which works with drivers %s, not with %s: build the image with matching packages"
            % (new, ", ".join(change["drivers"]), target["version"])
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


def keep_unless_possible(entry: PlannedNode, settings: RolloutSettings) -> None:
    """A maintenance that goes on is not blocked, but gets the driver alone if the firmware of a new one would be."""
    target, change = entry.target, entry.firmware
    if change is None or not target or not target.get("firmware"):
        return
    reasons = entry.reasons
    entry.reasons = []
    check(entry, target, settings)
    problems, entry.reasons = entry.reasons, reasons
    if entry.verdict == ON_TRIAL and entry.loaded_release == target["release"]:
        problems.append("its driver is on trial already; another run writes it")
    if problems:
        entry.notes.append("the firmware of its chips stays for now: %s" % "; ".join(problems))
        del target["firmware"]
        entry.brings = None


def _check_way_back(entry: PlannedNode, target: dict[str, Any], new: str, drivers: list[str]) -> None:
    """If the new driver does not work, the node boots the one it has now, with the new firmware."""
    back = entry.loaded_version
    if not back or entry.loaded_release == target["release"]:
        return
    staged = ((entry.facts.get("upgrade") or {}).get("staged") or {}).get(entry.loaded_release or "") or {}
    bounds = staged.get("firmware") or fleet_support.firmware_range(back, (entry.facts.get("family") or {}).get("name"))
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
