# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A bundle: a directory that holds images on their way to the other side of an air gap.

It is an OCI image layout, so that skopeo, crane, oras and others read it, and SHA256SUMS, which ``sha256sum -c`` reads.
SHA256SUMS is written last: a bundle without it is not complete. Where images are added to a complete one, it goes when the first of
them gets its name, and comes back at the end, also of a run that fails.

Source: https://github.com/opencontainers/image-spec/blob/main/image-layout.md
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from typing import IO, Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, printable
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import fsync_directory, write_atomic
from ansible_collections.npuops.ascend.plugins.module_utils._image import manifests
from ansible_collections.npuops.ascend.plugins.module_utils._image.manifests import Descriptor
from ansible_collections.npuops.ascend.plugins.module_utils._image.reference import Reference, parse_reference
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry_errors import ImageNotFound
from ansible_collections.npuops.ascend.plugins.plugin_utils._mirror import mirrored_image
from ansible_collections.npuops.ascend.plugins.plugin_utils._mirror.mirrored_image import Image

LAYOUT, INDEX, SUMS = "oci-layout", "index.json", "SHA256SUMS"
_BLOBS = "blobs/sha256"
_LAYOUT_TEXT = b'{"imageLayoutVersion":"1.0.0"}'
# The annotation by which other tools choose an image of a layout.
_NAME = "org.opencontainers.image.ref.name"

_PARTIAL = ".partial-"
# What a killed run may leave: a blob that was not whole, and the temporary files of write_atomic.
_LEFT = re.compile(r"\.partial-|\.(oci-layout|index\.json|SHA256SUMS|[0-9a-f]{64})\.[a-z0-9_]+\Z")
_HEX = re.compile(r"[0-9a-f]{64}\Z")
# Two blanks, as sha256sum writes text and binary files alike on Linux. No other file name can be in it.
_LINE = re.compile(r"([0-9a-f]{64})  (oci-layout|index\.json|blobs/sha256/[0-9a-f]{64})\Z")
_MAX_SMALL = 16 * 2**20  # bytes of SHA256SUMS and index.json
_MAX_MANIFEST = 4 * 2**20
_CHUNK = 2**20
# Free besides the images themselves, for the files that describe them.
_MARGIN = 64 * 2**20


