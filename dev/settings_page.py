# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes what is made of the argument specs of the roles and of options_without_role.yml: docs/settings.md, which has every
variable, and the defaults of the roles.
"""

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

Most fleets need the variables of the first two tables and no others. The sections after them have all variables.

This page is written from the argument specs of the roles by `make settings`; do not edit it.
"""
DEFAULTS_HEAD = """\
---
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Written from meta/argument_specs.yml by `make settings`; only a default that is not there, but said in words, is edited here. What
# each variable means stands there as well: ansible-doc -t role npuops.ascend.%s

"""
# After this line, the specs of the components have those options of the role npu_component that they take.
SHARED = "      # Written from the role npu_component by `make settings`.\n"
DAEMONSETS = ("npu_node_agent", "npu_device_plugin", "npu_exporter", "npu_noded")
LOGGING = ("npu_device_plugin", "npu_exporter", "npu_clusterd", "npu_noded", "npu_ascend_operator")
COMPONENTS = (*LOGGING, "npu_volcano", "npu_node_agent")
TAKERS = dict.fromkeys(
    (
        "npu_registry_mirror", "npu_image_pull_policy", "npu_image_pull_secrets", "npu_rollout_timeout", "npu_namespace",
        "npu_kubernetes_auth",
    ),
    COMPONENTS,
) | {
    "npu_mindcluster_version_line": (*LOGGING, "npu_volcano"),
    "npu_component_log_levels": LOGGING,
    "npu_component_log_max_age": LOGGING,
    "npu_component_log_max_backups": LOGGING,
    "npu_tolerations": DAEMONSETS,
    "npu_rollout_max_unavailable": DAEMONSETS,
}  # fmt: skip
# What a fleet is set up with, and upgraded with.
FIRST = {
    "For a first install": (
        "npu_driver_version", "npu_driver_repository", "npu_driver_source", "npu_node_agent_image", "npu_registry_username",
        "npu_registry_password", "npu_image_pull_secrets", "npu_registry_mirror",
    ),
    "For an upgrade": (
        "npu_driver_version", "npu_upgrade_auto", "npu_upgrade_max_parallel", "npu_upgrade_window", "npu_upgrade_on_blocked",
        "npu_upgrade_canary", "npu_upgrade_node_soak", "npu_upgrade_max_failures", "npu_upgrade_wait_for_jobs",
        "npu_upgrade_pod_deletion", "npu_upgrade_workloads", "npu_upgrade_report_dir",
    ),
}  # fmt: skip


def specs() -> dict[pathlib.Path, str]:
    """The argument specs of the components, with the options that they share."""
    source = (CHECKOUT / "roles" / "npu_component" / "meta" / "argument_specs.yml").read_text(encoding="utf-8")
    shared = {match[1]: match[0] for match in re.finditer(r"^      (\w+):\n(?:        .*\n)+", source, re.M)}
    assert set(shared) == set(TAKERS)
    files = {}
    for role in COMPONENTS:
        path = CHECKOUT / "roles" / role / "meta" / "argument_specs.yml"
        own = path.read_text(encoding="utf-8").partition(SHARED)[0]
        files[path] = own + SHARED + "".join(text for name, text in shared.items() if role in TAKERS[name])
    return files


def made() -> dict[pathlib.Path, str]:
    """The text of each file that is made of the argument specs."""
    files = {CHECKOUT / "docs" / "settings.md": page()}
    for role in roles_with_settings():
        path = role / "defaults" / "main.yml"
        options = main(role / "meta" / "argument_specs.yml")["options"]
        files[path] = DEFAULTS_HEAD % role.name + defaults(options, path.read_text(encoding="utf-8"))
    return files


def defaults(options: dict[str, Any], before: str) -> str:
    """The lines of defaults/main.yml after its head. ``before``: the file as it is, for what is in words in the specs."""
    lines = []
    for name, option in options.items():
        by_hand = re.search(r"^%s:.*\n(?: .*\n)*" % name, before, re.M)
        if "default" in option or "options" in option or not by_hand:
            value = {name: default_of(option)}
            lines.append(yaml.dump(value, Dumper=Plain, sort_keys=False, width=1000))
        else:
            lines.append(by_hand.group(0))
    return "".join(lines)


def default_of(option: dict[str, Any]) -> Any:
    """Of a dictionary it is documented key by key."""
    if "options" in option and "default" not in option:
        return {name: default_of(inner) for name, inner in option["options"].items()}
    return option.get("default")


class Plain(yaml.SafeDumper):
    """As the other files are written: strings that need quotation marks have double ones, and items of lists are indented."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def text_of(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    quoted = yaml.safe_dump(text)[0] in "'\""
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if quoted else None)


Plain.add_representer(str, text_of)


def page() -> str:
    roles = {role.name: main(role / "meta" / "argument_specs.yml") for role in roles_with_settings()}
    takers: dict[str, list[str]] = {}
    for role, spec in roles.items():
        for name in spec["options"]:
            takers.setdefault(name, []).append(role)
    every = dict(options_of_playbooks(), **{name: roles[takers[name][0]]["options"][name] for name in takers})
    common = {name: every[name] for name in sorted(takers) if len(takers[name]) > 1}
    parts = [HEAD]
    for title, names in FIRST.items():
        parts += [f"## {title}", "", "| variable | meaning |", "| --- | --- |"]
        parts += [f"| [`{name}`](#{anchor(name, takers, common)}) | {first_sentence(every[name])} |" for name in names] + [""]
    parts += section("Common", "Variables that several roles take.", common)
    parts += section("Playbooks", "Variables of the playbooks that belong to no role.", options_of_playbooks())
    for role, spec in roles.items():
        shared = [name for name in spec["options"] if name in common]
        intro = spec["short_description"] + "."
        if shared:
            intro += " Also takes %s of the [common variables](#common)." % ", ".join(f"`{name}`" for name in sorted(shared))
        own = {name: option for name, option in spec["options"].items() if name not in common}
        # A role may have nothing of its own.
        parts += section(role, intro, own) if own else [f"## {role}", "", intro, ""]
    return "\n".join(parts)


def roles_with_settings() -> list[pathlib.Path]:
    return sorted(path.parent for path in (CHECKOUT / "roles").glob("*/defaults"))


def main(path: pathlib.Path) -> dict[str, Any]:
    return read(path)["argument_specs"]["main"]


def anchor(name: str, takers: dict[str, list[str]], common: dict[str, Any]) -> str:
    """Of the section that has the variable."""
    return "common" if name in common else takers[name][0] if name in takers else "playbooks"


def first_sentence(option: dict[str, Any]) -> str:
    return re.split(r"(?<=[.])\s", meaning(option), maxsplit=1)[0]


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
    return read(CHECKOUT / "plugins" / "plugin_utils" / "_settings" / "options_without_role.yml")["options"]


def read(path: pathlib.Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    for make in (specs, made):  # the second reads what the first writes
        for path, text in make().items():
            path.write_text(text, encoding="utf-8")
