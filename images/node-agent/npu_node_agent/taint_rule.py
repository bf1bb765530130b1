# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A DeviceTaintRule: the taint of one chip that does not serve. Without an effect, it only tells."""

from __future__ import annotations

import re

from ansible_collections.npuops.ascend.plugins.module_utils._chips import chip_faults

from .dra_devices import DRIVER

KEY = "npuops.ascend/unhealthy"
NO_EFFECT = "None"
# By this label, others find the rules. Its value is the node, as far as a label can have it.
LABEL = "npuops.ascend/node"
_LONGEST_LABEL = 63
_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")


def value(chip: dict) -> str:
    """The worst code for which the device plugin withdraws ``chip``, or the health that npu-smi lists."""
    if chip_faults.withdrawn(chip):
        return chip["codes"][0]
    return chip["health"] if _LABEL_VALUE.fullmatch(chip["health"]) else "UNKNOWN"


def name(node: str, device: str) -> str:
    """The admission policy requires this name, so that no agent takes the name of another agent's rule."""
    return "%s.%s.npuops" % (node, device)


def label(node: str) -> str:
    return node[:_LONGEST_LABEL].rstrip(".-")


def rule(node: str, device: str, taint_value: str) -> dict:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": name(node, device), "labels": {LABEL: label(node)}},
        "spec": {
            "deviceSelector": {"driver": DRIVER, "pool": node, "device": device},
            "taint": {"key": KEY, "value": taint_value, "effect": NO_EFFECT},
        },
    }


def is_of(node: str, found: dict) -> bool:
    """Whether the rule ``found`` is one of the agent of ``node``. Who gives it an effect takes it over."""
    spec = found["spec"]
    return spec["taint"]["effect"] == NO_EFFECT and (spec.get("deviceSelector") or {}).get("pool") == node
