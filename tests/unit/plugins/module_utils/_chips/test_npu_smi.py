# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import errno
import fcntl
import os
import signal
import threading
import time

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._chips import npu_smi as chips_npu_smi
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NoVerdict, NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import take_lock

from support.collection import python_of_a_host
from support.paths import UNIT

FIXTURES = str(UNIT / "fixtures" / "npu-smi")


def sample(name):
    with open(os.path.join(FIXTURES, name), encoding="utf-8") as stream:
        return stream.read()


# --- the table ---


@pytest.mark.parametrize(
    "name, layout, version, chips",
    [
        ("info_310P3_1card_25.2.3_no_proc_table.txt", "device", "25.2.3", [(224, 0, 0, "0000:04:00.0")]),
        (
            "info_310P3_300I_Pro_2card_25.5.1_no_proc_table.txt",
            "device",
            "25.5.1",
            [(4, 0, 0, "0000:81:00.0"), (5, 0, 1, "0000:85:00.0")],
        ),
        (
            "info_910A_2card_21.0.3.2.txt",
            "hbm",
            "21.0.3.2",
            [(1, 0, None, "0000:3b:00.0"), (4, 0, None, "0000:86:00.0")],
        ),
        ("info_910B3_1card_23.0.1.txt", "hbm", "23.0.1", [(4, 0, None, "0000:01:00.0")]),
        (
            "info_A3_910C_2die_25.5.1_truncated_tail.txt",
            "hbm-phy",
            "25.5.1",
            [(4, 0, 8, "0000:8d:00.0"), (4, 1, 9, "0000:8f:00.0")],
        ),
        ("info_950_docs.txt", "950", "x.x.x", [(0, 0, None, "0000:91:00.0")]),
        (
            "info_310B1_2card_23.0.5_alarm.txt",
            "device",
            "23.0.5",
            [(0, 0, 0, "0000:11:00.0"), (1, 0, 1, "0000:12:00.0")],
        ),
    ],
)
def test_layouts(name, layout, version, chips):
    info = chips_npu_smi.parse_info(sample(name))
    assert (info["layout"], info["version"]) == (layout, version)
    assert [(chip["npu"], chip["chip"], chip["phy_id"], chip["bus_id"]) for chip in info["chips"]] == chips
    assert {chip["health"] for chip in info["chips"]} == {"Alarm" if "alarm" in name else "OK"}


def test_every_sample_is_read():
    names = [name for name in os.listdir(FIXTURES) if name.startswith("info_")]
    assert len(names) == 10
    for name in names:
        assert chips_npu_smi.parse_info(sample(name))["chips"]


def test_sixteen_chips_on_four_cards():
    chips = chips_npu_smi.parse_info(sample("info_310_16chip_21.0.3.1.txt"))["chips"]
    assert [chip["phy_id"] for chip in chips] == list(range(16))
    assert sorted({chip["npu"] for chip in chips}) == [1, 3, 4, 6]


def test_processes_are_no_chips():
    info = chips_npu_smi.parse_info(sample("info_docs_8card_busy_23.0.rc3_namexxx.txt"))
    assert [chip["npu"] for chip in info["chips"]] == list(range(8))
    assert (info["npu_smi_version"], info["version"]) == ("23.0.rc3", "23.0.rc2.3")


def test_what_comes_before_the_table_is_kept():
    text = "[WARNING]The driver package may not be completely installed.\n" + sample("info_910B3_1card_23.0.1.txt")
    info = chips_npu_smi.parse_info(text)
    assert info["warnings"] == ["[WARNING]The driver package may not be completely installed."]
    assert len(info["chips"]) == 1


def test_health_is_passed_on():
    text = sample("info_910B3_1card_23.0.1.txt").replace("| OK ", "| Critical ")
    assert chips_npu_smi.parse_info(text)["chips"][0]["health"] == "Critical"


@pytest.mark.parametrize("keep", range(1, 9))
def test_a_table_that_breaks_off_is_not_taken(keep):
    """Cut behind each line up to the first one of the chip; with its second line the table is complete."""
    lines = sample("info_910B3_1card_23.0.1.txt").splitlines()
    text = "\n".join(lines[:keep])
    if keep == 8:
        assert len(chips_npu_smi.parse_info(text)["chips"]) == 1
    elif keep == 6:
        # The heading alone: no chips. The caller compares the number.
        assert chips_npu_smi.parse_info(text)["chips"] == []
    elif keep == 5:
        assert chips_npu_smi.parse_info(text)["chips"] == []
    else:
        with pytest.raises(NpuError, match="cannot parse"):
            chips_npu_smi.parse_info(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\x00\xff garbage |||| \n| a | b |\n",
        sample("fail_8005_newer_driver.txt"),
        sample("info-l_910B_8card_25.5.1.txt"),
        sample("info_910B3_1card_23.0.1.txt").replace("| 4     910B3 ", "| ?           "),
        sample("info_910B3_1card_23.0.1.txt").replace("Chip  ", "Chop  "),
    ],
)
def test_garbage_is_refused(text):
    with pytest.raises(NpuError, match="cannot parse") as caught:
        chips_npu_smi.parse_info(text)
    assert caught.value.details["npu_smi"]["output"] == text


