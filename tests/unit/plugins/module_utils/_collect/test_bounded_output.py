# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that print without end, and such as never end."""

from __future__ import annotations

import os
import pathlib
import time

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._collect.bounded_output import tail

from support.patience import PATIENCE


def test_all_of_a_short_output():
    result = tail(["sh", "-c", "echo one; echo two >&2"], PATIENCE, 1000)
    assert (result.rc, result.text, result.cut) == (0, "one\ntwo\n", False)


def test_the_end_of_a_long_output_in_whole_lines():
    result = tail(["sh", "-c", "seq 1000000; exit 3"], PATIENCE, 100)
    lines = result.text.splitlines()
    assert result.rc == 3 and result.cut and len(result.text) <= 100
    assert lines == [str(number) for number in range(1000001 - len(lines), 1000001)]


def test_a_line_whose_beginning_is_cut_off_is_left_out():
    """It could be the end of a secret whose name is no longer there."""
    assert tail(["printf", "password=aaaaaaaaaaaaaaaaaaaa"], PATIENCE, 10).text == ""


@pytest.mark.parametrize("script", ["echo begun; exec tail -f /dev/null", "echo begun; tail -f /dev/null & exit 0", "yes begun"])
def test_a_program_that_does_not_end(tmp_path, script):
    """Nor one whose child keeps the output open. Nothing of it is left."""
    pid = tmp_path / "pid"
    result = tail(["sh", "-c", "echo $$ >%s; %s" % (pid, script)], 0.5, 1000)
    assert result.rc is None and "begun\n" in result.text and len(result.text) <= 1000
    group = pid.read_text().strip()
    # Who was killed may need a moment to be gone, if it is no child of ours.
    end = time.monotonic() + PATIENCE
    while alive := [path for path in pathlib.Path("/proc").glob("[0-9]*/stat") if _group(path) == group]:
        assert time.monotonic() < end, alive
        time.sleep(0.05)


def _group(path):
    try:
        fields = path.read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return fields[2] if fields[0] != "Z" else None


def test_a_program_that_is_not_there():
    with pytest.raises(OSError):
        tail([os.devnull + "/none"], 1, 10)
