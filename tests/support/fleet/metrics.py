# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The text format of Prometheus, read as its documentation has it, and fleets for the metrics of the status."""

from __future__ import annotations

import re

from ansible_collections.npuops.ascend.plugins.plugin_utils._report import fleet_metrics

_VALUE = r"(?:[^\"\\\n]|\\[\\\"n])*"
_LABEL = r"[a-zA-Z_][a-zA-Z0-9_]*"
_SAMPLE = re.compile(rf'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{{({_LABEL}="{_VALUE}"(?:,{_LABEL}="{_VALUE}")*)\}})? (-?[0-9]+)')
_ESCAPED = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


def samples(text: str) -> dict[tuple, int]:
    """{(name, (label, value), ...): number}. Fails for what no parser takes, and for two samples with the same labels."""
    assert text.endswith("\n")
    text.encode("utf-8")
    found, typed = {}, set()
    for line in text[:-1].split("\n"):
        if line.startswith("# "):
            kind, name, said = line[2:].split(" ", 2)
            assert kind == "HELP" or (kind, said, name in typed) == ("TYPE", "gauge", False), line
            typed |= {name} if kind == "TYPE" else set()
            continue
        parsed = _SAMPLE.fullmatch(line)
        assert parsed and parsed[1] in typed, line
        labels = re.findall(rf'({_LABEL})="({_VALUE})"', parsed[2] or "")
        key = (parsed[1], *((label, re.sub(r"\\.", lambda found: _ESCAPED[found[0]], value)) for label, value in labels))
        assert key not in found, line
        found[key] = int(parsed[3])
    return found


def row(node, state="ready", **fields):
    """As report_status.rows makes them."""
    made = {
        "host": node,
        "node": node,
        "state": state,
        "reason": None,
        "healthy": state in ("ready", "no chip"),
        "resource": "huawei.com/Ascend910",
        "allocatable": 8,
        "devices_expected": 8,
        "vnpus": {},
        "step": None,
        "awaiting_approval": None,
    }
    return dict(made, **fields)


def fleet(*rows, storm=None, halted=None, halt_known=True, rollouts=()):
    return fleet_metrics.Fleet(rows, storm, halted, halt_known, rollouts)
