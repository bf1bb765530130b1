# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The components that install deploys, and which pods are theirs.

Any user may give a pod the labels and the node selector of ours. Only its owner, in our namespace, shows whose it is.
"""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import mindcluster

# The device plugins' DaemonSets by the value of the node label accelerator.
DEVICE_PLUGINS: dict[str, str] = {name: family["daemonset"] for name, family in mindcluster.table()["families"].items()}
EXPORTER, AGENT, NODED = "npu-exporter", "npu-node-agent", "noded"
DAEMONSETS = frozenset(DEVICE_PLUGINS.values()) | {EXPORTER, AGENT, NODED}


def daemonset_of(metadata: Object, namespace: str | None) -> str | None:
    """The name of our DaemonSet in ``namespace`` that a pod with this metadata belongs to, or None."""
    if metadata.get("namespace") != namespace:
        return None
    for owner in metadata.get("ownerReferences") or []:
        if owner.get("controller") and owner.get("kind") == "DaemonSet" and owner.get("name") in DAEMONSETS:
            return owner["name"]
    return None
