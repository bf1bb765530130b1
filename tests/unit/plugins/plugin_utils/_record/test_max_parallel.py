# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import max_parallel
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.max_parallel import MaxParallel

from support.kube.stub import node


def nodes(count, labels=("openfuyao.com/npu.present",)):
    return [node("npu-%d" % number, labels=dict.fromkeys(labels, "")) for number in range(count)]


@pytest.mark.parametrize(
    ("setting", "fleet", "number"),
    [
        ("10%", 25, 2),
        ("10%", 29, 2),
        ("10%", 30, 3),
        ("10%", 5, 1),
        ("10%", 0, 1),
        ("100%", 7, 7),
        ("1%", 10_000, 100),
        (0, 9, 0),
        (4, 9, 4),
    ],
)
def test_a_percentage_is_rounded_down_and_never_nothing(setting, fleet, number):
    assert MaxParallel.of(setting, nodes(fleet)).number == number


def test_only_nodes_with_npus_count():
    found = MaxParallel.of("50%", nodes(4) + nodes(10, labels=()))
    assert (found.number, found.fleet) == (2, 4)
    assert found.told == "at most 2 at once (50% of 4 NPU nodes of the cluster)"
    assert MaxParallel.of("50%", nodes(1)).told == "at most 1 at once (50% of 1 NPU node of the cluster)"
    assert MaxParallel.of(2, nodes(4)).told is None


def test_the_maintenance_of_one_node_needs_a_number():
    assert max_parallel.number_of(3) == 3
    with pytest.raises(
        NpuError, match="max_parallel is 10% in the settings of the maintenance of a node.*Give the max_parallel that"
    ):
        max_parallel.number_of("10%")
