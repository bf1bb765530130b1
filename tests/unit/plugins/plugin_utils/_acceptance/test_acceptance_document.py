# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdict on a node: which checks count, what people read, and that the document is what its schema says."""

from __future__ import annotations

import json

import jsonschema
import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._acceptance.verdicts import VERDICTS, finding, worst
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._acceptance import acceptance_document

from support.paths import CHECKOUT

SCHEMA = json.loads((CHECKOUT / "docs/accept.schema.json").read_text(encoding="utf-8"))
NOW = "2026-11-26T10:00:00Z"


def document(*findings, ignored=(), **changes):
    result = {
        "level": 2,
        "began": NOW,
        "ended": NOW,
        "driver": "25.5.0",
        "firmware": "7.8.0",
        "chips": 8,
        "findings": list(findings),
    }
    made = acceptance_document.of_result("npu-a", 2, {**result, **changes}, list(ignored))
    jsonschema.validate(made, SCHEMA)
    return made


@pytest.mark.parametrize(("verdicts", "verdict"), [
    (("PASS", "PASS"), "PASS"),
    (("PASS", "WARNING"), "WARNING"),
    (("UNKNOWN", "WARNING"), "UNKNOWN"),
    (("FAIL", "UNKNOWN", "PASS"), "FAIL"),
    ((), "UNKNOWN"),
])  # fmt: skip
def test_the_worst_one_counts(verdicts, verdict):
    findings = [finding("check", 1, one, "seen") for one in verdicts]
    assert document(*findings)["verdict"] == worst(findings) == verdict


def test_a_check_that_is_ignored_is_told_and_does_not_count():
    made = document(
        finding("a", 1, "PASS", "x"), finding("ascend-dmi network", 2, "FAIL", "no port"), ignored=["ascend-dmi network"]
    )
    assert made["verdict"] == "PASS"
    assert acceptance_document.lines(made) == [
        "npu-a: PASS at level 2 (8 chips, driver 25.5.0, firmware 7.8.0)",
        "  FAIL, ignored ascend-dmi network: No port.",
    ]


def test_all_checks_ignored_vouch_for_nothing():
    assert document(finding("a", 1, "PASS", "x"), ignored=["a"])["verdict"] == "UNKNOWN"


def test_what_did_not_pass_is_told_with_its_advice():
    made = document(
        finding("a", 1, "PASS", "x", "no"), finding("b", 1, "WARNING", "warm", "cool it"), driver=None, firmware=None, chips=0
    )
    assert acceptance_document.lines(made) == ["npu-a: WARNING at level 2", "  WARNING b: Warm. Cool it."]


def test_a_host_that_told_nothing():
    made = acceptance_document.without_result("npu-a", 1, NOW, "it is down")
    jsonschema.validate(made, SCHEMA)
    assert made["verdict"] == "UNKNOWN" and "UNKNOWN host: It is down." in acceptance_document.lines(made)[1]


def test_the_schema_knows_all_verdicts():
    assert SCHEMA["$defs"]["verdict"]["enum"] == list(VERDICTS)


def test_the_file(tmp_path):
    made = document(finding("a", 1, "PASS", "x"))
    path = acceptance_document.write(str(tmp_path / "new"), made)
    assert path == str(tmp_path / "new/npu-a-20261126T100000Z.json")
    assert json.loads((tmp_path / "new/npu-a-20261126T100000Z.json").read_text(encoding="utf-8")) == made


def test_a_directory_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(NpuError, match="npu_accept_dir"):
        acceptance_document.write(str(tmp_path / "file/below"), document(finding("a", 1, "PASS", "x")))
