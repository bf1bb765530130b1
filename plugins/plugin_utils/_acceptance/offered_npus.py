# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a node offers the NPUs that a pod asks for."""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Object

ADVICE = "Run npuops.ascend.status, which says why, then run accept again"


def lacking(node: Object, asked: Mapping[str, int]) -> str | None:
    """The resources of which the node offers fewer than ``asked``, with the numbers; None if it offers enough."""
    found = {name: kube_client.allocatable(node, name) for name in asked}
    return ", ".join("%s (%d of %d)" % (name, found[name], count) for name, count in asked.items() if found[name] < count) or None
