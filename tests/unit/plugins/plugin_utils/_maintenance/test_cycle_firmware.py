# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Firmware and driver in one drain and one reboot: written once, wherever a run is cut short, and never over a running chip."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.host_side import HostUnreachable

from support.fleet.fake_fleet import NEW, OLD, Fate, Killed
from support.fleet.maintenance_bench import RECORD, STATE, TARGET, Bench

LABEL = "npuops.ascend/firmware-version"
OLD_FIRMWARE, FIRMWARE = "7.8.0.6.201", "7.8.0.7.220"


class FirmwareBench(Bench):
    """The release that the node is to get brings other firmware."""

    release = NEW

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.host.brings[self.release] = FIRMWARE
        self.host.queued = self._queued

    def _queued(self, *_request):
        # The pods are gone, and nothing is being written.
        assert self.pods.npu == 0 and (self.host.written or {}).get("state") != "writing"
        self.world.clock.at(1.0, self.host.go_down)

    def run(self, run="run-1", until="done", order=None, **policy):
        target = dict(TARGET, release=self.release, version=self.release.split("-")[0], firmware=FIRMWARE)
        return super().run(run, until, {"target": target, **(order or {})}, **policy)


class FirmwareOnly(FirmwareBench):
    """The node has the release already, but its chips run other firmware."""

    release = OLD


def run_to_the_end(bench):
    for number in range(2, 8):
        outcome = bench.run(run="run-%d" % number)
        if outcome["outcome"] != "busy":
            return outcome
    raise AssertionError("always busy")


def test_firmware_and_driver_in_one_reboot():
    bench = FirmwareBench()
    assert bench.run()["outcome"] == "done"
    bench.assert_upgraded()
    assert (bench.host.firmware, bench.host.writes) == (FIRMWARE, 1)
    assert bench.last["to"]["firmware"] == FIRMWARE
    assert any("firmware %s written; the reboot activates it" % FIRMWARE in sentence for _step, sentence in bench.said)
    assert bench.labels[LABEL] == FIRMWARE


def test_firmware_alone():
    bench = FirmwareOnly()
    assert bench.run()["outcome"] == "done"
    assert (bench.host.firmware, bench.host.writes, bench.host.boots) == (FIRMWARE, 1, 1)
    assert (bench.host.driver, bench.host.good, bench.host.next) == (OLD, OLD, None)
    bench.assert_nothing_left()


@pytest.mark.parametrize("kind", [FirmwareBench, FirmwareOnly])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("pause", [0, 5, 300])
def test_killed_at_every_call(kind, when, pause):
    for at in itertools.count(1):
        bench = kind()
        bench.world.fate = Fate(at, "kill", when)
        try:
            bench.run()
        except Killed:
            pass
        if not bench.world.fate.met:
            break
        bench.world.fate = Fate()
        bench.wait(pause)
        outcome = run_to_the_end(bench)
        assert outcome["outcome"] in ("done", "up-to-date"), (at, outcome)
        assert (bench.host.firmware, bench.host.writes, bench.host.boots) == (FIRMWARE, 1, 1), at
        assert bench.labels[LABEL] == FIRMWARE, at
        bench.assert_nothing_left()
    assert at > 13


@pytest.mark.parametrize("kind", [FirmwareBench, FirmwareOnly])
def test_a_write_that_fails_gives_the_node_back_with_its_driver(kind):
    bench = kind()
    bench.host.flash_fails = True
    outcome = bench.run()
    assert outcome["outcome"] == "failed" and bench.last["outcome"] == "rolled-back"
    assert "the firmware %s could not be written: the package failed" % FIRMWARE in outcome["reason"]
    assert (bench.host.driver, bench.host.firmware, bench.host.boots) == (OLD, OLD_FIRMWARE, 0)
    assert not bench.cordoned and bench.labels[STATE] == "upgrade-failed"
    # A repeated run does not write again, unless it is asked to.
    bench.host.flash_fails = False
    assert bench.run(run="run-2", clear_halt=True)["outcome"] != "done" and bench.host.writes == 1
    bench.world.slots()
    assert bench.host.firmware == OLD_FIRMWARE


