# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the health of chips means: the only place that judges it, for hosts, the controller and the node agent.

npu-smi has a word for the health of each chip. Chips with Warning or Alarm work: healthy 310B cards show Alarm for months. A chip
that is Critical, or whose word is unknown, does not serve; the device plugin withdraws single chips by their fault codes. So a node
serves as long as one of its chips does. Whether a driver is to blame for a chip that is not OK shows by comparison only: it is
worse than before.
"""

from __future__ import annotations

import re

from ansible_collections.npuops.ascend.plugins.module_utils._chips import chip_faults

OK = "OK"
# From the best to the worst; any other word, such as UNKNOWN, is worse than these.
_LEVELS = (OK, "Warning", "Alarm", "Critical")
_SERVING = _LEVELS[:-1]
_UNKNOWN = "UNKNOWN"
_WORD = re.compile(r"[A-Za-z0-9 _./-]{1,32}")


def view(listed):
    """What others need of the chips that npu-smi lists (``listed``: chips of NpuSmi.info), as {npu, chip, bus_id, health}."""
    return [
        {
            "npu": chip["npu"],
            "chip": chip["chip"],
            "bus_id": chip["bus_id"],
            "health": chip["health"] if _WORD.fullmatch(chip["health"]) else _UNKNOWN,
        }
        for chip in listed
    ]


def key(chip):
    """What identifies a chip across boots: its PCI address, and its number on the card, as two chips may share an address."""
    return "%(bus_id)s/%(chip)d" % chip


def by_key(chips):
    """{key: health} of ``chips`` (of ``view``), to compare with later."""
    return {key(chip): chip["health"] for chip in chips}


def serves(chip):
    """Whether the chip can run workloads."""
    return chip["health"] in _SERVING


def ill(chips):
    """The chips that are not OK."""
    return [chip for chip in chips if chip["health"] != OK]


def told(chips):
    """Those of ``chips`` that are not OK, with their fault codes, as a phrase for people; empty if all are OK."""
    return ", ".join("%s: %s%s" % (name(chip), chip["health"], chip_faults.told(chip)) for chip in ill(chips))


def worse(before, chips):
    """What is worse with ``chips`` (of ``view``) than ``before`` (of ``by_key``), as phrases.

    A chip of which it is not known how it was, as all if ``before`` is None, may have been as it is: see ``unknown``.
    """
    known, found = before or {}, []
    for chip in chips:
        was = known.get(key(chip))
        if was is not None and _rank(chip["health"]) > _rank(was):
            found.append("%s is %s, and was %s before" % (name(chip), chip["health"], was))
    gone = sorted(set(known) - set(by_key(chips)))
    return found + ["the chip %s is missing" % one.partition("/")[0] for one in gone]


def unknown(before, chips):
    """The chips that ``before`` (of ``by_key``, or None) says nothing of."""
    return [chip for chip in chips if key(chip) not in (before or {})]


def fewest(offers, chips):
    """The fewest devices that a node with ``chips`` (of ``view``) may offer, of each resource in ``offers`` ({resource: count}).

    Which of the chips that are not OK are withdrawn, the device plugin decides by their fault codes. ``offers`` has whole chips
    first; nothing says which virtual NPUs belong to which of the chips that npu-smi lists.
    """
    withdrawn = len(ill(chips))
    if not withdrawn:
        return dict(offers)
    whole = next(iter(offers), None)
    return {resource: max(0, count - withdrawn) if resource == whole else 0 for resource, count in offers.items()}


def _rank(health):
    return _LEVELS.index(health) if health in _LEVELS else len(_LEVELS)


def name(chip):
    """What messages call the chip."""
    return "NPU %(npu)d chip %(chip)d (%(bus_id)s)" % chip
