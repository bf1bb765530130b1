# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._chips import hccn_pings, hccn_tool

from support.host.hccn import Hccn


@pytest.fixture
def hccn(tmp_path):
    return Hccn(tmp_path / "driver")


def tool(hccn, timeout=300):
    return hccn_tool.HccnTool(str(hccn.tree), timeout, lock=str(hccn.tree.parent / "lock"))


def test_results_in_order(hccn):
    hccn.ping(0, "10.20.0.12")
    hccn.ping(1, "10.20.0.13", received=0)
    results = hccn_pings.run([(0, "10.20.0.12"), (1, "10.20.0.13"), (1, "10.20.0.14")], tool(hccn), 3000)
    assert [(result["sent"], result["received"]) for result in results] == [(3, 3), (3, 0), (None, None)]
    assert results[0] == {"chip": 0, "address": "10.20.0.12", "sent": 3, "received": 3, "problem": None}
    assert "printed no result" in results[2]["problem"]


def test_the_time_is_limited(hccn):
    hccn.ping(0, "10.20.0.12")
    (result,) = hccn_pings.run([(0, "10.20.0.12")], tool(hccn), 0)
    assert result["received"] is None and "the 0 s for all pings were over" in result["problem"] and hccn.calls == []


def test_no_ping_after_one_that_hangs(hccn):
    hccn.mark(0, "ping-10.20.0.12", "hangs")
    results = hccn_pings.run([(0, "10.20.0.12"), (0, "10.20.0.13")], tool(hccn, timeout=1), 3000)
    assert len(hccn.calls) == 1 and all("did not end within 1 s" in result["problem"] for result in results)
