# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a rollback undoes: the last upgrade, on the nodes that had a part in it, back to each one's release before."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._driver.releases import same_driver
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import Staged
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.planned_node import PlannedNode
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.rollout_settings import RolloutSettings
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.record import version_of

# (version, run) of an upgrade.
Wave = tuple[str | None, str | None]

# Where a record has the driver that an upgrade brought, which a rollback takes back.
_BROUGHT = {maintenance_record.UPGRADE_REASON: "to", maintenance_record.ROLLBACK_REASON: "from"}


def last_wave(entries: Iterable[PlannedNode]) -> Wave | None:
    """(version, run) of what the last upgrade among these hosts brought, also when some of them went back since; or None.

    Every host has a previous release. One that the last upgrade has not reached must not go back to what was before the
    one before.
    """
    newest: tuple[float, str | None, str | None] | None = None
    for entry in entries:
        record = entry.record
        key = _BROUGHT.get(record.get("reason", "")) if record else None
        if record and key:
            # One that is under way is the last one.
            newest = (float("inf"), (record.get(key) or {}).get("version"), record["run"])
            continue
        last = maintenance_record.last(entry.node) if entry.node else {}
        key = _BROUGHT.get(last.get("reason", ""))
        over = maintenance_record.seconds_of(last.get("ended"))
        counts = last.get("outcome") == "success" or _withdrawn_by_rollback(last)
        if key and over is not None and counts and (newest is None or over > newest[0]):
            newest = (over, (last.get(key) or {}).get("version"), last.get("run"))
    return newest[1:] if newest else None


def _withdrawn_by_rollback(last: dict[str, Any]) -> bool:
    """A second rollback must not go on to the upgrade before."""
    return last.get("outcome") == "withdrawn" and last.get("withdrawn_for") == maintenance_record.ROLLBACK_REASON


def previous(entry: PlannedNode) -> str | None:
    """Take the host's previous release as the target. Returns why there is none, or None."""
    if not entry.facts:
        return None  # why there are none is among the reasons
    upgrade = entry.facts.get("upgrade") or {}
    release = upgrade.get("previous")
    if not release:
        return "has no previous release to roll back to"
    staged = upgrade.get("staged") or {}
    if release not in staged:
        entry.checked.reasons.append("its previous release %s is no longer complete on the host" % release)
        return None
    release, manifest = _for_kernel(release, staged, entry.facts.get("kernel"))
    if manifest.get("kernel") != entry.facts.get("kernel"):
        entry.checked.reasons.append(
            "its previous release %s is for the kernel %s, the host runs %s"
            % (release, manifest.get("kernel"), entry.facts.get("kernel"))
        )
    entry.target = {
        "version": manifest.get("version") or version_of(release),
        "release": release,
        "digest": manifest.get("digest"),
        "image": None,
    }
    return None


def _for_kernel(release: str, staged: dict[str, Staged], kernel: str | None) -> tuple[str, Staged]:
    """(the release, or the staged one of its version for the running kernel, its manifest), as npu-driver-select chooses."""
    if staged[release].get("kernel") == kernel:
        return release, staged[release]
    version = version_of(release)
    fit = [name for name in sorted(staged) if version_of(name) == version and staged[name].get("kernel") == kernel]
    return (fit[-1], staged[fit[-1]]) if fit else (release, staged[release])


def back_already(entry: PlannedNode, settings: RolloutSettings) -> str | None:
    """Why a host whose upgrade failed is not taken to the release before the one that it went back to by itself, or None."""
    if entry.node is None or entry.requested or settings.retry or maintenance_record.state(entry.node) != maintenance_record.FAILED:
        return None
    last = maintenance_record.last(entry.node)
    came_from, went_to = last.get("from") or {}, last.get("to") or {}
    if last.get("reason") != maintenance_record.UPGRADE_REASON or not same_driver(came_from.get("release"), entry.loaded_release):
        return None
    return "is back on %s already: its upgrade to %s failed; -e npu_upgrade_retry=true takes it to the release before" % (
        entry.loaded_version,
        went_to.get("version"),
    )


def not_of(wave: Wave | None, entry: PlannedNode) -> str | None:
    """Why the host has no part in undoing the ``wave``, or None."""
    if wave is None or entry.requested or entry.loaded_version in (None, wave[0]):
        return None
    last = maintenance_record.last(entry.node) if entry.node else {}
    if _withdrawn_by_rollback(last):
        return "runs %s; its upgrade to %s was withdrawn before its reboot" % (
            entry.loaded_version,
            (last.get("to") or {}).get("version"),
        )
    back = last.get("reason") == maintenance_record.ROLLBACK_REASON
    if back or (last.get("run") == wave[1] and last.get("outcome") == "success"):
        return None
    return "runs %s and was not part of the last upgrade, to %s; use --limit to roll back this host alone" % (
        entry.loaded_version,
        wave[0],
    )
