# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.plugin_utils._report import fleet_metrics, node_state
from hypothesis import given
from hypothesis import strategies as st

from support.fleet.metrics import fleet, row, samples
from support.properties import STRANGE

ANY = st.text(st.characters(exclude_categories=())) | st.text(st.sampled_from(STRANGE + 'a\n"\\{}=,#'))
NUMBER = st.integers(-(2**70), 2**70)
ROWS = st.builds(
    row,
    ANY,
    st.sampled_from(node_state.STATES),
    host=ANY | st.none(),
    resource=ANY,
    devices_expected=NUMBER | st.none(),
    allocatable=NUMBER,
    vnpus=st.dictionaries(ANY, st.fixed_dictionaries({"wanted": NUMBER, "allocatable": NUMBER})),
    step=st.sampled_from(["upgrade-failed", None]),
    awaiting_approval=st.sampled_from(["rollout", "recovery", None]),
)


@given(st.lists(ROWS, max_size=8))
def test_whatever_nodes_are_called_it_can_be_read(rows):
    found = samples(fleet_metrics.text(fleet(*rows), 0))
    assert sum(value for (name, *_labels), value in found.items() if name == "npuops_fleet_nodes") == len(rows)
