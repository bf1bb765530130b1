# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which driver a node is to end on: the configured one, the one of its record, or the one before."""

from __future__ import annotations

from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._driver.releases import Layout, same_driver
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, one_line
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import rollback as rollout_rollback
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.planned_node import PlannedNode
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.rollback import Wave
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.rollout_settings import RolloutSettings
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.record import version_of


def wanted_now(entry: PlannedNode) -> dict[str, Any] | None:
    """The target that the inventory configures, None when it cannot be told."""
    if not entry.facts or not entry.checked.digest:
        return None
    configure(entry)
    return entry.target


def configure(entry: PlannedNode) -> None:
    """Take what the inventory configures as the target."""
    checked = entry.checked
    try:
        release = Layout.release_name(checked.config["driver_version"], entry.facts["kernel"], checked.digest)
    except NpuError as exc:
        checked.reasons.append(one_line(exc.message))
        return
    entry.target = {
        "version": checked.config["driver_version"],
        "release": release,
        "digest": checked.digest,
        "image": checked.image,
    }
    if checked.package:
        entry.target["package"] = checked.package
    if entry.brings is not None:
        # Also where the chips have it: nodes that get the same are of one kind.
        entry.target["firmware"] = entry.brings["version"]


def failed_before(entry: PlannedNode, settings: RolloutSettings) -> bool:
    """Whether the last maintenance failed, and this run would do the same again: the same driver, with the same firmware."""
    if entry.node is None or maintenance_record.state(entry.node) != maintenance_record.FAILED:
        return False
    tried, target = maintenance_record.last(entry.node).get("to") or {}, entry.target
    if settings.reason == maintenance_record.ROLLBACK_REASON or not tried.get("release") or not target:
        return True
    return same_driver(tried["release"], target["release"]) and tried.get("firmware") == target.get("firmware")


def is_there(entry: PlannedNode, settings: RolloutSettings) -> bool:
    """Whether the host runs what it is to run, and that is confirmed."""
    if settings.reason == maintenance_record.ROLLBACK_REASON:
        # Going back exchanges good and previous: a second run must not go forward again.
        last = maintenance_record.last(entry.node) if entry.node else {}
        back = last.get("reason") == maintenance_record.ROLLBACK_REASON and last.get("outcome") == "success"
        return back and not settings.retry and same_driver((last.get("to") or {}).get("release"), entry.loaded_release)
    wanted = (entry.target or {})["release"]
    return not entry.firmware and entry.loaded_release == wanted and _is_confirmed(entry.driver.get("good"), wanted)


def _is_confirmed(good: str | None, loaded: str) -> bool:
    """Also after a change of kernel: good is the same driver for the kernel before, until install points it to the one loaded."""
    return good is None or same_driver(good, loaded)


def of_trial(entry: PlannedNode, settings: RolloutSettings, trial: str, good: str | None) -> dict[str, Any] | None:
    """What the host is to end on: a rollback confirms the trial of a rollback, and takes back any other."""
    if settings.reason == maintenance_record.UPGRADE_REASON:
        return wanted_now(entry)
    release = trial if same_driver(trial, (entry.facts.get("upgrade") or {}).get("previous")) else good
    return _staged({"version": version_of(release), "release": release})


def after_intent(entry: PlannedNode, record: dict[str, Any], settings: RolloutSettings) -> dict[str, Any] | None:
    """The target of a run that goes on with a maintenance whose reboot is certain."""
    same = maintenance_record.reason_of(record) == settings.reason
    turned = maintenance_record.TURNED in (record.get("times") or {})
    if settings.reason == maintenance_record.ROLLBACK_REASON:
        return _staged(record.get("to" if same else "from"))
    if same and not turned:
        return _with_firmware(entry, _staged(record.get("to")), record)
    return wanted_now(entry) or (_staged(record.get("to")) if same else None)


def before_intent(
    entry: PlannedNode, record: dict[str, Any], settings: RolloutSettings, wave: Wave | None
) -> dict[str, Any] | None:
    """The target of a run that finds a maintenance which can be given back; None when it is only given back."""
    same = maintenance_record.reason_of(record) == settings.reason
    if settings.reason == maintenance_record.ROLLBACK_REASON:
        if same:
            return _staged(record.get("to"))
        if maintenance_record.reason_of(record) == maintenance_record.UPGRADE_REASON:
            return None  # it has changed nothing: the host has the driver that it had before
        problem = not entry.facts or rollout_rollback.previous(entry) or rollout_rollback.not_of(wave, entry)
        return None if problem or is_there(entry, settings) else entry.target
    target = wanted_now(entry)
    if target is None:
        return _with_firmware(entry, _staged(record.get("to")), record) if same else None
    entry.target = target
    return None if not entry.requested and entry.same_machine and is_there(entry, settings) else target


def _staged(driver: dict[str, Any] | None) -> dict[str, Any] | None:
    """A target of a record's ``to`` or ``from``, which was staged long ago. Without firmware: for that, a record is not enough."""
    if not driver or not driver.get("release"):
        return None
    known = {name: value for name, value in driver.items() if name != "firmware"}
    return dict({"digest": None}, **known, image=None)


def _with_firmware(entry: PlannedNode, target: dict[str, Any] | None, record: dict[str, Any]) -> dict[str, Any] | None:
    """``target`` with the firmware of the record, if what the inventory configures is the same driver with the same firmware."""
    asked = (record.get("to") or {}).get("firmware")
    if target is None:
        return None
    own = wanted_now(entry) or {}
    if not asked:
        if entry.firmware:
            entry.notes.append("the firmware of its chips stays for now: its maintenance began without; another run writes it")
            entry.brings = None
        return target
    # By its version: the kernel of the host may have changed since the record was written.
    if own.get("firmware") == asked and same_driver(own.get("release"), target["release"]):
        return dict(target, firmware=asked)
    if entry.checked.config.get("firmware_policy") == "keep":
        why = "npu_firmware_policy is keep"
    elif not own:
        why = "whether it may be written is not known, because the host or the registry does not answer"
    else:
        why = "this run is to install %s with the firmware %s" % (own["release"], own.get("firmware") or "that the chips have")
    entry.notes.append("its maintenance was to write the firmware %s; a write that has not begun is omitted: %s" % (asked, why))
    entry.brings = None
    return target