def test_firmware_that_does_not_take_effect():
    bench = FirmwareBench()
    bench.host.ignores_flash = True
    outcome = bench.run()
    assert outcome["outcome"] == "failed" and bench.last["outcome"] == "rolled-back"
    assert "run the firmware %s, not %s, which was written before the reboot" % (OLD_FIRMWARE, FIRMWARE) in outcome["reason"]
    assert (bench.host.driver, bench.host.writes) == (OLD, 1)


@pytest.mark.parametrize("load_seconds", [0, 60])
def test_power_loss_while_it_is_written(load_seconds):
    bench = FirmwareBench()
    bench.host.load_seconds = load_seconds
    begins = bench.host.flash_begins

    def lose_power():
        begins()
        bench.world.clock.at(2.0, bench.host.go_down)

    bench.host.flash_begins = lose_power
    outcome = bench.run()
    assert bench.last["outcome"] == "rolled-back" and "the host went down while the firmware was written" in outcome["reason"]
    assert (bench.host.driver, bench.host.firmware, bench.host.writes) == (OLD, OLD_FIRMWARE, 1)
    assert not bench.cordoned


@pytest.mark.parametrize("kind", [FirmwareBench, FirmwareOnly])
@pytest.mark.parametrize("shuts_down", [True, False], ids=["reboot", "power-loss"])
@pytest.mark.parametrize("load_seconds", [0, 60])
def test_the_host_goes_down_between_intent_and_write(kind, shuts_down, load_seconds):
    """Nothing was written, so the node is not given up: the next boot of the host is as good, once it has its driver."""
    bench = kind()
    bench.host.load_seconds = load_seconds
    mutate, struck = bench.world.mutate, []

    def strike(what, effect, api):
        if what.startswith("firmware") and not struck:
            struck.append(what)
            bench.host.going_down = shuts_down
            bench.world.clock.at(3.0 if shuts_down else 0.0, bench.host.go_down)
            if not shuts_down:
                bench.world.clock.sleep(0.0)
                raise HostUnreachable("Connection reset")
        return mutate(what, effect, api)

    bench.world.mutate = strike
    assert bench.run()["outcome"] == "done", bench.said
    assert (bench.host.firmware, bench.host.writes, bench.host.boots) == (FIRMWARE, 1, 2)
    assert bench.last["attempt"] == 2 and bench.host.good == bench.release
    bench.assert_nothing_left()


def test_processes_that_appear_before_the_write_keep_it_from_beginning():
    bench = FirmwareBench()
    holder = {"pid": 7, "command": "python x", "device": "davinci0"}
    mutate = bench.world.mutate

    def strike(what, effect, api):
        if what.startswith("firmware"):
            bench.host.holders = [holder]
        return mutate(what, effect, api)

    bench.world.mutate = strike
    outcome = bench.run()
    assert bench.last["outcome"] == "rolled-back" and "python x (pid 7, davinci0)" in outcome["reason"]
    assert bench.host.writes == 0 and not bench.cordoned


@pytest.mark.parametrize("kind", [FirmwareBench, FirmwareOnly])
def test_a_reboot_that_is_held_after_the_write_tells_what_the_next_boot_brings(kind):
    bench = kind()
    mutate = bench.world.mutate

    def strike(what, effect, api):
        if what.startswith("reboot"):
            bench.host.holders = [{"pid": 7, "command": "python x", "device": "davinci0"}]
        return mutate(what, effect, api)

    bench.world.mutate = strike
    outcome = bench.run()
    told = "The firmware %s is in the chips already: they run it after the next boot of the host." % FIRMWARE
    assert outcome["outcome"] == "deferred" and outcome["reason"].endswith(told)
    assert bench.last["failure"].endswith(told) and "python x" in bench.last["failure"]
    assert (bench.host.firmware, bench.host.writes, bench.host.boots) == (OLD_FIRMWARE, 1, 0)
    bench.assert_nothing_left()
    # Another run finishes it without a second write.
    bench.world.mutate, bench.host.holders = mutate, []
    assert bench.run(run="run-2")["outcome"] == "done"
    assert (bench.host.firmware, bench.host.writes, bench.host.boots) == (FIRMWARE, 1, 1)


def test_what_was_not_written_is_not_told_as_waiting():
    bench = FirmwareBench()
    bench.host.flash_fails = True
    assert "is in the chips already" not in bench.run()["reason"]