@pytest.mark.parametrize(
    "text, message",
    [
        ("There is no NPU card on this server.\n", "npu-smi lists no chip: There is no NPU card on this server. The loaded driver"),
        (sample("soc_310B4_23.0.0.txt"), "npu-smi lists 310B4 without a PCI address, so it is part of an SoC"),
        (
            sample("info_910B3_1card_23.0.1.txt").replace("0000:01:00.0", "NA          "),
            "npu-smi lists 910B3 without a PCI address",
        ),
    ],
)
def test_chips_that_are_not_there_for_us(text, message):
    with pytest.raises(NpuError, match=message) as caught:
        chips_npu_smi.parse_info(text)
    assert caught.value.details["npu_smi"]["output"] == text


def test_a_number_longer_than_python_converts_is_refused():
    """ValueError from 4301 digits on. Nor is the whole line in the message."""
    with pytest.raises(NpuError, match="cannot parse") as caught:
        chips_npu_smi.parse_info(sample("info_910B3_1card_23.0.1.txt").replace("| 4     910B3 ", "| %s 910B3 " % ("9" * 4301)))
    assert len(caught.value.message) < 1000


def test_fields():
    fields = chips_npu_smi.parse_fields(sample("info-t-board_910B_25.5.1.txt"))
    assert fields["Firmware Version"] == "7.8.0.6.201"
    assert fields["PCI Device ID"] == "0xD802"
    assert fields["PCIe Bus Info"] == "0000:C1:00.0"


@pytest.mark.parametrize(
    "text, place",
    [
        # As the source of npu-smi prints it, and as its documentation for 950 does.
        ("\tChip Physical ID              :7\n\tChip Logic ID   :1\n\tNPU ID         :32832\n\tChip ID  :1\n", (32832, 1)),
        ("Chip Phy-ID                   :0\nNPU ID         :0\nSlot ID        :0\nChip ID        :0\n", (0, 0)),
    ],
)
def test_place(text, place):
    assert chips_npu_smi.parse_place(text) == place


@pytest.mark.parametrize("text", ["", "NPU ID : 3\n", "NPU ID : x\nChip ID : 0\n"])
def test_other_answers_about_a_place(text):
    with pytest.raises(NpuError, match="phyid-remap printed something unexpected: (nothing|NPU ID)"):
        chips_npu_smi.parse_place(text)


# --- exit statuses ---


@pytest.mark.parametrize(
    "code, status",
    [(-8001, 191), (-8002, 190), (-8005, 187), (-8008, 184), (-8012, 180), (-8020, 172), (-8255, 193), (-9005, 211)],
)
def test_status_is_the_code_modulo_256(code, status):
    error = chips_npu_smi.failure("npu-smi info", status, "")
    assert error.details["npu_smi"]["dcmi_code"] == code
    assert str(code) in error.message


def test_printed_code_counts_before_the_status():
    error = chips_npu_smi.failure("npu-smi info", 1, sample("fail_8020_device_used.txt"))
    assert error.details["npu_smi"]["dcmi_code"] == -8020
    assert "busy" in error.message


def test_a_query_that_no_card_answers():
    """npu-smi returns the same as for a command that it does not know."""
    error = chips_npu_smi.failure("npu-smi info", 211, sample("fail_9005_board_type.txt"))
    assert error.details["npu_smi"]["dcmi_code"] == -9005
    assert "no card that npu-smi knows" in error.message and "that the whole driver is mounted" in error.message


def test_inner_error_does_not_claim_a_wedge():
    message = chips_npu_smi.failure("npu-smi info", 187, sample("fail_8005_newer_driver.txt")).message
    assert "possible causes are" in message.lower()
    assert "ret is -8005" in message


def test_unknown_status():
    error = chips_npu_smi.failure("npu-smi info", 3, "what?")
    assert error.details["npu_smi"]["dcmi_code"] is None
    assert error.message == "npu-smi info failed with status 3. Its output: what?"


