# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a node has, or can get, its driver for the kernel that its next boot loads."""

from __future__ import annotations

from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._driver.releases import parts
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.planned_node import PlannedNode
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight import other_kernels
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight.driver_image import Answers


def check(entry: PlannedNode, target: dict[str, Any], answers: Answers | None) -> None:
    """For a node that is due: what is to be staged for other kernels, and why a reboot would leave it without its driver.

    ``answers``: None if no image is looked for, as in a rollback, which only takes what is staged.
    """
    way_back = [entry.loaded_version] if entry.loaded_version not in (None, target["version"]) else []
    if answers is not None:
        found = other_kernels.look(entry.checked, [target["version"], *way_back], answers)
        entry.checked.other_kernels = found.images
        entry.reasons += found.reasons
    else:
        found = other_kernels.Found()
    following = other_kernels.next_of(entry.facts)
    if following is None:
        entry.notes += found.notes
        return
    told = "its reboot would be into kernel %s" % following
    if _is_staged(entry, target["version"], following) or found.has(target["version"], following):
        entry.notes += found.notes
        entry.notes.append("its reboot is into kernel %s" % following)
    elif answers is None:
        entry.reasons.append(
            "%s, for which driver %s is not staged. Let the host boot %s, or set npu_driver_version to a version with an image for"
            " that kernel, and run npuops.ascend.upgrade" % (told, target["version"], entry.facts.get("kernel"))
        )
    elif not other_kernels.stages_next(entry.checked.config):
        entry.reasons.append(
            "%s, and npu_driver_kernels does not contain %s, so no driver is staged for it. Add it, or let the host boot %s"
            % (told, other_kernels.NEXT, entry.facts.get("kernel"))
        )
    else:
        # The first note says which image is missing.
        entry.reasons += found.notes[:1]
        entry.notes += found.notes[1:]


def tell(entry: PlannedNode, answers: Answers | None) -> None:
    """For a node that has its driver: notes on its next boot, which may come at any time."""
    following = other_kernels.next_of(entry.facts)
    version = entry.loaded_version
    if following is None or version is None or _is_staged(entry, version, following):
        return
    found = other_kernels.look(entry.checked, [version], answers) if answers is not None else other_kernels.Found()
    if found.has(version, following):
        entry.notes.append(
            "its next boot is into kernel %s, and driver %s is not staged for that yet: run npuops.ascend.install"
            % (following, version)
        )
    else:
        entry.notes += found.notes or ["its next boot is into kernel %s, for which no driver is staged" % following]


def _is_staged(entry: PlannedNode, version: str, kernel: str) -> bool:
    staged = (entry.facts.get("upgrade") or {}).get("staged") or {}
    return any(parts(name)[:2] == (version, kernel) for name in staged)
