# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a host can be installed: it answers, has chips, a source for its driver, and runs no other one."""

from __future__ import annotations

from collections.abc import Iterable

from ansible_collections.npuops.ascend.plugins.module_utils._chips import chip_memory
from ansible_collections.npuops.ascend.plugins.module_utils._driver.releases import Layout
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, one_line
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import host_answers
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import shared_chips
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import component_names, mindcluster
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import support as mindcluster_support
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight.checked_host import (
    IMAGE,
    PACKAGE,
    PREINSTALLED,
    CheckedHost,
)
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import valid_settings
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings.unknown_variables import unknown_variables

SOURCES = (IMAGE, PACKAGE, PREINSTALLED)

_CHANGES = (
    "each chip is to be offered %d times instead of %d: the kubelet then counts the chips of pods that run already as free. Let"
    " these pods end first if they may not share their chips"
)


def check(verdict: CheckedHost, version_line: str | None) -> None:
    """Adds what is wrong with the host itself. ``version_line``: of the device plugin that is to be deployed, or None."""
    verdict.reasons.extend(unknown_variables(verdict.host.get("variables") or []))
    if verdict.host.get("unreachable"):
        verdict.reasons.append("not reachable: %s" % one_line(verdict.host.get("error")))
        return
    if verdict.host.get("error"):
        verdict.reasons.append(one_line(verdict.host["error"]))
        return
    if verdict.host.get("pending"):
        verdict.notes.append(verdict.host["pending"])
        return
    if not verdict.has_chips:
        verdict.notes.append(verdict.missing_chips or "has no Ascend chip; skipped")
    verdict.notes.extend(verdict.facts.get("notes") or [])
    if not verdict.has_chips:
        return
    verdict.reasons.extend(verdict.facts.get("problems") or [])
    if not verdict.family and not verdict.reasons:
        verdict.reasons.append("its facts do not say which chips it has. %s" % host_answers.ADVICE)
    _check_source(verdict)
    accelerator = verdict.family.get("accelerator")
    if version_line and accelerator:
        reason = mindcluster.no_plugin(version_line, accelerator, verdict.family["name"])
        verdict.reasons.extend([reason] if reason else [])


def _check_source(verdict: CheckedHost) -> None:
    source = verdict.config["driver_source"]
    if source not in SOURCES:
        verdict.reasons.append("npu_driver_source is %r; it must be one of %s" % (source, ", ".join(SOURCES)))
    verdict.wants_driver = source in (IMAGE, PACKAGE)


def check_chips(verdict: CheckedHost) -> None:
    """Install takes no chip that is gone for one that never was."""
    before = verdict.facts.get("chips_before") or {"count": 0, "gone": [], "boot": None}
    problem = chip_memory.problem(
        verdict.facts.get("chip_count") or 0, verdict.config["chips"], before["count"], before["gone"], before["boot"]
    )
    verdict.reasons.extend([problem] if problem else [])


def check_loaded(verdict: CheckedHost) -> None:
    """Install never replaces a driver that runs."""
    driver = verdict.facts.get("driver") or {}
    if not verdict.wants_driver or not driver.get("loaded") or not verdict.digest:
        return
    wanted = Layout.release_name(verdict.config["driver_version"], verdict.facts["kernel"], verdict.digest)
    if driver.get("loaded_release") in (None, wanted):
        if driver.get("release") == wanted and driver.get("complete"):
            verdict.keep_release = wanted
        return
    if not driver.get("managed"):
        verdict.reasons.append(
            "the driver %s is still loaded after its removal, but %s is configured. Reboot the host, then run again"
            % (driver["loaded_release"], wanted)
        )
        return
    verdict.keep_release, verdict.runs_another = driver["loaded_release"], True
    verdict.notes.append(
        "runs driver %s, but %s is configured; install does not replace a loaded driver, npuops.ascend.upgrade does"
        % (driver["loaded_release"], wanted)
    )


def check_version_line(verdict: CheckedHost, version_line: str | None) -> None:
    """Whether the MindCluster that is to be deployed supports the driver that the host will run."""
    driver = verdict.facts.get("driver") or {}
    installs = verdict.wants_driver and not verdict.runs_another
    version = verdict.config["driver_version"] if installs else driver.get("loaded_version")
    if version_line and version:
        reasons, notes = mindcluster_support.judge_version_line(version_line, version, verdict.family.get("name"))
        verdict.reasons += reasons
        verdict.notes += notes


def check_share_count(verdict: CheckedHost, wanted: int, daemonsets: Iterable[Object]) -> None:
    """Whether the device plugin can offer each chip of the host ``wanted`` times, and what that changes for pods that run.

    ``daemonsets``: our device plugins that exist already.
    """
    accelerator, chip = verdict.family.get("accelerator") or "", verdict.family.get("name")
    shared = mindcluster.shared_chips(accelerator)
    try:
        given = {"share_count": verdict.config["device_plugin_share_count"]}
        own = valid_settings.settings("npu_device_plugin", given)["share_count"]
    except NpuError as exc:
        verdict.reasons.append(exc.message)
        return
    if own != wanted:
        verdict.reasons.append(
            "npu_device_plugin_share_count is %d for this host and %d for the first host of the run, which counts for all. Set it"
            " for all hosts, for example in group_vars/npu_nodes.yml" % (own, wanted)
        )
    elif chip in shared:
        name = component_names.DEVICE_PLUGINS[accelerator]
        for daemonset in daemonsets:
            before = shared_chips.devices_per_chip([daemonset["spec"]["template"]])
            if daemonset["metadata"]["name"] == name and before != wanted:
                verdict.notes.append(_CHANGES % (wanted, before))
    elif wanted > 1 and shared:
        # The plugin there also gets the setting, but does not share: the node would never offer what is waited for.
        verdict.reasons.append(
            "npu_device_plugin_share_count is %d, but MindCluster does not share the %s, and its nodes have the same DaemonSet as"
            " those with the %s. Set npu_device_plugin_share_count: 1" % (wanted, chip, ", ".join(shared))
        )
    elif wanted > 1:
        verdict.notes.append("npu_device_plugin_share_count has no effect here: MindCluster does not share the %s" % chip)
