# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of containerd's configuration: where backups are kept, and replacing a file, or why that is impossible."""

from __future__ import annotations

import os

from ansible_collections.npuops.ascend.plugins.module_utils._host import mounts as host_mounts
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import read_text, remove_file, write_atomic

BACKUP_SUFFIX = ".npuops-backup"

# For backups that cannot be kept beside the main file.
BACKUPS = "/var/lib/npuops/containerd"


def backup_path(main, path, files, suffix=BACKUP_SUFFIX):
    """The path of the backup of the file ``path``: never one that containerd, started with ``main``, would import.

    ``files``: the whole configuration, as a list of containerd_config.ConfigFile. ``suffix``: different for each kind of edit.
    """
    beside = path + suffix
    if os.path.dirname(path) == os.path.dirname(main) and not any(file.names(beside) for file in files):
        return beside
    # Files in different directories may have the same name, so the whole path is encoded unambiguously.
    return os.path.join(BACKUPS, path.strip("/").replace("%", "%25").replace("/", "%2F") + suffix)


def private_place():
    """The directory for copies of files that may contain passwords: in memory, so that they do not survive a reboot."""
    return "/run" if os.access("/run", os.W_OK) else None


def unwritable(path, wanted="enable_cdi = true"):
    """Why the file ``path`` (possibly a link) cannot be replaced, as a sentence; None if it probably can.

    ``wanted``: what is to be set.
    """
    path = os.path.realpath(path)
    if path in host_mounts.points():
        return (
            "%s is a mount point (it is bind-mounted), so it cannot be replaced. Set %s in the file that is mounted "
            "there, then run again" % (path, wanted)
        )
    if "ro" in host_mounts.options(os.path.dirname(path)):
        return (
            "%s is on a file system mounted read-only. Set %s in the source of this file, for example in the OS image, "
            "then run again" % (path, wanted)
        )
    return None


def write(path, text, like, files=()):
    """Replace the file ``path`` (possibly a link); owner, mode and SELinux label are those of ``like``.

    ``files``: their imports must not include the temporary file.
    """
    path = os.path.realpath(path)
    directory, name = os.path.split(path)
    beside = os.path.join(directory, ".%s.new" % name)
    try:
        os.makedirs(directory, 0o700 if directory == BACKUPS else 0o755, exist_ok=True)
        # containerd would import a temporary file that a killed run left there.
        aside = os.path.dirname(directory) if any(file.names(beside) for file in files) else None
        if aside and os.stat(aside).st_dev != os.stat(directory).st_dev:
            aside = None
        write_atomic(path, text, like=like, directory=aside)
    except OSError as exc:
        raise NpuError(_cannot(path, exc)) from None


def remove(path):
    """Remove the file ``path`` (possibly a link)."""
    try:
        remove_file(os.path.realpath(path))
    except OSError as exc:
        raise NpuError(_cannot(path, exc)) from None


def write_companions(edit):
    """Write the files that must exist with ``edit`` (an Edit), unless files of that name exist."""
    for path, text in edit.companions:
        if not os.path.lexists(path):
            write(path, text, like=path)


def remove_companions(edit):
    """Remove the files that ``write_companions`` wrote, except those that were changed since."""
    for path, text in edit.companions:
        if read_text(path) == text:
            remove(path)


def _cannot(path, exc):
    return unwritable(path) or "%s cannot be written: %s" % (path, exc.strerror)
