# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A package that is an artifact in a registry, as ``oras push`` makes it: a manifest with one file."""

from __future__ import annotations

from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, printable
from ansible_collections.npuops.ascend.plugins.module_utils._image import manifests
from ansible_collections.npuops.ascend.plugins.module_utils._image.reference import parse_reference
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry import RegistryClient
from ansible_collections.npuops.ascend.plugins.plugin_utils._package.download import MAX_BYTES
from ansible_collections.npuops.ascend.plugins.plugin_utils._package.source import PackageSource


class Artifact:
    """The artifact that ``source`` names."""

    def __init__(self, source: PackageSource) -> None:
        self._source = source
        self._reference = parse_reference(source.place)
        self._client = RegistryClient(self._reference.registry, source.username, source.password, source.plain_http, source.ca_file)

    def check(self) -> int:
        """The bytes of its file. Raises NpuError unless it has exactly one, with the right checksum."""
        _descriptor, document = self._manifest()
        layers = document["layers"]
        if len(layers) != 1:
            raise NpuError(
                "%s has %d files; an artifact with a %s has one, the .run file: %s"
                % (self._source.name, len(layers), self._source.what, "oras push REFERENCE FILE:application/octet-stream")
            )
        layer = layers[0]
        if layer["digest"] != self._source.digest:
            raise NpuError(
                "The file in %s has the checksum %s instead of %s: %s or %s is wrong"
                % (self._source.name, layer["digest"], self._source.digest, *map(self._source.variable, (None, "sha256")))
            )
        if layer["size"] > MAX_BYTES:
            raise NpuError("%s has more than %d GiB, which no %s has" % (self._source.name, MAX_BYTES // 2**30, self._source.what))
        return int(layer["size"])

    def signed(self) -> tuple[RegistryClient, str, str]:
        """Client, repository, and the digest that its signature is of."""
        descriptor, _document = self._manifest()
        return self._client, self._reference.repository, descriptor.digest

    def download(self, path: str, seconds: float) -> None:
        """Write its file to ``path``, from where that ends now. Raises NpuError."""
        size = self.check()
        self._client.resume(self._reference.repository, self._source.digest, path, size, seconds)

    def _manifest(self) -> tuple[manifests.Descriptor, dict[str, Any]]:
        name = self._reference.digest or self._reference.tag
        descriptor, document = self._client.manifest(self._reference.repository, name)
        if manifests.is_index(document):
            raise NpuError(
                "%s is an index (%s), not an artifact with one file"
                % (self._source.name, printable(", ".join(manifests.offers(document))) or "empty")
            )
        return descriptor, document
