# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One host that is accepted, and one thing after the other that must keep it from that; on a host below a temporary directory."""

from __future__ import annotations

import json
import time

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._acceptance import diagnosis, history
from ansible_collections.npuops.ascend.plugins.module_utils._chips import chip_memory, pci
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError

from support.host.accepted_host import bad, calls, ended, hold, look
from support.host.healthy_host import BOOT
from support.patience import PATIENCE


def test_level_1_looks_and_runs_nothing(host):
    result = ended(host, 1)
    assert bad(result) == {} and len(result["findings"]) >= 20 and calls(host) == []
    assert (result["level"], result["driver"], result["firmware"], result["chips"]) == (1, "25.5.0", "7.8.0.6.201", 2)
    assert "chip_health" in {found["name"] for found in result["findings"]}


@pytest.mark.parametrize(
    ("health", "verdict"), [("Warning", "WARNING"), ("Alarm", "WARNING"), ("Critical", "FAIL"), ("UNKNOWN", "FAIL")]
)
def test_one_ill_chip_counts(host, health, verdict):
    """The host serves with the other one, so validate takes it."""
    host.health[1] = health
    host.firmware("7.8.0.6.201")
    assert host.validate().valid
    assert list(bad(ended(host, 1)).items()) == [("chip_health", (verdict, "NPU 1 chip 0 (0000:01:00.0): %s" % health))]


def test_a_chip_that_is_lost_counts(host):
    functions = pci.chip_functions(str(host.root / "sys/bus/pci/devices"))
    chip_memory.write({**chip_memory.of(functions), "0000:02:00.0": 1}, str(host.root) + chip_memory.PATH)
    verdict, seen = bad(ended(host, 1))["chip_count"]
    assert verdict == "FAIL" and seen.startswith("2 of 3 chips: 0000:02:00.0 is missing from the PCI bus")


def test_a_broken_host_is_not_loaded(host):
    (host.root / "dev/davinci1").unlink()
    result = ended(host)
    assert bad(result)["device_nodes"][0] == "FAIL" and calls(host) == []
    assert bad(result)["ascend-dmi"] == ("UNKNOWN", "not run, because the host does not pass level 1")


def test_a_check_that_is_ignored_does_not_keep_the_chips_from_being_tested(host):
    (host.root / "dev/davinci1").unlink()
    failed = set(bad(ended(host, 1)))
    result = ended(host, ignore=sorted(failed))
    assert set(bad(result)) == failed and calls(host) == ["ascend-dmi --dg --se healthCheck -q"]


def test_level_2_has_both_in_one_result(host):
    result = ended(host)
    assert bad(result) == {} and calls(host) == ["ascend-dmi --dg --se healthCheck -q"]
    assert {found["level"] for found in result["findings"]} == {1, 2}
    assert diagnosis.waiting(str(host.root)) is None


def test_level_3(host):
    assert bad(ended(host, 3)) == {} and calls(host) == ["ascend-dmi --dg --se healthCheck,performanceCheck,stressTest -q"]


@pytest.mark.parametrize("status", [0, 1])
def test_an_item_that_fails(host, status):
    """Whatever ascend-dmi then says with its exit status."""
    (host.fake / "hbm").write_text("        FAIL\n        Device 1: 3 pages\n")
    (host.fake / "status").write_text(str(status))
    assert bad(ended(host)) == {"ascend-dmi hbm": ("FAIL", "FAIL; Device 1: 3 pages")}


def test_a_diagnosis_that_fails_although_all_items_pass(host):
    (host.fake / "status").write_text("9")
    verdict, seen = bad(ended(host))["ascend-dmi"]
    assert verdict == "UNKNOWN" and seen.startswith("it ended with exit status 9: Summary: Arch: aarch64")


def test_a_diagnosis_that_says_nothing(host):
    program = host.toolbox / "latest/Ascend-DMI/bin/ascend-dmi"
    program.write_text("#!/bin/sh\necho 'libascend_hal.so: cannot open shared object file'\nexit 127\n")
    verdict, seen = bad(ended(host))["ascend-dmi"]
    assert verdict == "UNKNOWN" and "127: libascend_hal.so: cannot open" in seen


def test_a_connection_that_ends_starts_nothing_twice(host):
    (host.fake / "hold").touch()
    first = look(host, wait=0)
    assert first["state"] == "running" and first["result"] is None
    assert look(host, wait=0)["began"] == first["began"]
    (host.fake / "hold").unlink()
    result = ended(host)
    assert bad(result) == {} and result["began"] == first["began"] and len(calls(host)) == 1
    # The next one is another acceptance.
    ended(host)
    assert len(calls(host)) == 2


def test_the_answer_with_the_result_is_lost(host):
    """The diagnosis may have taken hours. A call that names its beginning gets its result again, and starts no other one."""
    (host.fake / "hold").touch()
    began = look(host, wait=0)["began"]
    (host.fake / "hold").unlink()
    result = ended(host)
    again = look(host, began=began)
    assert (again["state"], again["began"], again["result"]) == ("done", began, result)
    assert len(calls(host)) == 1 and len(history.read(str(host.root))) == 1
    ended(host, began="2020-01-01T00:00:00Z")
    assert len(calls(host)) == 2, "of another acceptance, the host knows nothing any more"


