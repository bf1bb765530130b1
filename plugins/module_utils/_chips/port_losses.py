# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the network ports of the chips have lost in a reboot: links and addresses, compared with before, not with perfection."""

from __future__ import annotations

_NONE = "-"


def by_chip(ports):
    """{chip: state} of ``ports`` (of hccn_ports.gather), to compare with later. A state is the link and the address, each - if the
    port has none or it is unknown: ``UP 10.64.11.10``.
    """
    return {"%d" % chip["chip"]: "%s %s" % (chip["link"] or _NONE, chip["address"] or _NONE) for chip in ports["chips"]}


def worse(before, now):
    """What is worse ``now`` than ``before`` (both of ``by_chip``), as phrases, in the order of the chips.

    A port that was down, or had no address, may be so. One of which nothing is known any more is worse.
    """
    found = []
    for chip in sorted(before, key=int):
        (link, address), (link_now, address_now) = _parts(before[chip]), _parts(now.get(chip, ""))
        if link == "UP" != link_now:
            found.append("the link of chip %s is %s" % (chip, {"DOWN": "down"}.get(link_now, "unknown")))
        if address not in (_NONE, address_now):
            found.append("the address of chip %s is %s, and was %s" % (chip, address_now.replace(_NONE, "gone"), address))
    return found


def _parts(state):
    """(link, address)"""
    link, _space, address = state.partition(" ")
    return link or _NONE, address or _NONE
