# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The firmware of a release whose driver is from a package: a package of its own. The release has all of it, or none.

The package is read, not run. The controller has put the file onto the host.
"""

from __future__ import annotations

import os
import shutil

from ansible_collections.npuops.ascend.plugins.module_utils._activation import trial_boot
from ansible_collections.npuops.ascend.plugins.module_utils._driver import staging
from ansible_collections.npuops.ascend.plugins.module_utils._firmware import firmware, firmware_package, flash_state
from ansible_collections.npuops.ascend.plugins.module_utils._firmware.flash_state import WRITING
from ansible_collections.npuops.ascend.plugins.module_utils._host import boot as host_boot
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import write_atomic
from ansible_collections.npuops.ascend.plugins.module_utils._run_package import package_name


class FirmwarePackage:
    """The firmware package that a release is to have.

    ``package``: its name, for messages; ``sha256``: of the file, 64 hexadecimal digits; ``file``: the file on this host, None if
    it is not there yet; ``fs``: the host's / (empty: this machine's).
    """

    def __init__(self, package, sha256, file=None, fs=""):
        self.origin = package
        self.digest = package_name.digest(sha256, package_name.FIRMWARE)
        self.file = file
        self.fs = fs

    def reason(self, layout, release, thorough=False):
        """Why the complete ``release`` does not have it, as a sentence, or None."""
        damage = layout.firmware_damage(release, thorough)
        if damage is not None:
            return "The staged firmware is damaged: %s" % damage
        if "sha256:%s" % firmware.of_manifest(layout.manifest(release) or {}).get("sha256") == self.digest:
            return None
        return "%s (%s) is not staged with release %s" % (self.origin, self.digest, release)

    def put(self, directory):
        """Create the directory ``firmware`` in ``directory``; returns what the manifest says of it. Raises NpuError."""
        found, info = firmware_package.read(self.file, self.origin)
        target = os.path.join(directory, firmware.DIRECTORY)
        os.mkdir(target)
        os.chmod(target, 0o755)
        write_atomic(os.path.join(target, firmware.VERSION_INFO), info, 0o444)
        path = os.path.join(target, found.package)
        staging.copy_file(self.file, path)
        os.chmod(path, 0o444)
        entry = staging.firmware_entry(found, path)
        package_name.check_digest(self.origin, entry["sha256"], self.digest)
        return entry

    def add(self, layout, release):
        """Add it to the complete ``release``, in place of the firmware that this has; requires the lock. Raises NpuError."""
        work = layout.new_directory()
        try:
            entry = self.put(work)
            with trial_boot.alone(self.fs):
                last = flash_state.view(host_boot.boot_id(self.fs), self.fs) or {}
                if last.get("state") == WRITING:
                    raise NpuError("The firmware %s is being written into the chips: wait until that ends" % last["version"])
                layout.put_firmware(release, os.path.join(work, firmware.DIRECTORY), entry)
        finally:
            shutil.rmtree(work, ignore_errors=True)
