# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints README.md with its tables of versions regenerated from support.yml."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import yaml

CHECKOUT = pathlib.Path(__file__).resolve().parent.parent
README = CHECKOUT / "README.md"
SUPPORT = CHECKOUT / "plugins" / "plugin_utils" / "_mindcluster" / "support.yml"
BEGIN = "<!-- made of support.yml by `make requirements` -->\n"
END = "<!-- end -->\n"
DISTRIBUTIONS = {"openeuler": "openEuler", "kylin": "Kylin", "ubuntu": "Ubuntu"}

Table = dict[str, Any]


def release_cells(component: Table) -> list[str]:
    """What is supported, what the lab tests, what MindCluster names, and the end of life of each release that the lab tests."""
    lowest = numbers(component["tested"]["lowest"])
    ends = [f"{row['version']}: {row['end_of_life']}" for row in component["releases"] if numbers(row["version"]) >= lowest]
    tested, named = (f"{component[key]['lowest']} to {component[key]['highest']}" for key in ("tested", "mindcluster"))
    return [f"{component['minimum']} or newer", tested, named, "; ".join(ends)]


def system_cells(rows: list[Table]) -> list[str]:
    """What MindCluster names, and the end of life of what has a published one."""
    names = [f"{DISTRIBUTIONS.get(row['id'], row['id'])} {row['version']}" for row in rows]
    ends = [f"{name}: {row['end_of_life']}" for name, row in zip(names, rows, strict=True) if row["end_of_life"]]
    return ["", "", ", ".join(names), "; ".join(ends)]


# Title, key of support.yml, what makes the other cells of it.
ROWS: tuple[tuple[str, str, Callable[[Any], list[str]]], ...] = (
    ("Kubernetes", "kubernetes", release_cells),
    ("containerd", "containerd", release_cells),
    ("operating systems", "os", system_cells),
)


def numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def table(support: Table) -> str:
    lines = ["| | supported | tested on the lab | MindCluster names | end of life |", "| --- | --- | --- | --- | --- |"]
    lines += ["| %s |" % " | ".join([title, *cells(support[key])]) for title, key, cells in ROWS]
    return "".join(line.replace("|  ", "| ") + "\n" for line in lines)


def controller_table(ansible: Table) -> str:
    """What the controller needs, and with what the checks run."""
    ends = {row["version"]: row["end_of_life"] for row in ansible["releases"]}
    lines = [
        "| | ansible-core | its end of life | Python | kubernetes.core | Python package `kubernetes` |",
        "| --- | --- | --- | --- | --- | --- |",
        f"| supported | {ansible['minimum']} or newer | | {ansible['python']['minimum']} or newer "
        f"| `{ansible['kubernetes_core']}` | {ansible['kubernetes']['minimum']} or newer |",
    ]
    for row in ansible["tested"]:
        release = row["core"].rpartition(".")[0]
        lines.append(f"| tested | {release} | {ends[release]} | {row['python']} | {row['kubernetes_core']} | {row['kubernetes']} |")
    return "".join(line + "\n" for line in lines)


def page(readme: str, support: Table) -> str:
    before, begin, rest = readme.partition(BEGIN)
    _old, end, after = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"README.md has no lines {BEGIN.strip()} and {END.strip()}")
    return f"{before}{begin}\n{table(support)}\n{controller_table(support['ansible'])}\n{end}{after}"


if __name__ == "__main__":
    print(page(README.read_text(encoding="utf-8"), yaml.safe_load(SUPPORT.read_text(encoding="utf-8"))), end="")
