# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything that can be in the way of a node that is due, but its pods: health, disk space, support, who else uses chips."""

from __future__ import annotations

from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._chips import chip_health
from ansible_collections.npuops.ascend.plugins.module_utils._driver import staging
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, one_line
from ansible_collections.npuops.ascend.plugins.module_utils._run_package import version_info
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import support as mindcluster_support
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import firmware as rollout_firmware
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.driver_contents import DriverContents
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.plan_context import PlanContext
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.planned_node import PlannedNode
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.rollout_settings import Lookups
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._withdrawal import vnpu_pause


def check(entry: PlannedNode, node: Object, target: dict[str, Any], plan: PlanContext) -> None:
    """Adds reasons and notes to a node that is due, ``node``, for a driver that it is to get, ``target``."""
    settings, lookups = plan.settings, plan.lookups
    if not entry.driver.get("managed"):
        entry.reasons.append("it has no driver of npuops.ascend; run npuops.ascend.install first")
    if vnpu_pause.is_paused(node):
        entry.reasons.append("its virtual NPUs are being changed; if no install is running, run npuops.ascend.install first")
    _check_health(entry, node)
    _check_space(entry, target, plan.contents)
    _check_support(entry, node, target, lookups)
    rollout_firmware.check(entry, target, settings)
    _check_version_lines(entry, target, plan)
    if lookups.white_list is not None:
        images = [target["image"]] + [one["image"] for one in entry.checked.other_kernels]
        entry.reasons += [problem for problem in map(lookups.white_list, filter(None, images)) if problem]
    for holder in (entry.facts.get("upgrade") or {}).get("holders") or []:
        if not holder.get("pod"):
            entry.reasons.append("the process %(pid)s (%(command)s) has %(device)s open and belongs to no pod; stop it" % holder)
    own = kube_client.boot_id(node)
    if own and own == lookups.own_boot_id:
        entry.reasons.append("Ansible itself runs on it and would not survive the reboot; run it elsewhere")
    entry.registry = plan.snapshot.registry_nodes.get(entry.node_name)
    if entry.registry:
        entry.notes.append("%s runs on it: it goes last, when all images are staged" % entry.registry)
    loaded = entry.loaded_version
    if settings.reason == maintenance_record.UPGRADE_REASON and loaded and version_info.compare(target["version"], loaded) < 0:
        if settings.allow_older:
            entry.notes.append("goes back from %s to the older %s" % (loaded, target["version"]))
        else:
            entry.reasons.append(
                "has the driver %s, and npu_driver_version is the older %s. Correct npu_driver_version; to undo an upgrade, run"
                " npuops.ascend.rollback; to install an older driver, set npu_upgrade_allow_older: true"
                % (loaded, target["version"])
            )
    if entry.requested:
        entry.notes.append("its label %s=true asks for it" % maintenance_record.LABEL_REQUESTED)
    if node["metadata"].get("labels", {}).get(maintenance_record.LABEL_KEEP_CORDONED) == "true":
        entry.notes.append("will stay cordoned (%s=true)" % maintenance_record.LABEL_KEEP_CORDONED)
    elif maintenance_record.unschedulable(node):
        entry.notes.append(
            "is cordoned because neither driver worked; uncordoned if this one works"
            if maintenance_record.left_cordoned(node)
            else "is already cordoned and stays cordoned"
        )


def _check_health(entry: PlannedNode, node: Object) -> None:
    """An upgrade of a host that is ill would look as if the new driver were to blame. Where no driver worked, one is tried."""
    if entry.wedged:
        entry.notes.append("its driver no longer responds (%s); the reboot fixes that" % kube_client.ANNOTATION_WEDGED)
        return
    entry.notes += _chips(entry, "; the upgrade fails only if they, or others, are worse afterwards")
    wrong = [check for check in entry.validation.get("checks") or [] if not check["ok"]]
    wrong.sort(key=lambda check: check["name"] != "driver_ready")
    if wrong:
        told = "its current driver fails validation: %(name)s is %(seen)s, expected %(expected)s. %(message)s" % wrong[0]
    elif entry.validation.get("msg") and "checks" not in entry.validation:
        told = "its current driver could not be validated: %s" % one_line(entry.validation.get("msg"))
    else:
        return
    if entry.requested or maintenance_record.left_cordoned(node):
        entry.notes.append(told)
    else:
        entry.reasons.append(
            "%s. If a reboot helps, request it: kubectl label node %s %s=true"
            % (told.rstrip("."), entry.node_name, maintenance_record.LABEL_REQUESTED)
        )


