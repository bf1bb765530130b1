# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many devices a device plugin offers for each chip.

Its pod on the node tells, not the settings of this run: during a rollout the pods of a DaemonSet differ, and what a node offers is
judged by runs that do not read the plugin's settings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Object

# Go takes one dash or two, and the value after "=" or as the next argument. Upstream's range is 1 to 100.
_FLAG = re.compile(r"(?<![\w-])--?shareDevCount[= ]([0-9]{1,3})(?![0-9])")


def devices_per_chip(pods: Iterable[Object]) -> int:
    """``pods``: those of device plugins on one node. 1 without any, and where each chip is one device."""
    return max((count for pod in pods for count in _counts(pod)), default=1)


def _counts(pod: Object) -> Iterable[int]:
    for container in pod["spec"].get("containers") or []:
        words = [*(container.get("command") or []), *(container.get("args") or [])]
        for found in _FLAG.findall(" ".join(map(str, words))):
            yield max(1, int(found))
