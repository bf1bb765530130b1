# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kubernetes label selectors, matched here: one listing then answers every question about it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Object

_KEY = r"[A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?"
_VALUE = r"[-A-Za-z0-9_.]*"
_REQUIREMENT = re.compile(
    r"\s*(?:(?P<absent>!\s*(?P<absent_key>%(key)s))"
    r"|(?P<set_key>%(key)s)\s+(?P<set_op>in|notin)\s*\(\s*(?P<set_values>%(value)s(?:\s*,\s*%(value)s)*)\s*\)"
    r"|(?P<eq_key>%(key)s)\s*(?P<eq_op>==|=|!=)\s*(?P<eq_value>%(value)s)"
    r"|(?P<key>%(key)s))\s*(?:,|$)" % {"key": _KEY, "value": _VALUE}
)


# (key, operator, values)
Requirement = tuple[str, str, tuple[str, ...]]


class Selector:
    """A list of requirements, all of which must hold. Without any it matches nothing."""

    def __init__(self, requirements: Sequence[Requirement]) -> None:
        """``requirements``: list of (key, operator, values); operator is In, NotIn, Exists or DoesNotExist."""
        self._requirements = requirements

    def __bool__(self) -> bool:
        return bool(self._requirements)

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels (a dict) satisfy it."""
        return bool(self._requirements) and all(_holds(labels, *requirement) for requirement in self._requirements)


def parse(text: str | None, name: str) -> Selector:
    """The selector kubectl's ``-l`` would take, such as ``app=train,tier in (a,b),!debug``; blank: one that matches nothing.

    Raises NpuError naming the variable ``name``.
    """
    requirements, position, text = [], 0, (text or "").strip()
    while position < len(text):
        found = _REQUIREMENT.match(text, position)
        if not found:
            raise NpuError(
                "%s is not a label selector: %r cannot be read from %r on. It looks like kubectl's -l: app=train,"
                "tier in (a,b),!debug" % (name, text, text[position:])
            )
        requirements.append(_requirement(found.groupdict()))
        position = found.end()
    return Selector(requirements)


def _requirement(found: Mapping[str, str]) -> Requirement:
    if found["absent"]:
        return (found["absent_key"], "DoesNotExist", ())
    if found["set_key"]:
        operator = "In" if found["set_op"] == "in" else "NotIn"
        return (found["set_key"], operator, tuple(value.strip() for value in found["set_values"].split(",")))
    if found["eq_key"]:
        return (found["eq_key"], "NotIn" if found["eq_op"] == "!=" else "In", (found["eq_value"],))
    return (found["key"], "Exists", ())


def matches_object(selector: Object | None, labels: Mapping[str, str]) -> bool:
    """Whether labels match the ``selector`` field of an object (metav1.LabelSelector): {} matches all, None nothing."""
    if selector is None:
        return False
    requirements = [(key, "In", (value,)) for key, value in (selector.get("matchLabels") or {}).items()]
    requirements += [
        (entry["key"], entry["operator"], tuple(entry.get("values") or ())) for entry in selector.get("matchExpressions") or []
    ]
    return all(_holds(labels, *requirement) for requirement in requirements)


def _holds(labels: Mapping[str, str], key: str, operator: str, values: Collection[str]) -> bool:
    if operator == "In":
        return key in labels and labels[key] in values
    if operator == "NotIn":
        return labels.get(key) not in values
    return (key in labels) == (operator == "Exists")
