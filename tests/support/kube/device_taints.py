# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""DeviceTaintRules as node agents make them, but for what a test says."""

from __future__ import annotations

from typing import Any

RULES = "/apis/resource.k8s.io/v1/devicetaintrules"


def rule(node: str | None, device: str, effect: str = "None", labels: dict[str, str] | None = None) -> dict[str, Any]:
    """One of the agent of ``node``; None: without a selector."""
    selector = {"deviceSelector": {"driver": "npu.huawei.com", "pool": node, "device": device}} if node else {}
    return {
        "metadata": {
            "name": "%s.%s.npuops" % (node, device),
            "labels": {"npuops.ascend/node": str(node)} if labels is None else labels,
        },
        "spec": {**selector, "taint": {"key": "npuops.ascend/unhealthy", "value": "Critical", "effect": effect}},
    }
