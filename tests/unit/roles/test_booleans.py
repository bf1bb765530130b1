# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A boolean from a command line (-e key=false) or a survey is a text, and true to Jinja unless it passes the filter bool.

The argument specs of roles check such a variable; they do not change it. Modules convert their own options.
"""

from __future__ import annotations

import jinja2
import pytest
import yaml
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import spec_defaults
from jinja2 import nodes

from support.paths import CHECKOUT

FILES = sorted(
    path
    for pattern in ("playbooks/**/*.yml", "roles/*/tasks/*.yml", "roles/*/vars/*.yml", "roles/*/templates/*.j2")
    for path in CHECKOUT.glob(pattern)
)
CONDITIONS = ("when", "that", "failed_when", "changed_when", "until")


class Loader(yaml.SafeLoader):
    """Any tag is a text."""


Loader.add_multi_constructor("!", lambda loader, _suffix, node: loader.construct_scalar(node))


def booleans():
    """The variables that a user may set, and those that only hand one of them on."""
    return {name for name in spec_defaults.known_variables() if spec_defaults.option(name).get("type") == "bool"} | {
        "__npu_component_enabled"
    }


def texts(value, key="", conditions=False):
    """(key, template, whether it is a condition) of each text."""
    if isinstance(value, str):
        yield key, value, conditions
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from texts(inner, str(name), str(name) in CONDITIONS)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner, key, conditions)


def uses(node, parents=()):
    """(name, its parents in the syntax tree, the nearest one first) of each variable."""
    if isinstance(node, nodes.Name):
        yield node.name, parents
    for child in node.iter_child_nodes():
        yield from uses(child, (node, *parents))


def is_converted(parents, whole, condition):
    """Whether the variable passes the filter bool, or is all that a module or another variable gets."""
    for parent in parents:
        if isinstance(parent, nodes.Filter) and parent.name == "bool":
            return True
        if isinstance(parent, nodes.Test) and parent.name in ("defined", "undefined", "none"):
            return True
        if not (isinstance(parent, nodes.Filter) and parent.name == "default"):
            return isinstance(parent, nodes.Output) and whole and not condition
    return False


def wrong(names, text, key="", condition=False):
    """The variables in a template that are not converted."""
    tree = jinja2.Environment().parse("{{ %s }}" % text if condition else text)
    whole = bool(key) and len(tree.body) == 1 and isinstance(tree.body[0], nodes.Output) and len(tree.body[0].nodes) == 1
    return [name for name, parents in uses(tree) if name in names and not is_converted(parents, whole, condition)]


def test_every_boolean_is_converted_where_it_decides():
    names, found, seen = booleans(), [], set()
    for file in FILES:
        content = file.read_text(encoding="utf-8")
        parts = [("", content, False)] if file.suffix == ".j2" else texts(yaml.load(content, Loader))
        for key, text, condition in parts:
            seen |= {name for name in names if name in text}
            found += ["%s: %s in %s" % (file.relative_to(CHECKOUT), name, text) for name in wrong(names, text, key, condition)]
    assert found == [], "\n".join(found)
    assert len(seen) > 20  # the others are read by filters


@pytest.mark.parametrize(
    ("text", "key", "condition", "is_wrong"),
    [
        ("not npu_upgrade_auto", "when", True, True),
        ("npu_upgrade_auto", "when", True, True),
        ("npu_upgrade_auto | default(false, true)", "when", True, True),
        ("npu_upgrade_auto | default(false, true) | bool", "when", True, False),
        ("npu_upgrade_auto is defined", "when", True, False),
        ("{{ npu_upgrade_auto }}", "auto", False, False),
        ("{{ npu_upgrade_auto | default(omit) }}", "auto", False, False),
        ("{{ 1 if npu_upgrade_auto else 2 }}", "auto", False, True),
        ("{{ npu_upgrade_auto | ternary(1, 2) }}", "auto", False, True),
        ("{{ {'auto': npu_upgrade_auto} }}", "auto", False, True),
        ("{{ npu_upgrade_auto or other | bool }}", "auto", False, True),
        ("{% if npu_upgrade_auto %}x{% endif %}", "", False, True),
        ("{% if npu_upgrade_auto | bool %}x{% endif %}", "", False, False),
        ("{{ npu_upgrade_auto }}", "", False, True),
    ],
)
def test_what_is_found(text, key, condition, is_wrong):
    assert bool(wrong({"npu_upgrade_auto"}, text, key, condition)) is is_wrong
