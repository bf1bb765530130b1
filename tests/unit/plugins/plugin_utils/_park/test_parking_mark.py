# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The memory of a parked workload, where a user edited it."""

from __future__ import annotations

import json

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._park import parking_mark, workload_kinds

CUSTOM = workload_kinds.Kind("x.example", "v1", "things", "Thing", field=("spec", "size"), off=0)


@pytest.mark.parametrize("kind", [workload_kinds.BUILT_IN[1], CUSTOM])
@pytest.mark.parametrize("restore", [5, None, {"spec": 5}, {"spec": None}, {"metadata": {"x": 5}}])
def test_a_mark_that_names_no_field_of_spec_is_not_followed(kind, restore):
    """A merge patch with null or a number in the place of spec would remove all of it."""
    text = json.dumps({"run": "r", "since": "2026-11-21T12:00:00Z", "uid": "u", "restore": restore})
    metadata = {
        "name": "w",
        "namespace": "n",
        "uid": "u",
        "labels": {parking_mark.MARK: "true"},
        "annotations": {parking_mark.MARK: text},
    }
    with pytest.raises(parking_mark.Unreadable, match="cannot be read: it was edited"):
        parking_mark.Mark.read(workload_kinds.Workload(kind, {"metadata": metadata, "spec": {}}))
