# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One cluster has one driver path: its components mount it from every host."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence

from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight.checked_host import PREINSTALLED, CheckedHost


def check_one(candidates: Iterable[CheckedHost]) -> None:
    """Components mount one driver path per family, and the exporter one for the fleet."""
    paths: dict[str, list[CheckedHost]] = {}
    for verdict in candidates:
        if verdict.driver_path:
            paths.setdefault(verdict.driver_path, []).append(verdict)
    if len(paths) < 2:
        return
    told = "; ".join("%s on %s" % (path, ", ".join(v.name for v in paths[path])) for path in sorted(paths))
    for verdicts in paths.values():
        for verdict in verdicts:
            verdict.reasons.append(
                "one cluster needs one driver path, because the device plugin's and the exporter's DaemonSets mount"
                " it from every host; found: %s. %s" % (told, _advice(paths))
            )


def _advice(paths: Mapping[str, Sequence[CheckedHost]]) -> str:
    kept = sorted(path for path, hosts in paths.items() if any(host.config["driver_source"] == PREINSTALLED for host in hosts))
    if len(kept) != 1:
        return "Set the same npu_driver_root"
    # The path of a preinstalled driver follows its package, not the variable.
    return "Set npu_driver_root to %s for all hosts" % posixpath.dirname(kept[0])


def check_deployed(candidates: Sequence[CheckedHost], nodes: Mapping[str, Object], daemonsets: Iterable[Object]) -> None:
    """A run limited to some hosts must not change the driver path under the others."""
    mine = {verdict.node_name for verdict in candidates}
    for daemonset in daemonsets:
        spec = daemonset["spec"]["template"]["spec"]
        accelerator = (spec.get("nodeSelector") or {}).get("accelerator")
        path = _driver_volume(spec)
        others = sorted(
            name
            for name, node in nodes.items()
            if name not in mine
            and kube_client.labels(node).get("accelerator") == accelerator
            and kube_client.labels(node).get(kube_client.LABEL_COMPONENTS)
        )
        if not accelerator or not path or not others:
            continue
        for verdict in candidates:
            if verdict.family.get("accelerator") == accelerator and verdict.driver_path not in (None, path):
                verdict.reasons.append(
                    "its driver is at %s, but %s (not in this run) already use the device plugin with %s; one family"
                    " needs one driver path. Set the same npu_driver_root" % (verdict.driver_path, ", ".join(others), path)
                )


def _driver_volume(pod_spec: Object) -> str | None:
    for volume in pod_spec.get("volumes") or []:
        if volume["name"] == "hiai-driver":
            return (volume.get("hostPath") or {}).get("path")
    return None
