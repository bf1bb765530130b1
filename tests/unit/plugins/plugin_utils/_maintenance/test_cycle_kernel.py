# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host that comes back from the reboot with another kernel, for which npu-driver-select takes another release of the version."""

from __future__ import annotations

import json

from support.fleet.fake_fleet import LEASE, NEW, OLD
from support.fleet.maintenance_bench import STATE, Bench

NEW_2, OLD_2 = "25.5.0-k2-cccccccccccc", "25.2.0-k2-dddddddddddd"


def changing(*staged):
    bench = Bench()
    bench.host.next_kernel, bench.host.staged = "k2", set(staged)
    return bench


def test_kernel_and_driver_change_together_with_one_reboot():
    bench = changing(NEW_2, OLD_2)
    assert bench.run()["outcome"] == "done"
    assert bench.host.boots == 1 and bench.host.tries == {NEW_2: 1}
    assert bench.host.driver == bench.host.good == NEW_2 and STATE not in bench.labels
    assert bench.last["to"]["release"] == NEW_2 and bench.last["outcome"] == "success"
    assert any("its kernel is k2 now" in sentence for _step, sentence in bench.said)
    bench.assert_nothing_left()


def test_a_driver_for_the_new_kernel_that_does_not_work_goes_back_with_one_more():
    """What was good is for the old kernel; the release of its version for the new one is as good."""
    bench = changing(NEW_2, OLD_2)
    bench.host.broken = {NEW_2}
    outcome = bench.run()
    assert outcome["outcome"] == "failed" and "insmod failed" in outcome["reason"]
    assert bench.host.boots == 2 and bench.host.driver == OLD_2 and bench.host.good == OLD
    assert bench.last["outcome"] == "rolled-back" and not bench.cordoned


def test_a_trial_of_the_other_release_that_ended_is_not_tried_again():
    bench = changing(NEW_2, OLD_2)
    kubelet = bench.host._kubelet
    bench.host._kubelet = lambda: (setattr(bench.host, "_kubelet", kubelet), bench.host.go_down())
    outcome = bench.run()
    assert outcome["outcome"] == "failed" and "ended by itself" in outcome["reason"]
    assert bench.host.boots == 2 and bench.host.tries == {NEW_2: 1}


def test_killed_after_it_came_back_with_the_other_release():
    bench = changing(NEW_2, OLD_2)
    assert bench.run(until="confirm")["outcome"] == "under-way"
    bench.wait(300)
    assert bench.run(run="run-2")["outcome"] == "done" and bench.host.boots == 1


def test_without_one_for_the_new_kernel_it_goes_back():
    bench = changing()
    bench.host.broken = {NEW}
    assert bench.run()["outcome"] == "failed" and bench.host.boots == 2
    assert json.loads(bench.world.objects[LEASE]["metadata"]["annotations"]["npuops.ascend/slots"])["halted"]


def test_a_known_next_kernel_without_the_driver_is_not_booted():
    """The OS was updated since the plan."""
    bench = changing(OLD_2)
    bench.host.tells_next_kernel = True
    outcome = bench.run()
    assert outcome["outcome"] == "failed"
    assert outcome["reason"].startswith("Not rebooted: the next boot of the host loads kernel k2, for which driver 25.5.0 is not")
    assert bench.host.boots == 0 and not bench.cordoned
    bench.host.staged.add(NEW_2)
    assert bench.run(run="run-2")["outcome"] == "done" and bench.host.driver == NEW_2


def test_it_is_told_whether_the_reboot_is_certain():
    bench = Bench()
    assert bench.run(until="reboot")["intended"] is False
    assert bench.run(until="validate")["intended"] is True
