# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Removing the DeviceTaintRules in which node agents say which chips do not serve: they stay when an agent has gone."""

from __future__ import annotations

import contextlib
from collections.abc import Collection

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.and_more import and_more
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object

RULES = "/apis/resource.k8s.io/v1/devicetaintrules"
# What the node agent gives each of its rules: this label, and no effect.
LABEL, NO_EFFECT = "npuops.ascend/node", "None"


def remove(cluster: AnyCluster, nodes: Collection[str] | None = None, check_mode: bool = False) -> str | None:
    """Delete those of ``nodes``, by default of all. Their agents have to be gone, or to keep none. Returns a phrase of what was (or
    would be) done, or None. Raises NpuError.

    Where the API is missing, or the permission for it, there are none: the same permission is needed to let agents make them.
    """
    try:
        found = [rule for rule in cluster.each(RULES, label_selector=LABEL) if _is_kept(rule, nodes)]
    except kube_client.NotFound:
        return None
    except NpuError as exc:
        if exc.details.get("missing"):
            return None
        raise
    names = sorted(rule["metadata"]["name"] for rule in found)
    for name in names if not check_mode else ():
        with contextlib.suppress(kube_client.NotFound):
            cluster.request("delete", "%s/%s" % (RULES, name))
    return "delete the DeviceTaintRule%s %s" % ("s" if len(names) > 1 else "", and_more(names)) if names else None


def _is_kept(rule: Object, nodes: Collection[str] | None) -> bool:
    """Whether an agent keeps the rule. One that a person has given an effect is that person's."""
    node = (rule["spec"].get("deviceSelector") or {}).get("pool")
    return rule["spec"]["taint"]["effect"] == NO_EFFECT and (nodes is None or node in nodes)
