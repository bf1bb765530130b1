# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.module_utils._chips import port_losses
from hypothesis import given
from hypothesis import strategies as st

STATES = st.dictionaries(
    st.integers(0, 99).map(str),
    st.tuples(st.sampled_from(["UP", "DOWN", "-"]), st.sampled_from(["-", "10.0.0.1", "10.0.0.2"])).map(" ".join),
)


@given(STATES, STATES)
def test_what_is_as_before_is_not_worse(before, more):
    assert port_losses.worse(before, before) == []
    assert port_losses.worse(before, dict(more, **before)) == []
