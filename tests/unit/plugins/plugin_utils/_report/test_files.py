# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The three files of a report."""

from __future__ import annotations

import json
import os
import stat
import xml.etree.ElementTree as ET

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import files as report_files

from support.fleet import reports


def write(directory, report):
    where = report_files.paths(str(directory), report)
    report_files.write(where, report)
    return where


def test_all_three_in_a_directory_that_is_made(tmp_path):
    report = reports.halted()
    where = write(tmp_path / "new" / "reports", report)
    assert sorted(os.listdir(tmp_path / "new" / "reports")) == ["npu-upgrade-r1.html", "npu-upgrade-r1.json", "npu-upgrade-r1.xml"]
    with open(where["json"], encoding="utf-8") as stream:
        assert json.load(stream) == report
    assert ET.parse(where["xml"]).getroot().tag == "testsuites"
    assert ET.parse(where["html"]).getroot().tag == "html"
    assert {stat.S_IMODE(os.stat(path).st_mode) for path in where.values()} == {0o644}


def test_what_others_wrote_can_be_written(tmp_path):
    where = write(tmp_path, reports.hostile())
    assert {os.path.dirname(path) for path in where.values()} == {str(tmp_path)} and len(os.listdir(tmp_path)) == 3
    ET.parse(where["xml"]), ET.parse(where["html"])
    with open(where["json"], encoding="utf-8") as stream:
        assert json.load(stream) == reports.hostile()


def test_a_run_does_not_leave_the_directory(tmp_path):
    report = dict(reports.success(1), run="../../etc/x")
    assert os.listdir(tmp_path) == [] and write(tmp_path / "a", report)["json"] == str(
        tmp_path / "a" / "npu-upgrade-..-..-etc-x.json"
    )


def test_again(tmp_path):
    write(tmp_path, reports.halted())
    where = write(tmp_path, reports.success(2))
    with open(where["json"], encoding="utf-8") as stream:
        assert len(json.load(stream)["nodes"]) == 2


def test_a_relative_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert write("reports", reports.success(1))["html"] == str(tmp_path / "reports" / "npu-upgrade-r1.html")


def test_a_directory_that_is_a_file(tmp_path):
    (tmp_path / "reports").write_text("")
    with pytest.raises(NpuError) as info:
        write(tmp_path / "reports", reports.success(1))
    assert str(tmp_path / "reports") in info.value.message and "npu_upgrade_report_dir" in info.value.message
    assert "File exists" in info.value.message
