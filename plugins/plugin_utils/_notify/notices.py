# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What people who do not watch a run are notified of: that it begins, waits for them, fails on a node, and ends."""

from __future__ import annotations

import collections
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import one_line, printable
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.and_more import and_more
from ansible_collections.npuops.ascend.plugins.plugin_utils._report.rollout_report import Report

BEGIN, APPROVAL, FAILURE, END = "begin", "approval", "failure", "end"
_MOST_NAMES = 20
_LONGEST_LINE = 600


class Notice(NamedTuple):
    event: str  # one of the words above
    run: str
    reason: str  # upgrade, rollback or recovery
    lines: tuple[str, ...]  # each without control characters, and bounded
    counts: dict[str, int]  # of nodes, by outcome


def begin(run: str, reason: str, nodes: Collection[str], versions: Mapping[str, Any]) -> Notice:
    """:param versions: of the driver that each node gets, by node"""
    to = sorted({str(version) for version in versions.values() if version})
    text = "%s of %s begins: %s" % (reason.capitalize(), _number(len(nodes)), and_more(sorted(nodes), _MOST_NAMES))
    return _notice(BEGIN, run, reason, [text, *(["To: %s" % ", ".join(to)] if to else [])], {"due": len(nodes)})


def approval(run: str, reason: str, node: str, sentence: str) -> Notice:
    return _notice(APPROVAL, run, reason, ["%s: %s" % (node, sentence)], {"awaiting-approval": 1})


def failure(run: str, reason: str, node: str, outcome: str, why: str) -> Notice:
    return _notice(FAILURE, run, reason, ["%s: %s: %s" % (node, outcome, why)], {outcome: 1})


def end(report: Report) -> Notice:
    counts = dict(collections.Counter(node["outcome"] for node in report["nodes"]))
    lines = [
        "%s ended: %s"
        % (report["reason"].capitalize(), ", ".join("%d %s" % (counts[word], word) for word in sorted(counts)) or "nothing due")
    ]
    if report["halted"]:
        lines.append("Halted since %s: %s" % (report["halted"]["when"], report["halted"]["why"]))
    if report["approve"]:
        lines.append("To approve: %s" % report["approve"])
    if report["go_on"]:
        lines.append("To continue: %s" % report["go_on"])
    return _notice(END, report["run"], report["reason"], lines, counts)


def _notice(event: str, run: str, reason: str, lines: Collection[str], counts: dict[str, int]) -> Notice:
    shown = tuple(printable(one_line(line), _LONGEST_LINE) for line in lines)
    return Notice(event, run, reason, shown, counts)


def _number(count: int) -> str:
    return "1 node" if count == 1 else "%d nodes" % count
