# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The packages that the controller has downloaded: each once, whatever the number of hosts and runs.

~/.cache/npuops/packages/<sha256>.run     complete, with that checksum
~/.cache/npuops/packages/<sha256>.part    what a run had of it that was killed, or whose download broke off; the next one continues
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time

from ansible_collections.npuops.ascend.plugins.module_utils._driver.releases import NO_SPACE, file_digest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import exclusive, fsync_directory, take_lock
from ansible_collections.npuops.ascend.plugins.plugin_utils._package.artifact import Artifact
from ansible_collections.npuops.ascend.plugins.plugin_utils._package.download import download
from ansible_collections.npuops.ascend.plugins.plugin_utils._package.source import FILE, WEB, PackageSource

# Seconds for the download of a package.
TIMEOUT = 1800
# Seconds after which an unused package is removed.
_KEEP = 30 * 24 * 3600
_OURS = re.compile(r"[0-9a-f]{64}\.(?:run|part|lock)\Z")
_NO_END = "its server did not say how long it is, so it may have broken off: run again. Or "


class Store:
    """``directory``: where downloaded packages are; by default in the cache directory of this user."""

    def __init__(self, directory: str | None = None) -> None:
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        self._directory = directory or os.path.join(cache, "npuops", "packages")

    def file(self, source: PackageSource, seconds: float = TIMEOUT) -> str:
        """The path of the package, with the right checksum. Downloads it if it is not here. Raises NpuError."""
        if source.kind == FILE:
            return _local(source)
        try:
            self._prepare()
            path = self._path(source, "run")
            with exclusive(self._path(source, "lock"), seconds, "downloading %s" % source.name):
                self._prune(source.digest.rpartition(":")[2])
                if not self._is_here(path, source):
                    self._download(source, path, seconds)
                os.utime(path)
            return path
        except OSError as exc:
            if exc.errno in NO_SPACE:
                raise NpuError("The file system of %s on the controller is full" % self._directory) from None
            raise NpuError(
                "The package %s cannot be kept in %s on the controller: %s. Set XDG_CACHE_HOME to a directory that may be written"
                % (source.name, self._directory, exc.strerror or exc)
            ) from None

    def _download(self, source: PackageSource, path: str, seconds: float) -> None:
        part = self._path(source, "part")
        try:
            continued = _has_content(part)
            # A run that was killed may have had all of it.
            found, has_end = _digest(part) if continued else "", True
            if found != source.digest:
                found, has_end = _fetch(source, part, seconds)
            if found != source.digest and continued:
                # The part from before may have been of another file.
                os.unlink(part)
                found, has_end = _fetch(source, part, seconds)
            if found != source.digest:
                os.unlink(part)
                raise NpuError(
                    "%s has %s instead of %s: %sit is another file, or %s is wrong. The download was removed"
                    % (source.name, found, source.digest, "" if has_end else _NO_END, source.variable("sha256"))
                )
            os.rename(part, path)
            fsync_directory(self._directory)
        except BaseException as exc:
            # The next run continues it, but not if it fills the disk.
            if isinstance(exc, OSError) or not _has_content(part):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(part)
            raise

    def _path(self, source: PackageSource, suffix: str) -> str:
        return os.path.join(self._directory, "%s.%s" % (source.digest.rpartition(":")[2], suffix))

    def _prepare(self) -> None:
        os.makedirs(self._directory, mode=0o700, exist_ok=True)
        info = os.stat(self._directory)
        if info.st_uid != os.geteuid() or info.st_mode & 0o022:
            raise NpuError(
                "%s on the controller must belong to the user that runs Ansible, and only to that user: chown it, and chmod 700"
                % self._directory
            )

    @staticmethod
    def _is_here(path: str, source: PackageSource) -> bool:
        try:
            if file_digest(path) == source.digest.rpartition(":")[2]:
                return True
            os.unlink(path)
        except FileNotFoundError:
            pass
        return False

    def _prune(self, used: str) -> None:
        """Remove what was not used for long, but for the package ``used``. What another run holds the lock of is in use."""
        names = (name for name in os.listdir(self._directory) if _OURS.match(name))
        for checksum in sorted({name.partition(".")[0] for name in names} - {used}):
            lock, *files = (os.path.join(self._directory, "%s.%s" % (checksum, suffix)) for suffix in ("lock", "run", "part"))
            if not all(map(_is_old, (lock, *files))):
                continue
            held = take_lock(lock)
            if held is None:
                continue
            try:
                if all(map(_is_old, files)):
                    for path in (*files, lock):
                        with contextlib.suppress(FileNotFoundError):
                            os.unlink(path)
            finally:
                os.close(held)


def _is_old(path: str) -> bool:
    """Whether a file was not used for long, or is not there."""
    try:
        return os.stat(path).st_mtime < time.time() - _KEEP
    except FileNotFoundError:
        return True


def _has_content(path: str) -> bool:
    return os.path.exists(path) and os.path.getsize(path) > 0


def _fetch(source: PackageSource, part: str, seconds: float) -> tuple[str, bool]:
    """Download to ``part``; the digest of what came, and whether the server said where it ends."""
    has_end = True
    if source.kind == WEB:
        has_end = download(source, part, seconds)
    else:
        Artifact(source).download(part, seconds)
    return _digest(part), has_end


def _digest(path: str) -> str:
    return "sha256:" + file_digest(path)


def _local(source: PackageSource) -> str:
    try:
        if not stat.S_ISREG(os.stat(source.place).st_mode):
            raise NpuError("%s is %s, which is not a file" % (source.variable(), source.place))
        found = _digest(os.path.realpath(source.place))
    except OSError as exc:
        raise NpuError("The package %s cannot be read on the controller: %s" % (source.place, exc.strerror)) from None
    if found != source.digest:
        raise NpuError(
            "%s has %s instead of %s: it is another file, or %s is wrong"
            % (source.place, found, source.digest, source.variable("sha256"))
        )
    return source.place
