# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prometheus' own tool of the distribution's package, which is not installed: what it says of the rules that are deployed."""

from __future__ import annotations

import pathlib
import subprocess
from typing import Any

import yaml

from support import debian
from support.paths import CHECKOUT

RULES = CHECKOUT / "roles" / "npu_node_agent" / "files" / "alerts.yml"


def program() -> pathlib.Path:
    return debian.file("prometheus", "usr/bin/promtool")


def rules_test(
    promtool: pathlib.Path, directory: pathlib.Path, series: dict[str, str], **tests: Any
) -> subprocess.CompletedProcess:
    """promtool test rules with a sample of each of `series` in a minute."""
    test = {
        "rule_files": [str(RULES)],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in series.items()],
                **tests,
            }
        ],
    }
    file = directory / "test.yml"
    file.write_text(yaml.safe_dump(test), encoding="utf-8")
    return subprocess.run([promtool, "test", "rules", file], capture_output=True, text=True, check=False)