def killed_at(bench, at, when="before"):
    """Whether the run was killed at its call number ``at``."""
    bench.world.fate = Fate(at, "kill", when)
    try:
        bench.run()
    except Killed:
        pass
    met, bench.world.fate = bench.world.fate.met, Fate()
    return met


@pytest.mark.parametrize("kind", [FirmwareBench, FirmwareOnly])
@pytest.mark.parametrize("pause", [0, 300])
def test_a_run_that_asks_for_no_such_firmware_begins_no_write(kind, pause):
    """Any client that may write to the Node may have written what a record says."""
    for at in itertools.count(1):
        bench = kind()
        if not killed_at(bench, at):
            break
        before = bench.host.writes
        bench.wait(pause)
        target = {**TARGET, "release": bench.release, "version": bench.release.split("-")[0]}
        intended = "npuops.ascend/maintenance" in bench.annotations and bench.record["boot_id"] is not None
        Bench.run(bench, "run-2", "done", {"target": target})
        assert bench.host.writes == before, at
        # What the host had begun is waited for, and counts.
        assert bench.host.firmware == (FIRMWARE if before else OLD_FIRMWARE), at
        if intended and not before:
            assert any("does not write the firmware %s" % FIRMWARE in sentence for _step, sentence in bench.said), at
            assert "firmware" not in bench.last["to"]
        assert (bench.host.driver, bench.host.boots) == (bench.release, 1 if intended else bench.host.boots), at
        bench.assert_nothing_left()
    assert at > 13


OTHER, OTHER_FIRMWARE = "25.5.1-k-cccccccccccc", "7.8.0.9.1"


@pytest.mark.parametrize("kind", [FirmwareBench, FirmwareOnly])
@pytest.mark.parametrize("wish", [{}, {"release": OTHER, "version": "25.5.1"}], ids=["same-driver", "another-driver"])
def test_a_run_that_asks_for_other_firmware_than_the_record_gets_its_own(kind, wish):
    for at in itertools.count(1):
        bench = kind()
        if not killed_at(bench, at):
            break
        begun = bench.host.writes
        bench.host.brings.update({bench.release: OTHER_FIRMWARE, OTHER: OTHER_FIRMWARE})
        bench.wait(300)
        target = {**TARGET, "release": bench.release, "version": bench.release.split("-")[0], "firmware": OTHER_FIRMWARE, **wish}
        bench.world.touch("npu-a", lambda node: node["metadata"]["labels"].setdefault(STATE, "upgrade-required"))
        outcome = Bench.run(bench, "run-2", "done", {"target": target})
        assert outcome["outcome"] == "done", (at, outcome)
        assert (bench.host.firmware, bench.host.writes) == (OTHER_FIRMWARE, begun + 1), (at, bench.said)
        assert bench.last["to"]["firmware"] == OTHER_FIRMWARE
        bench.assert_nothing_left()


# --- a kernel that the next boot brings ---

KERNEL_2 = {NEW: "25.5.0-k2-cccccccccccc", OLD: "25.2.0-k2-dddddddddddd"}


def with_another_kernel(kind, known=True):
    bench = kind()
    bench.host.next_kernel, bench.host.tells_next_kernel = "k2", known
    bench.host.staged = set(KERNEL_2.values())
    bench.host.brings.update(dict.fromkeys(KERNEL_2.values(), FIRMWARE))
    return bench


def strike_at(bench, at, later):
    """The power fails `later` seconds after the write of that number. Returns the writes, as they come."""
    check, calls = bench.world.after_write, []

    def strike():
        check()
        calls.append(1)
        if len(calls) == at and bench.host.up:
            bench.world.clock.at(later, bench.host.go_down) if later else bench.host.go_down()

    bench.world.after_write = strike
    return calls


@pytest.mark.parametrize("kind", [FirmwareBench, FirmwareOnly])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("later", [0, 5], ids=["at-once", "while-it-is-written"])
def test_a_power_loss_at_any_call_that_brings_another_kernel(kind, known, later):
    """The host has another release of its driver then. Done is what runs the firmware, and nothing else."""
    outcomes = []
    for at in itertools.count(1):
        bench = with_another_kernel(kind, known)
        calls = strike_at(bench, at, later)
        outcome = bench.run()
        outcomes.append(outcome["outcome"])
        runs = (bench.host.firmware, bench.host.good) == (FIRMWARE, KERNEL_2[bench.release])
        assert runs or outcome["outcome"] != "done", (at, bench.said)
        assert runs or "was not written" in outcome["reason"] or "firmware" not in outcome["reason"], (at, outcome)
        assert bench.host.writes <= 1 and bench.world.slots()["holders"] == {}
        if len(calls) < at:
            break
    # Those during the write have failed, and no others.
    assert outcomes[-1] == "done" and {"done", "failed"} <= set(outcomes[:-1])


