# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is in a firmware package of its own, read from the .run file and not run."""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.module_utils._firmware import firmware
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, printable
from ansible_collections.npuops.ascend.plugins.module_utils._image import image_files
from ansible_collections.npuops.ascend.plugins.module_utils._run_package import makeself, version_info

# Where it may be in a package; the first one that exists counts.
_VERSION_INFOS = (firmware.DIRECTORY + "/" + firmware.VERSION_INFO, firmware.VERSION_INFO)


def read(path, name):
    """(Firmware, content of its version.info) of the .run file ``path``, which messages call ``name``. Nothing of it is run.

    ``Firmware.package`` is the name that the file gets on a host. Raises NpuError for what is no firmware package.
    """
    found = {}
    for member, dummy, stream in makeself.Package(path, name, "firmware package").members():
        if (member + "/").startswith(("driver/", "lib64/")):
            raise NpuError("%s is a driver package, not a firmware package" % name)
        if member in _VERSION_INFOS and stream is not None:
            found[member] = stream.read(image_files.MAX_TEXT + 1)
    content = next((found[member] for member in _VERSION_INFOS if member in found), None)
    if content is None:
        raise NpuError("%s has no version.info: it is not a firmware package" % name)
    if len(content) > image_files.MAX_TEXT:
        raise NpuError("version.info in %s has more than %d KiB" % (name, image_files.MAX_TEXT // 1024))
    info = version_info.parse(content.decode("utf-8", "replace"))
    version = info.get("Version")
    if not firmware.is_version(version):
        raise NpuError("version.info in %s has no valid version: %s" % (name, printable(str(version), 80)))
    return firmware.Firmware(version, firmware.drivers_of(info), firmware.file_name(name, version)), content