# --- the program ---


@pytest.fixture
def smi(host):
    host.chips(2)
    host.link("driver", host.release("a"))
    return npu_smi(host)


def npu_smi(host, **limits):
    """With limits that no machine is too slow for."""
    limits = dict({"timeout": 300, "lock_wait": 300}, **limits)
    return chips_npu_smi.NpuSmi(host.root + "/driver", lock=host.fs + "/run/npuops/npu-smi.lock", fallbacks=(), **limits)


def test_info_finds_its_libraries(smi, host):
    assert len(smi.info()["chips"]) == 2
    assert host.calls == ["npu-smi info"]


def test_failure_of_the_program(smi, host):
    host.npu_smi(0, status=187)
    with pytest.raises(NpuError, match="-8005"):
        smi.info()


def test_hang_ends_at_the_limit(smi, host):
    host.set("hang")
    with pytest.raises(NpuError, match="hangs") as caught:
        npu_smi(host, timeout=1).info()
    assert caught.value.details["npu_smi"]["status"] is None
    # It could be killed, so the next one is let in.
    host.unset("hang")
    assert smi.info()


def test_no_second_one_beside_one_that_cannot_be_killed(smi, host):
    """A process in state D keeps the lock it inherited; the kernel lets go of it only when the process ends."""
    smi.info()
    smi = npu_smi(host, lock_wait=0.2)
    host.forget_calls()
    with open(smi.lock, "r+", encoding="utf-8") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        held.truncate()
        held.write("%.2f 30.00\n" % (time.clock_gettime(time.CLOCK_BOOTTIME) - 310))
        held.flush()
        with pytest.raises(NpuError, match="running for 3[0-9]{2} s, which exceeds its limit of 30 s") as raised:
            smi.info()
    assert host.calls == [] and not isinstance(raised.value, NoVerdict)


@pytest.mark.parametrize("signed", [True, False])
def test_one_that_is_at_work_is_no_verdict(smi, host, signed):
    """Our own playbooks also call npu-smi, and a slow one takes its time: it hangs when its time is over, not before."""
    smi.info()
    smi = npu_smi(host, lock_wait=0.2)
    host.forget_calls()
    with open(smi.lock, "r+", encoding="utf-8") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        held.truncate()
        if signed:
            held.write("%.2f 3000.00\n" % (time.clock_gettime(time.CLOCK_BOOTTIME) - 20))
        else:
            os.utime(smi.lock, (time.time(),) * 2)  # it has just got it, by the clock of this process
        held.flush()
        with pytest.raises(NoVerdict, match="has been running for .*Try again"):
            smi.info()
    assert host.calls == []


def test_one_that_is_at_work_is_waited_for(smi):
    """As long as it may take."""
    smi.info()
    held = take_lock(smi.lock)
    smi._sign(held, smi.timeout)
    timer = threading.Timer(0.5, os.close, [held])
    timer.start()
    assert smi.info()
    timer.join()


def test_the_lock_says_since_when_and_for_how_long(smi, host):
    host.program(host.root + "/driver/tools/npu-smi", "#!/bin/sh\ncat %s\n" % smi.lock)
    since, limit = map(float, smi.run("info").split())
    # It is written with two digits.
    assert -0.01 <= time.clock_gettime(time.CLOCK_BOOTTIME) - since < 3600 and limit == smi.timeout


def test_the_program_inherits_the_lock(smi, host):
    """A process that it leaves behind keeps the next one out, also when no caller waits for it any more."""
    host.program(host.root + "/driver/tools/npu-smi", "#!/bin/sh\nsleep 3000 &\necho $!\n")
    left = int(smi.run("info"))
    try:
        assert take_lock(smi.lock) is None
    finally:
        os.kill(left, signal.SIGKILL)


def test_there_is_no_program(host):
    with pytest.raises(NpuError, match="This host has no npu-smi"):
        chips_npu_smi.NpuSmi(host.root + "/driver", fallbacks=()).info()


def test_program_of_another_machine(smi, host):
    host.program(host.root + "/driver/tools/npu-smi", "\x7fELF not really")
    with pytest.raises(NpuError, match="cannot be started"):
        smi.info()


@pytest.mark.parametrize(
    "failure",
    [
        OSError(errno.EMFILE, "Too many open files"),
        OSError(errno.ENOSPC, "No space left on device"),
        BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"),
        OSError(errno.ENOMEM, "Cannot allocate memory", "npu-smi"),
        # What tempfile says of a full disk.
        FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']"),
    ],
)
def test_what_keeps_it_from_starting_is_no_verdict(smi, monkeypatch, failure):
    def run(*args, **kwargs):
        raise failure

    monkeypatch.setattr(chips_npu_smi.host_command, "run", run)
    with pytest.raises(NoVerdict, match="cannot be started"):
        smi.info()


