# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The symbols that a kernel exports, with their CRCs: its Module.symvers, which packages of the kernel install as symvers.

A kernel with CONFIG_MODVERSIONS refuses a module with another CRC for a symbol, also if the kernel release is the same.
"""

from __future__ import annotations

import itertools
import os
import re

from ansible_collections.npuops.ascend.plugins.module_utils._chips import kernel_modules
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._image import image_files

# In this order: those of the package of the kernel are before those of its headers.
PLACES = tuple(
    place + suffix
    for place in ("lib/modules/%s/symvers", "usr/lib/modules/%s/symvers", "boot/symvers-%s")
    for suffix in (".xz", ".gz", ".zst", "")
) + ("lib/modules/%s/build/Module.symvers", "usr/src/kernels/%s/Module.symvers", "usr/src/linux-headers-%s/Module.symvers")

# A kernel has some ten thousand symbols, a line of about 60 bytes each.
_MAX_SYMVERS = 32 * 2**20
_MOST_SYMBOLS = 2**18
_MOST_TRIED = 10
_LINE = re.compile(rb"(?:0x)?([0-9a-f]{1,8})\t([A-Za-z0-9_.$]{1,512})(?:\t|\Z)")
_RELEASE = re.compile(r"[0-9A-Za-z][0-9A-Za-z._+~-]{0,127}\Z")  # also a part of paths

# Each module needs it, and its CRC is zero in the symvers of a kernel without CONFIG_MODVERSIONS.
_LAYOUT = "module_layout"


class Symvers:
    """The exported symbols of one kernel.

    ``release``: as ``uname -r``; ``path``: the file, on the host; ``kernel``: dict name -> CRC of the symbols of vmlinux;
    ``modules``: the same for the symbols of the kernel's own modules; ``flags``: what the vermagic of these has after the release,
    None if unknown.
    """

    def __init__(self, release, path, content, flags=None):
        self.release = release
        self.path = path
        self.flags = flags
        self.kernel = {}
        self.modules = {}
        for line in content.splitlines():
            begin = _LINE.match(line)
            if begin is None:
                continue
            # CRC, symbol, module, kind of export, namespace. From Linux 5.4 to 5.6, the namespace was before the module.
            kernel = b"vmlinux" in line.split(b"\t", 4)[2:4]
            (self.kernel if kernel else self.modules)[begin.group(2).decode("ascii")] = int(begin.group(1), 16)
            if len(self.kernel) + len(self.modules) > _MOST_SYMBOLS:
                raise NpuError("%s has more than %d symbols, which no kernel has" % (path, _MOST_SYMBOLS))

    @property
    def has_crcs(self):
        """Whether the kernel has CONFIG_MODVERSIONS."""
        return self.kernel.get(_LAYOUT, 0) != 0

    def differing(self, versions):
        """Sorted names of the symbols of vmlinux whose CRC is another one in ``versions`` (of a Module).

        Not those of the kernel's modules: other drivers, such as OFED, replace these modules.
        """
        return sorted(name for name, crc in versions.items() if self.kernel.get(name) not in (None, 0, crc))

    def lacking(self, versions, own):
        """Sorted names of the symbols in ``versions`` (of a Module) that this kernel does not have with that CRC.

        ``own``: set of the symbols that are in modules of the driver.
        """
        exported = dict(self.modules, **self.kernel)
        return sorted(name for name, crc in versions.items() if exported.get(name) != crc and (name in exported or name not in own))


def place_of(release, fs="/"):
    """The path of the first file that may have the symbols of the kernel ``release``, or None. It is not read."""
    if not _RELEASE.match(release):
        return None
    paths = (os.path.join(fs, place % release) for place in PLACES)
    return next((path for path in paths if os.path.isfile(path)), None)


def of_kernel(release, fs="/"):
    """The ``Symvers`` of the kernel ``release`` on the host at ``fs``, or None.

    None if the host has no such file that can be read, or the kernel no CRCs.
    """
    if not _RELEASE.match(release):
        return None
    for place in PLACES:
        path = os.path.join(fs, place % release)
        try:
            # Distributions link some of them to others.
            content = image_files.read(os.path.realpath(path), _MAX_SYMVERS)
            unpacked = kernel_modules.unpack(content, path, _MAX_SYMVERS, "The file")
            found = Symvers(release, path, unpacked, _flags(os.path.join(fs, "lib/modules", release, "kernel")))
        except (NpuError, RecursionError):
            continue
        if found.has_crcs:
            return found
    return None


def _flags(directory):
    """The flags in the vermagic of the kernel's modules in ``directory``, or None if none of them can be read."""
    modules = (os.path.join(place, name) for place, dummy, names in os.walk(directory) for name in names if _is_module(name))
    # All of them are packed in the same way, so what cannot read some reads none.
    for path in itertools.islice(modules, _MOST_TRIED):
        try:
            return kernel_modules.vermagic_flags(path)
        except NpuError:
            continue
    return None


def _is_module(name):
    return kernel_modules.is_module(name) or name.endswith(kernel_modules.UNREADABLE_SUFFIX)
