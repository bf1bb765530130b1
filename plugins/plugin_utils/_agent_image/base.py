# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The base image: a Python on Linux, from any registry."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, printable
from ansible_collections.npuops.ascend.plugins.module_utils._image import manifests
from ansible_collections.npuops.ascend.plugins.module_utils._image.oci import Layer
from ansible_collections.npuops.ascend.plugins.module_utils._image.reference import Reference, parse_reference
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry import RegistryClient
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry_errors import (
    ImageNotFound,
    RegistryDenied,
    RegistryError,
)
from ansible_collections.npuops.ascend.plugins.plugin_utils._agent_image import program

# As images/node-agent/Containerfile has it.
DEFAULT = "docker.io/library/python:3.11-slim-bookworm"

_MACHINES = {architecture: machine for machine, architecture in manifests.ARCHITECTURES.items()}
# What layers are called in Docker's manifests, and in OCI's.
_LAYERS = {
    manifests.DOCKER_LAYER: manifests.OCI_LAYER,
    **{name: name for name in (manifests.OCI_LAYER, manifests.OCI_LAYER_PLAIN, manifests.OCI_LAYER_ZSTD)},
}


@dataclass(frozen=True)
class BaseImage:
    """The base image for one architecture."""

    layers: list[Layer]
    config: dict[str, Any]


class Base:
    """The base image ``reference`` in the ``client``'s registry; its digest is looked up once."""

    def __init__(self, client: RegistryClient, reference: str) -> None:
        self.client = client
        self.reference: Reference = parse_reference(reference)
        with self._reading():
            self.digest: str = self.reference.digest or client.resolve(self.reference.repository, self.reference.tag).digest

    @property
    def name(self) -> str:
        """Registry, repository and tag."""
        return str(self.reference._replace(digest=None)) if self.reference.tag else self.reference.name

    def __str__(self) -> str:
        return str(self.reference)

    def image(self, architecture: str) -> BaseImage:
        """The image for ``architecture``. Raises NpuError if there is none, or if it is no base for the node agent."""
        try:
            with self._reading():
                _descriptor, manifest = self.client.image(self.reference.repository, self.digest, _MACHINES[architecture])
                config = self._config(manifest)
        except ImageNotFound as exc:
            raise NpuError(
                f"The base image {self} has nothing for linux/{architecture}: {exc.message}. Set base to an image that has it, "
                f"or remove {architecture} from architectures"
            ) from None
        found = manifests.platform_name({"platform": config})
        if not manifests.is_platform_of(config, architecture):
            raise NpuError(
                f"The base image {self} is for {printable(found)}, not for linux/{architecture}. Set base to an index with both, "
                f"or remove {architecture} from architectures"
            )
        return BaseImage(self._layers(manifest, config), config)

    def download(self, layer: Layer, path: str) -> None:
        """Write a layer of it to a file."""
        with self._reading():
            self.client.download(self.reference.repository, layer.digest, path)

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        """Says which image cannot be read. The other registry, to which the image is pushed, has the same kinds of trouble."""
        try:
            yield
        except RegistryDenied as exc:
            raise NpuError(
                f"The base image {self} cannot be read: {exc.message}, or base_username and base_password of "
                "npu_node_agent_image_build if they are others"
            ) from None
        except ImageNotFound:
            raise
        except RegistryError as exc:
            raise NpuError(f"The base image {self} cannot be read: {exc.message}") from None

    def _config(self, manifest: dict[str, Any]) -> dict[str, Any]:
        digest = manifest.get("config", {}).get("digest")
        found = manifests.parse(self.client.blob(self.reference.repository, digest)) if manifests.is_digest(digest) else None
        if (
            found is None
            or not isinstance(found.get("config") or {}, dict)
            or not _are_texts((found.get("config") or {}).get("Env"))
        ):
            raise NpuError(f"The base image {self} has no configuration that can be read: it is not a container image")
        environment = dict(text.partition("=")[::2] for text in (found.get("config") or {}).get("Env") or [])
        version = environment.get("PYTHON_VERSION")
        if version and version.split(".")[:2] != program.PYTHON.split("."):
            raise NpuError(
                f"The base image {self} has Python {printable(version)}; the node agent needs {program.PYTHON}. Set base to an "
                f"image that has it, such as {DEFAULT}"
            )
        return found

    def _layers(self, manifest: dict[str, Any], config: dict[str, Any]) -> list[Layer]:
        rootfs = config.get("rootfs")
        contents = rootfs.get("diff_ids") if isinstance(rootfs, dict) else None
        if (
            not isinstance(contents, list)
            or len(contents) != len(manifest["layers"])
            or not all(map(manifests.is_digest, contents))
        ):
            raise NpuError(f"The base image {self} is not valid: its configuration names other layers than its manifest")
        layers = []
        for layer, content in zip(manifest["layers"], contents):
            media_type = layer.get("mediaType")
            if media_type not in _LAYERS:
                raise NpuError(f"The base image {self} has a layer of type {printable(str(media_type))}, which cannot be copied")
            layers.append(Layer(None, layer["digest"], layer["size"], content, _LAYERS[media_type]))
        return layers


def _are_texts(found: Any) -> bool:
    """Whether a list in a configuration, which may be missing, has only strings."""
    return found is None or isinstance(found, list) and all(isinstance(text, str) for text in found)
