# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node agent's image: one index, with an image for each architecture that consists of the base image and one layer."""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._image import index, manifests, oci
from ansible_collections.npuops.ascend.plugins.module_utils._image.manifests import Descriptor
from ansible_collections.npuops.ascend.plugins.module_utils._image.reference import Reference
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry import RegistryClient
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry_errors import ImageNotFound
from ansible_collections.npuops.ascend.plugins.plugin_utils._agent_image import program, wheels
from ansible_collections.npuops.ascend.plugins.plugin_utils._agent_image.base import Base, BaseImage

ARCHITECTURES = tuple(wheels.MACHINES)


@dataclass(frozen=True)
class _Platform:
    """The image for one architecture."""

    architecture: str
    layers: list[oci.Layer]
    config: bytes
    manifest: bytes
    variant: str | None

    @property
    def digest(self) -> str:
        return manifests.sha256(self.manifest)

    def entry(self) -> dict[str, Any]:
        descriptor = Descriptor(self.digest, manifests.OCI_MANIFEST, len(self.manifest))
        return index.entry(descriptor, {"os": "linux", "architecture": self.architecture, "variant": self.variant})


class AgentImage:
    """The image, to be pushed as ``reference`` to the ``client``'s registry.

    ``wheels_from``: a directory with the wheels, None to let pip download them; ``workdir``: for the layers, until it is pushed.
    """

    def __init__(
        self,
        client: RegistryClient,
        reference: Reference,
        base: Base,
        architectures: Sequence[str],
        workdir: Path,
        wheels_from: Path | None = None,
    ) -> None:
        self.client, self.reference, self.base = client, reference, base
        self._workdir = workdir
        self._labels = {
            "org.opencontainers.image.title": "npuops node agent",
            "org.opencontainers.image.version": program.version(),
            # Not its name: the same image from a mirror is the same base.
            "org.opencontainers.image.base.digest": base.digest,
        }
        # What the base image lacks is found out before anything is downloaded.
        images = {architecture: base.image(architecture) for architecture in ARCHITECTURES if architecture in architectures}
        self.platforms = [self._platform(architecture, images[architecture], wheels_from) for architecture in images]
        self.content = index.content([platform.entry() for platform in self.platforms], self._labels)
        self.digest = manifests.sha256(self.content)

    def reason(self) -> str | None:
        """Why the image has to be pushed, as a sentence, or None if the registry already has it under that tag."""
        try:
            there = self.client.resolve(self.reference.repository, self.reference.tag)
        except ImageNotFound:
            return f"{self.reference} does not exist"
        return None if there.digest == self.digest else f"{self.reference} is a different image ({there.digest})"

    def push(self) -> None:
        """Upload what the registry does not have; the tag last."""
        repository = self.reference.repository
        for platform in self.platforms:
            for layer in platform.layers:
                self._push_layer(layer)
            self.client.push_blob(repository, manifests.sha256(platform.config), len(platform.config), io.BytesIO(platform.config))
            self.client.push_manifest(repository, platform.digest, platform.manifest)
        self.client.push_manifest(repository, self.reference.tag, self.content, manifests.OCI_INDEX)

    def _push_layer(self, layer: oci.Layer) -> None:
        if self.client.has_blob(self.reference.repository, layer.digest):
            return
        with _files_in(self._workdir), tempfile.NamedTemporaryFile(dir=self._workdir) as copy:
            if not layer.path:
                self.base.download(layer, copy.name)
            with open(layer.path or copy.name, "rb") as stream:
                self.client.push_blob(self.reference.repository, layer.digest, layer.size, stream)

    def _platform(self, architecture: str, image: BaseImage, wheels_from: Path | None) -> _Platform:
        root = self._workdir / architecture / "root"
        with _files_in(self._workdir):
            write_root(root, architecture, wheels_from)
            own = oci.write_layer(str(root), "", str(self._workdir / architecture / "layer.tar"), compress=False)
        layers = [*image.layers, own]
        config = manifests.encode(_config(image.config, layers, self._labels))
        manifest = oci.manifest(config, layers, self._labels)
        variant = image.config.get("variant")
        return _Platform(architecture, layers, config, manifest, variant if isinstance(variant, str) else None)


@contextlib.contextmanager
def workspace() -> Iterator[Path]:
    """The directory for an image, until it is pushed."""
    with contextlib.ExitStack() as stack:
        with _files_in("$TMPDIR"):
            work = stack.enter_context(tempfile.TemporaryDirectory(prefix="npu-agent-image-"))
        yield Path(work)


@contextlib.contextmanager
def _files_in(directory: Path | str) -> Iterator[None]:
    """Says which of the image's files cannot be read, or written to the directory."""
    try:
        yield
    except OSError as exc:
        of = f" ({exc.filename})" if exc.filename else ""
        raise NpuError(
            f"The node agent's image cannot be built in {directory} on the controller: {exc.strerror}{of}. Correct that, or set "
            "TMPDIR to a directory with more space"
        ) from None


def write_root(root: Path, architecture: str, wheels_from: Path | None = None) -> None:
    """Write what the image has besides its base image to ``root``, a new directory."""
    program.write(root)
    with tempfile.TemporaryDirectory(prefix="npu-agent-wheels-") as downloads:
        if wheels_from is None:
            wheels_from = Path(downloads)
            wheels.download(program.REQUIREMENTS, architecture, wheels_from)
        for wheel in wheels.select(wheels.requirements(program.REQUIREMENTS), architecture, wheels_from):
            wheels.unpack(wheel, root / program.PLACE.lstrip("/"))
    program.open_directories(root)


def _config(base: dict[str, Any], layers: Sequence[oci.Layer], labels: dict[str, str]) -> dict[str, Any]:
    """The image's configuration: the base image's, and what the Containerfile says."""
    settings = {name: value for name, value in (base.get("config") or {}).items() if name != "Cmd"}
    environment = dict(text.partition("=")[::2] for text in settings.get("Env") or [])
    settings.update(
        Env=[f"{name}={value}" for name, value in {**environment, **program.ENVIRONMENT}.items()],
        WorkingDir=program.PLACE,
        Entrypoint=list(program.ENTRYPOINT),
        Labels={**(settings.get("Labels") or {}), **labels},
    )
    history = base.get("history")
    own = {"created": oci.NO_DATE, "created_by": "npuops.ascend.npu_node_agent_image_build"}
    return {
        **{name: base[name] for name in ("architecture", "os", "variant") if base.get(name)},
        "created": oci.NO_DATE,
        "config": settings,
        "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in layers]},
        "history": [*(history if isinstance(history, list) else []), own],
    }
