# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Copies images from a source to a destination: what is missing there, whole, and nothing twice.

Both are registries or a bundle. A destination has an image when its name stands for the image's digest; the name is written last,
so an interrupted copy leaves the previous image, or none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import IO, Any, Protocol

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._image import manifests
from ansible_collections.npuops.ascend.plugins.module_utils._image.manifests import Descriptor
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry_errors import (
    RegistryDenied,
    RegistryError,
    RegistryUnreachable,
)
from ansible_collections.npuops.ascend.plugins.plugin_utils._mirror.mirrored_image import Image

# Layers at once. More do not make a registry faster, and each may need its size on the controller's disk.
_AT_ONCE = 4
# Bytes of the manifests of all images. A real one has some KiB.
_MAX_MANIFESTS = 256 * 2**20

PRESENT, MISSING, DIFFERENT, KEPT = "present", "missing", "different", "kept"


class Source(Protocol):
    """Where images come from. All methods raise NpuError."""

    @property
    def problems(self) -> list[str]:
        """A sentence for each image that images() left out."""

    def images(self) -> Iterator[Image]:
        """The images, in their order."""

    def opened(self, image: Image, blob: Descriptor) -> AbstractContextManager[IO[bytes]]:
        """The blob of the image, to be read."""


class Destination(Protocol):
    """Where images go. All methods raise NpuError."""

    def name(self, image: Image) -> str:
        """The name of the image there."""

    def digest(self, image: Image) -> str | None:
        """The digest that this name has now, None without one."""

    def manifest(self, image: Image) -> dict[str, Any]:
        """The manifest of what has this name now."""

    def has(self, image: Image, blob: Descriptor) -> bool:
        """Whether the blob is there for the image."""

    def place(self, image: Image, blob: Descriptor) -> tuple[str, ...]:
        """What has to be added once, whatever images share it."""

    def begin(self, size: int) -> None:
        """``size`` bytes are going to be added."""

    def add(self, image: Image, blob: Descriptor, source: Any) -> None:
        """Copy the blob of the image from ``source``, a Source."""

    def complete(self, image: Image) -> None:
        """All blobs of the image are present: give it its name."""

    def is_complete(self) -> bool:
        """Whether nothing but images may be missing."""

    def end(self) -> None:
        """All images are complete that could be."""

    def close(self) -> None:
        """Nothing more is asked."""


@dataclass
class Step:
    """What is to be done with one image. ``state``: whether its name is at the destination, and with which digest."""

    image: Image
    name: str
    state: str
    missing: list[Descriptor] = field(default_factory=list)

    @property
    def is_due(self) -> bool:
        return self.state in (MISSING, DIFFERENT)

    @property
    def bytes_missing(self) -> int:
        return sum(blob.size for blob in self.missing)

    def result(self) -> dict[str, Any]:
        return {
            "image": str(self.image.reference),
            "name": self.name,
            "digest": self.image.digest,
            "size": self.image.size,
            "missing": self.bytes_missing,
            "state": self.state,
            "signature": self.image.signature,
        }


class Copy:
    """The copy of all images of ``source`` to ``destination``. Nothing is changed before ``run``."""

    def __init__(self, source: Source, destination: Destination, say: Callable[[str], None]) -> None:
        self._source = source
        self._destination = destination
        self._say = say
        self.steps: list[Step] = []
        self.refused: list[str] = []  # a sentence for each image that the destination did not take

    def plan(self) -> None:
        """Look at the source and the destination. Raises NpuError."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            images = _read(self._source)
            _check_names(self._destination, images)
            self.steps = list(pool.map(self._step, images))
        # What several images share is added once.
        seen: set[tuple[str, ...]] = set()
        for step in self.steps:
            places = [(self._destination.place(step.image, blob), blob) for blob in step.missing]
            step.missing = [blob for place, blob in places if place not in seen]
            seen.update(place for place, _blob in places)

    def _step(self, image: Image) -> Step:
        there = self._destination.digest(image)
        step = Step(image, self._destination.name(image), _state(image, there, self._destination))
        if step.is_due:
            step.missing = [blob for blob in image.blobs if not self._destination.has(image, blob)]
        return step

    @property
    def size(self) -> int:
        """Bytes that have to be copied."""
        return sum(step.bytes_missing for step in self.steps)

    @property
    def problems(self) -> list[str]:
        """A sentence for each image that the source does not have, or not the whole of, or that the destination refused."""
        return self._source.problems + self.refused

    @property
    def is_needed(self) -> bool:
        return any(step.is_due for step in self.steps) or not self._destination.is_complete()

    def run(self) -> None:
        """Carry out the plan. A run that ends in between is continued by the next one. Raises NpuError."""
        try:
            self._destination.begin(self.size)
            due = [step for step in self.steps if step.is_due]
            for step in due:
                self._say(f"{step.name}: {step.bytes_missing >> 20} MiB to copy")
                try:
                    self._add(step)
                    self._destination.complete(step.image)
                except (RegistryUnreachable, RegistryDenied):
                    raise
                except RegistryError as exc:
                    # About this image, such as an index without all of its members, which some registries do not take.
                    self.refused.append(f"{step.name} was not copied: {exc.message}")
            # Without a single image, there is nothing to complete.
            if len(self.refused) < len(self.steps):
                self._destination.end()
        finally:
            self._destination.close()

    def _add(self, step: Step) -> None:
        pool = ThreadPoolExecutor(_AT_ONCE)
        try:
            # list: for the exceptions.
            list(pool.map(lambda blob: self._destination.add(step.image, blob, self._source), step.missing))
        finally:
            # The first failure ends it; what is under way still ends within its limit.
            pool.shutdown(cancel_futures=True)


def _read(source: Source) -> list[Image]:
    """Its images, with all their manifests in memory. Raises NpuError."""
    # Two names of one image have the same signatures.
    found: dict[str, Image] = {}
    left = _MAX_MANIFESTS
    for image in source.images():
        found[str(image.reference)] = image
        left -= sum(len(manifest.content) for manifest in image.manifests)
        if left < 0:
            raise NpuError(f"The images have manifests of more than {_MAX_MANIFESTS >> 20} MiB together. Copy them in several runs")
    return list(found.values())


def _check_names(destination: Destination, images: Iterable[Image]) -> None:
    """Raise NpuError if two images would get one name: a mirror of two registries may have two images of the same path."""
    found: dict[str, Image] = {}
    for image in images:
        # In a registry, a tag stands for one image, whatever digest is named with it.
        name = destination.name(image)
        name = name.rpartition("@")[0] if image.reference.tag and image.reference.digest else name
        other = found.setdefault(name, image)
        if other.digest != image.digest:
            raise NpuError(
                f"{other.reference} and {image.reference} are different images, and both would be {name}."
                + (
                    " Give the tag the same digest wherever it is named"
                    if other.reference.name == image.reference.name
                    else " Give their registries different prefixes: npu_mirror_to and npu_registry_mirror may be mappings"
                )
            )


def _state(image: Image, there: str | None, destination: Destination) -> str:
    if there is None:
        return MISSING
    if there == image.digest:
        return PRESENT
    # An administrator may have signed the image at the destination, too: that signature must not be lost.
    if image.signature and not _signatures(destination.manifest(image)) <= _signatures(image.top.document):
        return KEPT
    return DIFFERENT


def _signatures(document: dict[str, Any]) -> set[str]:
    if manifests.is_index(document):
        return set()  # no form that a signature has
    return {json.dumps([layer["digest"], layer.get("annotations")], sort_keys=True) for layer in document.get("layers", [])}
