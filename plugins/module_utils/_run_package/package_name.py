# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the name and the checksum of one of Huawei's packages say, and why a package does not fit.

Ascend-hdk-910b-npu-driver_25.5.0_linux-aarch64.run
Ascend-hdk-910b-npu-firmware_7.8.0.6.201.run
"""

from __future__ import annotations

import re

from ansible_collections.npuops.ascend.plugins.module_utils._chips import pci
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, printable

# The variables that name packages, and the beginning of the names of those that belong to them.
DRIVER, FIRMWARE, RUNTIME = "npu_driver_package", "npu_firmware_package", "npu_runtime_package"
# The list of those that are to be copied; what belongs to a package is in its entry.
MIRRORED = "npu_mirror_packages"
# What each of them names, for messages.
WHAT = {
    DRIVER: "driver package",
    FIRMWARE: "firmware package",
    RUNTIME: "package of the Ascend Docker Runtime",
    MIRRORED: "package",
}

_CHIP = re.compile(r"Ascend-hdk-([0-9A-Za-z_]+)-npu-(?:driver|firmware)_", re.IGNORECASE)
# The keys of families are the same as in Huawei's names, except for these.
_OTHER_NAMES = {"910": "910a", "a3": "910c", "910_93": "910c"}
_KEYS = tuple(sorted(family.key for family in pci.FAMILIES.values()))
_SHA256 = re.compile(r"[0-9A-Fa-f]{64}\Z")


def chip_of(name):
    """The key of the family of chips for which the package with that file name is; None if the name does not say."""
    match = _CHIP.match(name)
    if match is None:
        return None
    named = match.group(1).lower()
    chip = _OTHER_NAMES.get(named, named)
    return chip if chip in _KEYS else None


def other_chip(name, key):
    """The chips for which the package with that file name is, if they are others than those of the family ``key``, or None."""
    chip = chip_of(name)
    return chip if chip is not None and key in _KEYS and chip != key else None


def check_chip(package, key):
    """Raise NpuError if the name of the driver package says that it is for other chips than those of the family ``key``.

    ``package``: a URL, a path, or a reference, whose tag may be the name of the file.
    """
    chip = other_chip(package.rpartition("/")[2].rpartition(":")[2], key)
    if chip is not None:
        raise NpuError("%s is for %s chips, not for %s. Set npu_driver_package to the package for %s" % (package, chip, key, key))


def variable(setting, part=None):
    """What people set for a package of ``setting``: its name, or the ``part`` sha256, username or password."""
    if setting == MIRRORED:
        return "%s.%s" % (setting, part or "package")
    return "%s_%s" % (setting, part) if part else setting


def digest(sha256, setting=DRIVER):
    """The digest of a package with the checksum ``sha256``, which the variable ``setting`` names. Raises NpuError."""
    name = variable(setting, "sha256")
    if not sha256:
        raise NpuError("%s is not set: the SHA-256 of the package, 64 hexadecimal digits, as of sha256sum" % name)
    if not _SHA256.match(sha256):
        raise NpuError("%s is %r; it must be 64 hexadecimal digits" % (name, printable(sha256, 80)))
    return "sha256:" + sha256.lower()


def file_on_host(digest):
    """The name of the file with a package that is on its way to a host."""
    return "npuops-package-%s.run" % digest.rpartition(":")[2][:12]


def check_digest(package, sha256, wanted):
    """Raise NpuError if a ``package`` whose file has the checksum ``sha256`` on the host does not have the digest ``wanted``."""
    found = "sha256:" + sha256
    if found != wanted:
        raise NpuError("%s arrived on this host with %s instead of %s: it is damaged. Run again" % (package, found, wanted))


def another_version(package, found, wanted):
    """The NpuError for a ``package`` of another driver version than ``wanted``."""
    return NpuError("%s has driver %s instead of %s: npu_driver_package or npu_driver_version is wrong" % (package, found, wanted))


def no_modules(package, kernel, kernels, misfits=()):
    """The NpuError for a ``package`` without modules for ``kernel``; ``kernels``: those that it has modules for; ``misfits``: why
    these do not load there, as sentences without a period."""
    return NpuError(
        "%s has no kernel modules for %s; it has %s. %sAdd them with the package's option --repack on a host with that kernel, or "
        "build a driver image with modules for it (npuops.ascend.build_driver_image)"
        % (
            package,
            kernel,
            "modules for " + ", ".join(sorted(kernels)) if kernels else "none at all",
            "".join("%s. " % misfit for misfit in misfits),
        ),
        kernel=kernel,
        kernels=sorted(kernels),
    )
