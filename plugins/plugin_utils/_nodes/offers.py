# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node is to offer: its whole chips, and the virtual NPUs into which others are divided."""

from __future__ import annotations

from collections.abc import Iterable

from ansible_collections.npuops.ascend.plugins.module_utils._vnpu import vnpu as chips_vnpu
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import Facts
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import wanted_vnpus


def of(facts: Facts) -> dict[str, int]:
    """{resource: count}, the resource of whole chips first; {} for a host without chips.

    If chips are shared between pods, the device plugin makes several devices of each whole chip.
    """
    resource = (facts.get("family") or {}).get("resource")
    if not resource:
        return {}
    return chips_vnpu.offered(resource, facts.get("chip_count") or 0, wanted_vnpus.recorded_vnpus(facts))


def resources(hosts: Iterable[Facts]) -> list[str]:
    """The names of all that nodes with these facts are to offer, sorted."""
    return sorted({resource for facts in hosts for resource in of(facts)})
