# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Firmware packages: Huawei's .run file in the directory ``firmware``, beside it its version.info.

<image>/firmware/{version.info,<package>.run}                       of a driver image
<root>/releases/<release>/firmware/{version.info,<package>.run}     of a release on the host, from its image or from a package
"""

from __future__ import annotations

import os
import re
import shutil

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, printable
from ansible_collections.npuops.ascend.plugins.module_utils._image import image_files
from ansible_collections.npuops.ascend.plugins.module_utils._run_package import version_info
from ansible_collections.npuops.ascend.plugins.module_utils._run_package.package_name import other_chip

DIRECTORY = "firmware"
VERSION_INFO = "version.info"

# Of a driver image, so that a plan knows its firmware before any host pulls it.
ANNOTATION_VERSION = "npuops.ascend/firmware-version"
ANNOTATION_DRIVERS = "npuops.ascend/firmware-drivers"

# A file name that is safe on every command line: Ascend-hdk-910b-npu-firmware_7.8.0.6.201.run
_PACKAGE = re.compile(r"[0-9A-Za-z][0-9A-Za-z._+-]{0,200}\.run\Z")
# What a version may begin with, as compatible_version_drv lists it.
_PREFIX = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,31}\Z")
_MAX_PREFIXES = 64


class Firmware:
    """``version``: of the firmware; ``drivers``: what the versions of the drivers that it works with begin with, [] if it does not
    declare them; ``package``: the name of the .run file, None if there is none."""

    def __init__(self, version, drivers, package):
        self.version = version
        self.drivers = drivers
        self.package = package

    def check_chip(self, key):
        """Raise NpuError if the name of the package says that it is for other chips than those of the family ``key``."""
        check_chip(self.package, key)

    def supports(self, driver):
        """Whether it declares to work with this version of the driver; True if it declares nothing."""
        return supports(self.drivers, driver)


def check_chip(package, key):
    """Raise NpuError if the package is for other chips than those of the family ``key``. Names that do not say it are accepted."""
    chip = other_chip(package, key)
    if chip is not None:
        raise NpuError(
            "The firmware package %s is for %s chips, not for %s. Build the driver image with the firmware package for %s, or set "
            "npu_firmware_package to it" % (package, chip, key, key)
        )


def supports(drivers, driver):
    """Whether the version ``driver`` begins with one of ``drivers``; True if that list is empty."""
    return not drivers or any(driver == prefix or driver.startswith(prefix + ".") for prefix in drivers)


def drivers_of(info):
    """The value of compatible_version_drv in a version.info, such as ``[23.0.0,23.0.0.],[25.0,25.0.]``, as ["23.0.0", "25.0"].

    Raises NpuError if there is a value without any version: nothing declared would mean that any driver is right.
    """
    return declared(info.get("compatible_version_drv", ""))


def declared(text):
    """``prefixes(text)``; raises NpuError if there is something else in it."""
    found = prefixes(text)
    if not found and text.strip(" []\t,"):
        raise NpuError("The drivers that the firmware works with are not a list of versions: %s" % printable(text[:200]))
    return found


def prefixes(text):
    """The sorted words of ``text``, without brackets and final dots; words that cannot begin a version are omitted."""
    words = (word.strip(" []\t").rstrip(".") for word in text.split(","))
    return sorted({word for word in words if _PREFIX.match(word)})[:_MAX_PREFIXES]


def is_version(text):
    """Whether ``text`` may be the version of a firmware."""
    return isinstance(text, str) and bool(_PREFIX.match(text))


def find(top):
    """The ``Firmware`` in the image or release at ``top``, or None if it has none. Raises NpuError if it is damaged."""
    directory = os.path.join(top, DIRECTORY)
    if not os.path.lexists(directory):
        return None
    if os.path.islink(directory) or not os.path.isdir(directory):
        raise NpuError("/%s in the image is not a directory" % DIRECTORY)
    info = version_info.read(directory)
    if not is_version(info["Version"]):
        raise NpuError("/%s/version.info in the image has an invalid version: %s" % (DIRECTORY, printable(info["Version"])))
    names = sorted(inside for inside, dummy in image_files.entries(directory) if inside.endswith(".run"))
    valid = [name for name in names if _PACKAGE.match(name) and image_files.is_file(top, os.path.join(directory, name))]
    if len(names) != 1 or valid != names:
        raise NpuError(
            "/%s in the image must contain exactly one firmware package (*.run), but has %s. Build the image with "
            "npuops.ascend.build_driver_image" % (DIRECTORY, ", ".join(printable(name) for name in names[:5]) or "none")
        )
    return Firmware(info["Version"], drivers_of(info), names[0])


def of_manifest(manifest):
    """{version, drivers, package, sha256} of the firmware in the manifest of a release, {} if it has none or is damaged."""
    found = manifest.get("firmware")
    if not isinstance(found, dict) or not is_version(found.get("version")) or not isinstance(found.get("drivers"), list):
        return {}
    drivers = [prefix for prefix in found["drivers"] if is_version(prefix)]
    return {"version": found["version"], "drivers": drivers, "package": found.get("package"), "sha256": found.get("sha256")}


def file_name(origin, version):
    """The name on a host of the package ``origin``: a URL, a path, or a reference whose tag may be the name of the file."""
    named = origin.partition("@")[0].rpartition("/")[2].rpartition(":")[2]
    for name in (named, named + ".run"):
        if _PACKAGE.match(name):
            return name
    return "npu-firmware_%s.run" % version


def arrange(package, extracted, target):
    """Create ``target`` (new) from the .run file ``package``, whose content is in ``extracted``; returns its ``Firmware``."""
    if not os.path.isfile(package) or not _PACKAGE.match(os.path.basename(package)):
        raise NpuError("The firmware package %s is not a .run file" % package)
    for directory in (os.path.join(extracted, DIRECTORY), extracted):
        if os.path.isfile(os.path.join(directory, VERSION_INFO)):
            break
    else:
        raise NpuError("The firmware package %s has no version.info" % package)
    info = version_info.read(directory)
    if os.path.isdir(os.path.join(directory, "lib64")) or os.path.isdir(os.path.join(extracted, "driver")):
        raise NpuError("%s is a driver package, not a firmware package" % package)
    if not is_version(info["Version"]):
        raise NpuError("version.info of %s has an invalid version: %s" % (package, printable(info["Version"])))
    os.mkdir(target)
    shutil.copyfile(os.path.join(directory, VERSION_INFO), os.path.join(target, VERSION_INFO))
    shutil.copyfile(package, os.path.join(target, os.path.basename(package)))
    os.chmod(os.path.join(target, VERSION_INFO), 0o444)
    os.chmod(os.path.join(target, os.path.basename(package)), 0o444)
    return Firmware(info["Version"], drivers_of(info), os.path.basename(package))
