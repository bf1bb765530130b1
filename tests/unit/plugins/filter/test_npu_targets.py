# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.filter.npu_targets import npu_targets

from support.fleet.preflight import host, judge

LABEL = "npuops.ascend/firmware-version"


@pytest.mark.parametrize(
    ("registered", "labels"),
    [
        ({"__npu_validation": {"version": "25.5.0", "firmware_version": "7.8.0.5.216"}}, {LABEL: "7.8.0.5.216"}),
        ({"__npu_validation": {"version": "25.5.0", "firmware_version": None}}, {LABEL: None}),
        # Check mode does not validate, and so knows nothing to remove.
        ({"__npu_validation": {"skipped": True, "changed": False}}, {}),
        ({}, {}),
    ],
)
def test_what_the_chips_run(registered, labels):
    preflight = {
        "hosts": {verdict.name: verdict.result() for verdict in judge([host("a")])},
        "components": {"namespace": "npu-operator", "device_plugin": True, "exporter": True, "node_agent": True, "noded": False},
    }
    (node,) = npu_targets(preflight, ["a"], {"a": registered})["labels"]
    assert {name: value for name, value in node["labels"].items() if name == LABEL} == labels
