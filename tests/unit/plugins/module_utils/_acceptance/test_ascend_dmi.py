# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ascend-dmi prints, as Huawei's user guide shows it, and what only looks like it."""

from __future__ import annotations

import os
import subprocess

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._acceptance import ascend_dmi
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError

HEAD = "Summary:\n    Arch: aarch64\n    Mode: Atlas 800T A2\n    Time: 20251111-16:16:23\n \n"


def verdicts(text, level=2):
    return {found["name"]: (found["verdict"], found["seen"]) for found in ascend_dmi.findings(text, level)}


def test_all_items_of_a_diagnosis():
    text = HEAD + "Software:\n    cann:\n        PASS\n\nHardware:\n    driver:\n        HEALTH\n    network:\n        PASS\n"
    assert verdicts(text) == {
        "ascend-dmi cann": ("PASS", "PASS"),
        "ascend-dmi driver": ("PASS", "HEALTH"),
        "ascend-dmi network": ("PASS", "PASS"),
    }
    assert {found["level"] for found in ascend_dmi.findings(text, 3)} == {3}


@pytest.mark.parametrize(
    ("word", "verdict"),
    [
        ("PASS", "PASS"),
        ("HEALTH", "PASS"),
        ("WARN", "WARNING"),
        ("GENERAL_WARN", "WARNING"),
        ("IMPORTANT_WARN", "FAIL"),
        ("EMERGENCY_WARN", "FAIL"),
        ("FAIL", "FAIL"),
        ("SKIP", "UNKNOWN"),
        ("PASSED BY", "UNKNOWN"),
    ],
)
def test_each_word(word, verdict):
    assert verdicts(HEAD + "Hardware:\n    device:\n        %s\n" % word) == {"ascend-dmi device": (verdict, word)}


def test_what_is_wrong_is_told():
    text = (
        HEAD
        + "Hardware:\n    hbm:\n        FAIL\n        Device 3: 2 isolated pages\n        Device 5: x\n    aicore:\n        PASS\n"
    )
    assert verdicts(text)["ascend-dmi hbm"] == ("FAIL", "FAIL; Device 3: 2 isolated pages; Device 5: x")
    assert verdicts(text)["ascend-dmi aicore"][0] == "PASS"


def test_an_item_without_a_word():
    assert verdicts("Hardware:\n    hbm:\n    aicore:\n        PASS\n")["ascend-dmi hbm"] == ("UNKNOWN", "nothing")


@pytest.mark.parametrize("text", ["", "ascend-dmi: command not found\n", HEAD, "    hbm:\n        PASS\n", "Hardware: hbm PASS\n"])
def test_no_item(text):
    assert ascend_dmi.findings(text, 2) == []


def test_hostile_output_is_bounded():
    many = "Hardware:\n" + "".join(
        "    item%d:\n        FAIL\n%s" % (number, "        \x1b[2J{{ 7 }}\n" * 50) for number in range(500)
    )
    found = ascend_dmi.findings(many, 2)
    assert len(found) == 64 and max(len(entry["seen"]) for entry in found) < 400
    assert all("\x1b" not in entry["seen"] for entry in found)
    (found,) = ascend_dmi.findings("Hardware:\n    hbm:\n        FAIL\n        %s\n" % ("x" * 10**6), 2)
    assert len(found["seen"]) < 400


# --- the command ---


@pytest.fixture
def toolbox(tmp_path):
    directory = tmp_path / "usr/local/Ascend/toolbox"
    program = directory / "latest/Ascend-DMI/bin/ascend-dmi"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\necho "$VALUE $OTHER $*"\n')
    program.chmod(0o755)
    return directory


def printed(argv):
    return subprocess.run(argv, stdout=subprocess.PIPE, check=True, text=True).stdout


def test_the_scripts_of_toolbox_and_cann_are_read(tmp_path, toolbox):
    (toolbox / "set_env.sh").write_text("export VALUE=toolbox\n")
    (toolbox.parent / "ascend-toolkit").mkdir()
    (toolbox.parent / "ascend-toolkit/set_env.sh").write_text("export OTHER=cann\n")
    argv = ascend_dmi.command(str(toolbox), 3)
    assert printed(argv) == "toolbox cann --dg --se healthCheck,performanceCheck,stressTest -q\n"


def test_the_directory_of_cann_since_8_5(toolbox):
    """Beside one that an older CANN has left."""
    for name in ("ascend-toolkit", "cann"):
        (toolbox.parent / name).mkdir()
        (toolbox.parent / name / "set_env.sh").write_text("export OTHER=${OTHER}%s\n" % name)
    assert printed(ascend_dmi.command(str(toolbox), 2)) == " cann --dg --se healthCheck -q\n"
    assert printed(ascend_dmi.command_in_image(str(toolbox), 2, "/x")) == " cann --dg --se healthCheck -q\n"


def test_without_scripts(toolbox):
    argv = ascend_dmi.command(str(toolbox), 2)
    assert printed(argv) == "  --dg --se healthCheck -q\n"


def test_no_toolbox(tmp_path):
    with pytest.raises(NpuError, match="this host has no ascend-dmi .*npu_accept_toolbox"):
        ascend_dmi.command(str(tmp_path), 2)


def test_a_directory_in_which_another_user_could_replace_it(toolbox):
    (toolbox / "latest").chmod(0o777)
    with pytest.raises(NpuError, match="latest has the mode 0777, so .* is not run as root"):
        ascend_dmi.command(str(toolbox), 2)


@pytest.mark.parametrize("name", ["latest/Ascend-DMI/bin/ascend-dmi", "set_env.sh"])
@pytest.mark.parametrize("change", ["mode", "owner"])
def test_what_another_user_could_have_changed_is_not_run(toolbox, name, change):
    (toolbox / "set_env.sh").write_text("")
    path = toolbox / name
    if change == "mode":
        path.chmod(0o775)
    else:
        os.chown(path, 12345, 12345)
    with pytest.raises(NpuError, match="is not run as root: chown root:root"):
        ascend_dmi.command(str(toolbox), 2)
