# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wedged nodes on the lab, and recoveries as tests start them."""

from __future__ import annotations

import json

from support.lab.rollout import run, upgrade
from support.patience import PATIENCE

WEDGED = "npuops.ascend/wedged"
REBOOT_REQUIRED = "npu.openfuyao.com/reboot-required"
# A node agent that looks often.
QUICK = {
    "npu_node_agent_probe_interval": 6,
    "npu_node_agent_probe_timeout": 5,
    "npu_node_agent_probe_failures": 2,
    "npu_rollout_max_unavailable": "100%",
}
# What tests want who are not about the guards: the hosts of the lab have the uptime of its machine, and are few.
ANYWAY = {"npu_heal_auto": True, "npu_heal_attempts": 0, "npu_heal_storm_percent": 100, "npu_heal_min_uptime": 0}


def heal(lab, *arguments: str, expect: int | None = 0, **variables: object) -> str:
    """Run heal to its end; its output."""
    return upgrade(lab, *arguments, expect=expect, playbook="heal", **variables)


def healing(lab, *arguments: str, **variables: object):
    """A run of heal that can be killed: rollout.run."""
    return run(lab, *arguments, playbook="heal", **variables)


def told(lab, node: str) -> dict | None:
    """What the node agent says of a wedge in the boot that the node is in, or None."""
    found = lab.node(node)
    wedge = json.loads(found["metadata"].get("annotations", {}).get(WEDGED, "null"))
    label = found["metadata"]["labels"].get(REBOOT_REQUIRED) == "true"
    return wedge if wedge and label and wedge["boot_id"] == found["status"]["nodeInfo"]["bootID"] else None


def wedge(lab, node: str, *fault: str) -> dict:
    """Let the chips stop to answer, until the next reboot or as the fault says, and wait until the cluster knows."""
    lab.fault(node, *(fault or ("wedge",)))
    return lab.wait_for(lambda: told(lab, node), PATIENCE, f"the cluster knows that {node} is wedged", 0.5)


def wait_well(lab, node: str) -> None:
    """Until the node agent has taken everything back."""

    def well() -> bool:
        metadata = lab.node(node)["metadata"]
        return WEDGED not in metadata.get("annotations", {}) and REBOOT_REQUIRED not in metadata["labels"]

    lab.wait_for(well, PATIENCE, f"the cluster knows that {node} answers again", 0.5)
