# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Registries as the source and as the destination of a copy."""

from __future__ import annotations

import contextlib
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._image import manifests
from ansible_collections.npuops.ascend.plugins.module_utils._image.manifests import Descriptor
from ansible_collections.npuops.ascend.plugins.module_utils._image.reference import Reference
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry import RegistryClient
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry_errors import ImageNotFound
from ansible_collections.npuops.ascend.plugins.plugin_utils._mirror import mirrored_image
from ansible_collections.npuops.ascend.plugins.plugin_utils._mirror.mirrored_image import Image

# A layer that is transferred more slowly than that is given up: bytes per second, and seconds for any layer.
_SLOWEST = 32 * 1024
_LEAST_SECONDS = 120


class Registries:
    """The clients of all registries of a run.

    ``access``: keyword arguments of RegistryClient by registry. Others are asked anonymously and with TLS: no registry ever sees
    credentials that were not given for it.
    """

    def __init__(self, access: Mapping[str, dict[str, Any]]) -> None:
        self._access = access
        # A client serves one thread at a time.
        self._local = threading.local()

    def client(self, registry: str) -> RegistryClient:
        clients: dict[str, RegistryClient] = self._local.__dict__.setdefault("clients", {})
        if registry not in clients:
            clients[registry] = RegistryClient(registry, **self._access.get(registry, {}))
        return clients[registry]


class RegistrySource:
    """Images by their names in registries."""

    def __init__(self, registries: Registries, references: list[Reference]) -> None:
        self._registries = registries
        self._references = references
        self.problems: list[str] = []  # a sentence for each image that could not be read, when images() has ended

    def images(self) -> Iterator[Image]:
        """Each image after its signatures: an image without them must not be seen where signatures are required. What is missing
        becomes one of the ``problems``."""
        self.problems.clear()
        for reference in self._references:
            try:
                found = self._with_signatures(reference)
            except (ImageNotFound, mirrored_image.MemberMissing) as exc:
                self.problems.append(exc.message)
                continue
            yield from found

    def _with_signatures(self, reference: Reference) -> list[Image]:
        image = self._read(reference)
        names = mirrored_image.signature_references(image)
        there = [name for name in names if self._registries.client(name.registry).find(name.repository, name.tag)]
        return [*(self._read(name, signature=True) for name in there), image]

    def _read(self, reference: Reference, signature: bool = False) -> Image:
        client = self._registries.client(reference.registry)

        def read_one(wanted: str) -> tuple[Descriptor, bytes]:
            try:
                return client.manifest_content(reference.repository, wanted)
            except ImageNotFound:
                if wanted != reference.digest or not reference.tag:
                    raise
                # A registry that only passes images on may know them by their tags.
                found = client.manifest_content(reference.repository, reference.tag)
                if found[0].digest != wanted:
                    raise
                return found

        return mirrored_image.read(reference, read_one, signature)

    def download(self, image: Image, blob: Descriptor, path: str) -> None:
        """Write the blob to the file ``path``, verified."""
        client = self._registries.client(image.reference.registry)
        client.download(image.reference.repository, blob.digest, path, blob.size, seconds_for(blob))

    @contextlib.contextmanager
    def opened(self, image: Image, blob: Descriptor) -> Iterator[IO[bytes]]:
        """The blob as an open file, verified."""
        with contextlib.ExitStack() as stack:
            directory = "$TMPDIR"
            try:
                directory = tempfile.gettempdir()
                copy = stack.enter_context(tempfile.NamedTemporaryFile(prefix="npu-mirror-"))
                self.download(image, blob, copy.name)
                stream = stack.enter_context(open(copy.name, "rb"))
            except OSError as exc:
                raise NpuError(
                    f"A layer of {image.reference} ({blob.size >> 20} MiB) cannot be kept in {directory}: {exc.strerror}."
                    " Several are kept there at once; for another directory, set TMPDIR"
                ) from None
            yield stream


class RegistryDestination:
    """``target``: the name of an image in the mirror."""

    def __init__(self, registries: Registries, target: Callable[[Reference], Reference]) -> None:
        self._registries = registries
        self.target = target

    def name(self, image: Image) -> str:
        return str(self.target(image.reference))

    def digest(self, image: Image) -> str | None:
        """The digest that the name of the image has there now."""
        target = self.target(image.reference)
        found = self._registries.client(target.registry).find(target.repository, target.tag or target.digest)
        return found.digest if found else None

    def manifest(self, image: Image) -> dict[str, Any]:
        """What the name of the image stands for there now."""
        target = self.target(image.reference)
        content = self._registries.client(target.registry).manifest_content(target.repository, target.tag or target.digest)[1]
        return manifests.parse(content) or {}

    def has(self, image: Image, blob: Descriptor) -> bool:
        target = self.target(image.reference)
        return self._registries.client(target.registry).has_blob(target.repository, blob.digest)

    def place(self, image: Image, blob: Descriptor) -> tuple[str, ...]:
        """What has to be added once: each repository has blobs of its own."""
        return (self.target(image.reference).name, blob.digest)

    def begin(self, size: int) -> None:
        """Nothing to prepare."""

    def add(self, image: Image, blob: Descriptor, source: Any) -> None:
        target = self.target(image.reference)
        with source.opened(image, blob) as stream:
            self._registries.client(target.registry).push_blob(target.repository, blob.digest, blob.size, stream, seconds_for(blob))

    def complete(self, image: Image) -> None:
        """The manifests, those that others name first, and the tag last."""
        target = self.target(image.reference)
        client = self._registries.client(target.registry)
        for manifest in image.manifests[:-1]:
            client.push_manifest(target.repository, manifest.descriptor.digest, manifest.content, manifest.descriptor.media_type)
        top = image.top
        client.push_manifest(target.repository, target.tag or top.descriptor.digest, top.content, top.descriptor.media_type)

    def is_complete(self) -> bool:
        """An image is complete when its name exists."""
        return True

    def end(self) -> None:
        """Nothing to finish."""

    def close(self) -> None:
        """Nothing is held."""


def seconds_for(blob: Descriptor) -> int:
    return _LEAST_SECONDS + blob.size // _SLOWEST
