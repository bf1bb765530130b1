# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import copy

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import waiting_acceptances

NOW = "2026-11-26T10:00:00Z"
FOUND = {"name": "chips", "level": 1, "verdict": "PASS", "seen": "8 x 910B", "advice": None, "ignored": False}
GOOD = {
    "host": "a",
    "boot_id": "b-1",
    "document": {
        "schema": 1, "node": "a", "level": 2, "verdict": "PASS", "began": NOW, "ended": NOW, "driver": None, "firmware": "7.8.0",
        "chips": 8, "findings": [FOUND],
    },
    "request": {"pod": "/reduce.yml", "timeout": 300, "dra_drivers": ["npu.huawei.com"], "ignored": False, "directory": None},
}  # fmt: skip


def test_what_the_module_returns():
    assert waiting_acceptances.read([GOOD]) == [GOOD]


@pytest.mark.parametrize("place, value", [
    ("document", None), ("document.node", "../x"), ("document.node", "a;b"), ("document.verdict", "FINE"), ("document.ended", "../../x"),
    ("document.level", 4), ("document.schema", 2), ("document.findings", [FOUND] * 301), ("document.findings", [dict(FOUND, ignored="no")]),
    ("document.findings", [dict(FOUND, seen="x" * 5000)]), ("boot_id", None), ("boot_id", "x" * 300), ("request.timeout", -1),
    ("request.pod", 7), ("request.ignored", "false"), ("request", {}), ("host", None),
])  # fmt: skip
def test_what_is_not_of_the_form(place, value):
    changed = copy.deepcopy(GOOD)
    *above, name = place.split(".")
    inside = changed
    for step in above:
        inside = inside[step]
    inside[name] = value
    with pytest.raises(NpuError, match="The results of npu_accept_node are not valid: acceptances.1."):
        waiting_acceptances.read([GOOD, changed])
