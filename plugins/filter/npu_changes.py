# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: npu_changes
short_description: What kubernetes.core.k8s changed, in lines
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - M(kubernetes.core.k8s) tells of a list of objects only that something changed. This names the objects, and for
    those that were there already, in diff mode, each value that differs.
positional: definitions
options:
  _input:
    description: The registered result of M(kubernetes.core.k8s).
    type: dict
    required: true
  definitions:
    description: The text with the definitions that the module was given.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Tell what changed
  ansible.builtin.debug:
    msg: "{{ applied | npuops.ascend.npu_changes(definitions) }}"
"""

RETURN = r"""
_value:
  description: One line per object or value.
  type: list
  elements: str
"""

import yaml

# What every write changes.
_NOISE = ("status", "metadata.managedFields", "metadata.resourceVersion", "metadata.generation", "metadata.uid")
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def npu_changes(applied, definitions):
    """See DOCUMENTATION."""
    objects = [item for item in yaml.safe_load_all(definitions) if item]
    # For a single object, the module returns its result without the list.
    results = [applied] if len(objects) == 1 else (applied.get("result") or {}).get("results") or []
    lines = []
    for item, result in zip(objects, results):
        name = "/".join(filter(None, [item["metadata"].get("namespace"), item["metadata"]["name"]]))
        label = "%s %s" % (item["kind"], name)
        if result.get("error"):
            # Only in check mode: the namespace is not there yet.
            lines.append("create " + label)
        elif result.get("changed"):
            lines.extend(_lines(label, result))
    return lines


def _lines(label, result):
    if result.get("method") == "delete":
        return ["remove " + label]
    diff = result.get("diff") or {}
    if "kind" in (diff.get("after") or {}):
        # Of an object that is there, only what differs is shown.
        return ["create " + label]
    before, after = _flat(diff.get("before") or {}), _flat(diff.get("after") or {})
    return ["change " + label] + [
        "  %s: %s -> %s" % (path, before.get(path, "(none)"), after.get(path, "(none)"))
        for path in sorted(set(before) | set(after))
        if before.get(path) != after.get(path)
    ]


def _flat(value, path=""):
    """A nested object as {dotted path: leaf}."""
    if path in _NOISE or path.endswith(_LAST_APPLIED):
        return {}
    if isinstance(value, dict):
        pairs = value.items()
    elif isinstance(value, list):
        pairs = enumerate(value)
    else:
        return {path: value}
    flat = {}
    for key, item in pairs:
        flat.update(_flat(item, "%s.%s" % (path, key) if path else str(key)))
    return flat


class FilterModule:
    """The filter above."""

    def filters(self):
        return {"npu_changes": npu_changes}
