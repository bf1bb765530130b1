# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages of drivers and firmware from web servers and from the controller as the source of a copy.

Each becomes an artifact, as ``oras push`` makes it. Its name follows from the package's file name and checksum, not from where the
file is: ``localhost/ascend-driver-packages:Ascend-hdk-910b-npu-driver_25.5.0_linux-aarch64-0123456789ab``. In a registry, the
prefix takes the place of ``localhost``. The same package is the same artifact, wherever it comes from.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import posixpath
import re
from collections.abc import Iterator
from typing import IO

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._image import manifests
from ansible_collections.npuops.ascend.plugins.module_utils._image.manifests import Descriptor
from ansible_collections.npuops.ascend.plugins.module_utils._image.reference import Reference
from ansible_collections.npuops.ascend.plugins.plugin_utils._mirror.mirrored_image import Image, Manifest
from ansible_collections.npuops.ascend.plugins.plugin_utils._mirror.registries import RegistrySource
from ansible_collections.npuops.ascend.plugins.plugin_utils._package.source import PackageSource
from ansible_collections.npuops.ascend.plugins.plugin_utils._package.store import Store

# As podman calls images that are of no registry.
_NOWHERE = "localhost"
_REPOSITORY = "ascend-driver-packages"
_NO_TAG = re.compile(r"[^0-9A-Za-z_.-]+")
_MAX_NAME = 100  # of the 128 characters that a tag may have
_TITLE = "org.opencontainers.image.title"
_TYPE = "application/vnd.npuops.ascend.driver-package"
_EMPTY, _EMPTY_TYPE = b"{}", "application/vnd.oci.empty.v1+json"
_FILE_TYPE = "application/octet-stream"
_CHUNK = 2**20


def reference_of(source: PackageSource) -> Reference:
    """The name of the artifact with the package."""
    name = _NO_TAG.sub("-", _file_name(source).removesuffix(".run")).strip("-.")[:_MAX_NAME] or "package"
    return Reference(_NOWHERE, _REPOSITORY, "%s-%s" % (name, source.digest.rpartition(":")[2][:12]), None)


def is_package(image: Image) -> bool:
    """Whether the image is such an artifact."""
    return (image.reference.registry, image.reference.repository) == (_NOWHERE, _REPOSITORY)


class PackageFiles:
    """The packages of ``sources``. Each is downloaded to the ``store`` once, and is there for the next run."""

    def __init__(self, sources: list[PackageSource], store: Store) -> None:
        self._sources = sources
        self._store = store
        self._files: dict[str, str] = {}

    def images(self) -> Iterator[Image]:
        for source in self._sources:
            path = self._files[source.digest] = self._store.file(source)
            yield Image(reference_of(source), (_manifest(source, os.path.getsize(path)),))

    @contextlib.contextmanager
    def opened(self, image: Image, blob: Descriptor) -> Iterator[IO[bytes]]:
        """The blob as an open file. Who sends it compares it with its digest."""
        if blob.digest not in self._files:
            yield io.BytesIO(_EMPTY)
            return
        path = self._files[blob.digest]
        try:
            stream = open(path, "rb")  # noqa: SIM115
        except OSError as exc:
            raise NpuError("The package %s cannot be read on the controller: %s" % (path, exc.strerror)) from None
        with stream:
            yield stream

    def download(self, image: Image, blob: Descriptor, path: str) -> None:
        """Write the blob to the file ``path``, verified: a file on the controller may have changed since it was looked at."""
        found = hashlib.sha256()
        with self.opened(image, blob) as stream, open(path, "wb") as target:
            for chunk in iter(lambda: stream.read(_CHUNK), b""):
                found.update(chunk)
                target.write(chunk)
        if "sha256:" + found.hexdigest() != blob.digest:
            raise NpuError("The package %s changed while it was copied. Run again" % self._files.get(blob.digest, blob.digest))


class JoinedSource:
    """Images of registries, and packages after them."""

    def __init__(self, registries: RegistrySource, packages: PackageFiles) -> None:
        self._registries = registries
        self._packages = packages

    @property
    def problems(self) -> list[str]:
        return self._registries.problems

    def images(self) -> Iterator[Image]:
        yield from self._registries.images()
        yield from self._packages.images()

    def opened(self, image: Image, blob: Descriptor) -> contextlib.AbstractContextManager[IO[bytes]]:
        return self._of(image).opened(image, blob)

    def download(self, image: Image, blob: Descriptor, path: str) -> None:
        self._of(image).download(image, blob, path)

    def _of(self, image: Image) -> RegistrySource | PackageFiles:
        return self._packages if is_package(image) else self._registries


def _file_name(source: PackageSource) -> str:
    return posixpath.basename(source.name)


def _manifest(source: PackageSource, size: int) -> Manifest:
    """Always the same for the same package."""
    file = {"mediaType": _FILE_TYPE, "digest": source.digest, "size": size, "annotations": {_TITLE: _file_name(source)}}
    content = manifests.encode(
        {
            "schemaVersion": 2,
            "mediaType": manifests.OCI_MANIFEST,
            "artifactType": _TYPE,
            "config": {"mediaType": _EMPTY_TYPE, "digest": manifests.sha256(_EMPTY), "size": len(_EMPTY)},
            "layers": [file],
        }
    )
    return Manifest(Descriptor(manifests.sha256(content), manifests.OCI_MANIFEST, len(content)), content)