class Bundle:
    """The bundle in the directory ``path``."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._lock: int | None = None
        self._was_complete = False
        # The checksums that ``verify`` found right.
        self._verified: dict[str, str] = {}

    def _file(self, name: str) -> str:
        return os.path.join(self.path, name)

    def _blob(self, digest: str) -> str:
        return self._file(f"{_BLOBS}/{digest.partition(':')[2]}")

    # Reading

    @property
    def problems(self) -> list[str]:
        """None: a bundle that is not whole is damaged."""
        return []

    def verify(self, checksum: str | None = None) -> str:
        """Compare every file with its checksum; returns the checksum of SHA256SUMS. Raises NpuError, which names the file."""
        if not os.path.lexists(self._file(SUMS)):
            raise NpuError(
                f"{self.path} (npu_mirror_from) is not a complete bundle: it has no {SUMS}. Where it was made, run"
                " npuops.ascend.mirror with npu_mirror_to again, which continues; then copy the whole directory"
            )
        self._check_directories()
        sums = self._read(SUMS, _MAX_SMALL)
        found = hashlib.sha256(sums).hexdigest()
        if checksum and checksum.lower().removeprefix("sha256:") != found:
            raise NpuError(
                f"{self._file(SUMS)} has the checksum {found}, and npu_mirror_checksum is {checksum}: it is another bundle"
            )
        listed = self._parse(sums)
        for name in (LAYOUT, INDEX):
            if name not in listed:
                raise NpuError(f"{self._file(SUMS)} does not list {name}: the bundle is damaged. Copy it again")
        for name, wanted in listed.items():
            path = self._file(name)
            if _hash(path) != wanted:
                raise NpuError(f"{path} does not match its checksum in {SUMS}: the bundle is damaged. Copy it again")
        # What is read from here on is compared again: the medium may be a share.
        self._verified = listed
        for digest in sorted(self._needed()):
            if f"{_BLOBS}/{digest.partition(':')[2]}" not in listed:
                raise NpuError(f"{self._file(SUMS)} does not list {self._blob(digest)}: the bundle is damaged. Copy it again")
        return found

    def _parse(self, sums: bytes) -> dict[str, str]:
        listed: dict[str, str] = {}
        # The last line must also end with a newline: otherwise the file is cut off, perhaps by whole lines.
        lines = sums.decode("ascii", "replace").split("\n")
        if lines.pop():
            raise NpuError(f"{self._file(SUMS)} is cut off, or is none of a bundle. Copy it again")
        for number, line in enumerate(lines, start=1):
            match = _LINE.match(line)
            if not match or match.group(2) in listed:
                raise NpuError(
                    f"{self._file(SUMS)}, line {number}, is not a checksum of a file of a bundle: {printable(line, 120)}"
                )
            listed[match.group(2)] = match.group(1)
        return listed

    def images(self) -> Iterator[Image]:
        """Each image, after its signatures. Raises NpuError."""
        for reference, digest in self._entries():

            def read_one(wanted: str, reference: Reference = reference, digest: str = digest) -> tuple[Descriptor, bytes]:
                # The name of the image stands for its digest; everything else is named by digest.
                if wanted == (reference.digest or reference.tag):
                    return self._manifest(digest, str(reference))
                if not os.path.lexists(self._blob(wanted)):
                    raise ImageNotFound(f"{self._blob(wanted)} is missing")
                return self._manifest(wanted, str(reference))

            yield mirrored_image.read(reference, read_one, signature=_is_signature(reference))

    def _entries(self) -> list[tuple[Reference, str]]:
        """Name and digest of each image in index.json; signatures first."""
        path = self._file(INDEX)
        document = manifests.parse(self._read(INDEX, _MAX_SMALL))
        if document is None or not manifests.is_index(document) or not isinstance(document["manifests"], list):
            raise NpuError(f"{path} is not the index of an image layout")
        found: dict[str, tuple[Reference, str]] = {}
        for entry in document["manifests"]:
            annotations = entry.get("annotations") if isinstance(entry, dict) else None
            name = annotations.get(_NAME) if isinstance(annotations, dict) else None
            if not isinstance(name, str) or not manifests.is_digest(entry.get("digest")):
                raise NpuError(f"{path} has an entry without a name or a digest: npuops.ascend.mirror has not written it")
            try:
                reference = parse_reference(name)
            except NpuError as exc:
                raise NpuError(f"{path}: {printable(exc.message)}") from None
            if name != str(reference):
                raise NpuError(
                    f"{path} names {printable(name)}, which is not a complete name: npuops.ascend.mirror has not written it"
                )
            if reference.digest not in (None, entry["digest"]) or name in found:
                raise NpuError(f"{path} names {printable(name)} twice, or with another digest")
            found[name] = (reference, entry["digest"])
        return sorted(found.values(), key=lambda pair: (not _is_signature(pair[0]), str(pair[0])))

    def _manifest(self, digest: str, name: str) -> tuple[Descriptor, bytes]:
        path = self._blob(digest)
        content = self._read(os.path.relpath(path, self.path), _MAX_MANIFEST)
        if manifests.sha256(content) != digest:
            raise NpuError(f"{path} does not match its name: the bundle is damaged. Copy it again")
        document = manifests.parse(content)
        problem = "it is not a JSON object" if document is None else manifests.problem(document)
        if document is None or problem:
            raise NpuError(f"{path}, a manifest of {printable(name)}, is not valid: {problem}")
        # Registries of before the specification gave the type in a header only.
        default = manifests.OCI_INDEX if manifests.is_index(document) else manifests.OCI_MANIFEST
        return Descriptor(digest, manifests.media_type(document, default), len(content)), content

    @contextlib.contextmanager
    def opened(self, image: Image, blob: Descriptor) -> Iterator[IO[bytes]]:
        """The blob as an open file. Who sends it compares it with its digest."""
        path = self._blob(blob.digest)
        with _opened(path) as stream:
            if os.fstat(stream.fileno()).st_size != blob.size:
                raise NpuError(f"{path} does not have the {blob.size} bytes that {image.reference} says")
            yield stream

    def _read(self, name: str, limit: int) -> bytes:
        path = self._file(name)
        with _opened(path) as stream:
            content = _part(stream, limit + 1, path)
        if len(content) > limit:
            raise NpuError(f"{path} has more than {limit} bytes: it is not part of a bundle")
        if name in self._verified and hashlib.sha256(content).hexdigest() != self._verified[name]:
            raise NpuError(f"{path} changed after it was verified. Copy the bundle to a directory that only you can write to")
        return content

    # Writing

    def name(self, image: Image) -> str:
        return f"{self.path}:{image.reference}"

    def digest(self, image: Image) -> str | None:
        """The digest that the name of the image has in it now, if all of the image is in it."""
        if not os.path.lexists(self._file(INDEX)):
            return None
        digest = next((digest for reference, digest in self._entries() if reference == image.reference), None)
        return digest if digest != image.digest or self._has_all(image) else None

    def manifest(self, image: Image) -> dict[str, Any]:
        """What replaces a signature in a bundle is what the source has now."""
        return image.top.document

    def _has_all(self, image: Image) -> bool:
        return all(map(self._is_whole, [manifest.descriptor.digest for manifest in image.manifests])) and all(
            self.has(image, blob) for blob in image.blobs
        )

    def has(self, image: Image, blob: Descriptor) -> bool:
        """Whether the blob is in it, undamaged."""
        return self._is_whole(blob.digest)

    def _is_whole(self, digest: str) -> bool:
        path = self._blob(digest)
        return os.path.lexists(path) and _hash(path) == digest.partition(":")[2]

    def place(self, image: Image, blob: Descriptor) -> tuple[str, ...]:
        """What has to be added once: a blob, whatever image it is of."""
        return (blob.digest,)

    def check(self) -> None:
        """Raise NpuError unless images may be written into the directory; it may be missing."""
        try:
            names = os.listdir(self.path)
        except FileNotFoundError:
            return
        except OSError as exc:
            raise NpuError(f"The directory {self.path} (npu_mirror_to) cannot be read: {exc.strerror}") from None
        if LAYOUT not in names and not all(name == "blobs" or _LEFT.match(name) for name in names):
            raise NpuError(
                f"The directory {self.path} (npu_mirror_to) is neither empty nor a bundle, and is not changed. Name another one"
            )
        self._check_directories()

    def _check_directories(self) -> None:
        """Raise NpuError if a directory of the bundle is a link: a cleanup could remove other files there."""
        for path in map(self._file, ("blobs", _BLOBS)):
            if os.path.islink(path):
                raise NpuError(f"{path} is a link, which no bundle has. Name another directory")

    def begin(self, size: int) -> None:
        """Prepare the directory for ``size`` more bytes."""
        self.check()
        try:
            os.makedirs(self._file(_BLOBS), exist_ok=True)
            self._take_lock()
            self._clean()
            free = os.statvfs(self.path).f_bavail * os.statvfs(self.path).f_frsize
            if free < size + _MARGIN:
                raise NpuError(
                    f"Not enough space in {self.path}: {free >> 20} MiB are free, and {(size + _MARGIN) >> 20} MiB are needed"
                )
            if not os.path.lexists(self._file(LAYOUT)):
                write_atomic(self._file(LAYOUT), _LAYOUT_TEXT)
            self._was_complete = os.path.lexists(self._file(SUMS))
        except OSError as exc:
            raise self._failed(exc) from None

    def _take_lock(self) -> None:
        self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise NpuError(f"Another run is writing to {self.path}. Wait until it ends, then run again") from None

    def close(self) -> None:
        if self._lock is None:
            return
        try:
            if self._was_complete and not os.path.lexists(self._file(SUMS)):
                # The run failed after an image, and each image in the index is whole.
                with contextlib.suppress(NpuError):
                    self.end()
        finally:
            os.close(self._lock)
            self._lock = None

    def _clean(self) -> None:
        """Remove what a killed run left."""
        for directory in (self.path, self._file(_BLOBS)):
            for name in filter(_LEFT.match, os.listdir(directory)):
                os.unlink(os.path.join(directory, name))

    def add(self, image: Image, blob: Descriptor, source: Any) -> None:
        try:
            descriptor, partial = tempfile.mkstemp(prefix=_PARTIAL, dir=self._file(_BLOBS))
            try:
                source.download(image, blob, partial)
                os.fchmod(descriptor, 0o644)
                os.fsync(descriptor)
                os.rename(partial, self._blob(blob.digest))
            except BaseException:
                os.unlink(partial)
                raise
            finally:
                os.close(descriptor)
        except OSError as exc:
            raise self._failed(exc) from None

    def complete(self, image: Image) -> None:
        """The manifests, and the name in the index. From here on, until the end, the bundle is not complete."""
        try:
            for manifest in image.manifests:
                if not self._is_whole(manifest.descriptor.digest):
                    write_atomic(self._blob(manifest.descriptor.digest), manifest.content)
            fsync_directory(self._file(_BLOBS))
            entries = self._named_entries()
            entries[str(image.reference)] = {
                "mediaType": image.top.descriptor.media_type,
                "digest": image.digest,
                "size": len(image.top.content),
                "annotations": {_NAME: str(image.reference)},
            }
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._file(SUMS))
                fsync_directory(self.path)
            self._write_index(entries)
        except OSError as exc:
            raise self._failed(exc) from None

    def _named_entries(self) -> dict[str, dict[str, Any]]:
        if not os.path.lexists(self._file(INDEX)):
            return {}
        self._entries()  # checks the form
        document = manifests.parse(self._read(INDEX, _MAX_SMALL)) or {}
        return {entry["annotations"][_NAME]: entry for entry in document["manifests"]}

    def _write_index(self, entries: dict[str, dict[str, Any]]) -> None:
        document = {
            "schemaVersion": 2,
            "mediaType": manifests.OCI_INDEX,
            "manifests": [entries[name] for name in sorted(entries)],
        }
        write_atomic(self._file(INDEX), manifests.encode(document))

    def is_complete(self) -> bool:
        """Whether its checksums are those of what is in it."""
        return os.path.lexists(self._file(SUMS)) and self._read(SUMS, _MAX_SMALL) == self._sums()

    def end(self) -> None:
        """Remove blobs that no image has any more, and write the checksums."""
        try:
            needed = self._needed()
            lost = [digest for digest in sorted(needed) if not os.path.lexists(self._blob(digest))]
            if lost:
                raise NpuError(f"{self._blob(lost[0])} is not there any more: another run has changed the bundle. Run again")
            for name in os.listdir(self._file(_BLOBS)):
                if _HEX.match(name) and "sha256:" + name not in needed:
                    os.unlink(self._file(f"{_BLOBS}/{name}"))
            write_atomic(self._file(SUMS), self._sums())
        except OSError as exc:
            raise self._failed(exc) from None

    def checksum(self) -> str:
        """The checksum of all checksums: who knows it has a proof of the whole bundle."""
        return hashlib.sha256(self._read(SUMS, _MAX_SMALL)).hexdigest()

    def _sums(self) -> bytes:
        lines = [f"{_hash(self._file(name))}  {name}\n" for name in (INDEX, LAYOUT)]
        # The names of blobs are the checksums that were verified when they were written.
        names = sorted(digest.partition(":")[2] for digest in self._needed())
        return "".join(lines + [f"{name}  {_BLOBS}/{name}\n" for name in names]).encode("ascii")

    def _needed(self) -> set[str]:
        """The digests of all that its images consist of."""
        needed: set[str] = set()
        for image in self.images():
            needed.update(manifest.descriptor.digest for manifest in image.manifests)
            needed.update(blob.digest for blob in image.blobs)
        return needed

    def _failed(self, exc: OSError) -> NpuError:
        where = exc.filename or self.path
        return NpuError(f"{where} cannot be written: {exc.strerror}. What was copied stays; correct that, and run again")


def _is_signature(reference: Reference) -> bool:
    return bool(reference.tag) and bool(re.match(r"sha256-[0-9a-f]{64}\.sig\Z", reference.tag))


def _hash(path: str) -> str:
    found = hashlib.sha256()
    with _opened(path) as stream:
        for chunk in iter(lambda: _part(stream, _CHUNK, path), b""):
            found.update(chunk)
    return found.hexdigest()


def _part(stream: IO[bytes], size: int, path: str) -> bytes:
    try:
        return stream.read(size)
    except OSError as exc:
        raise NpuError(f"{path} cannot be read: {exc.strerror}. The medium may be damaged") from None


@contextlib.contextmanager
def _opened(path: str) -> Iterator[IO[bytes]]:
    """The regular file ``path``. A link or a pipe is refused: a bundle has neither."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as exc:
        raise NpuError(f"{path} cannot be read: {exc.strerror}. The bundle is damaged, or not complete") from None
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise NpuError(f"{path} is not a regular file: it is not part of a bundle")
        yield stream
