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

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import printable
from ansible_collections.npuops.ascend.plugins.module_utils._image import index, manifests
from ansible_collections.npuops.ascend.plugins.module_utils._image.manifests import sha256
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry_errors import ImageNotFound

# No file in an image has a timestamp, so the same files always give the same image.
_NO_TIME = 0
NO_DATE = "1970-01-01T00:00:00Z"


class Layer:
    """A layer in the file ``path``, None for one that is only in a registry.

    ``digest`` and ``size`` of the archive as it is stored, ``diff_id``: digest of the uncompressed one.
    """

    def __init__(self, path, digest, size, diff_id, media_type=manifests.OCI_LAYER):
        self.path = path
        self.digest = digest
        self.size = size
        self.diff_id = diff_id
        self.media_type = media_type


def write_layer(tree, prefix, path, compress=True):
    """Pack the directory ``tree`` as ``prefix`` (a path in the image, "" for its /) into ``path``; returns the ``Layer``.

    Names are sorted, there are no timestamps, root owns everything, and neither group and others may write nor is setuid set.
    ``compress``: without it, the layer is the same byte for byte with every version of zlib.
    """
    with open(path, "wb") as raw:
        packed = _Hashing(raw)
        if not compress:
            _pack(tree, prefix, packed)
            return Layer(path, packed.digest, packed.size, packed.digest, manifests.OCI_LAYER_PLAIN)
        # The header has neither the file's name nor a timestamp.
        with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=packed, mtime=_NO_TIME) as compressor:
            plain = _Hashing(compressor)
            _pack(tree, prefix, plain)
    return Layer(path, packed.digest, packed.size, plain.digest)


def _pack(tree, prefix, target):
    # Only write() is asked of it, whatever the type of ``fileobj`` says.
    with tarfile.open(fileobj=target, mode="w|", format=tarfile.GNU_FORMAT) as archive:
        for name, source in _entries(tree, prefix.strip("/")):
            _add(archive, name, source)


def config(architecture, layers, labels, settings=None):
    """The image configuration as bytes.

    ``settings``: Entrypoint, Env and others. A driver image has none, because no container is ever started from it.
    """
    return manifests.encode(
        {
            "architecture": architecture,
            "os": "linux",
            "created": NO_DATE,
            "config": dict(settings or {}, Labels=labels),
            "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in layers]},
            "history": [{"created": NO_DATE, "created_by": "npuops.ascend.npu_driver_image_build"} for layer in layers],
        }
    )


def manifest(config_content, layers, annotations):
    """The image manifest as bytes, for a configuration (bytes) and ``Layer`` objects."""
    return manifests.encode(
        {
            "schemaVersion": 2,
            "mediaType": manifests.OCI_MANIFEST,
            "config": {
                "mediaType": manifests.OCI_CONFIG,
                "digest": sha256(config_content),
                "size": len(config_content),
            },
            "layers": [{"mediaType": layer.media_type, "digest": layer.digest, "size": layer.size} for layer in layers],
            "annotations": annotations,
        }
    )


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
    """An image with one layer, to be pushed as ``repository``:``tag`` to the ``client``'s registry.

    If the tag has images of other architectures, they stay: the tag becomes an index of all of them.
    """

    def __init__(self, client, repository, tag, layer, architecture, annotations, settings=None):
        self.client = client
        self.repository = repository
        self.tag = tag
        self.layer = layer
        self.architecture = architecture
        self.config = config(architecture, [layer], annotations, settings)
        self.manifest = manifest(self.config, [layer], annotations)
        self.digest = sha256(self.manifest)
        # What the tag has besides this image, as entries of an index, and the annotations of that index.
        self._entries = []
        self._annotations = None

    def reason(self):
        """Why the image has to be pushed, as a sentence, or None if the registry already has it under that tag."""
        name = "%s/%s:%s" % (self.client.registry, self.repository, self.tag)
        self._entries, self._annotations = [], None
        try:
            there, document = self.client.manifest(self.repository, self.tag)
            if manifests.is_index(document):
                self._entries, self._annotations = document["manifests"], document.get("annotations")
                found = manifests.image_for(document, self.architecture)
                if not found:
                    return self._not_for_it(name, manifests.offers(document))
                there, document = self.client.manifest(self.repository, found["digest"])
            else:
                platform = self._platform(document)
                if platform and not manifests.is_platform_of(platform, self.architecture):
                    self._entries = [index.entry(there, platform)]
                    return self._not_for_it(name, [manifests.platform_name(self._entries[0])])
            if there.digest != self.digest and not self._is_same(document):
                return "%s is a different image (%s)" % (name, there.digest)
            self.digest = there.digest
            return None
        except ImageNotFound:
            return "%s does not exist" % name

    def push(self):
        """Upload what the registry does not have; the tag last. Call ``reason`` before: it finds what the tag must keep."""
        with open(self.layer.path, "rb") as stream:
            self.client.push_blob(self.repository, self.layer.digest, self.layer.size, stream)
        self.client.push_blob(self.repository, sha256(self.config), len(self.config), io.BytesIO(self.config))
        if not self._entries:
            self.client.push_manifest(self.repository, self.tag, self.manifest)
            return
        self.client.push_manifest(self.repository, self.digest, self.manifest)
        descriptor = manifests.Descriptor(self.digest, manifests.OCI_MANIFEST, len(self.manifest))
        own = index.entry(descriptor, {"os": "linux", "architecture": self.architecture})
        content = index.content(index.replaced(self._entries, own), self._annotations)
        self.client.push_manifest(self.repository, self.tag, content, manifests.OCI_INDEX)

    def _not_for_it(self, name, offered):
        return "%s has no image for linux/%s, only %s" % (name, self.architecture, printable(", ".join(offered)))

    def _is_same(self, document):
        """Whether the manifest is of this image: the compressed layer depends on the version of zlib, its content does not."""
        if document.get("annotations") != json.loads(self.manifest)["annotations"]:
            return False
        return self._config_of(document) == self.config

    def _platform(self, document):
        """The platform of the image with that manifest, or None if its configuration does not say it."""
        found = manifests.parse(self._config_of(document) or b"") or {}
        platform = {name: found[name] for name in ("os", "architecture", "variant") if isinstance(found.get(name), str)}
        return platform if platform.get("architecture") else None

    def _config_of(self, document):
        digest = document.get("config", {}).get("digest")
        return self.client.blob(self.repository, digest) if manifests.is_digest(digest) else None
