# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Identify Ascend chips by their PCI IDs, and map their families to the names used elsewhere.

The names that npu-smi prints are unreliable (it lists a 910A as 910B); the PCI device ID is not. Chips are the physical functions
of vendor 19e5 and class 0x1200xx (processing accelerator) with a device ID of FAMILIES: the compression engines of Kunpeng CPUs
have the same vendor and class. Virtual functions belong to a physical one and are skipped.
"""

from __future__ import annotations

import collections
import errno
import os

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError

_SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)

VENDOR = "19e5"
CLASS_PREFIX = "1200"
DUO = ("d500", "0110")

# How the device IDs of a Kunpeng CPU's own functions begin. pci.ids has a12x and a22x to a25x; of class 0x1200xx is the compression
# engine, a250 and a251 (drivers/crypto/hisilicon/zip of Linux).
_KUNPENG = ("a1", "a2")

Function = collections.namedtuple("Function", "address vendor device_class device subsystem_device virtual")
Function.__doc__ = """One PCI function: ``address`` as in sysfs, IDs as lower-case hexadecimal digits without 0x."""

Family = collections.namedtuple("Family", "name key resource accelerator")
Family.__doc__ = """A chip family.

``name``: Huawei's name; ``key``: the name in driver image tags; ``resource``: what pods request;
``accelerator``: value of the node label ``accelerator`` that the device plugin's DaemonSets select.
"""

# The boot script npu-driver has the same device IDs.
FAMILIES = {
    "d801": Family("910A", "910a", "huawei.com/Ascend910", "huawei-Ascend910"),
    "d802": Family("910B", "910b", "huawei.com/Ascend910", "huawei-Ascend910"),
    "d803": Family("910C", "910c", "huawei.com/Ascend910", "huawei-Ascend910"),
    "d500": Family("310P", "310p", "huawei.com/Ascend310P", "huawei-Ascend310P"),
    "d100": Family("310", "310", "huawei.com/Ascend310", "huawei-Ascend310"),
    "d105": Family("310B", "310b", "huawei.com/Ascend310", "huawei-Ascend310"),
    "d806": Family("950", "950", "huawei.com/npu", "huawei-npu"),
}


def read_functions(sysfs="/sys/bus/pci/devices"):
    """All PCI functions of the host as a list of Function, sorted by address; empty without a PCI bus.

    Raises OSError if the machine is short of memory or open files: a chip that could not be read is not a missing chip.
    """
    try:
        addresses = sorted(os.listdir(sysfs))
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []
    functions = []
    for address in addresses:
        directory = os.path.join(sysfs, address)
        vendor = _hex(directory, "vendor")
        if vendor != VENDOR:
            # Hosts have hundreds of functions, so nothing else is read.
            functions.append(Function(address, vendor, "", "", "", False))
            continue
        functions.append(
            Function(
                address,
                vendor,
                _hex(directory, "class"),
                _hex(directory, "device"),
                _hex(directory, "subsystem_device"),
                os.path.lexists(os.path.join(directory, "physfn")),
            )
        )
    return functions


def chip_functions(sysfs="/sys/bus/pci/devices"):
    """The physical functions that are Ascend chips, as a list of Function sorted by address.

    One whose device ID cannot be read is among them, so that no chip disappears silently: family_of refuses it.
    """
    return [function for function in _accelerators(sysfs) if function.device in FAMILIES or not _readable(function)]


def notes(sysfs="/sys/bus/pci/devices"):
    """What a person should know of the accelerators that are neither chips nor engines of the CPU, as clauses."""
    unknown = {}
    for function in _accelerators(sysfs):
        if _readable(function) and function.device not in FAMILIES and not function.device.startswith(_KUNPENG):
            unknown.setdefault(function.device, []).append(function.address)
    return [
        "the unknown accelerator %s:%s (%s) may be a newer chip that this version does not support: update the collection"
        % (VENDOR, device, ", ".join(addresses))
        for device, addresses in sorted(unknown.items())
    ]


def chips_of(function):
    """The number of chips behind one function: two on an Atlas 300I Duo, otherwise one."""
    return 2 if (function.device, function.subsystem_device) == DUO else 1


def chip_count(functions):
    """The number of chips behind ``functions``."""
    return sum(chips_of(function) for function in functions)


def family_of(functions):
    """The Family of ``functions``, or None if the list is empty.

    Raises NpuError for a device ID that cannot be read, and for different families on one host.
    """
    found = {}
    for function in functions:
        if function.device not in FAMILIES:
            raise NpuError(
                "The PCI device ID of %s cannot be read, so it is unknown whether it is an Ascend chip. Run again; if it still "
                "cannot be read, check dmesg" % function.address
            )
        found.setdefault(FAMILIES[function.device], []).append(function.address)
    if len(found) > 1:
        raise NpuError(
            "This host has chips of different families: %s. A driver supports only one family: remove the chips of the others"
            % " and ".join("%s (%s)" % (family.name, ", ".join(addresses)) for family, addresses in sorted(found.items()))
        )
    return next(iter(found), None)


def _accelerators(sysfs):
    return [
        function
        for function in read_functions(sysfs)
        if function.vendor == VENDOR and function.device_class.startswith(CLASS_PREFIX) and not function.virtual
    ]


def _readable(function):
    return len(function.device) == 4


def _hex(directory, name):
    """The hexadecimal digits in a sysfs file, lower-case and without 0x; empty if it cannot be read."""
    try:
        with open(os.path.join(directory, name), encoding="ascii", errors="replace") as stream:
            text = stream.read().strip().lower()
    except OSError as exc:
        if exc.errno in _SHORTAGES:
            raise
        return ""  # a function that was just unplugged
    return text[2:] if text.startswith("0x") else text
