# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mount points, and the options of mounts that prevent a driver from working."""

from __future__ import annotations

import glob
import os
import re

from ansible_collections.npuops.ascend.plugins.module_utils._host.files import read_link


def points(mountinfo="/proc/self/mountinfo"):
    """The mount points of this mount namespace, as a set."""
    return {point for _root, point in _entries(mountinfo)}


def paths_of_all(proc="/proc"):
    """Source and target paths of all mounts in all mount namespaces, as a set.

    Checks all processes, because a bind mount of a container exists only in the container's namespace.
    """
    paths = set()
    seen = set()
    for mountinfo in ["%s/self/mountinfo" % proc] + glob.glob("%s/[0-9]*/mountinfo" % proc):
        namespace = read_link(os.path.join(os.path.dirname(mountinfo), "ns", "mnt"))
        if namespace is not None and namespace in seen:
            continue
        seen.add(namespace)
        for entry in _entries(mountinfo):
            paths.update(entry)
    return paths


def nearest(path):
    """``path``, or the closest parent directory that exists."""
    while not os.path.isdir(path):
        path = os.path.dirname(path) or "/"
    return path


def free_bytes(path):
    """Bytes that are free for programs on the file system of ``path``, which exists."""
    status = os.statvfs(path)
    return status.f_bavail * status.f_frsize


def options(path):
    """Which of the options noexec and ro the file system of ``path`` has, as a set. ``path`` may not exist yet."""
    # From the kernel, because a file system that was remounted read-only after an error is rw in mountinfo.
    flags = os.statvfs(nearest(os.path.realpath(path))).f_flag
    return {name for name, flag in (("noexec", os.ST_NOEXEC), ("ro", os.ST_RDONLY)) if flags & flag}


def unfit_for_driver(root, fs=""):
    """Yield the reasons why a driver cannot be below ``root``, as sentences."""
    forbidden = options(fs + root)
    if "noexec" in forbidden:
        yield (
            "%s is on a file system mounted noexec, so programs and libraries of the driver cannot run. Remount it with exec, or"
            " set npu_driver_root to a directory on another file system" % root
        )
    if "ro" in forbidden:
        yield "%s is on a file system mounted read-only: set npu_driver_root to a writable directory" % root


def _entries(mountinfo):
    """(path inside its file system, mount point) of each mount."""
    for line in _lines(mountinfo):
        fields = line.split(" ")
        if len(fields) > 4:
            yield _unescaped(fields[3]), _unescaped(fields[4])


def _lines(path):
    """The lines of the file. The kernel escapes only some control characters in a path, not all that str.splitlines splits at."""
    try:
        with open(path, encoding="utf-8", errors="replace", newline="") as stream:
            return stream.read().split("\n")
    except OSError:
        return []


def _unescaped(field):
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match.group(1), 8)), field)
