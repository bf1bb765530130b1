# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The JUnit file says what each test cost: in itself, in its children, and elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from xml.etree import ElementTree

from support.paths import TESTS

TEXT = """
import subprocess, sys, time
from support import costs

BURN = "import time\\nwhile time.process_time() < %s: pass"

def test_idle():
    time.sleep(0.6)

def test_itself():
    end = time.process_time() + 0.4
    while time.process_time() < end: pass

def test_a_child():
    subprocess.run([sys.executable, "-c", BURN % 0.4], check=True)

def test_elsewhere():
    costs.add(100)
"""


def test_every_second_is_counted_where_it_belongs(tmp_path):
    (tmp_path / "test_a.py").write_text(TEXT, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "support.cpu_of_tests", "-p", "no:cacheprovider", "--junitxml=junit.xml", "."]
    environ = {**os.environ, "PYTHONPATH": str(TESTS)}
    subprocess.run(command, cwd=tmp_path, env=environ, stdout=subprocess.PIPE, check=True)
    cases = ElementTree.parse(tmp_path / "junit.xml").getroot().iter("testcase")
    cpu = {case.get("name"): float(case.find("properties/property[@name='cpu']").get("value")) for case in cases}
    assert cpu["test_idle"] < 0.3 <= cpu["test_itself"]
    assert 0.4 <= cpu["test_a_child"] < 100 <= cpu["test_elsewhere"]
