# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fault codes of chips: what is read of npu-smi's answer, which chips are asked for, and what becomes of an npu-smi that hangs."""

from __future__ import annotations

import os
import time

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._chips import chip_faults, chip_health
from ansible_collections.npuops.ascend.plugins.module_utils._chips.npu_smi import NpuSmi
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError

from support.paths import UNIT

HEALTH = "\tHealth Status                  : Alarm\n\tError Code                     : %s\n"


def sample(name):
    return (UNIT / "fixtures" / "npu-smi" / name).read_text(encoding="utf-8")


def chips(*words):
    return [{"npu": number, "chip": 0, "bus_id": "0000:%02x:00.0" % number, "health": word} for number, word in enumerate(words)]


# What npu-smi says


@pytest.mark.parametrize(
    "name, codes",
    [
        ("info-t-health-c0_910A_23.0.5.txt", []),
        ("info-t-health_950_docs.txt", []),
        ("info-t-health_warning_A2_from_test.txt", ["80E01801"]),
    ],
)
def test_captures(name, codes):
    assert chip_faults.parse(sample(name), 0, 0) == {"codes": codes, "codes_left_out": 0}


def test_the_worst_code_is_first():
    """An unknown one is worse than what the device plugin ignores, and better than what it withdraws a chip for."""
    text = HEALTH % "80E18400 ABCDEF12 80C98009 80E18402 80e18400 0x80E20207"
    assert chip_faults.parse(text, 0, 0)["codes"] == ["80E18402", "80C98009", "ABCDEF12", "80E20207", "80E18400"]


def test_more_codes_than_anybody_reads():
    text = HEALTH % " ".join("%08X" % number for number in range(10000))
    found = chip_faults.parse(text, 0, 0)
    assert found == {"codes": ["%08X" % number for number in range(8)], "codes_left_out": 9992}
    told = chip_health.told([dict(chips("Alarm")[0], **found)])
    assert told == "NPU 0 chip 0 (0000:00:00.0): Alarm with 00000000 and 00000001 and 00000002 and 9997 more"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "There is no NPU card on this server.\n",
        sample("info-t-health_310P_Duo_25.5.1.txt"),
        HEALTH % "80E01801 \x1b[31m",
        HEALTH % "80E01801; reboot",
        HEALTH % "{{ 7*7 }}",
        HEALTH % "123456789",
        HEALTH % "\u0668\u0660E01801",
        "\tNPU ID : 3\n" + HEALTH % "80E01801",
        "\tChip ID : 1\n" + HEALTH % "80E01801",
    ],
)
def test_what_is_no_answer_about_that_chip(text):
    with pytest.raises(NpuError) as caught:
        chip_faults.parse(text, 0, 0)
    assert caught.value.message.isprintable() and len(caught.value.message) < 200


# What it means


def test_a_phrase_says_what_happens_and_why():
    chip = dict(chips("Critical")[0], codes=["80E18402", "ABCDEF12"])
    assert chip_faults.withdrawn(chip)
    assert chip_health.told([chip]).endswith(
        ": Critical with 80E18402 (SeparateNPU: 64 HBM rows are isolated after uncorrectable errors: no more can be) and ABCDEF12"
    )


@pytest.mark.parametrize("codes", [None, [], ["ABCDEF12"], ["80E18400", "80E20207"]])
def test_codes_that_withdraw_no_chip(codes):
    assert not chip_faults.withdrawn({"codes": codes})


# Asking for them


class Host:
    """An npu-smi that does as ``script`` says, and records each call."""

    def __init__(self, directory):
        self.fs = str(directory)
        os.makedirs(self.fs + "/tools")
        os.makedirs(self.fs + "/run", 0o755)

    def smi(self, script, timeout=30):
        path = self.fs + "/tools/npu-smi"
        with open(path, "w", encoding="utf-8") as stream:
            stream.write('#!/bin/sh\necho "$*" >> %s/calls\n%s\n' % (self.fs, script))
        os.chmod(path, 0o755)
        return NpuSmi(self.fs, timeout, lock=self.fs + "/run/lock", lock_wait=0, fallbacks=())

    def calls(self):
        try:
            with open(self.fs + "/calls", encoding="utf-8") as stream:
                return stream.read().splitlines()
        except OSError:
            return []


@pytest.fixture
def host(tmp_path):
    tmp_path.chmod(0o755)
    return Host(tmp_path)


ANSWER = "echo 'Error Code : 80E01801'"


def test_a_healthy_host_pays_nothing(host):
    assert chip_faults.ask_all(host.smi(ANSWER), chips(*["OK"] * 8)) == {}
    assert host.calls() == []


def test_only_chips_that_are_not_ok_are_asked_for(host):
    found = chips("OK", "Alarm", "OK", "UNKNOWN")
    told = chip_faults.added(found, chip_faults.ask_all(host.smi(ANSWER), found))
    assert host.calls() == ["info -t health -i 1 -c 0", "info -t health -i 3 -c 0"]
    assert [chip.get("codes") for chip in told] == [None, ["80E01801"], None, ["80E01801"]]


def test_a_card_that_does_not_know_the_command_keeps_no_other_from_being_asked(host):
    smi = host.smi('if [ "$5" = 0 ]; then echo "not supported. ret is -8255"; exit 193; fi; %s' % ANSWER)
    assert chip_faults.ask_all(smi, chips("Alarm", "Alarm")) == {0: {}, 1: {"codes": ["80E01801"], "codes_left_out": 0}}


def test_after_one_that_hangs_no_other_is_started(host):
    started = time.monotonic()
    assert chip_faults.ask_all(host.smi("exec sleep 1000", timeout=0.5), chips("Alarm", "Alarm", "Alarm")) == {0: {}}
    assert len(host.calls()) == 1 and time.monotonic() - started < 60


def test_one_that_prints_without_end_is_ended(host):
    found = chip_faults.ask_all(host.smi("exec yes 'Error Code : 80E01801'", timeout=0.5), chips("Alarm", "Alarm"))
    assert found == {0: {}} and len(host.calls()) == 1


def test_no_more_is_read_than_it_ever_prints(host):
    script = "%s; head -c %%d /dev/zero | tr '\\0' ' '" % ANSWER
    assert chip_faults.ask_all(host.smi(script % 60000), chips("Alarm"))[0]["codes"] == ["80E01801"]
    assert chip_faults.ask_all(host.smi(script % 20000000), chips("Alarm")) == {0: {}}


def test_a_machine_without_memory_says_nothing_of_a_chip(host):
    smi = host.smi("echo 'dcmi module initialize failed. ret is -8003'; exit 189")
    assert chip_faults.ask_all(smi, chips("Alarm", "Alarm")) == {} and len(host.calls()) == 1


def test_so_many_and_no_more(host):
    assert len(chip_faults.ask_all(host.smi(ANSWER), chips(*["Alarm"] * 20))) == len(host.calls()) == chip_faults.MOST_CHIPS


def test_no_time_is_left(host):
    ticks = iter([0.0, 0.0, 19.0, 21.0])
    assert sorted(chip_faults.ask_all(host.smi(ANSWER), chips(*["Alarm"] * 5), clock=lambda: next(ticks))) == [0, 1]


def test_how_long_it_may_take_is_in_the_lock(host):
    """Another one must know when this one counts as hanging."""
    smi = host.smi("cat %s/run/lock; %s" % (host.fs, ANSWER), timeout=300)
    chip_faults.ask(smi, chips("Alarm")[0])
    with open(host.fs + "/run/lock", encoding="utf-8") as stream:
        assert stream.read().split()[1] == "10.00"