@pytest.mark.parametrize("kind", [FirmwareBench, FirmwareOnly])
def test_firmware_that_was_written_is_called_so_after_a_change_of_kernel(kind):
    bench = with_another_kernel(kind)
    bench.host.ignores_flash = True
    outcome = bench.run()
    assert "run the firmware %s, not %s, which was written before the reboot" % (OLD_FIRMWARE, FIRMWARE) in outcome["reason"]
    assert (outcome["outcome"], bench.host.writes) == ("failed", 1)


def test_a_trial_without_a_record_is_not_done_until_its_chips_run_the_firmware():
    bench = FirmwareBench()
    bench.host.trial = {"generation": 1, "release": NEW, "boot_id": bench.host.boot_id}
    bench.host.driver = NEW
    assert bench.run()["outcome"] == "done"
    assert (bench.host.firmware, bench.host.writes, bench.host.boots) == (FIRMWARE, 1, 1)
    bench.assert_nothing_left()


def test_who_takes_the_label_away_does_not_make_a_node_up_to_date_whose_chips_run_other_firmware():
    bench = FirmwareOnly(state=None, labels={"npuops.ascend/driver-version": "25.2.0"})
    outcome = bench.run()
    assert outcome["outcome"] == "failed" and "its chips run the firmware %s" % OLD_FIRMWARE in outcome["reason"]
    bench.host.firmware = FIRMWARE
    assert bench.run()["outcome"] == "up-to-date"


def test_a_write_that_failed_is_told_by_a_run_that_asks_for_none():
    bench = FirmwareBench()
    bench.host.flash_fails = True
    at = next(number for number in itertools.count(1) if killed_at(FirmwareBench(), number) and wrote(number))
    assert killed_at(bench, at)
    bench.wait(300)
    outcome = Bench.run(bench, "run-2", "done", {"target": TARGET})
    assert "the firmware %s could not be written: the package failed" % FIRMWARE in outcome["reason"]
    assert bench.last["outcome"] == "rolled-back" and (bench.host.driver, bench.host.writes) == (OLD, 1)


def wrote(at):
    bench = FirmwareBench()
    return killed_at(bench, at) and bench.host.writes == 1


def test_a_package_of_another_version_than_planned_is_not_written():
    bench = FirmwareBench()
    bench.host.brings[NEW] = "7.8.0.9.1"
    outcome = bench.run()
    assert "has the firmware 7.8.0.9.1, not %s" % FIRMWARE in outcome["reason"] and bench.host.writes == 0
    assert bench.last["outcome"] == "rolled-back" and not bench.cordoned


def test_a_rollback_that_takes_over_writes_no_firmware():
    for at in itertools.count(1):
        bench = FirmwareOnly()
        bench.world.fate = Fate(at, "kill", "before")
        try:
            bench.run()
        except Killed:
            pass
        if not bench.world.fate.met:
            break
        before = bench.host.writes
        bench.world.fate = Fate()
        bench.wait(3000)
        back = {"version": OLD.split("-")[0], "release": OLD}
        Bench.run(bench, "run-2", "done", {"target": back, "reason": "rollback"})
        assert bench.host.writes == before, at


def test_a_host_whose_module_fails_is_given_back(monkeypatch):
    """Its Python is gone with an update of its OS, for example."""
    bench = FirmwareBench()
    view = bench.host.view

    def fails(*asked, **named):
        if bench.cordoned:
            raise NpuError("exit status 127: python3: not found")
        return view(*asked, **named)

    monkeypatch.setattr(bench.host, "view", fails)
    outcome = bench.run(order={"target": dict(TARGET, firmware=FIRMWARE)})
    assert outcome["outcome"] == "failed" and "python3: not found" in outcome["reason"]
    assert not bench.cordoned and RECORD not in bench.annotations and not bench.world.slots()["holders"]
