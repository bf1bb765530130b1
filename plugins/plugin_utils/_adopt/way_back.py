# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The DaemonSets of others that adoption keeps off nodes. Their owners want them back before our components are removed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ansible_collections.npuops.ascend.plugins.plugin_utils._adopt import left_daemonset
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Labels, Object, Objects
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster.foreign import (
    ANNOTATION_ADOPTION,
    ASIDE,
    LABEL_ADOPTED,
    give_back,
    is_restricted,
)


def held(daemonsets: Iterable[Object]) -> Objects:
    """Those that adoption keeps off nodes."""
    return [item for item in daemonsets if ANNOTATION_ADOPTION in kube_client.annotations(item)]


def by_node(found: Iterable[Object], nodes: Mapping[str, Object]) -> dict[str, list[str]]:
    """{node: labels of the DaemonSets that it has been adopted from}. ``found``: by ``held``."""
    adopted = {name: kube_client.labels(node) for name, node in nodes.items() if LABEL_ADOPTED in kube_client.labels(node)}
    sources: dict[str, list[str]] = {}
    for item in found:
        for name, labels in adopted.items():
            if left_daemonset.selects(item, labels):
                sources.setdefault(name, []).append(left_daemonset.label_of(item))
    return sources


def served(plugins: Iterable[Object], labels: Mapping[str, Labels]) -> set[str]:
    """Names of the nodes that device plugins of others serve once ours have left. ``labels``: by node, those that it keeps."""
    running = [item for item in plugins if not is_restricted(item, ASIDE)]
    return {name for name, kept in labels.items() if any(left_daemonset.selects(item, kept) for item in running)}


def left(found: Iterable[Object]) -> list[str]:
    """Of each, that it stays as adoption has made it, as sentences."""
    advice = "Delete the DaemonSet if you will not go back to it, or give it back with: %s" % give_back()
    return [
        "%s is kept off nodes by its node affinity, with the update strategy OnDelete, since npuops.ascend.adopt. %s"
        % (left_daemonset.label_of(item), advice)
        for item in found
    ]
