# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the wanted layout of a host to the vNPUs that are destroyed and created."""

from __future__ import annotations

import collections

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._vnpu import vnpu as chips_vnpu
from ansible_collections.npuops.ascend.plugins.module_utils._vnpu.vnpu import Vnpu

Plan = collections.namedtuple("Plan", "target destroy create leftovers")
Plan.__doc__ = """Lists of Vnpu: what the host is to have; what is destroyed and created; ``leftovers``: what exists, but is neither
recorded nor wanted. They are also in ``destroy``."""

# AICPUs of a chip that has vNPUs. Of most chips that have none, npu-smi shows one fewer.
_AICPUS = {"310P": 7}


def expand(layout, family, chips):
    """{chip: {template: count}} of a ``layout``: a list of {chips, templates}, as vnpu_layout.parse makes it.

    ``family``: the name of the chips' family, ``chips``: the numbers of the host's chips. Raises NpuError.
    """
    wanted = {}
    known = chips_vnpu.TEMPLATES.get(family, ())
    if layout and not known:
        raise NpuError(
            "The %s cannot be divided into virtual NPUs. Chips that can: %s" % (family, ", ".join(sorted(chips_vnpu.TEMPLATES)))
        )
    for number, rule in enumerate(layout, 1):
        head = "layout, entry %d: " % number
        for template, count in sorted(rule["templates"].items()):
            if template not in known:
                raise NpuError("%sthe %s has no template %s; it has %s" % (head, family, template, ", ".join(known)))
            if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= len(chips_vnpu.ids(family, 0)):
                limit = len(chips_vnpu.ids(family, 0))
                raise NpuError("%sthe number of %s must be between 1 and %d, not %s" % (head, template, limit, count))
        for chip in chips if rule.get("chips") is None else rule["chips"]:
            if chip not in chips:
                raise NpuError("%sthis host has no chip %s; its chips: %s" % (head, chip, _list(chips) or "none"))
            if chip in wanted:
                raise NpuError("%schip %d is in an earlier entry already" % (head, chip))
            wanted[chip] = dict(rule["templates"])
    return {chip: templates for chip, templates in wanted.items() if templates}


def plan(wanted, family, record, present):
    """The Plan. ``wanted``: from expand; ``record``: a vnpu_record.Record; ``present``: the Vnpus that exist.

    What is recorded or exists already keeps its ID. Nothing is planned for a host that neither has nor had a layout.
    """
    target = []
    for chip, templates in sorted(wanted.items()):
        target.extend(_target_of(chip, dict(templates), family, record.target, present))
    ours = record.target + record.leaving
    if not wanted and not ours:
        return Plan([], [], [], sorted(present))
    destroy = sorted(set(present) - set(target))
    leftovers = [vnpu for vnpu in destroy if vnpu not in ours]
    return Plan(sorted(target), destroy, sorted(set(target) - set(present)), leftovers)


def _target_of(chip, missing, family, recorded, present):
    """The Vnpus of one chip; ``missing``: {template: count}."""
    free = list(chips_vnpu.ids(family, chip))
    chosen = []
    kept = [vnpu for vnpu in recorded + sorted(set(present) - set(recorded)) if vnpu.chip == chip]
    for vnpu in kept:
        if missing.get(vnpu.template) and vnpu.id in free:
            missing[vnpu.template] -= 1
            free.remove(vnpu.id)
            chosen.append(vnpu)
    # vNPUs that are being destroyed may keep their IDs for a moment: other IDs are better, if there are any.
    taken = {vnpu.id for vnpu in present}
    free.sort(key=lambda number: (number in taken, number))
    for template, count in sorted(missing.items()):
        for dummy in range(count):
            if not free:
                raise NpuError("layout: chip %d would have more than %d virtual NPUs" % (chip, len(chips_vnpu.ids(family, chip))))
            chosen.append(Vnpu(chip, free.pop(0), template))
    return chosen


def check(target, family, chips, templates):
    """Raise NpuError unless each chip has the parts for its vNPUs in ``target``.

    ``chips``: {number: vnpu.Chip}, ``templates``: {name: parts}, both as npu-smi says.
    """
    for number in sorted({vnpu.chip for vnpu in target}):
        mine = [vnpu.template for vnpu in target if vnpu.chip == number]
        absent = sorted(set(mine) - set(templates))
        if absent:
            raise NpuError(
                "layout: chip %d has no template %s; npu-smi lists %s" % (number, _list(absent), _list(sorted(templates)) or "none")
            )
        for part, total in chips[number].parts.items():
            if part == "AICPU":
                total = max(total, _AICPUS.get(family, total + 1))
            needed = sum(templates[name][part] for name in mine)
            if needed > total:
                raise NpuError(
                    "layout: %s need %g %s, and chip %d has %d. Templates of this chip: %s"
                    % (_list(sorted(mine)), needed, part, number, total, _offers(templates, part))
                )


def describe(vnpus):
    """Phrases for people, such as "100 (vir04, chip 0)"."""
    return ", ".join("%d (%s, chip %d)" % (vnpu.id, vnpu.template, vnpu.chip) for vnpu in vnpus)


def _offers(templates, part):
    return ", ".join("%s (%g)" % (name, parts[part]) for name, parts in sorted(templates.items()))


def _list(items):
    return ", ".join(str(item) for item in items)
