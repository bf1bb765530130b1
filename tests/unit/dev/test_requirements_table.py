# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The versions that README.md promises are those of support.yml."""

from __future__ import annotations

import subprocess
import sys

from support.paths import CHECKOUT


def test_the_table_is_up_to_date():
    command = [sys.executable, "-B", str(CHECKOUT / "dev" / "requirements_table.py")]
    page = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert page == (CHECKOUT / "README.md").read_text(encoding="utf-8"), "run make requirements"


def test_it_has_the_newest_releases_and_their_end():
    text = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    rows = {line.split(" | ")[0].lstrip("| "): line for line in text.splitlines() if line.startswith("| ")}
    assert "| 1.24 or newer | 1.34 to 1.37 | 1.17 to 1.34 |" in rows["Kubernetes"] and "1.37: 2027-10-28" in rows["Kubernetes"]
    assert "| 1.7 or newer | 1.7 to 2.4 | 1.4 to 2.1 |" in rows["containerd"] and "2.4: 2027-05-16" in rows["containerd"]
    assert "1.33" not in rows["Kubernetes"]  # not tested


def test_it_has_what_the_controller_is_tested_with():
    rows = [line for line in (CHECKOUT / "README.md").read_text(encoding="utf-8").splitlines() if line.startswith("| tested |")]
    assert rows[0] == "| tested | 2.18 | 2026-11-30 | 3.11 | 6.0.0 | 24.2.0 |"
    assert rows[-1] == "| tested | 2.21 | 2028-05-31 | 3.14 | 6.6.0 | 37.0.2 |"
