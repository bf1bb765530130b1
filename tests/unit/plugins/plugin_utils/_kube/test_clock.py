# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What records and annotations have for the time: one clock for all machines that write and compare them."""

from __future__ import annotations

import email.utils
import time

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.clock import Clock

from support.kube.stub import node

NODES = "/api/v1/nodes"
DAY = 86400.0


@pytest.mark.parametrize("ahead", [-DAY, -10.0, 10.0, 30 * DAY])
def test_a_machine_whose_clock_is_wrong_goes_by_that_of_the_api_server(api, cluster, ahead):
    api.put(NODES, node("a"))
    api.ahead = ahead
    before = time.time()
    cluster.nodes()
    assert before + ahead - 2 <= cluster.clock.now() <= time.time() + ahead + 2


def test_a_machine_whose_clock_is_right_is_believed(api, cluster):
    """The answers tell whole seconds, and with each of them the time would leap."""
    api.put(NODES, node("a"))
    for ahead in (0.0, 3.0, -3.0):
        api.ahead = ahead
        cluster.nodes()
        before = time.time()
        assert before <= cluster.clock.now() <= time.time()


class Machine(Clock):
    wall = staticmethod(lambda: Machine.time)
    time = 1_800_000_000.0


def heard(clock, server, took=0.1):
    clock.heard(email.utils.formatdate(server, usegmt=True), took)


def test_a_clock_that_is_set_meanwhile():
    clock = Machine()
    heard(clock, 1_800_000_000 + 3600)
    assert clock.now() == pytest.approx(1_800_003_600, abs=1)
    try:
        Machine.time += 3600  # an administrator has corrected it
        heard(clock, 1_800_003_600)
        assert clock.now() == Machine.time
    finally:
        Machine.time -= 3600


@pytest.mark.parametrize("date", ["Fri, 15 Jan 2027 09:00:00 GMT", "Fri, 15 Jan 2027 09:00:00 -0000", "Fri, 15 Jan 2027 09:00:00"])
@pytest.mark.parametrize("zone", ["UTC", "Asia/Shanghai"])
def test_a_date_is_utc_wherever_the_machine_is(monkeypatch, date, zone):
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        clock = Machine()
        clock.heard(date, 0.1)
        assert clock.now() == pytest.approx(1_800_003_600, abs=1)
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    "date", ["Fri, 31 Dec 9999 23:59:59 -2359", "Thu, 01 Jan 1970 00:00:00 GMT", "Mon, 01 Jan 1000 00:00:00 GMT"]
)
def test_a_time_that_no_record_can_have_says_nothing(date):
    """Records have years of four digits, and ages are differences."""
    clock = Machine()
    clock.heard(date, 0.1)
    assert clock.now() == Machine.time


@pytest.mark.parametrize("date", [
    "\x1b[31m", "Fri, 15 Jan 2027 09:00:00 GMT" + "\0" * 9, "{{ lookup('pipe', 'id') }}", "../../etc/passwd", "Fri, 15 Jan 2027 09:00:00 +9999999999",
])  # fmt: skip
def test_a_hostile_date_says_nothing(date):
    clock = Machine()
    clock.heard(date, 0.1)
    assert abs(clock.now() - Machine.time) <= 3601


@pytest.mark.parametrize("date", [None, "", "yesterday", "Tue, 99 Foo 2026", "Wed, 25 Nov 999999999 10:11:31 GMT", "x" * 100_000])
def test_what_is_no_date_says_nothing(date):
    clock = Machine()
    clock.heard(date, 0.1)
    assert clock.now() == Machine.time


def test_an_answer_that_took_long_does_not_say_when():
    clock = Machine()
    heard(clock, 1_800_000_000 - 30, took=31)
    assert clock.now() == Machine.time
