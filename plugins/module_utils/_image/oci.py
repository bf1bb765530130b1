# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Build container images from files: one reproducible layer, a configuration and a manifest. Needs no container engine."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import stat
import tarfile

from ansible_collections.npuops.ascend.plugins.module_utils._image import manifests
from ansible_collections.npuops.ascend.plugins.module_utils._image.manifests import sha256
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry_errors import ImageNotFound

# No file in an image has a timestamp, so the same files always give the same image.
_NO_TIME = 0
_NO_DATE = "1970-01-01T00:00:00Z"


class Layer:
    """A layer in the file ``path``: ``digest`` and ``size`` of the compressed archive, ``diff_id`` of the uncompressed one."""

    def __init__(self, path, digest, size, diff_id):
        self.path = path
        self.digest = digest
        self.size = size
        self.diff_id = diff_id


def write_layer(tree, prefix, path):
    """Pack the directory ``tree`` as ``prefix`` (a path in the image, "" for its /) into ``path``; returns the ``Layer``.

    Names are sorted, there are no timestamps, root owns everything, and neither group and others may write nor is setuid set.
    """
    with open(path, "wb") as raw:
        packed = _Hashing(raw)
        # The header has neither the file's name nor a timestamp.
        with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=packed, mtime=_NO_TIME) as compressor:
            plain = _Hashing(compressor)
            # Only write() is asked of it, whatever the type of ``fileobj`` says.
            with tarfile.open(fileobj=plain, mode="w|", format=tarfile.GNU_FORMAT) as archive:  # type: ignore[call-overload]
                for name, source in _entries(tree, prefix.strip("/")):
                    _add(archive, name, source)
    return Layer(path, packed.digest, packed.size, plain.digest)


def config(architecture, layers, labels, settings=None):
    """The image configuration as bytes.

    ``settings``: Entrypoint, Env and others. A driver image has none, because no container is ever started from it.
    """
    return _json(
        {
            "architecture": architecture,
            "os": "linux",
            "created": _NO_DATE,
            "config": dict(settings or {}, Labels=labels),
            "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in layers]},
            "history": [{"created": _NO_DATE, "created_by": "npuops.ascend.npu_driver_image_build"} for layer in layers],
        }
    )


def manifest(config_content, layers, annotations):
    """The image manifest as bytes, for a configuration (bytes) and ``Layer`` objects."""
    return _json(
        {
            "schemaVersion": 2,
            "mediaType": manifests.OCI_MANIFEST,
            "config": {
                "mediaType": manifests.OCI_CONFIG,
                "digest": sha256(config_content),
                "size": len(config_content),
            },
            "layers": [{"mediaType": manifests.OCI_LAYER, "digest": layer.digest, "size": layer.size} for layer in layers],
            "annotations": annotations,
        }
    )


def _json(document):
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode("utf-8")


def _entries(tree, prefix):
    """(name in the archive, path) of everything below ``tree``, sorted by name, directories before their content."""
    found = [(prefix, tree)] if prefix else []
    for directory, names, files in os.walk(tree):
        for name in names + files:
            path = os.path.join(directory, name)
            found.append((os.path.join(prefix, os.path.relpath(path, tree)), path))
    return sorted(found)


def _add(archive, name, source):
    info = tarfile.TarInfo(name)
    status = os.lstat(source)
    info.mtime = _NO_TIME
    info.mode = stat.S_IMODE(status.st_mode) & 0o755
    if stat.S_ISLNK(status.st_mode):
        info.type = tarfile.SYMTYPE
        info.mode = 0o777
        info.linkname = os.readlink(source)
        archive.addfile(info)
    elif stat.S_ISDIR(status.st_mode):
        info.type = tarfile.DIRTYPE
        archive.addfile(info)
    elif stat.S_ISREG(status.st_mode):
        info.size = status.st_size
        with open(source, "rb") as stream:
            archive.addfile(info, stream)
    else:
        raise ValueError("%s is not a file, directory or link" % source)


class _Hashing:
    """A file that computes the digest and the size of what is written to it."""

    def __init__(self, target):
        self._target = target
        self._sha256 = hashlib.sha256()
        self.size = 0

    def write(self, data):
        self._sha256.update(data)
        self.size += len(data)
        return self._target.write(data)

    def flush(self):
        self._target.flush()

    @property
    def digest(self):
        return "sha256:" + self._sha256.hexdigest()


class Image:
    """An image with one layer, to be pushed as ``repository``:``tag`` to the ``client``'s registry."""

    def __init__(self, client, repository, tag, layer, architecture, annotations, settings=None):
        self.client = client
        self.repository = repository
        self.tag = tag
        self.layer = layer
        self.config = config(architecture, [layer], annotations, settings)
        self.manifest = manifest(self.config, [layer], annotations)
        self.digest = sha256(self.manifest)

    def reason(self):
        """Why the image has to be pushed, as a sentence, or None if the registry already has it under that tag."""
        name = "%s/%s:%s" % (self.client.registry, self.repository, self.tag)
        try:
            there, document = self.client.image(self.repository, self.tag)
            if there.digest != self.digest:
                digest = document.get("config", {}).get("digest")
                there_config = self.client.blob(self.repository, digest) if manifests.is_digest(digest) else None
                # The compressed layer depends on the version of zlib, its content does not.
                if there_config != self.config or document.get("annotations") != json.loads(self.manifest)["annotations"]:
                    return "%s is a different image (%s)" % (name, there.digest)
            self.digest = there.digest
            return None
        except ImageNotFound:
            return "%s does not exist" % name

    def push(self):
        """Upload what the registry does not have; the tag last."""
        with open(self.layer.path, "rb") as stream:
            self.client.push_blob(self.repository, self.layer.digest, self.layer.size, stream)
        self.client.push_blob(self.repository, sha256(self.config), len(self.config), io.BytesIO(self.config))
        self.client.push_manifest(self.repository, self.tag, self.manifest)
