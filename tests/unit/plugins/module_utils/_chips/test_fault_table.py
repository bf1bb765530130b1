# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of fault codes is read as it is written: each line is a code, a level and words for people."""

from __future__ import annotations

import re

from ansible_collections.npuops.ascend.plugins.module_utils._chips import fault_table

from support.paths import CHECKOUT

SOURCE = (CHECKOUT / "plugins/module_utils/_chips/fault_table.py").read_text(encoding="utf-8")


def test_no_code_is_there_twice():
    """Python would take the last one."""
    codes = re.findall(r'^    "([^"]+)": \(', SOURCE, re.MULTILINE)
    assert len(codes) == len(set(codes)) == len(fault_table.CODES) > 80


def test_each_line():
    for code, (level, meaning) in fault_table.CODES.items():
        assert re.fullmatch(r"[0-9A-F]{8}", code)
        assert level in fault_table.LEVELS, code
        # It stands between parentheses in a phrase, in a label of a metric, and in a condition with 1024 characters.
        assert re.fullmatch(r"[A-Za-z0-9_ ,:()'/-]{10,90}", meaning), code
        assert meaning.count("(") == meaning.count(")") <= 1 and not meaning.endswith(".") and "  " not in meaning, code


def test_the_levels_are_in_the_order_of_the_device_plugin():
    """The worst fault of a chip decides what happens to it."""
    assert list(fault_table.LEVELS) == [
        "NotHandleFault",
        "SubHealthFault",
        "RestartRequest",
        "RestartBusiness",
        "FreeRestartNPU",
        "RestartNPU",
        "PreSeparateNPU",
        "SeparateNPU",
    ]
    assert tuple(fault_table.LEVELS)[: len(fault_table.KEPT)] == fault_table.KEPT
    assert re.fullmatch(r"MindCluster v\d+\.\d+\.\d+", fault_table.SOURCE)
