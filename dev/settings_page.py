# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints docs/settings.md: every variable, as the argument specs of the roles and options.yml of the playbooks document it."""

from __future__ import annotations

import json
import pathlib
import re
from collections.abc import Iterator
from typing import Any

import yaml

CHECKOUT = pathlib.Path(__file__).resolve().parent.parent
HEAD = """\
# Settings

Every variable that you may set, with its type and default. Set them in the inventory, for example in
[group_vars/npu_nodes.yml](../inventory/group_vars/npu_nodes.yml), or with `-e` for one run. Any other variable that begins with
`npu_` is refused as misspelt. Values of `npu_upgrade_` and `npu_heal_` may be strings, as on the command line and in surveys; an
empty string stands for the default.

This page is written from the argument specs of the roles by `make settings`; do not edit it.
"""


def page() -> str:
    parts = [HEAD]
    parts += section("Playbooks", "Variables of the playbooks that belong to no role.", options_of_playbooks())
    seen: dict[str, str] = {}
    for role in sorted(path.parent.parent.name for path in (CHECKOUT / "roles").glob("*/meta/argument_specs.yml")):
        spec = read(CHECKOUT / "roles" / role / "meta" / "argument_specs.yml")["argument_specs"]["main"]
        own = {name: option for name, option in spec["options"].items() if name not in seen}
        shared = sorted(name for name in spec["options"] if name in seen)
        seen.update(dict.fromkeys(own, role))
        intro = spec["short_description"] + "."
        if shared:
            intro += " Also takes %s." % ", ".join("[`%s`](#%s)" % (name, seen[name]) for name in shared)
        parts += section(role, intro, own)
    return "\n".join(parts)


def section(title: str, intro: str, options: dict[str, Any]) -> list[str]:
    lines = ["## %s" % title, "", intro, "", "| variable | type | default | meaning |", "| --- | --- | --- | --- |"]
    return [*lines, *rows(options), ""]


def rows(options: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for name, option in options.items():
        inner = option.get("options") or {}
        default = "" if inner or option.get("default") in (None, "") else "`%s`" % json.dumps(option["default"]).strip('"')
        kind = option["type"] + (" of %s" % option["elements"] if "elements" in option else "")
        yield "| `%s%s` | %s | %s | %s |" % (prefix, name, kind, default, meaning(option))
        yield from rows(inner, prefix + name + ".")


def meaning(option: dict[str, Any]) -> str:
    text = option["description"]
    text = " ".join(" ".join(text if isinstance(text, list) else [text]).split())
    if "choices" in option:
        text += " One of %s." % ", ".join("`%s`" % choice for choice in option["choices"])
    return plain(text).replace("|", "\\|")


def plain(text: str) -> str:
    """Ansible's markup as Markdown."""
    text = re.sub(r"\bO\((?:[\w.]+#\w+:(?:\w+:)?)?([^)]*)\)", r"`\1`", text)
    text = re.sub(r"\b(?:M|P)\(([\w.]+)(?:#\w+)?\)", r"`\1`", text)
    text = re.sub(r"\b(?:C|V|RV|E)\(([^)]*)\)", r"`\1`", text)
    return re.sub(r"\bU\(([^)]*)\)", r"<\1>", text)


def options_of_playbooks() -> dict[str, Any]:
    return read(CHECKOUT / "plugins" / "plugin_utils" / "_settings" / "options.yml")["options"]


def read(path: pathlib.Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    print(page(), end="")
