# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node of the lab whose chips are divided into virtual NPUs, the layout, and what the node then offers."""

from __future__ import annotations

from support.lab.lab import Lab
from support.lab.workloads import DUO

NODE, CHIPS = "npu-c", 4
LIMIT = f"--limit={NODE}"
HALVES = [{"chips": [0, 1], "templates": {"vir04": 1, "vir04_3c": 1}}]
FOURS, THREES = DUO + "-4c", DUO + "-4c.3cpu"
DIVIDED = {DUO: "2", FOURS: "2", THREES: "2"}
QUARTERS = {"vir02": 3}
QUARTERED = {DUO + "-2c": "12"}
WHOLE = {DUO: str(CHIPS)}


def offered(lab: Lab) -> dict[str, str]:
    """Resource -> count, of those that the node has any of."""
    allocatable = lab.node(NODE)["status"]["allocatable"]
    return {name: count for name, count in allocatable.items() if name.startswith(DUO) and count != "0"}


def words(text: str) -> str:
    """Without the line breaks that Ansible puts into long messages."""
    return " ".join(text.split())


def serves(lab: Lab) -> bool:
    """Whether the node is in the NPU service, and nothing of a change is left on it."""
    metadata = lab.node(NODE)["metadata"]
    paused = metadata["labels"].get("npuops.ascend/components") != "enabled"
    return (
        not paused
        and "npuops.ascend/vnpu-change" not in metadata["annotations"]
        and not lab.node(NODE)["spec"].get("unschedulable")
    )
