# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver releases on a host, and the links that select one.

    <root>/releases/<version>-<kernel>-<digest12>/driver/...     immutable once complete
    <root>/releases/<version>-<kernel>-<digest12>/manifest.json  written last: its presence means complete
    <root>/driver, good, next, previous                          relative links to releases/<name>/driver

After any interruption, a release is complete or absent: it is built in a directory whose name starts with ".new-" and then
renamed, and before it is removed, it is renamed to ".old-...". The next process that holds the lock removes leftovers of both.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import shutil
import stat
import tempfile

from ansible_collections.npuops.ascend.plugins.module_utils._host import mounts as host_mounts
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import (
    exclusive,
    fsync_directory,
    link_atomic,
    make_directory,
    read_link,
    read_text,
    remove_file,
    write_atomic,
)

LINKS = ("driver", "good", "next", "previous")
MANIFEST = "manifest.json"
# Of an OSError of a file system that is full.
NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_NEW = ".new-"
_OLD = ".old-"
# Linux allows 255 bytes for a file name.
_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z._+~-]{0,254}\Z")


def parts(name):
    """(version, kernel, digest12) of the release ``name``. A kernel may contain dashes, the others contain none."""
    version, _dash, rest = name.partition("-")
    kernel, _dash, digest = rest.rpartition("-")
    return version, kernel, digest


def are_siblings(one, other):
    """Whether both are releases of the same driver version, for different kernels."""
    (version, kernel, _digest), (other_version, other_kernel, _digest) = parts(one), parts(other)
    return version == other_version and kernel != other_kernel


def same_driver(one, other):
    """Whether both names are of one release, or of siblings. After a change of kernel a host has the sibling; what was written down
    before names the other. None is no release."""
    return one == other or bool(one and other and are_siblings(one, other))


