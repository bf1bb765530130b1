# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""version.info of drivers and firmware: fields, order of versions, declared ranges."""

from __future__ import annotations

import os
import re

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, printable
from ansible_collections.npuops.ascend.plugins.module_utils._image import image_files

# The version becomes part of file names and messages.
_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z._+~-]{0,63}\Z")

# A number with such a prefix ("rc1") is less than the number without it: 25.3.rc1 < 25.3.0.
_BEFORE_RELEASE = {"alpha": -3, "beta": -2, "rc": -1}


def parse(text):
    """The ``key=value`` lines of a version.info as a dict. The key of the version is always ``Version``."""
    info = {}
    for line in text.splitlines():
        key, separator, value = line.strip().partition("=")
        if separator and key and not key.startswith("#"):
            info[key.strip()] = value.strip()
    if "Version" not in info and info.get("version"):
        info["Version"] = info["version"]
    return info


def read(tree):
    """The version.info of the driver or firmware tree ``tree`` as a dict; raises NpuError if it has no version."""
    path = os.path.join(tree, "version.info")
    text = image_files.read_text(path)
    if text is None:
        raise NpuError("%s is missing: %s is not an Ascend driver tree" % (path, tree))
    info = parse(text)
    if not info.get("Version"):
        raise NpuError("%s has no line Version=: the driver tree is damaged" % path)
    if not is_version(info["Version"]):
        raise NpuError("%s has an invalid version: %s" % (path, printable(info["Version"])))
    return info


def is_version(text):
    """Whether ``text`` may be the version of a driver."""
    return bool(_VERSION.match(text))


def compare(a, b):
    """-1, 0 or 1 if version ``a`` is older than, equal to or newer than ``b``; missing parts count as 0."""
    left, right = _parts(a), _parts(b)
    width = max(len(left), len(right))
    left += _parts("0") * (width - len(left))
    right += _parts("0") * (width - len(right))
    return (left > right) - (left < right)


def firmware_range(info):
    """(lowest, highest) firmware version that the driver with the version.info ``info`` supports, or None if not declared."""
    match = re.match(r"\[\s*([^,\]\s]+)\s*,\s*([^,\]\s]+)\s*\]\Z", info.get("compatible_version_fw", ""))
    return (match.group(1), match.group(2)) if match else None


def in_range(version, lowest, highest):
    """Whether ``version`` is in the range; 7.7.99.1 is in a range that ends with 7.7.99."""
    width = len(_parts(highest))
    return compare(version, lowest) >= 0 and compare(".".join(version.split(".")[:width]), highest) <= 0


def _parts(version):
    parts = []
    for part in version.strip().lower().split("."):
        word, number, rest = re.match(r"(?s)([^0-9]*)([0-9]*)(.*)\Z", part).groups()
        # Numbers of any length, which int does not convert: the one with more digits is larger.
        digits = number.lstrip("0")
        parts.append((_BEFORE_RELEASE.get(word.rstrip("-_"), 0), len(digits), digits, word + rest if rest else ""))
    return parts
