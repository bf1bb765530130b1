# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The boot script that creates the recorded virtual NPUs, run by every shell there is."""

from __future__ import annotations

import os
import shutil
import subprocess
import time

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._vnpu import vnpu_record
from ansible_collections.npuops.ascend.plugins.module_utils._vnpu.vnpu import Vnpu
from ansible_collections.npuops.ascend.plugins.module_utils._vnpu.vnpu_record import Record

from support.host.fake_host import FILES
from support.host.vnpu_smi import VnpuSmi
from support.patience import PATIENCE

SHELLS = [shell for shell in (["bash", "--posix"], ["busybox", "sh"], ["dash"]) if shutil.which(shell[0])]
A, B = Vnpu(0, 100, "vir04"), Vnpu(1, 118, "vir02")


@pytest.fixture
def smi(tmp_path):
    for path in ("dev", "run/npuops"):
        (tmp_path / path).mkdir(parents=True)
    for number in range(2):
        (tmp_path / "dev" / ("davinci%d" % number)).touch()
        (tmp_path / "dev" / ("davinci%d" % number)).chmod(0o660)
    return VnpuSmi(tmp_path / "tree", tmp_path / "dev")


def run(fs, shell=("sh",)):
    return subprocess.run(
        [*shell, os.path.join(FILES, "npu-vnpu"), str(fs / "tree"), str(fs / "tree/tools/npu-smi")],
        env=dict(os.environ, NPU_HOST_ROOT=str(fs), NPU_VNPU_PAUSE="0"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=PATIENCE,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_what_is_missing_is_created(tmp_path, smi, shell):
    vnpu_record.write(Record([A, B], [Vnpu(0, 101, "vir02")], (Vnpu(1, 119, "vir02"),)), str(tmp_path))
    smi.has(tuple(A))
    result = run(tmp_path, shell)
    assert (result.returncode, result.stdout) == (0, "")
    assert smi.vnpus == [tuple(A), tuple(B)]
    assert smi.changes == ["set -t create-vnpu -i 41 -c 0 -f vir02 -v 118"]
    assert (tmp_path / "dev/vdavinci118").stat().st_mode & 0o777 == 0o660


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_what_a_change_had_yet_to_destroy_makes_room(tmp_path, smi, shell):
    """The driver's own recovery brings back all that there was when the host went down."""
    old = Vnpu(0, 101, "vir04_3c")
    vnpu_record.write(Record([A, Vnpu(0, 102, "vir04_3c")], [old]), str(tmp_path))
    smi.has(tuple(A), tuple(old))
    result = run(tmp_path, shell)
    assert (result.returncode, result.stdout) == (0, "")
    assert smi.vnpus == [tuple(A), (0, 102, "vir04_3c")]


def test_what_cannot_be_destroyed_is_told(tmp_path, smi):
    vnpu_record.write(Record([], [A]), str(tmp_path))
    smi.has(tuple(A))
    smi.change(used=[100])
    result = run(tmp_path)
    assert result.returncode == 1
    assert result.stdout == "virtual NPU 100 of chip 0 could not be destroyed: destroy vnpu 100 failed. \n"


def test_nothing_is_recorded(tmp_path, smi):
    assert run(tmp_path).returncode == 0
    assert smi.state["calls"] == []


def test_a_failure_is_told(tmp_path, smi):
    vnpu_record.write(Record([A, B], []), str(tmp_path))
    smi.change(broken=118)
    result = run(tmp_path)
    assert result.returncode == 1
    assert result.stdout == "virtual NPU 118 (vir02) of chip 1 could not be created: create vnpu failed. \n"
    assert len(smi.changes) == 6


def test_the_lock_tells_how_long_it_is_held(tmp_path, smi):
    """Others take it for one that hangs, if what it says is of an npu-smi of before."""
    lock = tmp_path / "run/npuops/npu-smi.lock"
    lock.write_text("1 30\n", encoding="ascii")
    vnpu_record.write(Record([A], []), str(tmp_path))
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert run(tmp_path).returncode == 0
    since, limit = lock.read_text(encoding="ascii").split()
    assert int(since) >= int(before) and limit == "30"


def test_a_last_line_without_an_end(tmp_path, smi):
    path = tmp_path / vnpu_record.PATH.lstrip("/")
    path.parent.mkdir(parents=True)
    path.write_text("0 100 vir04\n1 118 vir02", encoding="ascii")
    assert run(tmp_path).returncode == 0
    assert smi.vnpus == [tuple(A), tuple(B)]


def test_a_damaged_record(tmp_path, smi):
    path = tmp_path / vnpu_record.PATH.lstrip("/")
    path.parent.mkdir(parents=True)
    for line in ("0 100\n", "0 1x0 vir04\n", "0 100 vir04 -g 1\n", "destroy 0 -v vir04\n", "destroy 0\n"):
        path.write_text(line, encoding="ascii")
        result = run(tmp_path)
        assert result.returncode == 1
        assert "has a line that is not a virtual NPU" in result.stdout
    assert smi.state["calls"] == []
