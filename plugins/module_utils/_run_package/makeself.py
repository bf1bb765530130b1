# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read a self-extracting archive of makeself (.run) without running it.

    a shell script     filesizes="<bytes of the archive>", and skip="<lines of the script>" or: head -n <lines> "$0"
    the archive        a tar file, compressed with gzip, bzip2 or xz, or not at all
    anything else      a signature, for example

Source: https://github.com/megastep/makeself/blob/master/makeself-header.sh
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import os
import re
import stat
import tarfile
import zlib

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, printable
from ansible_collections.npuops.ascend.plugins.module_utils._image import image_files

# The script has some 700 lines; licenses and help texts come on top.
_MAX_SCRIPT = 4 * 2**20
_SIZES = re.compile(rb'^filesizes="([0-9]{1,15})(?: [0-9 ]*)?"', re.MULTILINE)
_LINES = (
    re.compile(rb'^skip="?([0-9]{1,6})"?\s*$', re.MULTILINE),
    re.compile(rb'^offset=[`$(]+head -n ([0-9]{1,6}) "\$0"', re.MULTILINE),
)
_COMPRESSIONS = (
    (b"\x1f\x8b", lambda stream: gzip.GzipFile(fileobj=stream, mode="rb")),
    (b"BZh", bz2.BZ2File),
    (b"\xfd7zXZ\x00", lambda stream: _Xz(stream, _XZ_MEMORY)),
)
_TAR_MAGIC = (257, b"ustar")
_BLOCK = 1024 * 1024
# Bytes of what describes one member, which tarfile keeps in memory. The names are the most of it.
_MAX_HEADERS = 2**16
_MAX_PATH, _MAX_NAME = 1024, 255
# tar fills its last record up, which has 10 KiB by default.
_MAX_PADDING = 2**20
# A package has three times its size, and nothing but a bomb has 200 times. Small ones, as far as they like.
_MAX_RATIO, _SMALL = 200, 2**26
# Memory for xz, whose highest compression level requires 65 MiB.
_XZ_MEMORY = 128 * 2**20
# What to do about a package of a driver or of firmware that cannot be read.
_ADVICE = "Check that it is the %s (.run); if it is, build a driver image of it with npuops.ascend.build_driver_image"
# What a tar file that is not one, or no longer one, makes of tarfile and the decompressors.
_DAMAGES = (tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, ValueError, OSError, RecursionError)


