# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the cluster learns of an acceptance: the last verdict, as an annotation of the Node, and that its gate is open."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._acceptance.verdicts import BAD
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import acceptance_gate
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import identity as node_identity

_ATTEMPTS = 5


def write(cluster: AnyCluster, document: Mapping[str, Any], boot_id: str | None) -> list[str]:
    """Write the verdict of ``document`` to its Node; returns lines for people about the gate.

    ``boot_id``: of the host that was accepted. A host that has not joined the cluster has no Node: nothing is written then. Raises
    NpuError.
    """
    path = "/api/v1/nodes/" + document["node"]
    for attempt in range(_ATTEMPTS):
        node = cluster.get(path)
        if node is None:
            return []
        _check_host(node, boot_id)
        spec = acceptance_gate.opening(node) if _is_accepted(node, document) else {}
        try:
            cluster.merge_patch(path, _patch(node, document, spec), field_manager=kube_client.FIELD_MANAGER)
        except kube_client.Conflict:
            if attempt == _ATTEMPTS - 1:
                raise
            continue
        return _told(node, bool(spec))
    raise AssertionError("unreachable")


def _check_host(node: Object, boot_id: str | None) -> None:
    there = kube_client.boot_id(node)
    if there != boot_id:
        raise NpuError(
            "the host is not the node: its boot ID is %s, the node reports %s. %s" % (boot_id, there, node_identity.ADVICE)
        )


def _is_accepted(node: Object, document: Mapping[str, Any]) -> bool:
    wanted = acceptance_gate.level(node)
    return wanted is not None and document["level"] >= wanted and document["verdict"] not in BAD


def _patch(node: Object, document: Mapping[str, Any], spec: Mapping[str, Any]) -> Object:
    verdict = {name: document[name] for name in ("verdict", "level", "ended")}
    patch: Object = {
        "metadata": {
            "annotations": {acceptance_gate.ANNOTATION: json.dumps(verdict)},
            "resourceVersion": node["metadata"]["resourceVersion"],
        }
    }
    if spec:
        patch["spec"] = dict(spec)
    return patch


def _told(node: Object, opened: bool) -> list[str]:
    if opened:
        return ["  The taint %s was removed: pods can be scheduled onto the node" % acceptance_gate.TAINT]
    wanted = acceptance_gate.level(node)
    if wanted is None:
        return []
    return ["  Pods wait until the node is accepted at level %d or higher" % wanted]
