# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which version line of MindCluster each node runs, by the images of its pods: the driver that it is to get must suit it."""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import component_names, mindcluster

_MINDCLUSTER = frozenset(component_names.DEVICE_PLUGINS.values()) | {component_names.EXPORTER, component_names.NODED}


class MindClusterVersionLines:
    """The version lines of the device plugins, exporters and nodeds in ``namespace``."""

    def __init__(self, namespace: str, nodes: Mapping[str, set[str | None]] | None = None) -> None:
        self._namespace = namespace
        self._nodes: dict[str, set[str | None]] = dict(nodes or {})

    def look(self, item: Object) -> None:
        """Take the Pod object ``item`` into account."""
        node = (item.get("spec") or {}).get("nodeName")
        if node and component_names.daemonset_of(item["metadata"], self._namespace) in _MINDCLUSTER:
            containers = item["spec"].get("containers") or []
            found = {mindcluster.version_line_of_image(container.get("image") or "") for container in containers}
            self._nodes.setdefault(node, set()).update(found)

    def on(self, node: str) -> list[str]:
        """The version lines of the node's pods. Without such pods, those of all nodes."""
        found = self._nodes.get(node) or set().union(*self._nodes.values())
        return sorted(version_line for version_line in found if version_line)

    def all(self) -> list[str]:
        """The version lines of all nodes."""
        return sorted(version_line for version_line in set().union(*self._nodes.values()) if version_line)

    def replaced_by(self, version_line: str) -> MindClusterVersionLines:
        """The version lines once all pods are of the ``version_line``."""
        return MindClusterVersionLines(self._namespace, {node: {version_line} for node in self._nodes})

    def unknown(self) -> list[str]:
        """The nodes with an image whose tag names no release."""
        return sorted(node for node, version_lines in self._nodes.items() if None in version_lines)
