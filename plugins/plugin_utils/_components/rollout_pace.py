# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How fast a component is rolled out."""

from __future__ import annotations

import dataclasses
import re

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError

# As the API takes it: a 32 bit number, or up to 100%.
AT_ONCE = re.compile(r"([1-9][0-9]{0,8}|([1-9][0-9]?|100)%)\Z")
# What is in progress has to fit into an annotation.
_MOST_AT_ONCE = 500


@dataclasses.dataclass(frozen=True)
class Pace:
    """``max_unavailable``: on how many nodes at once, ``2`` or ``10%``; ``timeout``: seconds of each node. Raises NpuError."""

    max_unavailable: str = "1"
    timeout: float = 300

    def __post_init__(self) -> None:
        if not AT_ONCE.match(self.max_unavailable):
            raise NpuError(
                "max_unavailable is %r: it must be a number of nodes, 1 or more, or a percentage of them, such as 10%%"
                % self.max_unavailable[:64]
            )
        if self.timeout < 1:
            raise NpuError("The timeout of a rollout is %s: it must be a number of seconds, 1 or more" % self.timeout)

    def at_once(self, nodes: int) -> int:
        number = int(self.max_unavailable.rstrip("%"))
        # Rounded up, as Kubernetes does.
        number = -(-nodes * number // 100) if self.max_unavailable.endswith("%") else number
        return min(max(1, number), _MOST_AT_ONCE)
