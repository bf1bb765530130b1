# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A variable that is present without a value: each is refused by its name, or is the same as one that is not there."""

from __future__ import annotations

import jinja2
import pytest
import yaml
from ansible.errors import AnsibleFilterError
from ansible_collections.npuops.ascend.plugins.filter.npu_hosts import npu_hosts
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import no_value, spec_defaults, valid_settings
from jinja2 import nodes

from support.paths import CHECKOUT

FILES = sorted(
    path
    for pattern in ("playbooks/**/*.yml", "roles/*/tasks/*.yml", "roles/*/vars/*.yml", "roles/*/templates/*.j2")
    for path in CHECKOUT.glob(pattern)
)
CONDITIONS = ("when", "that", "failed_when", "changed_when", "until")
# Filters of the collection for which None is as an empty text, and tests of Jinja.
TAKE_NONE = ("bool", "npuops.ascend.npu_mirrored", "npuops.ascend.npu_mindcluster")
# What only playbooks set.
NOT_FOR_USERS = ("_leftovers", "_crds", "npu_driver_other_kernels")


def may_be_empty():
    return spec_defaults.known_variables() - no_value.need_value()


class Loader(yaml.SafeLoader):
    """Any tag is a text."""


Loader.add_multi_constructor("!", lambda loader, _suffix, node: loader.construct_scalar(node))


def texts(value, key=""):
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from texts(inner, str(name))
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner, key)


def uses(node, parents=()):
    """(name, its parents in the syntax tree) of each variable in a template."""
    if isinstance(node, nodes.Name):
        yield node.name, parents
    for child in node.iter_child_nodes():
        yield from uses(child, (*parents, node))


def is_safe(name, parents, whole, condition):
    """Whether the expression is the same with None as without the variable."""
    parent = parents[-1]
    if any(isinstance(node, nodes.If) and node.test == nodes.Name(name, "load") for node in parents):
        return True
    if isinstance(parent, nodes.Filter) and isinstance(parent.node, nodes.Name) and parent.node.name == name:
        if parent.name != "default":
            return parent.name in TAKE_NONE
        # A module that gets None takes its own default, as with omit.
        omitted = isinstance(parent.args[0], nodes.Name) and parent.args[0].name == "omit" and whole
        in_comparison = isinstance(parent.args[0], nodes.Const) and parent.args[0].value is None
        return omitted or in_comparison or (len(parent.args) > 1 and parent.args[1].value is True)
    if isinstance(parent, nodes.Filter):
        return parent.name in ("default", *TAKE_NONE)
    if isinstance(parent, nodes.Output):
        return whole and not condition
    if isinstance(parent, (nodes.Or, nodes.Not)) or (
        isinstance(parent, nodes.CondExpr) and parent.test == nodes.Name(name, "load")
    ):
        return True
    # Lists and dictionaries for modules and filters, and what is compared first.
    return isinstance(parent, (nodes.Pair, nodes.Tuple, nodes.CondExpr))


def test_where_none_is_as_nothing_the_code_says_so():
    names, wrong, seen = may_be_empty(), [], set()
    for file in FILES:
        text = file.read_text(encoding="utf-8")
        for key, template in [("", text)] if file.suffix == ".j2" else texts(yaml.load(text, Loader)):
            condition = key in CONDITIONS
            tree = jinja2.Environment().parse("{{ %s }}" % template if condition else template)
            whole = len(tree.body) == 1 and isinstance(tree.body[0], nodes.Output) and len(tree.body[0].nodes) == 1
            for name, parents in uses(tree):
                if name in names and not name.endswith(NOT_FOR_USERS):
                    seen.add(name)
                    if not is_safe(name, parents, whole, condition):
                        wrong.append("%s: %s in %s" % (file.relative_to(CHECKOUT), name, template.strip()[:80]))
    assert wrong == [], "\n".join(wrong)
    assert len(seen) > 90  # the others are read by filters


@pytest.mark.parametrize("name", sorted(name for name in no_value.need_value() if not name.startswith(no_value.OF_OTHERS)))
def test_the_others_are_refused_by_name(name):
    with pytest.raises(AnsibleFilterError, match="^%s has no value. Leave it out for its default.*, or give it a value$" % name):
        npu_hosts(["a"], {"a": {name: None}})


def test_what_may_be_empty_is_as_if_it_was_not_there():
    names = may_be_empty()
    (host,) = npu_hosts(["a"], {"a": dict.fromkeys(names)}, credentials=True)
    assert host["config"] == {}
    for role in ("npu_upgrade", "npu_heal"):
        assert valid_settings.of_host(role, dict.fromkeys(names)) == valid_settings.of_host(role, {})


def test_every_variable_is_one_or_the_other():
    assert len(may_be_empty()) + len(no_value.need_value()) == len(spec_defaults.known_variables())
    awx = yaml.load((CHECKOUT / "roles/npu_awx/vars/main.yml").read_text(encoding="utf-8"), Loader)["__npu_awx_need_value"]
    assert sorted(awx) == sorted(name for name in no_value.need_value() if name.startswith("npu_awx_"))
