# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a playbook returns to its caller, such as a workflow of AWX: its outcome, in a few lines of JSON.

It is stored with each job and becomes variables of the jobs after it, so it stays small whatever the size of the fleet.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ansible_collections.npuops.ascend.plugins.plugin_utils._record import verdict as maintenance_verdict
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import rollout_report
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import status as report_status

MOST = 50


def of_install(preflight: dict[str, Any]) -> dict[str, Any]:
    """Of the result of npu_preflight."""
    counts = {"ready": len(preflight["ready"]), "no chip": len(preflight["no_chip"])}
    return _with_names({"counts": counts}, ready=preflight["ready"])


def of_plan(plan: dict[str, Any]) -> dict[str, Any]:
    """Of the result of npu_plan."""
    stuck = [
        name
        for name, host in plan["hosts"].items()
        if host["verdict"] in (maintenance_verdict.BLOCKED, maintenance_verdict.UNREACHABLE)
    ]
    result = {
        "green": plan["green"],
        "summary": plan["summary"],
        "counts": {verdict: count for verdict, count in plan["counts"].items() if count},
        "estimate_seconds": plan["estimate_seconds"],
        "halted": bool(plan["halted"]),
    }
    return _with_names(result, due=plan["order"], stuck=stuck)


def of_report(report: dict[str, Any]) -> dict[str, Any]:
    """Of the ``report`` of npu_report: a rollout or recoveries."""
    nodes = report["nodes"]
    result = {
        "run": report["run"],
        "reason": report["reason"],
        "counts": _counts(node["outcome"] for node in nodes),
        "halted": bool(report["halted"]),
        "go_on": report["go_on"],
        "approve": report["approve"] if len(rollout_report.awaiting(nodes)) <= MOST else None,
    }
    unfinished = [node["node"] for node in rollout_report.unfinished(nodes)]
    return _with_names(result, unfinished=unfinished, awaiting=[node["node"] for node in rollout_report.awaiting(nodes)])


def failed(rollout: object) -> bool:
    """Whether what ``of_report`` made says that nodes failed. What a job that was cancelled left does not."""
    return isinstance(rollout, dict) and bool(rollout.get("unfinished") or rollout.get("halted"))


def of_recovery(report: dict[str, Any] | None) -> dict[str, Any]:
    """Of the ``report`` of npu_report, or of None where no node was unwell."""
    return of_report(report) if report else _with_names({"reason": "recovery", "counts": {}}, unfinished=[], awaiting=[])


def of_fleet(fleet: dict[str, Any]) -> dict[str, Any]:
    """Of the result of npu_status."""
    rows = fleet["fleet"]
    not_well = [row["node"] for row in rows if row["host"] and not report_status.healthy(row)]
    result = {"healthy": not not_well, "counts": _counts(row["state"] for row in rows), "storm": fleet.get("storm")}
    return _with_names(result, not_well=not_well)


KINDS = {
    "install": of_install,
    "plan": of_plan,
    "rollout": of_report,
    "recovery": of_recovery,
    "validation": of_fleet,
    "status": of_fleet,
}


def _counts(words: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for word in words:
        found[word] = found.get(word, 0) + 1
    return found


def _with_names(result: dict[str, Any], **lists: list[str]) -> dict[str, Any]:
    """``result`` with the lists of names, as many of each as are worth keeping; ``counts`` has the numbers."""
    return dict(result, **{key: names[:MOST] for key, names in lists.items()})
