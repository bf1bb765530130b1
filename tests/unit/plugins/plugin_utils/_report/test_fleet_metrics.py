# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import halt as maintenance_halt
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import fleet_metrics

from support.fleet.metrics import fleet, row, samples
from support.fleet.reports import HALTED
from support.paths import CHECKOUT

NOW = 1795428000.7
PAUSED = maintenance_halt.paused(None, "ann", "a storm is coming", "2026-11-23T10:00:00Z")


def found(*rows, **others):
    """{name without its prefix: {(value of a label, ...): number}}"""
    result = {}
    for (name, *labels), value in samples(fleet_metrics.text(fleet(*rows, **others), NOW)).items():
        result.setdefault(name.removeprefix("npuops_fleet_"), {})[tuple(text for _label, text in labels)] = value
    return result


def test_when_it_looked():
    assert found()["status_timestamp_seconds"] == {(): 1795428000}


def test_nodes_by_state():
    counts = found(row("a"), row("b"), row("c", "wedged"), row("d", "unknown", host=None))["nodes"]
    assert {state: count for (state,), count in counts.items() if count} == {"ready": 2, "wedged": 1, "unknown": 1}
    # Each state has a series before the first node is in it.
    assert counts["no plugin",] == 0 and len(counts) > 12


def test_each_node():
    told = found(row("a"), row("b", "wedged"), row("c", "unknown", host=None, devices_expected=None))
    assert told["node_state"] == {("a", "ready"): 1, ("b", "wedged"): 1, ("c", "unknown"): 1}
    # What is not in the inventory is no drift of it.
    assert told["node_healthy"] == {("a",): 1, ("b",): 0}


def test_devices():
    part = {"huawei.com/Ascend910-vir4": {"wanted": 4, "allocatable": 3}}
    told = found(row("a", devices_expected=16, allocatable=14, vnpus=part), row("b", "unreachable", devices_expected=None))
    assert told["node_devices_expected"] == {("a", "huawei.com/Ascend910"): 16, ("a", "huawei.com/Ascend910-vir4"): 4}
    assert told["node_devices_allocatable"] == {("a", "huawei.com/Ascend910"): 14, ("a", "huawei.com/Ascend910-vir4"): 3}


def test_rollouts_of_drivers():
    told = found(
        row("a", step="approval-required", awaiting_approval="rollout"),
        row("b", step="upgrade-failed"),
        row("c", "wedged", awaiting_approval="recovery"),
    )
    assert told["node_step"] == {("a", "approval-required"): 1, ("b", "upgrade-failed"): 1}
    assert told["node_awaiting_approval"] == {("a", "rollout"): 1, ("c", "recovery"): 1}
    assert "node_step" not in found(row("a"))


@pytest.mark.parametrize(
    ("halted", "kinds"),
    [
        (None, set()),
        (HALTED, {"upgrade"}),
        (dict(HALTED, reason="rollback"), {"rollback"}),
        # As an older version wrote it.
        ({key: value for key, value in HALTED.items() if key != "reason"}, {"upgrade"}),
        (PAUSED, {"pause"}),
        (dict(PAUSED, failure=HALTED), {"pause", "upgrade"}),
    ],
)
def test_what_is_halted(halted, kinds):
    told = found(halted=halted)["halted"]
    assert told == {(kind,): int(kind in kinds) for kind in ("upgrade", "rollback", "pause")}


def test_what_is_not_known_is_not_there():
    assert "halted" not in found(halt_known=False)
    assert "component_rollouts" not in found(rollouts=None)
    assert found(rollouts=[{}, {}])["component_rollouts"] == {(): 2}


def test_a_storm():
    assert (found()["storm"], found(storm="too many")["storm"]) == ({(): 0}, {(): 1})


def test_two_hosts_of_one_node():
    """Of two samples with the same labels, node_exporter would refuse everything that it has."""
    for rows in ([row("a"), row("a", "wedged")], [row("a", "wedged"), row("a")]):
        told = found(*rows)
        assert (told["node_state"], told["node_healthy"]) == ({("a", "wedged"): 1}, {("a",): 0})


def test_a_fleet_that_is_too_large():
    """What is not healthy comes first, and all are counted."""
    told = found(*(row(f"n{number}") for number in range(6000)), row("z", "wedged"))
    assert len(told["node_state"]) == 5000 and ("z", "wedged") in told["node_state"]
    assert (told["nodes"]["ready",], told["nodes"]["wedged",]) == (6000, 1)


def test_each_metric_is_in_the_documentation():
    full = found(row("a", step="upgrade-failed", awaiting_approval="rollout"))
    page = (CHECKOUT / "docs/metrics.md").read_text(encoding="utf-8")
    section = page.partition("\n## Metrics of the fleet\n")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == list(full) and len(full) == 11


def test_no_name_is_one_of_the_node_agent():
    assert not any("node_agent" in name for name in found(row("a")))
