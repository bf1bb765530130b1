# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""/etc/hccn.conf: the addresses that the ports of the chips are to have, by chip.

hccn_tool writes it, and reads it to restore the ports; HCCL and Mooncake in containers read it for the addresses of their chips.
Lines are NAME_CHIP=VALUE; lines that begin with # and names that are unknown here are not read; of two lines with the same name,
the first counts, as for the tool.
"""

from __future__ import annotations

import os
import re
import stat

from ansible_collections.npuops.ascend.plugins.module_utils._chips import hccn_output
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, printable

PATH = "/etc/hccn.conf"
# The tool's own limit.
MOST_BYTES = 1000 * 1024
_MOST_LINE = 384
_LINE = re.compile(r"([a-z][a-z0-9_]{0,40})_([0-9]{1,3})=(.*)")


class HccnConfig:
    """``chips``: {chip: {address, netmask, gateway, mtu, tls, dhcp}}, None for what the file does not say; ``exists``: whether the
    host has the file; ``problems``: what is wrong in it, as sentences."""

    def __init__(self, exists, chips, problems):
        self.exists = exists
        self.chips = chips
        self.problems = problems

    def of(self, chip):
        """What the file says of a chip; None if it says nothing."""
        return self.chips.get(chip)


def read(fs=""):
    """The HccnConfig of this host; ``fs``: path of its /. Raises NpuError if the file cannot be read, or is too large."""
    try:
        descriptor = os.open(fs + PATH, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return HccnConfig(False, {}, [])
    except OSError as exc:
        raise NpuError("%s cannot be read: %s" % (PATH, exc.strerror)) from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise NpuError("%s is not a file. Remove it, and restore the file that hccn_tool writes" % PATH)
        with open(descriptor, "rb", closefd=False) as stream:
            data = stream.read(MOST_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(data) > MOST_BYTES:
        raise NpuError("%s is larger than %d KiB, which hccn_tool cannot read. Restore it" % (PATH, MOST_BYTES // 1024))
    return parse(data.decode("utf-8", "replace"))


def parse(text):
    """The HccnConfig of the text of the file."""
    chips, seen, problems = {}, set(), []
    for line in text.split("\n"):
        found = _LINE.fullmatch(line) if len(line) < _MOST_LINE and not line.startswith("#") else None
        if not found or found.group(1) not in _READERS:
            continue
        name, number, value = found.groups()
        chip = int(number)
        if (name, chip) in seen:
            continue
        seen.add((name, chip))
        field, reader, kind = _READERS[name]
        known = chips.setdefault(chip, dict(_NOTHING))
        known[field] = reader(value)
        if known[field] is None and len(problems) < 20:
            problems.append("%s_%d in %s is %s, which is not %s" % (name, chip, PATH, printable(repr(value), 60), kind))
    return HccnConfig(True, chips, problems)


_NOTHING = {"address": None, "netmask": None, "gateway": None, "mtu": None, "tls": None, "dhcp": False}


def _address(value):
    return value if hccn_output.is_address(value) else None


def _netmask(value):
    return value if hccn_output.is_netmask(value) else None


def _mtu(value):
    return int(value) if re.fullmatch("[0-9]{1,5}", value) else None


def _tls(value):
    return {"0": False, "1": True}.get(value)


def _is_set(_value):
    return True


# name in the file -> (field, reader, what a value must be)
_READERS = {
    "address": ("address", _address, "an IPv4 address"),
    "netmask": ("netmask", _netmask, "a netmask"),
    "gateway": ("gateway", _address, "an IPv4 address"),
    "mtu": ("mtu", _mtu, "a number of bytes"),
    "tls_enable": ("tls", _tls, "0 or 1"),
    "udhcpc_enable": ("dhcp", _is_set, "set"),
}