class Package:
    """The .run file at ``path``. Raises NpuError if it is not an archive that can be read here.

    ``size``: of the file, in bytes; ``name``, ``what``: for messages, the latter what it is meant to be; ``advice``: what to do if
    it cannot be read.
    """

    def __init__(self, path, name=None, what="driver package", advice=None):
        self.path = path
        self._advice = advice or _ADVICE % what
        self.name = name or os.path.basename(path)
        self.size = os.path.getsize(path)
        with image_files.opened(path) as stream:
            script = stream.read(_MAX_SCRIPT)
            sizes = _SIZES.search(script)
            lines = next((found for found in (pattern.search(script) for pattern in _LINES) if found), None)
            if not script.startswith(b"#!") or sizes is None or lines is None:
                raise self._unreadable("it is not a self-extracting archive of makeself")
            self._offset = _end_of_line(script, int(lines.group(1)))
            self._length = int(sizes.group(1))
            if self._offset is None:
                raise self._unreadable("its script has fewer lines than it says")
            if self._offset + self._length > self.size:
                raise NpuError(
                    "%s is truncated: it has %d bytes instead of at least %d" % (self.name, self.size, self._offset + self._length)
                )
            stream.seek(self._offset)
            self._unpacked = self._find_compression(stream.read(512))

    def members(self):
        """Yield (path, tarfile.TarInfo, binary stream or None) of everything in the archive, in its order.

        Paths are relative, without "." and "..". A stream is valid until the next member. Raises NpuError if the archive is
        damaged, has a member whose path is not below its top, or one that is not a file, a directory or a link, or unpacks to
        more than a package of its size does.
        """
        with image_files.opened(self.path) as stream:
            stream.seek(self._offset)
            too_long = self._unreadable("what comes before one of its files has more than %d KiB" % (_MAX_HEADERS // 1024))
            unpacked = _Bounded(self._unpacked(_Part(stream, self._length)), _MAX_HEADERS, too_long)
            limit = min(image_files.MAX_BYTES, _SMALL + _MAX_RATIO * self._length)
            with self._damage():
                archive = tarfile.open(fileobj=unpacked, mode="r|")  # type: ignore[call-overload]  # only reads
            with archive:
                count = 0
                while True:
                    with self._damage():
                        member = archive.next()
                    if archive.offset > limit:
                        raise self._unreadable("its content has more than %d MiB, too much for its size" % (limit // 2**20))
                    if member is None:
                        break
                    count += 1
                    if count > image_files.MAX_ENTRIES:
                        raise NpuError("%s has more than %d files" % (self.name, image_files.MAX_ENTRIES))
                    path = self._inside(member)
                    unpacked.end = archive.offset + _MAX_HEADERS
                    yield path, member, _Member(self, archive.extractfile(member)) if member.isreg() else None
                    # tarfile remembers all members.
                    vars(archive)["members"] = []
            # tarfile takes an early end of the archive for its end; the decompressors do not.
            unpacked.end = archive.offset + _MAX_PADDING
            unpacked.problem = self._unreadable("it has data after the end of its archive")
            with self._damage():
                while unpacked.read(_BLOCK):
                    pass

    def extract(self, target, limit=image_files.MAX_BYTES):
        """Extract everything to the directory ``target`` (new); returns the bytes of all files.

        Files belong to this user, and only this user may write them. No link leads out of ``target``. Raises NpuError for what is
        not so, and beyond ``limit`` bytes.
        """
        os.mkdir(target)
        os.chmod(target, 0o755)
        left = limit
        for path, member, stream in self.members():
            if not path:
                continue
            place = os.path.join(target, path)
            _make_parents(target, path, self.name)
            if member.isdir():
                _make_directory(place, path, self.name)
                continue
            if os.path.lexists(place):
                raise NpuError("%s has %s twice" % (self.name, printable(path)))
            if member.issym():
                os.symlink(member.linkname, place)
            elif member.islnk():
                left -= self._copy_hard_link(target, member, place)
            else:
                left -= _write(place, stream, member.mode, left)
            if left < 0:
                raise self._too_large(limit)
        image_files.check(target)
        return limit - left

    def _copy_hard_link(self, target, member, place):
        source = target
        for name in self._normal(member.linkname).split("/"):
            source = os.path.join(source, name)
            # It, or one above it, would lead anywhere.
            if os.path.islink(source):
                raise self._leads_out(member.name, member.linkname)
        with image_files.opened(source) as stream:
            return _write(place, stream, os.fstat(stream.fileno()).st_mode, os.path.getsize(source))

    def _inside(self, member):
        self._check_path(member.name, member.name)
        self._check_path(member.name, member.linkname)
        if member.size < 0:
            raise self._unreadable("%s in it has a negative size" % printable(member.name, 80))
        if not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
            raise NpuError("%s in %s is neither a file, a directory nor a link" % (printable(member.name), self.name))
        path = self._normal(member.name)
        if path.count("/") > image_files.MAX_DEPTH:
            raise NpuError("%s has directories more than %d levels deep" % (self.name, image_files.MAX_DEPTH))
        if member.issym():
            end = os.path.normpath(os.path.join(os.path.dirname(path), member.linkname))
            if os.path.isabs(member.linkname) or end == ".." or end.startswith("../"):
                raise self._leads_out(member.name, member.linkname)
        return path

    def _check_path(self, name, path):
        with self._damage():
            parts = os.fsencode(path).split(b"/")
        if "\0" in path or len(path) > _MAX_PATH or max(map(len, parts)) > _MAX_NAME:
            raise self._unreadable("%s in it has an invalid path or link, or one that is too long" % printable(name, 80))

    def _normal(self, name):
        """The path of a member, without "."; "" for the top."""
        parts = [part for part in name.split("/") if part not in ("", ".")]
        if name.startswith("/") or ".." in parts:
            raise NpuError("The path %s in %s leads out of the package" % (printable(name), self.name))
        return "/".join(parts)

    def _leads_out(self, name, value):
        return NpuError("The link %s -> %s in %s leads out of the package" % (printable(name), printable(value), self.name))

    def _too_large(self, limit):
        return NpuError("The content of %s has more than %d MiB, which is the limit here" % (self.name, limit // 2**20))

    def _find_compression(self, head):
        for magic, unpacked in _COMPRESSIONS:
            if head.startswith(magic):
                return unpacked
        start, magic = _TAR_MAGIC
        if head[start:].startswith(magic):
            return lambda stream: stream
        raise self._unreadable("its content is not compressed with gzip, bzip2 or xz")

    def _unreadable(self, why):
        return NpuError("%s cannot be read without running it: %s. %s" % (self.name, why, self._advice))

    @contextlib.contextmanager
    def _damage(self):
        try:
            yield
        except _DAMAGES as exc:
            raise NpuError("%s is damaged: %s" % (self.name, printable(str(exc) or type(exc).__name__))) from None


class _Bounded:
    """The unpacked archive, to be read up to ``end``. Raises the NpuError ``problem`` beyond it."""

    def __init__(self, stream, end, problem):
        self._stream = stream
        self._position = 0
        self.end = end
        self.problem = problem

    def read(self, size):
        content = self._stream.read(size)
        self._position += len(content)
        if self._position > self.end:
            raise self.problem
        return content


class _Xz:
    """What lzma.LZMAFile is, with a limit for the memory that the archive asks for."""

    def __init__(self, stream, memory):
        self._stream = stream
        self._memory = memory
        self._start()

    def _start(self):
        self._unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=self._memory)

    def read(self, size):
        while True:
            packed = b""
            # pylint takes the attributes of the decompressor for constants.
            if self._unpacker.eof:  # pylint: disable=using-constant-test
                # Another stream may follow, after zeros.
                packed = self._unpacker.unused_data.lstrip(b"\0")
                while not packed:
                    packed = self._stream.read(_BLOCK)
                    if not packed:
                        return b""
                    packed = packed.lstrip(b"\0")
                self._start()
            elif self._unpacker.needs_input:  # pylint: disable=using-constant-test
                packed = self._stream.read(_BLOCK)
                if not packed:
                    raise EOFError("the archive ends too early")
            content = self._unpacker.decompress(packed, size)
            if content:
                return content


class _Part:
    """The next ``length`` bytes of a stream."""

    def __init__(self, stream, length):
        self._stream = stream
        self._left = length

    def read(self, size=-1):
        content = self._stream.read(self._left if size is None or size < 0 else min(size, self._left))
        self._left -= len(content)
        return content


class _Member:
    """The content of a member; damage is an NpuError."""

    def __init__(self, package, stream):
        self._package = package
        self._stream = stream

    def read(self, size):
        with self._package._damage():
            return self._stream.read(size)


def _end_of_line(content, number):
    """Where the line after the first ``number`` lines begins, or None if there are fewer."""
    position = 0
    for dummy in range(number):
        position = content.find(b"\n", position) + 1
        if not position:
            return None
    return position


def _make_parents(target, path, name):
    parts = path.split("/")[:-1]
    for number in range(len(parts)):
        _make_directory(os.path.join(target, *parts[: number + 1]), "/".join(parts[: number + 1]), name)


def _make_directory(place, path, name):
    """Create a directory, unless there is one. A link in its place is refused, because it would lead elsewhere."""
    try:
        mode = os.lstat(place).st_mode
    except FileNotFoundError:
        os.mkdir(place)
        os.chmod(place, 0o755)
        return
    if not stat.S_ISDIR(mode):
        raise NpuError("%s in %s is %s and also a directory" % (printable(path), name, image_files.kind(mode)))


def _write(place, stream, mode, limit):
    """Write a new file, at most one block more than ``limit`` bytes; returns its size."""
    size = 0
    with open(place, "xb") as target:
        while size <= limit:
            content = stream.read(_BLOCK)
            if not content:
                break
            size += len(content)
            target.write(content)
        os.fchmod(target.fileno(), stat.S_IMODE(mode) & 0o755 | 0o400)
    return size
