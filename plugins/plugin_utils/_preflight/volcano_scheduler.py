# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Volcano, where the device plugin leaves the choice of chips to it: its scheduler must run MindCluster's plugin for NPUs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import mindcluster
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import valid_settings

# As Volcano's manifests and MindCluster's call the scheduler's configuration, in whatever namespace.
_CONFIGURATION = "volcano-scheduler-configmap"
_PLUGIN = re.compile(r"\bname:\s*[\"']?volcano-npu_([\w.-]{1,60})")
_HEAD = "npu_device_plugin_volcano is true, "
_IGNORED = (
    "npu_volcano_enabled is true, and npu_device_plugin_volcano is false: pods do not get the chips that Volcano's scheduler"
    " chooses for them, and it may take chips for free that are not. Set npu_device_plugin_volcano: true"
)


def judge(cluster: AnyCluster, version_line: str, settings: Mapping[str, Any], ours: bool = False) -> tuple[list[str], list[str]]:
    """(why the device plugin cannot leave the choice of chips to Volcano, what people should know), as sentences.

    ``settings``: of npu_device_plugin, by their names without the prefix; ``ours``: whether the run deploys Volcano, whose
    scheduler has the plugin of the version line.
    """
    try:
        if not valid_settings.settings("npu_device_plugin", settings)["volcano"]:
            return [], [_IGNORED] if ours else []
    except NpuError:
        return [], []  # told already
    if ours:
        return [], []
    try:
        found = cluster.list("/api/v1/configmaps", field_selector="metadata.name=" + _CONFIGURATION)
    except NpuError as exc:
        if "missing" not in exc.details:
            raise
        permission = kube_client.describe_permission("list", "configmaps", "")
        return [], [
            _HEAD + "and whether Volcano's scheduler can assign chips is not known: the Kubernetes user may not " + permission
        ]
    if not found:
        return [], [
            _HEAD + "and no ConfigMap %s is in the cluster. Until the scheduler of Volcano runs MindCluster's plugin"
            " ascend-for-volcano, no pod gets a chip. npu_volcano_enabled: true deploys it" % _CONFIGURATION
        ]
    releases = {match for item in found for text in (item.get("data") or {}).values() for match in _PLUGIN.findall(str(text))}
    if not releases:
        names = ", ".join(sorted("%(namespace)s/%(name)s" % item["metadata"] for item in found))
        return [
            _HEAD + "and the scheduler of Volcano does not run MindCluster's plugin: no plugin in the ConfigMap %s has a name that"
            " begins with volcano-npu_. Pods would get no chip. Install Volcano with ascend-for-volcano of MindCluster %s, or set"
            " npu_device_plugin_volcano: false" % (names, version_line)
        ], []
    others = sorted(release for release in releases if mindcluster.version_line_of(release) not in (None, version_line))
    return [], [
        "the scheduler of Volcano runs volcano-npu_%s, and npu_mindcluster_version_line is %s: bring it to the same version line"
        % (release, version_line)
        for release in others
    ]
