# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever npu-smi prints about the health of a chip: a few codes of the documented form, or a sentence, in time."""

from __future__ import annotations

import re

from ansible_collections.npuops.ascend.plugins.module_utils._chips import chip_faults
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from hypothesis import given
from hypothesis import strategies as st

from support.properties import bounded, damaged, few, megabytes

TEXTS = [
    "\tHealth Status                  : OK\n\tError Code                     : NA\n\tError Information              : NA\n",
    "\tError Code                     : 80E01801 80C98009\n\tError Information              : node type=SOC\n\n\t   : sensor\n",
    "\tNPU ID                         : 0\n\tHealth                         : OK\n\tError Code                     : NA\n",
]


def check(text):
    try:
        with bounded():
            found = chip_faults.parse(text, 0, 0)
    except NpuError as exc:
        assert len(exc.message) < 200 and exc.message.isprintable()
        return
    assert len(found["codes"]) <= chip_faults.MOST_CODES and found["codes_left_out"] >= 0
    assert all(re.fullmatch(r"[0-9A-F]{4,8}", code) for code in found["codes"])
    told = chip_faults.told(found)
    assert told.isprintable() and len(told) < 400


@given(damaged(st.sampled_from(TEXTS), pieces=(" : ", "NA", "Error Code", "80E01801", "Chip ID")))
def test_a_damaged_answer_is_read_or_refused(text):
    check(text)


@few
@given(megabytes({"Error Code : 80E01801\n", "Error Code : ", "80E01801 ", " ", "FFFF ", ": "}))
def test_megabytes_are_read_or_refused_in_time(text):
    check(text)
