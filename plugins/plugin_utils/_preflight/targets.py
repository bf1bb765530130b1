# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the hosts that came through installation ask of the cluster: labels, DaemonSets, chips."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._chips import chip_health
from ansible_collections.npuops.ascend.plugins.module_utils._host import distributions as host_distributions
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import host_answers
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import component_names
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight.checked_host import HELD
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.verdict import READY


def targets(
    verdicts: Mapping[str, dict[str, Any]],
    done: Iterable[str],
    validated: Mapping[str, Mapping[str, Any]],
    namespace: str,
    device_plugin: bool = True,
    exporter: bool = True,
    node_agent: bool = True,
    noded: bool = False,
) -> dict[str, Any]:
    """What the cluster play needs, from results of CheckedHost.result() by host.

    ``done``: hosts that came through installation and validation; ``validated``: what npu_validate said, by host. Returns
    {labels, accelerators, driver_path, kubelet_dir, containerd_dir, daemonsets, nodes, adopt}: the nodes argument of npu_node, the
    role variables, and both arguments of npu_wait. Nodes whose components are paused are not waited for, nor those that adoption
    is to move; ``adopt`` has, by node, the names of the DaemonSets that it waits for.
    """
    hosts = [(name, verdicts[name]) for name in done if verdicts[name]["status"] == READY]
    active = [verdict for _name, verdict in hosts if verdict["components"] == "enabled"]
    ready = [verdict for verdict in verdicts.values() if verdict["status"] == READY]
    accelerators = sorted({verdict["accelerator"] for verdict in ready})
    distribution = host_distributions.named(next((verdict["distribution"] for verdict in ready), "")) or host_distributions.PLAIN
    result: dict[str, Any] = {
        "labels": [
            {
                "name": verdict["node_name"],
                "labels": _labels(verdict, validated.get(name)),
                "boot_id": verdict["boot_id"],
                "gate": verdict["gate"],
                **({"annotations": {kube_client.ANNOTATION_VNPU_CHANGE: None}} if verdict["vnpu_pause"] else {}),
            }
            for name, verdict in hosts
        ],
        "accelerators": accelerators,
        "driver_path": next((verdict["driver_path"] for verdict in ready), None),
        "kubelet_dir": distribution.kubelet_dir,
        "containerd_dir": posixpath.dirname(distribution.address),
        "daemonsets": [],
        "nodes": [],
    }
    if device_plugin:
        result["daemonsets"] = [
            {
                "namespace": namespace,
                "name": component_names.DEVICE_PLUGINS[accelerator],
                "nodes": [verdict["node_name"] for verdict in active if verdict["accelerator"] == accelerator],
            }
            for accelerator in accelerators
        ]
        result["nodes"] = [entry for name, verdict in hosts if verdict in active for entry in _offers(verdict, validated.get(name))]
    nodes = [verdict["node_name"] for verdict in active]
    always = [name for deployed, name in ((exporter, component_names.EXPORTER), (node_agent, component_names.AGENT)) if deployed]
    others = always + ([component_names.NODED] if noded else [])
    result["daemonsets"] += [{"namespace": namespace, "name": name, "nodes": nodes} for name in others]
    result["adopt"] = {
        verdict["node_name"]: ([component_names.DEVICE_PLUGINS[verdict["accelerator"]]] if device_plugin else []) + always
        for _name, verdict in hosts
        if verdict["components"] != "paused"
    }
    return result


def _offers(verdict: dict[str, Any], validated: Mapping[str, Any] | None) -> Iterator[dict[str, Any]]:
    """What npu_wait waits for on a node. Chips that are not OK may be missing."""
    offers = verdict["offers"]
    least = chip_health.fewest(offers, host_answers.chips_of(validated or {}))
    for resource, count in offers.items():
        entry = {"name": verdict["node_name"], "resource": resource, "count": count}
        yield entry if least[resource] == count else dict(entry, least=least[resource])


def _labels(verdict: dict[str, Any], validated: Mapping[str, Any] | None) -> dict[str, str | None]:
    wanted: dict[str, str | None] = {
        kube_client.LABEL_PRESENT: "",
        kube_client.LABEL_CHIP: verdict["family"],
        kube_client.LABEL_DRIVER_VERSION: (validated or {}).get("version") or verdict["driver_version"],
        kube_client.LABEL_COMPONENTS: "enabled",
        "accelerator": verdict["accelerator"],
        "workerselector": "dls-worker-node",
        "node-role.kubernetes.io/worker": "worker",
        "host-arch": verdict["host_arch"],
    }
    if verdict["components"] == HELD:
        wanted[kube_client.LABEL_COMPONENTS] = None
    labels: dict[str, str | None] = {key: value for key, value in wanted.items() if value is not None}
    if validated is not None:
        # None removes what is not known any more.
        labels[kube_client.LABEL_FIRMWARE_VERSION] = kube_client.label_value(validated.get("firmware_version"))
    return labels
