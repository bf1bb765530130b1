# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stage a driver from Huawei's package (.run): the same release as from an image, with the package's SHA-256 as its digest.

The package is read, never run. The controller has put the file onto the host.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time

from ansible_collections.npuops.ascend.plugins.module_utils._chips import kernel_modules, pci, symvers
from ansible_collections.npuops.ascend.plugins.module_utils._driver import releases, run_package
from ansible_collections.npuops.ascend.plugins.module_utils._driver import tree as driver_tree
from ansible_collections.npuops.ascend.plugins.module_utils._driver.staging import ReleaseStager, full
from ansible_collections.npuops.ascend.plugins.module_utils._firmware import firmware
from ansible_collections.npuops.ascend.plugins.module_utils._host import mounts as host_mounts
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._run_package import makeself, package_name

# Packages unpack to about three times their size. The exact limit is what is free when the content is written.
_SPACE_FACTOR = 6
_SPACE_MARGIN = 64 * 1024 * 1024
# Seconds without a write after which the transfer of a package counts as abandoned.
_ABANDONED = 3600


class PackageStager(ReleaseStager):
    """One driver package for one host.

    ``package``: its name, for messages; ``sha256``: of the file, 64 hexadecimal digits; ``file``: the file on this host, None
    before its transfer; ``firmware``: the FirmwarePackage that the release is to have, None to keep what it has. Other arguments:
    as of ReleaseStager.
    """

    def __init__(self, package, sha256, file=None, firmware=None, **more):
        super().__init__(package, package_name.digest(sha256), **more)
        self.file = file
        self.firmware = firmware
        self.needs_driver = self.needs_firmware = False

    def reason(self):
        """Why something has to be staged, as a sentence, or None. Sets ``needs_driver`` and ``needs_firmware``."""
        why = super().reason()
        self.needs_driver = why is not None
        if self.firmware is not None:
            why = why or self.firmware.reason(self.layout, self.release, self.verify)
            self.needs_firmware = why is not None
        return why

    @property
    def lacks_file(self):
        """Whether the driver package is to be staged, and is not on this host."""
        return self.needs_driver and self.file is None

    @property
    def lacks_firmware_file(self):
        """The same for the firmware package."""
        return self.needs_firmware and self.firmware.file is None

    def check(self):
        """Raise NpuError for all problems that can be detected before the file is unpacked. Sets ``size``: its bytes."""
        for why in host_mounts.unfit_for_driver(self.layout.root):
            raise NpuError(why)
        family = pci.family_of(pci.chip_functions())
        if family is not None:
            package_name.check_chip(self.origin, family.key)
            if self.firmware is not None:
                firmware.check_chip(firmware.file_name(self.firmware.origin, ""), family.key)
        needed = _SPACE_MARGIN
        if self.file is not None:
            self.size = os.path.getsize(self.file)
            needed += self.size * _SPACE_FACTOR
        if self.firmware is not None and self.firmware.file is not None:
            needed += os.path.getsize(self.firmware.file)
        free = self._free()
        if needed > _SPACE_MARGIN and free < needed:
            raise self._no_space(free, needed)

    def _damage(self):
        if self.firmware is None:
            return super()._damage()
        # Its firmware is replaced by itself.
        return self.layout.driver_damage(self.release, self.verify)

    def _complete(self):
        if self.firmware is None or self.firmware.reason(self.layout, self.release, self.verify) is None:
            return
        if self.firmware.file is None:
            raise _changed_meanwhile(self.release)
        remove_leftovers(self.firmware.file)
        try:
            self.firmware.add(self.layout, self.release)
        except OSError as exc:
            if exc.errno in releases.NO_SPACE:
                raise full(self.layout.root) from None
            raise

    def _stage(self):
        if self.file is None or (self.firmware is not None and self.firmware.file is None):
            raise _changed_meanwhile(self.expected_release or self.origin)
        for file in [self.file] + ([self.firmware.file] if self.firmware is not None else []):
            remove_leftovers(file)
        package_name.check_digest(self.origin, releases.file_digest(self.file), self.digest)
        work = self.layout.new_directory()
        try:
            return self._from(work)
        except OSError as exc:
            if exc.errno in releases.NO_SPACE:
                raise full(self.layout.root) from None
            raise
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def _from(self, work):
        extracted, tree = os.path.join(work, "package"), os.path.join(work, "driver")
        # The tree is copied again later, with the owners and modes of a release.
        limit = max(self._free() - _SPACE_MARGIN, 0) // 2
        unpacked = makeself.Package(self.file, self.origin).extract(extracted, limit)
        if self._free() < unpacked:
            raise self._no_space(self._free(), unpacked)
        exported = symvers.of_kernel(self.kernel)
        try:
            run_package.assemble(extracted, tree, self.kernel, move=True, symvers=exported)
        except NpuError as exc:
            if "kernels" in exc.details:
                told = exc.details["kernels"], exc.details.get("misfits", ())
                raise package_name.no_modules(self.origin, self.kernel, *told) from None
            raise NpuError("%s: %s" % (self.origin, exc.message), **exc.details) from None
        try:
            demand = kernel_modules.signature_demand()
            found = driver_tree.inspect(tree, tree, self.kernel, self.machine, None, demand, exported)
        except NpuError as exc:
            raise NpuError("%s: %s" % (self.origin, exc.message), **exc.details) from None
        if self.version and found.version != self.version:
            raise package_name.another_version(self.origin, found.version, self.version)
        put_firmware = self.firmware.put if self.firmware is not None else _no_firmware
        return self._commit(tree, found, {"package": self.origin}, put_firmware)

    def _free(self):
        return host_mounts.free_bytes(host_mounts.nearest(os.path.realpath(self.layout.root)))

    def _no_space(self, free, needed):
        return NpuError(
            "Not enough space in %s: %d MiB are free, but %s, unpacked and copied, needs %d MiB. Free some space, or set "
            "npu_driver_root to another file system" % (self.layout.root, free // 2**20, self.origin, -(-needed // 2**20)),
            free_bytes=free,
            needed_bytes=needed,
        )


def _no_firmware(directory):
    """What ``ReleaseStager._commit`` puts into a release without firmware."""


def _changed_meanwhile(release):
    return NpuError("Another run has changed release %s while its package was on the way. Run again" % release)


def remove_leftovers(file):
    """Remove what runs that were killed while they sent a package have left beside the directory of ``file``.

    A transfer that goes on writes all the time.
    """
    directory, name = os.path.split(file)
    above = os.path.dirname(directory)
    for other in os.listdir(above):
        path = os.path.join(above, other, name)
        with contextlib.suppress(OSError):
            if path != file and other.startswith("ansible-tmp-") and os.lstat(path).st_mtime < time.time() - _ABANDONED:
                os.unlink(path)
                os.rmdir(os.path.dirname(path))
