# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which chips the host had when install looked last: a chip that the firmware of the host no longer finds is otherwise forgotten.

The PCI bus, and everything derived from it, shows only the chips that the last boot found. Also a part of the node agent.
"""

from __future__ import annotations

import json
import os
import re

from ansible_collections.npuops.ascend.plugins.module_utils._chips import pci
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import make_directory, read_untrusted, write_atomic

NAME = "chips.json"
# In the directory that the node agent has in any case; an uninstall removes it.
PATH = "/var/lib/npuops/device-plugins/" + NAME

_LARGEST = 65536  # bytes
_MOST = 1024  # PCI functions
_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]")


def of(functions):
    """{PCI address: chips behind it} of ``functions`` (of pci.chip_functions)."""
    return {function.address: pci.chips_of(function) for function in functions}


def read(path=PATH):
    """What ``write`` has written, or {}: without that file, and if it is something else. Raises OSError."""
    try:
        found = json.loads(read_untrusted(path, _LARGEST) or b"{}")
    except (ValueError, RecursionError):
        return {}
    if not isinstance(found, dict) or len(found) > _MOST:
        return {}
    return found if all(_ADDRESS.fullmatch(at) and _is_count(count) for at, count in found.items()) else {}


def _is_count(value):
    # True and 1.0 are equal to 1.
    return isinstance(value, int) and not isinstance(value, bool) and value in (1, 2)


def has(chips, path=PATH):
    """Whether ``write`` has written ``chips`` there. Raises NpuError if it never can."""
    if os.path.isdir(path) and not os.path.islink(path):
        raise NpuError("%s is a directory, and not the list of the chips of this host. Remove it, and run again" % path)
    try:
        return os.path.isfile(path) and read(path) == chips
    except OSError:
        return False  # a link, say, which the file replaces


def write(chips, path=PATH):
    """Remember ``chips`` (of ``of``)."""
    make_directory(os.path.dirname(path))
    write_atomic(path, json.dumps(chips, sort_keys=True) + "\n")


def gone(remembered, present):
    """The PCI addresses of the chips that are missing, sorted; [] if none are, or if it is not known which ones.

    If more chips were at the addresses that have none now than are missing, the bus was renumbered: some have other addresses.
    """
    addresses = set(remembered) - set(present)
    missing = sum(remembered.values()) - sum(present.values())
    return sorted(addresses) if sum(remembered[address] for address in addresses) == missing else []


def told(count, expected, addresses, boot):
    """Which chips are missing, as a phrase; None if none are. ``boot``: when the host booted (RFC 3339), or None."""
    if count >= expected:
        return None
    phrase = "%d of %d chips" % (count, expected)
    if not addresses:
        return phrase + " are on the PCI bus"
    since = "since the boot of %s or an earlier one" % boot if boot else "since a reboot"
    return "%s: %s %s missing from the PCI bus %s" % (phrase, ", ".join(addresses), "is" if len(addresses) == 1 else "are", since)


def problem(count, wanted, remembered, addresses, boot=None):
    """Why install must not take the ``count`` chips of a host as all that it has, as a sentence; None if it may.

    ``wanted``: npu_chips, None or 0 if it is not set; ``remembered``: how many the host had, 0 if that is not known;
    ``addresses``: of ``gone``.
    """
    expected = wanted or remembered
    if wanted and count > wanted:
        return "The host has %d chips, but npu_chips is %d: correct npu_chips" % (count, wanted)
    missing = told(count, expected, addresses, boot)
    if missing is None:
        return None
    accept = "set npu_chips: %d" % count
    if not count and remembered:
        # That setting says nothing, and only an uninstall removes what is remembered.
        accept = "run npuops.ascend.uninstall" + (" and " + accept if wanted else "")
    return (
        "The host has only %s. Check its cards, power and dmesg. To accept that it has %d chips from now on, %s for this "
        "host" % (missing if addresses else "%d of %d chips on the PCI bus" % (count, expected), count, accept)
    )
