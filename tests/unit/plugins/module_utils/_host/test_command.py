# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs with a time limit, on kernels and Pythons that tell the end of a process, and on those that must be asked."""

from __future__ import annotations

import os
import subprocess
import time

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host import command


@pytest.fixture(params=["told", "asked"], name="way")
def _way(request, monkeypatch):
    if request.param == "asked":
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    return request.param


def test_the_exit_status_and_the_outputs(way):
    result = command.run(["sh", "-c", "echo out; echo err >&2; exit 3"], 60)
    assert (result.rc, result.stdout, result.stderr) == (3, "out\n", "err\n")


def test_a_program_that_a_signal_ends(way):
    assert command.run(["sh", "-c", "kill -TERM $$"], 60).rc == -15


def test_a_program_that_takes_too_long_is_killed(way, tmp_path):
    begun = time.monotonic()
    result = command.run(["sh", "-c", "echo $$ > %s; echo begun; exec sleep 600" % (tmp_path / "pid")], 0.5)
    assert result.timed_out and result.stdout == "begun\n" and time.monotonic() - begun < 300
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text(encoding="utf-8")), 0)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="only where the kernel tells the end of a process")
def test_the_end_of_a_program_is_not_asked_for(monkeypatch):
    def sleep(seconds):
        raise AssertionError("slept for %s s" % seconds)

    monkeypatch.setattr(subprocess.time, "sleep", sleep)
    assert command.run(["sleep", "0.2"], 60).rc == 0