def _check_space(entry: PlannedNode, target: dict[str, Any], contents: DriverContents) -> None:
    staged = (entry.facts.get("upgrade") or {}).get("staged") or {}
    # Of other kernels, images are about as large.
    images = sum(release not in staged for release in [target["release"]] + [one["release"] for one in entry.checked.other_kernels])
    if not images and not entry.firmware_space:
        return
    what = "the image" if images == 1 else "%d images" % images
    if target.get("package"):
        # None where the package did not have to be read: then all of it is staged.
        needed, what = (entry.checked.package_space or 0) * images + entry.firmware_space, "the package"
        if entry.firmware_space:
            what = "the packages" if images else "the firmware package"
    elif target["image"]:
        try:
            needed = staging.space_needed(contents.image_size(entry) * images)
        except NpuError as exc:
            entry.reasons.append(one_line(exc.message))
            return
    else:
        return
    disk = entry.facts.get("disk") or {}
    free = disk.get("free_bytes")
    if free is not None and free < needed:
        entry.reasons.append(
            "%s has %d MiB free, staging %s needs %d MiB" % (disk.get("path"), free // 2**20, what, -(-needed // 2**20))
        )


def _check_support(entry: PlannedNode, node: Object, target: dict[str, Any], lookups: Lookups) -> None:
    staged = (entry.facts.get("upgrade") or {}).get("staged") or {}
    declared = (staged.get(target["release"]) or {}).get("firmware")
    firmware = entry.validation.get("firmware_version") or entry.facts.get("firmware_version")
    # What the chips run after the reboot.
    if entry.firmware:
        firmware = entry.firmware["to"]
    elif entry.waiting_firmware:
        firmware = entry.waiting_firmware
    info = kube_client.node_info(node)
    reasons, notes = lookups.support(target["version"], entry.facts, info, firmware, declared)
    entry.reasons += reasons
    entry.notes += notes


def _check_version_lines(entry: PlannedNode, target: dict[str, Any], plan: PlanContext) -> None:
    """Whether the MindCluster that the node runs supports the driver. It keeps no node from going back, nor from a reboot."""
    told_only = plan.settings.reason == maintenance_record.ROLLBACK_REASON or target["version"] == entry.loaded_version
    for version_line in plan.snapshot.version_lines.on(entry.node_name):
        reasons, notes = mindcluster_support.judge_version_line(
            version_line, target["version"], (entry.facts.get("family") or {}).get("name"), deployed=True
        )
        entry.notes += notes + (reasons if told_only else [])
        entry.reasons += [] if told_only else reasons


def trouble(entry: PlannedNode) -> list[str]:
    """What is wrong with a host that has its driver already; an upgrade does nothing about it. [note], [] when all is well."""
    if entry.wedged:
        return ["its driver no longer responds (%s): npuops.ascend.heal" % kube_client.ANNOTATION_WEDGED]
    if entry.validation.get("valid") is False:
        return ["its driver fails validation: %s" % one_line(entry.validation.get("msg"))]
    return _chips(entry)


def _chips(entry: PlannedNode, consequence: str = "") -> list[str]:
    """The chips that are missing, and those that are not OK, each as a note; ``consequence``: what the latter mean for the run."""
    missing = entry.checked.missing_chips
    ill = chip_health.told(entry.validation.get("chip_health") or [])
    return [text for text in (missing, "chips that are not OK: %s%s" % (ill, consequence) if ill else None) if text]
