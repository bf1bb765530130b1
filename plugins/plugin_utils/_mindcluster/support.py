# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What support.yml says of a host and the driver it is to get."""

from __future__ import annotations

import datetime
import functools
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import yaml
from ansible_collections.npuops.ascend.plugins.module_utils._run_package.version_info import compare, in_range
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import Facts
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import mindcluster

# One row of support.yml.
Row = dict[str, Any]


@functools.lru_cache(maxsize=1)
def table() -> dict[str, Any]:
    """The content of support.yml."""
    with open(os.path.join(os.path.dirname(__file__), "support.yml"), encoding="utf-8") as stream:
        return yaml.load(stream, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def judge(
    target_version: str,
    facts: Facts,
    node_info: Mapping[str, Any],
    firmware: str | None,
    declared: Sequence[str] | None,
    today: datetime.date | None = None,
    rows: dict[str, Any] | None = None,
) -> tuple[list[str], list[str]]:
    """(reasons, notes): what forbids the driver ``target_version`` there, and what a person should know.

    ``facts``: of npu_facts; ``node_info``: status.nodeInfo of the Node; ``firmware``: of the chips, or None;
    ``declared``: (lowest, highest) firmware that the driver on the host declares itself, or None; ``today``: a date.
    """
    rows = table() if rows is None else rows
    today = today or datetime.date.today()
    reasons: list[str] = []
    notes: list[str] = []
    _firmware(rows, target_version, facts, firmware, declared, today, reasons, notes)
    _operating_system(rows, facts, today, notes)
    kubelet = (node_info.get("kubeletVersion") or "").lstrip("v")
    _release(rows["kubernetes"], "Kubernetes", kubelet, today, notes)
    name, _separator, version = (node_info.get("containerRuntimeVersion") or "").partition("://")
    if name == "containerd":
        _release(rows["containerd"], "containerd", version.lstrip("v"), today, notes)
    note = cgroup_note(facts, node_info, rows)
    if note:
        notes.append(note)
    return reasons, notes


def judge_version_line(
    version_line: str,
    driver: str,
    family: str | None,
    today: datetime.date | None = None,
    rows: dict[str, Any] | None = None,
    deployed: bool = False,
) -> tuple[list[str], list[str]]:
    """(reasons, notes): whether MindCluster's ``version_line`` works with this version of the driver on chips of the ``family``.

    ``deployed``: it is what the cluster runs, not what the settings ask for.
    """
    rows = table() if rows is None else rows
    notes: list[str] = []
    known = [row for row in rows["mindcluster"] if family in row["families"]]
    row = _row(known, version_line, lambda _row: True)
    if row is None:
        return [], [
            "nothing is known of MindCluster %s on the %s; whether it works with driver %s was not checked"
            % (version_line, family, driver)
        ]
    _end_of_life(row, "MindCluster %s" % row["version"], today or datetime.date.today(), notes)
    supported = version_line_supports(version_line, driver, family, rows)
    if supported is None:
        notes.append("Huawei does not say whether MindCluster %s works with driver %s (%s)" % (version_line, driver, row["source"]))
    if supported is not False:
        return [], notes
    fitting = deployable(driver, family, rows)
    if fitting:
        advice = 'Set npu_mindcluster_version_line: "%s", which supports it' % fitting[-1]
        if deployed:
            advice += ", and run npuops.ascend.install first if this run leaves the components unchanged"
    else:
        advice = "No version line that this collection deploys supports it; set npu_driver_version to a driver that one supports"
    text = "MindCluster %s supports driver %s, not %s. %s (%s)"
    return [text % (version_line, ", ".join(row["drivers"]), driver, advice, row["source"])], notes


def deployable(driver: str, family: str | None, rows: dict[str, Any] | None = None) -> list[str]:
    """The version lines that this collection deploys and that support this version of the driver, the oldest first."""
    return [name for name in mindcluster.names() if version_line_supports(name, driver, family, rows)]


def version_line_supports(version_line: str, driver: str, family: str | None, rows: dict[str, Any] | None = None) -> bool | None:
    """Whether the version line supports this version of the driver. None if that is unknown: the table has no such version line
    for the ``family``, or no version line that supports the driver."""
    known = [row for row in (table() if rows is None else rows)["mindcluster"] if family in row["families"]]
    row = _row(known, version_line, lambda _row: True)
    if row is None:
        return None
    if _among(driver, row["drivers"]):
        return True
    return False if any(_among(driver, other["drivers"]) for other in known) else None


def drivers_of(version_line: str, family: str, rows: dict[str, Any] | None = None) -> list[str]:
    """The drivers that the version line supports on chips of the ``family``, as the table names them."""
    known = [row for row in (table() if rows is None else rows)["mindcluster"] if family in row["families"]]
    row = _row(known, version_line, lambda _row: True)
    return list(row["drivers"]) if row else []


def firmware_range(driver: str, family: str | None, rows: dict[str, Any] | None = None) -> Sequence[str] | None:
    """(lowest, highest) firmware that the table says this version of the driver works with, or None."""
    rows = table() if rows is None else rows
    row = _row(rows["driver"], driver, lambda row: family in row.get("families", [family]))
    return row["firmware"] if row else None


def numbers(version: str | None) -> tuple[int, int] | None:
    """The first two numbers of a version, with or without v; None if it has none."""
    match = re.match(r"v?([0-9]{1,9})\.([0-9]{1,9})", version or "")
    return (int(match.group(1)), int(match.group(2))) if match else None


def cgroup_note(facts: Facts, node_info: Mapping[str, Any], rows: dict[str, Any] | None = None) -> str | None:
    """What to know about a host with cgroup v1 whose kubelet by default refuses to start there; None otherwise."""
    row = (table() if rows is None else rows)["kubernetes"]["cgroup_v2"]
    kubelet = numbers(node_info.get("kubeletVersion"))
    if facts.get("cgroup_version") != 1 or not kubelet or kubelet < _pair(row["since"]):
        return None
    return (
        "has cgroup v1, where a kubelet of %s or newer refuses to start unless failCgroupV1 is false; this one runs. "
        "Move the host to cgroup v2 (%s)" % (row["since"], row["source"])
    )


def _firmware(
    rows: dict[str, Any],
    target_version: str,
    facts: Facts,
    firmware: str | None,
    declared: Sequence[str] | None,
    today: datetime.date,
    reasons: list[str],
    notes: list[str],
) -> None:
    family = (facts.get("family") or {}).get("name")
    row = _row(rows["driver"], target_version, lambda row: family in row.get("families", [family]))
    if row is None:
        notes.append("nothing is known of the driver %s in the support table; its firmware range was not checked" % target_version)
    elif row["end_of_life"]:
        _end_of_life(row, "driver %s" % row["version"], today, notes)
    bounds = declared or (row and row["firmware"])
    if not firmware or not bounds:
        return
    wrong = [version for version in re.split(r",\s*", firmware) if not in_range(version, *bounds)]
    if not wrong:
        return
    newer = [version for version in wrong if compare(version, bounds[1]) > 0]
    text = "the firmware of its chips is %s; driver %s works with %s to %s. %s" % (
        ", ".join(wrong),
        target_version,
        bounds[0],
        bounds[1],
        "Use a driver that works with it" if newer else "Upgrade the firmware first",
    )
    if row is None or declared:
        reasons.append(text)
    else:
        notes.append("%s (%s)" % (text, row["source"]))


def _operating_system(rows: dict[str, Any], facts: Facts, today: datetime.date, notes: list[str]) -> None:
    system = facts.get("os") or {}
    distribution = system.get("id")
    if not distribution:
        return
    candidates = [row for row in rows["os"] if row["id"] == distribution.lower()]
    row = _row(candidates, system.get("version_id") or "", lambda _row: True)
    if row is None:
        name = system.get("pretty_name") or "%s %s" % (distribution, system.get("version_id"))
        notes.append("runs %s, which Huawei does not list as supported (%s)" % (name, rows["os"][0]["source"]))
    else:
        _end_of_life(row, "%s %s" % (system["id"], row["version"]), today, notes)


def _release(component: dict[str, Any], name: str, version: str, today: datetime.date, notes: list[str]) -> None:
    if not version:
        return
    known = component["mindcluster"]
    if not _pair(known["lowest"]) <= _pair(version) <= _pair(known["highest"]):
        tested = component["tested"]
        if _pair(tested["lowest"]) <= _pair(version) <= _pair(tested["highest"]):
            ours = "this collection is tested with it"
        else:
            ours = "this collection is tested with %s to %s" % (tested["lowest"], tested["highest"])
        notes.append(
            "runs %s %s; MindCluster supports %s to %s (%s), %s"
            % (name, version, known["lowest"], known["highest"], known["source"], ours)
        )
    row = _row(component["releases"], version, lambda _row: True)
    if row is not None:
        _end_of_life(row, "%s %s" % (name, row["version"]), today, notes)


def _end_of_life(row: Row, name: str, today: datetime.date, notes: list[str]) -> None:
    if row["end_of_life"] and row["end_of_life"] < today:
        source = row.get("end_of_life_source", row["source"])
        notes.append("%s reached end of life on %s (%s)" % (name, row["end_of_life"], source))


def _row(rows: Iterable[Row], version: str, fits: Callable[[Row], bool]) -> Row | None:
    """The row for ``version``: the longest that it begins with."""
    found = [row for row in rows if fits(row) and _begins(version, str(row["version"]))]
    return max(found, key=lambda row: len(str(row["version"])), default=None)


def _among(version: str, prefixes: Iterable[str]) -> bool:
    return any(_begins(version, prefix) for prefix in prefixes)


def _begins(version: str, prefix: str) -> bool:
    version, prefix = version.lower(), prefix.lower()
    return version == prefix or (version.startswith(prefix) and not version[len(prefix)].isalnum())


def _pair(version: str) -> tuple[int, int]:
    return numbers(version) or (0, 0)
