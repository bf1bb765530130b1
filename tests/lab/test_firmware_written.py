# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What two runs with a driver and its firmware have written, for molecule/firmware: judged by the chips themselves."""

from __future__ import annotations

from support.lab.rollout import NPU_NODES, version_of

DRIVER, FIRMWARE = "25.5.7", "7.8.0.7.220"


def test_every_chip_was_written_once_and_runs_it(lab):
    for node in NPU_NODES:
        chips = lab.flash(node)
        assert chips, node
        assert {(chip["flash"], chip["running"], chip["unfinished"], chip["writes"]) for chip in chips} == {
            (FIRMWARE, FIRMWARE, "", 1)
        }, (
            node,
            chips,
        )


def test_every_node_has_the_driver_and_serves(lab):
    assert {node: version_of(lab, node) for node in NPU_NODES} == dict.fromkeys(NPU_NODES, DRIVER)
    assert not [node for node in NPU_NODES if lab.node(node)["spec"].get("unschedulable")]
