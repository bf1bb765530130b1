# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which chips MindCluster withholds until a person acts, although they may work again.

* The device plugin isolates a chip on which a fault came too often (ManuallySeparateNPU, UpgradeFaultReason in its ConfigMap), and
  so does clusterd from 26.1 on, in a ConfigMap of its own. Source: docs/en/scheduling/usage/resumable_training/
  03_configuring_fault_detection_levels.md and docs/en/scheduling/api of MindCluster 26.1.0.
* Chips that the device plugin could not reset wait for a reset from outside (annotation ResetInfo of the Node). Source:
  component/ascend-device-plugin/pkg/device/reset_info_mgr.go of 26.1.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ansible_collections.npuops.ascend.plugins.plugin_utils._data import schema
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes.unhealthy_devices import lacks_devices

_OF_PLUGIN = "/api/v1/namespaces/kube-system/configmaps/mindx-dl-deviceinfo-%s"
_OF_CLUSTERD = "/api/v1/namespaces/cluster-system/configmaps/clusterd-manual-info-cm"
_RESET = "ResetInfo"
_NAME = re.compile(r"(Ascend\d{1,4}P?|npu)-\d{1,4}")
_CODE = re.compile(r"[0-9A-Fa-f]{6,16}")
_MOST = 64  # chips of one node
_LONGEST = 1 << 20  # characters, as much as a ConfigMap holds
_EDIT = "until it is released: kubectl -n %s edit configmap %s"


def read(cluster: AnyCluster, nodes: Mapping[str, Object]) -> dict[str, list[str]]:
    """{node: phrases}, of the nodes that offer fewer devices than they have. Those whose ConfigMap may not be read have none."""
    lacking = {name: node for name, node in nodes.items() if lacks_devices(node)}
    if not lacking:
        return {}
    of_clusterd = _data(cluster, _OF_CLUSTERD)
    found = {}
    for name, node in lacking.items():
        told = _by_plugin(name, _data(cluster, _OF_PLUGIN % name)) + _by_clusterd(of_clusterd.get(name)) + _unreset(node)
        if told:
            found[name] = told
    return found


def _data(cluster: AnyCluster, path: str) -> dict[str, Any]:
    try:
        found = cluster.get(path)
    except (kube_client.Refused, kube_client.Forbidden):
        return {}
    data = (found or {}).get("data")
    return data if isinstance(data, dict) else {}


def _by_plugin(node: str, data: Mapping[str, Any]) -> list[str]:
    names = _names(str(data.get("ManuallySeparateNPU") or "")[:_LONGEST].split(","))
    reasons = _object(data.get("UpgradeFaultReason"))
    return _told(
        {name: _codes(reasons.get(name), "fault_code") for name in names},
        "the device plugin isolates",
        _EDIT % ("kube-system", "mindx-dl-deviceinfo-" + node),
    )


def _by_clusterd(text: Any) -> list[str]:
    found = _object(text)
    total, detail = found.get("Total"), found.get("Detail")
    names = _names(total if isinstance(total, list) else ())
    details = detail if isinstance(detail, dict) else {}
    return _told(
        {name: _codes(details.get(name), "FaultCode") for name in names},
        "clusterd isolates",
        _EDIT % ("cluster-system", "clusterd-manual-info-cm"),
    )


def _told(codes: Mapping[str, list[str]], who: str, how: str) -> list[str]:
    if not codes:
        return []
    each = ["%s%s" % (name, " (%s)" % ", ".join(of_name) if of_name else "") for name, of_name in codes.items()]
    return ["%s %s %s" % (who, ", ".join(each), how)]


def _unreset(node: Object) -> list[str]:
    found = _object(kube_client.annotations(node).get(_RESET))
    numbers = set()
    for part in ("ThirdPartyResetDevs", "ManualResetDevs"):
        for chip in _dicts(found.get(part)):
            number = chip.get("PhyID")
            if isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 10**4:
                numbers.add(number)
    if not numbers:
        return []
    told = "the device plugin could not reset the chips with the physical IDs %s: reset them from outside, or reboot the host"
    return [told % ", ".join(map(str, sorted(numbers)))]


def _names(values: Iterable[Any]) -> list[str]:
    """Those that are names of chips, each once, in the order of their numbers."""
    names = {value.strip() for value in values if isinstance(value, str) and _NAME.fullmatch(value.strip())}
    return sorted(names, key=lambda name: (int(name.rpartition("-")[2]), name))[:_MOST]


def _codes(reasons: Any, key: str) -> list[str]:
    return sorted({code for reason in _dicts(reasons) if _CODE.fullmatch(code := str(reason.get(key)))})


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)][:_MOST] if isinstance(value, list) else []


def _object(text: Any) -> dict[str, Any]:
    """The JSON object in ``text``; empty for anything else. Any client that may write ConfigMaps may write anything there."""
    try:
        found = schema.load(text, _LONGEST)
    except schema.Misfit:
        return {}
    return found if isinstance(found, dict) else {}
