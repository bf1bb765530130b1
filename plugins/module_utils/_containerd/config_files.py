# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of containerd's configuration: where their originals are kept, and replacing them, or saying why not."""

from __future__ import annotations

import os

from ansible_collections.npuops.ascend.plugins.module_utils._host import mounts as host_mounts
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import remove_file, write_atomic

BACKUP_SUFFIX = ".npuops-backup"

# For what cannot lie beside the main file.
BACKUPS = "/var/lib/npuops/containerd"


def backup_path(main, path, files):
    """Where the original of the file ``path`` is kept: never where containerd, started with ``main``, reads it as one more file.

    ``files``: the whole configuration, as a list of _containerd.config.ConfigFile.
    """
    beside = path + BACKUP_SUFFIX
    if os.path.dirname(path) == os.path.dirname(main) and not any(file.names(beside) for file in files):
        return beside
    # Two files may have one name. A place is encoded so that no two become the same.
    return os.path.join(BACKUPS, path.strip("/").replace("%", "%25").replace("/", "%2F") + BACKUP_SUFFIX)


def private_place():
    """Where copies of a file that may hold passwords go: memory, gone at the next boot."""
    return "/run" if os.access("/run", os.W_OK) else None


def unwritable(path):
    """Why the file ``path`` (maybe a link) cannot be replaced, as a sentence; None when it probably can."""
    path = os.path.realpath(path)
    if path in host_mounts.points():
        return (
            "%s is a mount point of its own (it is bind-mounted), so it cannot be replaced. Change enable_cdi in the file that "
            "is mounted there, then run again" % path
        )
    if "ro" in host_mounts.options(os.path.dirname(path)):
        return (
            "%s is on a file system mounted read-only. Change enable_cdi where this file comes from, for example in the "
            "host's image, then run again" % path
        )
    return None


def write(path, text, like, files=()):
    """Replace what ``path`` (maybe a link) names; owner, mode and SELinux label are those of ``like``.

    ``files``: whose imports must not name the new file while it is being written.
    """
    path = os.path.realpath(path)
    directory, name = os.path.split(path)
    beside = os.path.join(directory, ".%s.new" % name)
    try:
        if not os.path.isdir(directory):
            os.makedirs(directory, 0o700 if directory == BACKUPS else 0o755)
        # What a killed run leaves there would be read in at the next start.
        aside = os.path.dirname(directory) if any(file.names(beside) for file in files) else None
        if aside and os.stat(aside).st_dev != os.stat(directory).st_dev:
            aside = None
        write_atomic(path, text, like=like, directory=aside)
    except OSError as exc:
        raise NpuError(_cannot(path, exc)) from None


def remove(path):
    """Remove what ``path`` (maybe a link) names."""
    try:
        remove_file(os.path.realpath(path))
    except FileNotFoundError:
        pass
    except OSError as exc:
        raise NpuError(_cannot(path, exc)) from None


def _cannot(path, exc):
    return unwritable(path) or "%s cannot be written: %s" % (path, exc.strerror)
