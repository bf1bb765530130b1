# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `kubectl describe node` shows of a maintenance."""

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import node_events

from support.fleet.fake_fleet import NEW
from support.fleet.maintenance_bench import Bench, Wedged

UPGRADE = "upgrade from 25.2.0 to 25.5.0: "


def events(bench):
    """(type, reason, message) of each, in the order in which they were made."""
    found = [item for path, item in bench.world.objects.items() if path.startswith(node_events.EVENTS + "/")]
    assert all(item["involvedObject"]["name"] == "npu-a" for item in found)
    return [(item["type"], item["reason"], item["message"]) for item in found]


def test_an_upgrade():
    bench = Bench()
    assert bench.run()["outcome"] == "done"
    assert events(bench) == [
        ("Normal", "Cordoned", UPGRADE + "cordoned"),
        ("Normal", "Draining", UPGRADE + "evicts the pods"),
        ("Normal", "Rebooting", UPGRADE + "reboots into the driver 25.5.0"),
        ("Normal", "DriverConfirmed", UPGRADE + "the driver works"),
        ("Normal", "MaintenanceCompleted", UPGRADE.removesuffix(": ")),
    ]


def test_a_driver_that_does_not_work():
    bench = Bench()
    bench.host.broken = {NEW}
    assert bench.run()["outcome"] == "failed"
    found = events(bench)
    assert [(kind, reason) for kind, reason, _message in found[3:]] == [
        ("Warning", "RollingBack"),
        ("Normal", "Rebooting"),
        ("Warning", "RolledBack"),
    ]
    assert found[3][2].startswith(UPGRADE) and "does not work" in found[3][2]
    assert found[4][2] == UPGRADE + "reboots into the driver 25.2.0"
    assert "It is back on 25.2.0 and in service" in found[5][2]


def test_a_host_that_does_not_come_back():
    bench = Bench()
    bench.host.returns = False
    bench.run(reboot={"timeout": 600})
    kind, reason, message = events(bench)[-1]
    assert (kind, reason) == ("Warning", "MaintenanceHalted") and "did not come back" in message


def test_a_recovery():
    bench = Wedged()
    assert bench.run()["outcome"] == "done"
    found = events(bench)
    assert found[2][1:] == ("Rebooting", "recovery with 25.2.0: reboots into the driver 25.2.0")
    assert found[-1][1] == "MaintenanceCompleted"


@pytest.mark.parametrize("problem", [kube_client.Refused("forbidden"), kube_client.Unreachable("no answer")])
def test_a_maintenance_does_not_depend_on_its_events(problem, monkeypatch):
    bench, asked = Bench(), []

    def refuse(*_arguments, **_more):
        asked.append(1)
        raise problem

    monkeypatch.setattr(node_events, "body", refuse)
    assert bench.run()["outcome"] == "done"
    assert len(asked) == 5


def test_a_long_failure_fits_into_an_event():
    node = {"metadata": {"name": "npu-a", "uid": "u"}}
    message = node_events.body(node, "name", "Warning", "MaintenanceHalted", "line\n" + "x" * 5000, "now")["message"]
    assert len(message) == 1000 and message.startswith("line x")
