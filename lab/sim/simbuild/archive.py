# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Image archives: an OCI layout in a tar, with docker's manifest.json for who wants that. Same input, same bytes."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import tarfile
from dataclasses import dataclass, field
from pathlib import Path

from .tools import digest

_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass
class Layer:
    """Files of a layer, in the order they were added. A path is without the leading slash."""

    members: list[tuple[tarfile.TarInfo, bytes]] = field(default_factory=list)

    def add_directory(self, path: str, mode: int = 0o755) -> None:
        self._add(path, tarfile.DIRTYPE, mode)

    def add_link(self, path: str, to: str) -> None:
        self._add(path, tarfile.SYMTYPE, 0o777, link=to)

    def add_text(self, path: str, text: str, mode: int = 0o644) -> None:
        self._add(path, tarfile.REGTYPE, mode, text.encode())

    def add_file(self, path: str, source: Path, mode: int) -> None:
        self._add(path, tarfile.REGTYPE, mode, source.read_bytes())

    def _add(self, path: str, kind: bytes, mode: int, content: bytes = b"", link: str = "") -> None:
        member = tarfile.TarInfo(path)
        member.type, member.mode, member.linkname, member.size = kind, mode, link, len(content)
        self.members.append((member, content))

    def tar(self) -> bytes:
        return _tar(self.members)


@dataclass
class Image:
    """A name with tag, layers, and what OCI calls the image's `config`."""

    reference: str
    layers: list[Layer]
    config: dict

    def key(self) -> str:
        layers = [hashlib.sha256(layer.tar()).hexdigest() for layer in self.layers]
        return digest(self.reference, json.dumps(self.config, sort_keys=True), *layers)


def write_archive(target: Path, image: Image) -> None:
    """Write the image as the file `target`."""
    blobs: dict[str, bytes] = {}

    def blob(content: bytes, media_type: str) -> dict:
        name = hashlib.sha256(content).hexdigest()
        blobs[name] = content
        return {"mediaType": f"application/vnd.oci.image.{media_type}", "digest": f"sha256:{name}", "size": len(content)}

    tars = [layer.tar() for layer in image.layers]
    layers = [blob(gzip.compress(tar, 6, mtime=0), "layer.v1.tar+gzip") for tar in tars]
    config = blob(
        _json(
            {
                "architecture": _MACHINES[os.uname().machine],
                "os": "linux",
                "config": image.config,
                "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(tar).hexdigest()}" for tar in tars]},
                "history": [{"created_by": "lab/sim/build.py"} for _ in tars],
            }
        ),
        "config.v1+json",
    )
    manifest = blob(
        _json({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config, "layers": layers}),
        "manifest.v1+json",
    )
    manifest["annotations"] = {
        "io.containerd.image.name": image.reference,
        "org.opencontainers.image.ref.name": image.reference.rpartition(":")[2],
    }
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [manifest]}
    docker = [{"Config": _path(config), "RepoTags": [image.reference], "Layers": [_path(layer) for layer in layers]}]
    content = Layer()
    for name in ("blobs", "blobs/sha256"):
        content.add_directory(name)
    for name, data in sorted(blobs.items()):
        content.members.append((_member(f"blobs/sha256/{name}", data), data))
    layout = {"imageLayoutVersion": "1.0.0"}
    for name, value in (("oci-layout", layout), ("index.json", index), ("manifest.json", docker)):
        content.members.append((_member(name, _json(value)), _json(value)))
    target.write_bytes(content.tar())


def _tar(members: list[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for member, content in members:
            archive.addfile(member, io.BytesIO(content) if member.isreg() else None)
    return out.getvalue()


def _member(name: str, content: bytes) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    return member


def _path(descriptor: dict) -> str:
    return "blobs/sha256/" + descriptor["digest"].partition(":")[2]


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()