@pytest.mark.parametrize("text", ['{"began": "x", "result": 5}', '{"began": 7, "result": {}}', '{"result": {}}', "[]", ""])
def test_a_damaged_result_is_none(host, text):
    host.write(diagnosis.STATE[1:], text)
    assert diagnosis.ended("x", str(host.root)) is None


def test_another_level_waits_for_the_one_that_runs(host):
    (host.fake / "hold").touch()
    look(host, wait=0)
    for level in (1, 3):
        with pytest.raises(
            NpuError, match="level 2 has been running on this host since .* systemctl stop npuops-acceptance.service"
        ):
            look(host, level)
    (host.fake / "hold").unlink()
    end = time.monotonic() + PATIENCE
    while (host.fake / "unit").read_text() != "0\n":
        assert time.monotonic() < end
        time.sleep(0.02)
    assert ended(host, 1)["level"] == 1
    # What was not asked for any more is kept.
    assert [entry["level"] for entry in history.read(str(host.root))] == [1, 2]


def test_a_host_that_went_down_during_the_diagnosis(host):
    (host.fake / "hold").touch()
    look(host, wait=0)
    host.write("proc/sys/kernel/random/boot_id", BOOT.replace("7", "8", 1) + "\n")
    (host.fake / "hold").unlink()
    result = ended(host)
    assert bad(result)["ascend-dmi"] == ("UNKNOWN", "the host went down during the diagnosis")


def test_chips_in_use(host):
    hold(host, "davinci0")
    found = bad(ended(host))["ascend-dmi"]
    assert found[0] == "UNKNOWN" and "chips are in use: python train.py (process 100, davinci0)" in found[1] and calls(host) == []


def test_the_manager_alone_is_not_in_use(host):
    """The exporter and the device plugin always have it open."""
    hold(host, "davinci_manager")
    assert bad(ended(host)) == {}


def test_blocked_by_the_controller(host):
    found = bad(ended(host, blocked="not run, because pods on the node use NPUs: a/b"))["ascend-dmi"]
    assert found == ("UNKNOWN", "not run, because pods on the node use NPUs: a/b") and calls(host) == []


def test_no_toolbox(host):
    assert "this host has no ascend-dmi" in bad(ended(host, toolbox="/nowhere"))["ascend-dmi"][1]


def test_systemd_that_starts_nothing(host):
    (host.fake / "fail-systemd-run").touch()
    assert "ascend-dmi was not started: systemd-run: Failed" in bad(ended(host))["ascend-dmi"][1]
    (host.fake / "fail-systemd-run").unlink()
    assert bad(ended(host)) == {}


def test_no_chips(tmp_path, host):
    for path in (host.root / "sys/bus/pci/devices").iterdir():
        (path / "vendor").write_text("0x8086\n")
    for level in (1, 2):
        assert list(bad(ended(host, level))) == ["chips"] and calls(host) == []


def test_all_chips_are_lost(host):
    functions = pci.chip_functions(str(host.root / "sys/bus/pci/devices"))
    chip_memory.write(chip_memory.of(functions), str(host.root) + chip_memory.PATH)
    for path in (host.root / "sys/bus/pci/devices").iterdir():
        (path / "vendor").write_text("0x8086\n")
    for level in (1, 2):
        ((name, (verdict, seen)),) = bad(ended(host, level)).items()
        assert (name, verdict) == ("chip_count", "FAIL") and calls(host) == []
        assert seen.startswith("0 of 2 chips: 0000:00:00.0, 0000:01:00.0 are missing from the PCI bus")


def test_history_is_kept_and_bounded(host):
    host.health[1] = "Critical"
    host.firmware("7.8.0.6.201")
    for _number in range(22):
        history.add(ended(host, 1, keep=False), str(host.root))
    kept = history.read(str(host.root))
    assert len(kept) == 20 and kept[0]["verdict"] == "FAIL"
    assert [found["name"] for found in kept[0]["findings"]] == ["chip_health"]


@pytest.mark.parametrize("text", ["", "[]", '{"results": 5}', '{"results": ["x", null]}', "[" * 10**5])
def test_a_damaged_history_is_replaced(host, text):
    host.write(history.HISTORY[1:], text)
    ended(host, 1)
    assert [entry["level"] for entry in history.read(str(host.root))] == [1]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"level": "2", "boot_id": "x", "began": "y", "findings": []}',
        '{"level": 2}',
        '{"level": 2, "boot_id": "x", "began": "y", "findings": [], "image": 7}',
        '{"level": 2, "boot_id": "x", "began": "y", "findings": [], "image": {"name": "x", "pulls": "1", "pulled": false}}',
    ],
)
def test_a_damaged_state_is_no_acceptance(host, text):
    host.write(diagnosis.STATE[1:], text)
    assert bad(ended(host)) == {} and len(calls(host)) == 1


def test_check_mode_keeps_nothing_and_takes_nothing(host):
    ended(host, 1, keep=False)
    assert not (host.root / history.HISTORY[1:]).exists()
    (host.fake / "hold").touch()
    began = look(host, wait=0)["began"]
    (host.fake / "hold").unlink()
    assert ended(host, keep=False)["began"] == ended(host)["began"] == began and len(calls(host)) == 1


def test_the_result_is_data(host):
    json.dumps(ended(host))
