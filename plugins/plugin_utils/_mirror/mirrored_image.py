# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An image with all that belongs to it: the manifests of its platforms, their layers, and the signatures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, printable
from ansible_collections.npuops.ascend.plugins.module_utils._image import manifests
from ansible_collections.npuops.ascend.plugins.module_utils._image.manifests import Descriptor
from ansible_collections.npuops.ascend.plugins.module_utils._image.reference import Reference
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry_errors import ImageNotFound

# An index of all platforms has about ten manifests, and as many that say how they were built.
_MAX_MANIFESTS = 200
# An index of indexes is allowed by the specification, and seen nowhere.
_MAX_DEPTH = 3
_MAX_CONFIG = 64 * 2**20  # bytes
# Of all manifests of an image, which are kept in memory. Real ones have some KiB each.
_MAX_CONTENT = 16 * 2**20

# (digest or tag) -> descriptor and content of a manifest or index. Raises NpuError, ImageNotFound if it is missing.
Read = Callable[[str], "tuple[Descriptor, bytes]"]


class MemberMissing(NpuError):
    """An index names an image that is not there."""


@dataclass(frozen=True)
class Manifest:
    """A manifest or an index, as the bytes that its digest is of."""

    descriptor: Descriptor
    content: bytes

    @property
    def document(self) -> dict[str, Any]:
        return manifests.parse(self.content) or {}


@dataclass(frozen=True)
class Image:
    """What one name stands for.

    ``reference``: the name at the source; ``manifests``: those that an index names come before it, the last one is what the name
    stands for; ``signature``: whether it is a signature of another image.
    """

    reference: Reference
    manifests: tuple[Manifest, ...]
    signature: bool = False

    @property
    def top(self) -> Manifest:
        return self.manifests[-1]

    @property
    def digest(self) -> str:
        return self.top.descriptor.digest

    @property
    def blobs(self) -> list[Descriptor]:
        """Configurations and layers, each once."""
        found: dict[str, Descriptor] = {}
        for manifest in self.manifests:
            for blob in _blobs(manifest.document):
                found.setdefault(blob.digest, blob)
        return list(found.values())

    @property
    def size(self) -> int:
        """Bytes of all that belongs to it."""
        return sum(blob.size for blob in self.blobs) + sum(len(manifest.content) for manifest in self.manifests)


def read(reference: Reference, read_one: Read, signature: bool = False) -> Image:
    """The image that ``reference`` names, without attestations that are missing: it runs without them. Raises NpuError."""
    found: dict[str, Manifest] = {}
    _descend(str(reference), reference.digest or reference.tag, read_one, found, 0)
    # Python keeps the order of insertion: an index is inserted after what it names.
    return Image(reference, tuple(found.values()), signature)


def _descend(name: str, wanted: str, read_one: Read, found: dict[str, Manifest], depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise NpuError(f"{name} is an index of indexes, more than {_MAX_DEPTH} deep: it is not an image")
    manifest = Manifest(*read_one(wanted))
    document = manifest.document
    if manifests.is_index(document):
        for entry in document["manifests"]:
            if entry["digest"] not in found:
                try:
                    _descend(name, entry["digest"], read_one, found, depth + 1)
                except ImageNotFound:
                    if manifests.is_attestation(entry):
                        continue
                    raise MemberMissing(
                        f"{name} has an image for {printable(manifests.platform_name(entry))} that is missing where it comes from"
                        f" ({entry['digest']}). Push {name} again with all of its platforms, or name an image that is complete"
                    ) from None
    else:
        _check_sizes(name, document)
    if len(found) >= _MAX_MANIFESTS:
        raise NpuError(f"{name} has more than {_MAX_MANIFESTS} manifests: it is not an image")
    if sum(len(one.content) for one in found.values()) + len(manifest.content) > _MAX_CONTENT:
        raise NpuError(f"{name} has manifests of more than {_MAX_CONTENT >> 20} MiB: it is not an image")
    found[manifest.descriptor.digest] = manifest


def _check_sizes(name: str, document: dict[str, Any]) -> None:
    """Layers are checked where manifests are read; the configuration only here."""
    config = document.get("config")
    if config is None:
        return
    size = config.get("size")
    if not manifests.is_digest(config.get("digest")) or not isinstance(size, int) or not 0 <= size <= _MAX_CONFIG:
        raise NpuError(f"{name} has a configuration without a valid digest and size: push the image again")


def _blobs(document: dict[str, Any]) -> Iterator[Descriptor]:
    if manifests.is_index(document):
        return
    for entry in [document["config"]] * ("config" in document) + document["layers"]:
        yield Descriptor(entry["digest"], str(entry.get("mediaType") or ""), entry["size"])


def signature_references(image: Image) -> list[Reference]:
    """Where signatures of the image would be, as preflight looks for them: of the index, and of each image that it names."""
    return [
        Reference(image.reference.registry, image.reference.repository, digest.replace(":", "-") + ".sig", None)
        for digest in (manifest.descriptor.digest for manifest in image.manifests)
    ]
