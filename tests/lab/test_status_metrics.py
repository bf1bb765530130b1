# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The metrics of the status as Prometheus' own parser reads them, which is that of node_exporter. Needs no lab."""

from __future__ import annotations

import subprocess

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import fleet_metrics

from support.fleet.metrics import fleet, row
from support.fleet.reports import HALTED
from support.promtool import program

HOSTILE = ["", 'a"} 1\nb{c="', "a\\", '\\"', "\n# TYPE x gauge\n", "\r\u2028\x00", "\ud800", "中" * 4_000_000, "{{ 1 }}"]


def check(text):
    return subprocess.run([program(), "check", "metrics"], input=text.encode(), capture_output=True, check=False)


@pytest.mark.core
def test_the_parser_takes_them_whatever_nodes_are_called():
    rows = [row(f"npu-{number}") for number in range(100)] + [row("npu-0", "wedged")]
    parts = {text: {"wanted": 10**400, "allocatable": -(10**400)} for text in HOSTILE}
    rows += [
        row(text, "invalid", resource=text, vnpus=parts, step="upgrade-failed", awaiting_approval="rollout") for text in HOSTILE
    ]
    result = check(fleet_metrics.text(fleet(*rows, storm="many", halted=HALTED), 1795428000))
    # It prints what it finds fault with, also in names and texts.
    assert (result.returncode, result.stdout, result.stderr) == (0, b"", b"")


@pytest.mark.core
def test_it_finds_fault():
    assert check('npuops_fleet_x{node="a\n"} 1\n').returncode != 0
