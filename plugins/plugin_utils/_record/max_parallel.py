# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many nodes may be in maintenance at once, if npu_upgrade_max_parallel is a percentage.

A percentage is one of all nodes of the cluster that have NPUs, whichever of them a run takes: the slots are those of the whole
cluster, and a run with --limit, or one that is repeated when most nodes are done, has to come to the same number.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Object


@dataclasses.dataclass(frozen=True)
class MaxParallel:
    """``setting``: a number or a percentage such as ``10%``; ``number``: what that is, 0 = any; ``fleet``: nodes with NPUs."""

    setting: int | str
    number: int
    fleet: int

    @classmethod
    def of(cls, setting: int | str, nodes: Iterable[Object]) -> MaxParallel:
        """``setting``: of the complete settings; ``nodes``: all Nodes of the cluster."""
        fleet = sum(kube_client.LABEL_PRESENT in kube_client.labels(node) for node in nodes)
        if isinstance(setting, int):
            return cls(setting, setting, fleet)
        # Rounded down, as maxUnavailable of a Deployment. But a rollout that maintains no node would never end.
        return cls(setting, max(1, fleet * int(setting.rstrip("%")) // 100), fleet)

    @property
    def told(self) -> str | None:
        """A clause about what the percentage comes to; None for a number, which says it itself."""
        if isinstance(self.setting, int):
            return None
        nodes = "%d NPU node%s of the cluster" % (self.fleet, "" if self.fleet == 1 else "s")
        return "at most %d at once (%s of %s)" % (self.number, self.setting, nodes)


def number_of(setting: int | str) -> int:
    """For a caller that sees one node alone, and so needs the number of the plan. Raises NpuError for a percentage."""
    if isinstance(setting, int):
        return setting
    raise NpuError(
        "max_parallel is %s in the settings of the maintenance of a node, where it must be a whole number: the percentage is one of"
        " all NPU nodes of the cluster. Give the max_parallel that npu_plan or npu_heal returned." % setting
    )
