# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A layout as people write it: which templates which chips are divided into."""

from __future__ import annotations

import json

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, printable
from ansible_collections.npuops.ascend.plugins.module_utils._vnpu.vnpu import TEMPLATE_NAMES

_MOST = 1024  # entries, and chips of one
_FORM = (
    "it must be a mapping of templates, such as {vir04: 1, vir04_3c: 1}, or a list of mappings with templates and chips, or [] for"
    " whole chips"
)


def parse(value):
    """A list of {chips, templates}; ``chips``: None for all. Raises NpuError.

    ``value``: such a list, in which chips may be missing; or only the templates, for all chips; or either of them as JSON text.
    """
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            raise NpuError("%s is no layout: %s" % (_shown(value), _FORM)) from None
    if isinstance(value, dict):
        return [{"chips": None, "templates": _templates("", value)}] if value else []
    if not isinstance(value, list) or len(value) > _MOST:
        raise NpuError("%s is no layout: %s" % (_shown(value), _FORM))
    return [_entry("entry %d: " % number, entry) for number, entry in enumerate(value, 1)]


def _entry(head, entry):
    if not isinstance(entry, dict) or not isinstance(entry.get("templates"), dict) or set(entry) - {"chips", "templates"}:
        raise NpuError("%s%s is not a mapping with templates and chips" % (head, _shown(entry)))
    chips = entry.get("chips")
    if chips is not None:
        if not isinstance(chips, list) or len(chips) > _MOST:
            raise NpuError("%schips is %s; it must be a list of numbers, as in /dev/davinciN" % (head, _shown(chips)))
        chips = [_number(head + "chip", chip) for chip in chips]
    return {"chips": chips, "templates": _templates(head, entry["templates"])}


def _templates(head, given):
    for name in given:
        if name not in TEMPLATE_NAMES:
            raise NpuError("%sthere is no template %s; there are %s" % (head, _shown(name), ", ".join(TEMPLATE_NAMES)))
    return {name: _number(head + "the number of " + name, count) for name, count in sorted(given.items())}


def _number(what, value):
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 6:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise NpuError("%s is %s; it must be a number" % (what, _shown(value)))
    return value


def _shown(value):
    return printable(str(value))[:80]


def of_vnpus(vnpus):
    """The layout, as ``parse`` makes it, of a host that has these ``vnpus`` (of vnpu.Vnpu)."""
    entries = {}
    for vnpu in sorted(vnpus):
        templates = entries.setdefault(vnpu.chip, {})
        templates[vnpu.template] = templates.get(vnpu.template, 0) + 1
    return [{"chips": [chip], "templates": templates} for chip, templates in sorted(entries.items())]


def counts(vnpus):
    """{chip: {template: count}} of ``vnpus`` (of vnpu.Vnpu), as vnpu_plan.expand makes it of a layout."""
    return {entry["chips"][0]: entry["templates"] for entry in of_vnpus(vnpus)}
