# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gate of a new node: a taint that keeps pods off until the node is accepted. Install closes it, accept opens it.

The value of the taint is the level at which the node must be accepted. A kubelet may register its node with the same taint.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._acceptance.verdicts import LEVELS
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import annotations as data_annotations
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Object

TAINT = "npuops.ascend/not-accepted"
# The last verdict: {"verdict", "level", "ended"} as JSON.
ANNOTATION = "npuops.ascend/acceptance"
# For pods that run before the node is accepted. The manifests of our DaemonSets have it, too.
TOLERATION = {"key": TAINT, "operator": "Exists"}
_LEVEL_OF: dict[Any, int] = {str(level): level for level in LEVELS}
# A node with a label that begins so has been installed before.
_OURS = "npuops.ascend/"


def level(node: Object) -> int | None:
    """At which level the node must be accepted; None if its gate is open. A value that is no level counts as the first one."""
    return max((_LEVEL_OF.get(taint.get("value"), LEVELS[0]) for taint in _taints(node) if taint.get("key") == TAINT), default=None)


def last(node: Object) -> dict[str, Any] | None:
    """The last verdict, {"verdict", "level", "ended"}; None if there is none that has this form."""
    try:
        return data_annotations.acceptance(kube_client.annotations(node).get(ANNOTATION))
    except data_annotations.Misfit:
        return None


def is_new(node: Object) -> bool:
    """Whether install has not set up the node before."""
    return not any(label.startswith(_OURS) for label in kube_client.labels(node))


def closing(node: Object, wanted: int) -> Mapping[str, Any]:
    """The changes of ``spec`` with which a new node waits to be accepted at the level ``wanted``; {} if there are none."""
    if not wanted or not is_new(node) or level(node) is not None:
        return {}
    return {"taints": [*_taints(node), {"key": TAINT, "value": str(wanted), "effect": "NoSchedule"}]}


def opening(node: Object) -> Mapping[str, Any]:
    """The changes of ``spec`` that open the gate of a node; {} if it is open."""
    if level(node) is None:
        return {}
    return {"taints": [taint for taint in _taints(node) if taint.get("key") != TAINT]}


def _taints(node: Object) -> list[Object]:
    return list((node.get("spec") or {}).get("taints") or [])
