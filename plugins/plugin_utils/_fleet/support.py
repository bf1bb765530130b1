# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What support.yml says of a host and the driver it is to get."""

from __future__ import annotations

import datetime
import functools
import os
import re

import yaml
from ansible_collections.npuops.ascend.plugins.module_utils._driver.version_info import in_range


@functools.lru_cache(maxsize=1)
def table():
    """The content of support.yml."""
    with open(os.path.join(os.path.dirname(__file__), "support.yml"), encoding="utf-8") as stream:
        return yaml.safe_load(stream)


def judge(target_version, facts, node_info, firmware, declared, today=None, rows=None):
    """(reasons, notes): what forbids the driver ``target_version`` there, and what a person should know.

    ``facts``: of npu_facts; ``node_info``: status.nodeInfo of the Node; ``firmware``: of the chips, or None;
    ``declared``: (lowest, highest) firmware that the driver on the host declares itself, or None; ``today``: a date.
    """
    rows = table() if rows is None else rows
    today = today or datetime.date.today()
    reasons, notes = [], []
    _firmware(rows, target_version, facts, firmware, declared, today, reasons, notes)
    _operating_system(rows, facts, today, notes)
    kubelet = (node_info.get("kubeletVersion") or "").lstrip("v")
    _release(rows["kubernetes"], "Kubernetes", kubelet, today, notes)
    name, _separator, version = (node_info.get("containerRuntimeVersion") or "").partition("://")
    if name == "containerd":
        _release(rows["containerd"], "containerd", version.lstrip("v"), today, notes)
    return reasons, notes


def _firmware(rows, target_version, facts, firmware, declared, today, reasons, notes):
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
    text = "the firmware of its chips is %s; driver %s works with %s to %s. Upgrade the firmware first" % (
        ", ".join(wrong),
        target_version,
        bounds[0],
        bounds[1],
    )
    (reasons if declared else notes).append(text + ("" if declared else " (%s)" % row["source"]))


def _operating_system(rows, facts, today, notes):
    system = facts.get("os") or {}
    if not system.get("id"):
        return
    candidates = [row for row in rows["os"] if row["id"] == system["id"].lower()]
    row = _row(candidates, system.get("version_id") or "", lambda _row: True)
    if row is None:
        name = system.get("pretty_name") or "%s %s" % (system["id"], system.get("version_id"))
        notes.append("runs %s, which Huawei does not list as supported (%s)" % (name, rows["os"][0]["source"]))
    else:
        _end_of_life(row, "%s %s" % (system["id"], row["version"]), today, notes)


def _release(component, name, version, today, notes):
    if not version:
        return
    tested = component["tested"]
    if _numbers(version) > _numbers(tested["highest"]) or _numbers(version) < _numbers(tested["lowest"]):
        notes.append(
            "runs %s %s; MindCluster supports %s to %s (%s)"
            % (name, version, tested["lowest"], tested["highest"], tested["source"])
        )
    row = _row(component["releases"], version, lambda _row: True)
    if row is not None:
        _end_of_life(row, "%s %s" % (name, row["version"]), today, notes)


def _end_of_life(row, name, today, notes):
    if row["end_of_life"] and row["end_of_life"] < today:
        source = row.get("end_of_life_source", row["source"])
        notes.append("%s reached end of life on %s (%s)" % (name, row["end_of_life"], source))


def _row(rows, version, fits):
    """The row for ``version``: the longest that it begins with."""
    found = [row for row in rows if fits(row) and _begins(version, str(row["version"]))]
    return max(found, key=lambda row: len(str(row["version"])), default=None)


def _begins(version, prefix):
    version, prefix = version.lower(), prefix.lower()
    return version == prefix or (version.startswith(prefix) and not version[len(prefix)].isalnum())


def _numbers(version):
    match = re.match(r"(\d+)\.(\d+)", version)
    return (int(match.group(1)), int(match.group(2))) if match else (0, 0)
