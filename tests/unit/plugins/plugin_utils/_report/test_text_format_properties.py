# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.plugin_utils._report.text_format import Gauge
from hypothesis import given
from hypothesis import strategies as st

from support.fleet.metrics import samples
from support.properties import STRANGE, bounded, few

ANY = st.text(st.characters(exclude_categories=())) | st.text(st.sampled_from(STRANGE + 'a\n"\\{}=,# \ud800'))


def parsed(labels, value=1):
    gauge = Gauge("npuops_fleet_x", "Says x.")
    for label in labels:
        gauge.set(value, node=label, state="ready")
    return samples("".join(line + "\n" for line in gauge.lines()))


@given(st.lists(ANY, min_size=1))
def test_any_label_can_be_read_and_ends_nothing(labels):
    found = parsed(labels)
    assert {key[0] for key in found} == {"npuops_fleet_x"} and {key[2] for key in found} == {("state", "ready")}
    assert set(found.values()) == {1} and len(found) <= len(set(labels))
    for label in labels:
        if label.isprintable() and len(label) < 250:
            assert ("npuops_fleet_x", ("node", label), ("state", "ready")) in found


@few
@given(st.integers(1, 4_000_000), st.sampled_from('a\n"\\\u4e2d'))
def test_a_label_is_bounded(length, letter):
    with bounded():
        ((_name, (_label, text), _state),) = parsed([letter * length])
    assert len(text) <= 256


@given(st.integers() | st.just(10**5000) | st.just(-(10**5000)))
def test_any_number_can_be_read(value):
    (found,) = parsed(["a"], value).values()
    assert abs(found) <= 2**53 and (abs(value) > 2**53 or found == value)