class Layout:
    """The directory ``root`` (by default /var/lib/Ascend) with its releases and links."""

    def __init__(self, root="/var/lib/Ascend"):
        if not root.startswith("/"):
            # An empty root would be the root directory of the host.
            raise NpuError("npu_driver_root is %r; it must be the absolute path of a directory, such as /var/lib/Ascend" % root)
        self.root = root.rstrip("/") or "/"
        self.releases_dir = os.path.join(self.root, "releases")

    # Names and paths

    @staticmethod
    def release_name(version, kernel, digest):
        """``<version>-<kernel>-<first 12 digits of the digest>``; raises NpuError if that is not a valid name."""
        algorithm, dummy, digits = digest.rpartition(":")
        name = "%s-%s-%s" % (version, kernel, digits[:12])
        if algorithm not in ("", "sha256") or not re.match(r"[0-9a-f]{12,}\Z", digits):
            raise NpuError("%r is not a sha256 digest" % digest)
        # For the boot script, the version ends at the first dash.
        if not _NAME.match(name) or not version or "-" in version:
            raise NpuError("Version %r and kernel %r do not form a valid directory name" % (version, kernel))
        return name

    def release_path(self, name):
        """The path of release ``name``, whether it exists or not."""
        if not _NAME.match(name):
            raise NpuError("%r is not a valid release name" % name)
        return os.path.join(self.releases_dir, name)

    def tree(self, name):
        """The driver tree of release ``name``. It corresponds to /usr/local/Ascend/driver on a host with a .run package."""
        return os.path.join(self.release_path(name), "driver")

    # What is installed

    def releases(self):
        """Names of the complete releases, sorted."""
        try:
            names = os.listdir(self.releases_dir)
        except FileNotFoundError:
            return []
        return sorted(name for name in names if _NAME.match(name) and self.is_complete(name))

    def is_complete(self, name):
        """Whether release ``name`` was committed."""
        return self.manifest(name) is not None

    def manifest(self, name):
        """The manifest of release ``name``, or None if it is absent or incomplete."""
        text = read_text(os.path.join(self.release_path(name), MANIFEST))
        if text is None or not os.path.isdir(self.tree(name)):
            return None
        try:
            manifest = json.loads(text)
        # Deep nesting is a RecursionError.
        except (ValueError, RecursionError):
            return None
        return manifest if isinstance(manifest, dict) and _are_tables(manifest, "files", "sizes") else None

    def damage(self, name, thorough=False):
        """Why release ``name`` differs from what was committed, or None: a file is missing or has another size.

        ``thorough``: also compare the content, which reads all files.
        """
        manifest = self.manifest(name)
        if manifest is None:
            return "release %s is not complete" % name
        return self._driver_damage(name, manifest, thorough) or self.firmware_damage(name, thorough)

    def driver_damage(self, name, thorough=False):
        """The same for its driver alone."""
        manifest = self.manifest(name)
        return "release %s is not complete" % name if manifest is None else self._driver_damage(name, manifest, thorough)

    def _driver_damage(self, name, manifest, thorough):
        sizes = manifest.get("sizes", {})
        for path in manifest.get("files", {}):
            try:
                info = os.lstat(os.path.join(self.tree(name), path))
            except OSError:
                return "%s of release %s is missing" % (path, name)
            if not stat.S_ISREG(info.st_mode) or info.st_size != sizes.get(path, info.st_size):
                return "%s of release %s was changed" % (path, name)
        if thorough:
            found = (self._content_damage(name, manifest, path) for path in manifest.get("files", {}))
            return next((text for text in found if text), None)
        return None

    def firmware_damage(self, name, thorough=False):
        """Why the firmware package of the complete release differs from what was committed, or None."""
        committed = (self.manifest(name) or {}).get("firmware")
        if not isinstance(committed, dict):
            return None
        inside = os.path.join("firmware", os.path.basename(str(committed.get("package"))))
        path = os.path.join(self.release_path(name), inside)
        try:
            info = os.lstat(path)
            same = stat.S_ISREG(info.st_mode) and info.st_size == committed.get("size")
            if same and (not thorough or file_digest(path) == committed.get("sha256")):
                return None
        except OSError as exc:
            return "%s of release %s cannot be read (%s)" % (inside, name, exc.strerror)
        return "%s of release %s was changed" % (inside, name)

    def _content_damage(self, name, manifest, path):
        """Why the content of the file ``path`` differs from what was committed, or None."""
        try:
            if file_digest(os.path.join(self.tree(name), path)) == manifest["files"][path]:
                return None
        except OSError as exc:
            return "%s of release %s cannot be read (%s)" % (path, name, exc.strerror)
        return "%s of release %s was changed" % (path, name)

    def for_kernel(self, name, kernel):
        """The release that npu-driver-select selects instead of the complete release ``name`` on a host that boots ``kernel``.

        It is ``name`` if that is for the kernel, otherwise the newest complete one of its version that is, or None.
        """
        version, own, _digest = parts(name)
        if own == kernel:
            return name
        fit = [other for other in self.releases() if parts(other)[:2] == (version, kernel)]
        return max(fit, key=self._staged_at, default=None)

    def _staged_at(self, name):
        try:
            return os.stat(os.path.join(self.release_path(name), MANIFEST)).st_mtime_ns
        except OSError:
            return 0

    def selected(self):
        """The complete release that the next boot selects if the kernel does not change, or None."""
        targets = (self.target(link) for link in ("next", "good", "driver"))
        return next((name for name in targets if name is not None and self.is_complete(name)), None)

    # Links

    def target(self, link):
        """The name of the release that ``link`` ("driver", "good", "next", "previous") points to, or None.

        Also None if it is not a link, or points to anything but a release.
        """
        value = read_link(os.path.join(self.root, link))
        if value is None:
            return None
        path = os.path.normpath(os.path.join(self.root, value))
        parent, leaf = os.path.split(path)
        above, name = os.path.split(parent)
        if leaf == "driver" and above == self.releases_dir and _NAME.match(name):
            return name
        return None

    def point(self, link, name):
        """Point ``link`` to the complete release ``name`` with one rename; returns whether that was a change."""
        if link not in LINKS:
            raise ValueError(link)
        if not self.is_complete(name):
            raise NpuError("%s is not a complete release below %s" % (name, self.releases_dir), release=name)
        wanted = "releases/%s/driver" % name
        path = os.path.join(self.root, link)
        if read_link(path) == wanted:
            return False
        try:
            link_atomic(wanted, path)
        except OSError as exc:
            if exc.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY):
                raise
            raise NpuError(
                "%s is a mount or a directory that is not empty, not a link of this collection. Move it away, or set "
                "npu_driver_source to preinstalled to keep that driver on this host" % path
            ) from None
        return True

    def remove_link(self, link):
        """Remove ``link``; returns whether it existed."""
        if link not in LINKS:
            raise ValueError(link)
        path = os.path.join(self.root, link)
        if not os.path.islink(path):
            return False
        remove_file(path)
        return True

    # Writing

    @contextlib.contextmanager
    def lock(self, timeout=0):
        """Hold the lock for writing below ``releases``. The kernel releases it if this process is killed.

        Waits at most ``timeout`` seconds, then raises NpuError. Removes what an interrupted run left behind.
        """
        self.prepare()
        with exclusive(os.path.join(self.releases_dir, ".lock"), timeout, "staging a driver"):
            self.clean()
            yield self

    def prepare(self):
        """Create root and releases, regardless of the umask, and refuse directories in which others could replace the driver."""
        for path in (self.root, self.releases_dir):
            if not os.path.isdir(path):
                try:
                    make_directory(path)
                except FileExistsError:
                    raise NpuError("%s is not a directory, but must be one. Move it away and run again" % path) from None
                fsync_directory(os.path.dirname(path))
        self.check_ownership()

    def check_ownership(self, top="/"):
        """Raise NpuError unless root, releases and all directories above, up to ``top``, are writable by root only.

        Otherwise the driver's libraries refuse to work, and a user who can replace them controls the host. A directory with the
        sticky bit (/tmp) is accepted, because other users cannot replace files of root in it.
        """
        path = os.path.realpath(self.releases_dir)
        while True:
            info = os.stat(path)
            if info.st_uid not in (0, os.geteuid()):
                raise NpuError("%s belongs to user ID %d, but must belong to root: chown root %s" % (path, info.st_uid, path))
            if info.st_mode & 0o022 and not info.st_mode & stat.S_ISVTX:
                raise NpuError(
                    "%s is writable by group or others (mode %04o), so it must not contain a driver: chmod go-w %s"
                    % (path, stat.S_IMODE(info.st_mode), path)
                )
            if path in (top, "/"):
                return
            path = os.path.dirname(path)

    def new_directory(self):
        """A new empty directory (mode 0755) below releases in which to build a release; requires the lock."""
        path = tempfile.mkdtemp(prefix=_NEW, dir=self.releases_dir)
        os.chmod(path, 0o755)
        return path

    def commit(self, tmpdir, name, manifest):
        """Turn ``tmpdir`` (from ``new_directory``, with ``driver`` in it) into the release ``name``; requires the lock.

        Syncs all files, writes the manifest last, then renames. If an incomplete release of that name exists, it is removed. If a
        complete one exists, it is kept, and ``tmpdir`` is removed.
        """
        target = self.release_path(name)
        if not os.path.isdir(os.path.join(tmpdir, "driver")):
            raise ValueError("%s has no driver directory" % tmpdir)
        fsync_tree(tmpdir)
        _write_manifest(os.path.join(tmpdir, MANIFEST), manifest)
        if os.path.lexists(target):
            if self.is_complete(name):
                self._remove(os.path.basename(tmpdir))
                return
            self._remove(name)
        os.rename(tmpdir, target)
        fsync_directory(self.releases_dir)

    def put_firmware(self, name, built, entry):
        """Turn the directory ``built`` (in one from ``new_directory``) into the firmware of the complete release ``name``, in place
        of what it has; requires the lock. ``entry``: what the manifest says of it.

        The manifest names it last, and nothing of it before: after any interruption, the release has all of it or none.
        """
        manifest = self.manifest(name)
        path, target = os.path.join(self.release_path(name), MANIFEST), os.path.join(self.release_path(name), "firmware")
        fsync_tree(built)
        if manifest.get("firmware") is not None:
            _write_manifest(path, dict(manifest, firmware=None))
        if os.path.lexists(target):
            os.rename(target, os.path.join(os.path.dirname(built), "replaced"))
        os.rename(built, target)
        fsync_directory(self.release_path(name))
        _write_manifest(path, dict(manifest, firmware=entry))

    def clean(self):
        """Remove what interrupted runs left; requires the lock. Returns the names removed."""
        removed = []
        for entry in sorted(os.listdir(self.releases_dir)):
            leftover = entry.startswith((_NEW, _OLD))
            if leftover or (_NAME.match(entry) and not self.is_complete(entry) and entry not in self.in_use()):
                self._remove(entry)
                removed.append(entry)
        return removed

    def remove(self, name):
        """Remove release ``name``; requires the lock. Raises NpuError if it is in use by a link or a mount."""
        if name in self.in_use():
            raise NpuError("Release %s is in use: a link in %s points to it, or it is mounted" % (name, self.root), release=name)
        self._remove(name)

    def prunable(self, keep=(), kernels=()):
        """The names of the releases that ``prune`` would remove."""
        kept = self.in_use() | self.needed_by(kernels) | set(keep)
        return [name for name in self.releases() if name not in kept]

    def needed_by(self, kernels):
        """Names of the releases that a boot into one of ``kernels`` would select instead of one that a link points to."""
        linked = [name for name in map(self.target, LINKS) if name is not None and self.is_complete(name)]
        needed = {self.for_kernel(name, kernel) for name in linked for kernel in kernels}
        needed.discard(None)
        return needed

    def prune(self, keep=(), kernels=()):
        """Remove all releases that are not in use by a link or a mount, not in ``keep``, and not ``needed_by`` the ``kernels``;
        requires the lock.

        Returns the names removed.
        """
        names = self.prunable(keep, kernels)
        for name in names:
            self._remove(name)
        return names

    def in_use(self):
        """Names of releases that a link in root points to, or that are mounted by any process (including containers)."""
        used = {self.target(link) for link in LINKS} | self.mounted()
        used.discard(None)
        return used

    def mounted(self):
        """Names of releases that are mounted by any process."""
        used = set()
        mounts = host_mounts.paths_of_all()
        try:
            names = os.listdir(self.releases_dir)
        except FileNotFoundError:
            names = []
        for name in names:
            # mountinfo has the path inside its file system, so only the end of the path can be compared.
            end = "/releases/%s" % name
            if any(path.endswith(end) or end + "/" in path for path in mounts):
                used.add(name)
        return used

    def discard(self, name):
        """Remove the damaged release ``name`` so that it can be staged again; requires the lock.

        Raises NpuError if driver or good point to it, or if it is mounted. Other links are kept: they are valid again when it has
        been staged.
        """
        if name in self.running():
            raise NpuError("Release %s is in use: a link in %s points to it, or it is mounted" % (name, self.root), release=name)
        self._remove(name)

    def running(self):
        """Names of the releases that programs may be using: driver, good, and mounted ones."""
        used = {self.target("driver"), self.target("good")} | self.mounted()
        used.discard(None)
        return used

    def _remove(self, entry):
        """Remove ``releases/<entry>`` so that an interruption never leaves a partial release under its name."""
        path = os.path.join(self.releases_dir, entry)
        if not entry.startswith((_NEW, _OLD)):
            trash = tempfile.mkdtemp(prefix=_OLD, dir=self.releases_dir)
            os.rename(path, os.path.join(trash, entry))
            fsync_directory(self.releases_dir)
            path = trash
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)


def _write_manifest(path, manifest):
    write_atomic(path, json.dumps(manifest, indent=1, sort_keys=True) + "\n", 0o444)


def _are_tables(manifest, *names):
    return all(isinstance(manifest.get(name, {}), dict) for name in names)


def file_digest(path):
    """The SHA-256 of the file ``path``, as hexadecimal digits."""
    sha256 = hashlib.sha256()
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(fd, "rb") as stream:
        for block in iter(lambda: stream.read(1024 * 1024), b""):
            sha256.update(block)
    return sha256.hexdigest()


def fsync_tree(top):
    """Sync ``top`` and all files, directories and links below it to disk."""
    for directory, dummy, files in os.walk(top, topdown=False):
        for name in files:
            path = os.path.join(directory, name)
            if os.path.islink(path):
                continue
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
        fsync_directory(directory)
