# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The network ports of the chips around a reboot: compared with before, and what happens if they are worse."""

from __future__ import annotations

import pytest

from support.fleet.fake_fleet import NEW, OLD
from support.fleet.maintenance_bench import Bench

BEFORE = {"0": "UP 10.64.11.10", "1": "UP 10.64.11.11", "2": "DOWN -", "3": "UP -"}
LOST = dict(BEFORE, **{"1": "UP -"})
TEXT = "its network ports are worse than before the reboot: the address of chip 1 is gone, and was 10.64.11.11; see docs/network.md"


def with_ports(boot, **seconds):
    """A bench whose host has these ports. ``boot(driver)``: what they are after a boot; None: as before."""
    bench = Bench()
    bench.host.ports = BEFORE
    choose = bench.host.choose

    def booted():
        choose()
        bench.host.ports = boot(bench.host.driver)
        for ports, after in seconds.values():
            bench.world.clock.at(after, lambda ports=ports: setattr(bench.host, "ports", ports))

    bench.host.choose = booted
    return bench


def run(bench, network):
    return bench.run(order={"network": network})


def said(bench, text):
    return [sentence for _step, sentence in bench.said if text in sentence]


@pytest.mark.parametrize("network", ["strict", "warn", "off"])
@pytest.mark.parametrize(
    "after", [BEFORE, {"0": "UP 10.64.11.10", "1": "UP 10.64.11.11", "2": "UP 10.64.11.12", "3": "UP 1.2.3.4"}]
)
def test_ports_that_are_as_before_or_better(network, after):
    bench = with_ports(lambda _driver: after)
    assert run(bench, network)["outcome"] == "done"
    bench.assert_upgraded()
    assert said(bench, "network ports") == []


@pytest.mark.parametrize("network", ["strict", "warn"])
def test_a_link_may_take_its_time(network):
    bench = with_ports(lambda _driver: dict(BEFORE, **{"0": "DOWN 10.64.11.10"}), later=(BEFORE, 60))
    assert run(bench, network)["outcome"] == "done"
    bench.assert_upgraded()
    assert said(bench, "network ports") == ["waits for its network ports: the link of chip 0 is down"]


def test_strict_returns_to_the_driver_with_which_they_work():
    bench = with_ports(lambda driver: LOST if driver == NEW else BEFORE)
    assert run(bench, "strict")["outcome"] == "failed"
    bench.assert_rolled_back()
    assert TEXT in bench.last["failure"]


def test_strict_does_not_give_a_node_back_whose_ports_stay_worse():
    bench = with_ports(lambda _driver: LOST)
    assert run(bench, "strict")["outcome"] == "failed"
    assert bench.cordoned and bench.host.driver == OLD


def test_warn_says_it_and_goes_on():
    bench = with_ports(lambda _driver: LOST)
    assert run(bench, "warn")["outcome"] == "done"
    bench.assert_upgraded()
    assert said(bench, "goes on although") == ["goes on although " + TEXT]


def test_off_does_not_look():
    bench = with_ports(lambda _driver: LOST)
    assert run(bench, "off")["outcome"] == "done"
    assert said(bench, "network ports") == []


def test_nothing_is_known_of_them_after_the_reboot():
    bench = with_ports(lambda _driver: None)
    assert run(bench, "warn")["outcome"] == "done"
    assert "the link of chip 0 is unknown, the address of chip 0 is gone, and was 10.64.11.10" in said(bench, "goes on although")[0]


def test_nothing_was_known_of_them_before_the_reboot():
    bench = with_ports(lambda _driver: BEFORE)
    bench.host.ports = None
    assert run(bench, "strict")["outcome"] == "done"
    bench.assert_upgraded()