def test_no_room_for_its_output_is_no_verdict(smi, host):
    """A table that breaks off because the disk is full looks like one that the driver broke off. RLIMIT_FSIZE is a small disk."""
    full = "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (%d, %d))\n"
    code = full + (
        "from ansible_collections.npuops.ascend.plugins.module_utils._chips import npu_smi\n"
        "from ansible_collections.npuops.ascend.plugins.module_utils._host import errors\n"
        "try: npu_smi.NpuSmi(%r, lock=%r, fallbacks=()).info()\n"
        "except errors.NoVerdict as exc: print(exc)"
    )
    size = os.path.getsize(host.fake + "/npu-smi.out") // 2
    result = python_of_a_host(code % (size, size, smi.tree, smi.lock))
    assert "There is no space for the output of" in result.stdout, result.stderr


@pytest.mark.parametrize("script", ["kill -KILL $$", "kill -TERM $$", "exit 137", "echo ret is -8003; exit 189"])
def test_killed_or_out_of_memory_is_no_verdict(smi, host, script):
    host.program(host.root + "/driver/tools/npu-smi", "#!/bin/sh\n%s\n" % script)
    with pytest.raises(NoVerdict, match="killed by SIG|out of memory"):
        smi.info()


@pytest.mark.parametrize("script", ["kill -SEGV $$", "kill -ABRT $$", "exit 139"])
def test_a_crash_is_a_verdict(smi, host, script):
    """With a broken driver or library, each npu-smi crashes. It is no shortage, which ends."""
    host.program(host.root + "/driver/tools/npu-smi", "#!/bin/sh\n%s\n" % script)
    with pytest.raises(NpuError, match=r"npu-smi info crashed \(SIG(SEGV|ABRT)\). Check dmesg") as raised:
        smi.info()
    assert not isinstance(raised.value, NoVerdict)


def test_a_damaged_tree_is_a_verdict(smi, host):
    host.program(host.root + "/driver/tools/npu-smi", "\x7fELF not really")
    with pytest.raises(NpuError) as raised:
        smi.info()
    assert not isinstance(raised.value, NoVerdict)


def test_place_of_packages(host):
    host.chips(1)
    place = host.fs + "/usr/local/sbin/npu-smi"
    host.program(place, "#!/bin/sh\ncat %s/npu-smi.out\n" % host.fake)
    smi = chips_npu_smi.NpuSmi(host.root + "/driver", lock=host.fs + "/run/npuops/lock", fallbacks=("/nowhere", place))
    assert len(smi.info()["chips"]) == 1


def test_the_firmware_of_each_chip_of_a_card(smi, host):
    """As on an Atlas 300I Duo: the board of a card says nothing of its single chips."""
    host.set("npu-smi.out", sample("info-t-board-c0_910A_23.0.5.txt"))
    listed = [{"npu": npu, "chip": chip} for npu, chip in ((0, 0), (1, 0), (1, 1))]
    assert smi.firmware(listed) == ["7.1.0.7.220"] * 3
    assert [call[len("npu-smi info -t board ") :] for call in host.calls] == ["-i 0", "-i 1 -c 0", "-i 1 -c 1"]
    host.set("npu-smi.out", "NPU ID : 0\n")
    assert smi.firmware(listed[:1]) == ["NA"]


@pytest.mark.parametrize(
    "card, version", [("cat %s" % os.path.join(FIXTURES, "info-t-board_910B_25.5.1.txt"), "7.8.0.6.201"), ("exit 193", "NA")]
)
def test_firmware_that_only_the_card_tells(smi, host, card, version):
    """Real output of a 910B1; its card may have no board, and then the version is unknown."""
    chip = os.path.join(FIXTURES, "info-t-board-c0_910B1_firmware_NA.txt")
    host.program(host.root + "/driver/tools/npu-smi", '#!/bin/sh\ncase "$*" in *" -c "*) cat %s ;; *) %s ;; esac\n' % (chip, card))
    assert smi.firmware([{"npu": 1, "chip": 0}, {"npu": 1, "chip": 1}]) == [version] * 2


def test_board(smi, host):
    host.set("npu-smi.out", sample("info-t-board_910B_25.5.1.txt"))
    assert smi.board(0)["Software Version"] == "25.5.1"
    assert host.calls == ["npu-smi info -t board -i 0"]
