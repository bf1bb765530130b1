# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from support import controller

LONG = "x " * 80 + "end"


@pytest.fixture
def show(tmp_path):
    """What `ansible ... -m debug` prints of two lines, with a result format."""

    def run(result_format, lines=f"['first', '{LONG}']"):
        command = ["ansible", "localhost", "-m", "debug", "-a", f"msg={{{{ {lines} | npuops.ascend.npu_lines }}}}"]
        done = controller.run(command, tmp_path, more={"ANSIBLE_CALLBACK_RESULT_FORMAT": result_format})
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.mark.parametrize("result_format", ["json", "yaml"])
def test_no_line_is_broken(show, result_format):
    lines = [line.strip(' ",') for line in show(result_format).splitlines()]
    assert "first" in lines
    assert LONG in lines


@pytest.mark.parametrize("result_format", ["json", "yaml"])
def test_other_data_is_json_with_sorted_keys(show, result_format):
    text = "".join(show(result_format, "[dict(b=1, a=none)]").split())
    assert '[{"a":null,"b":1}]' in text


@pytest.mark.parametrize("result_format", ["json", "yaml"])
def test_a_text_is_one_line(show, result_format):
    assert "\n    first\n" in show(result_format, "'first'").replace('"msg": "first"', "first").replace("msg: first", "first")


@pytest.mark.parametrize("text", ["[1, 2]", "True"])
@pytest.mark.parametrize("result_format", ["json", "yaml"])
def test_a_text_that_looks_like_data_stays_a_text(show, result_format, text):
    shown = show(result_format, f"'{text}'")
    assert (f'"msg": "{text}"' if result_format == "json" else f"msg: '{text}'") in shown
