# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manifests and indexes of images: media types, digests, architectures, and validation of what a registry sent.

Source: https://github.com/opencontainers/image-spec/blob/main/manifest.md
"""

from __future__ import annotations

import collections
import hashlib
import json
import os
import re

OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
OCI_INDEX = "application/vnd.oci.image.index.v1+json"
OCI_CONFIG = "application/vnd.oci.image.config.v1+json"
OCI_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
OCI_LAYER_PLAIN = "application/vnd.oci.image.layer.v1.tar"
OCI_LAYER_ZSTD = "application/vnd.oci.image.layer.v1.tar+zstd"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"
DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"
INDEXES = (OCI_INDEX, DOCKER_LIST)
MANIFESTS = (OCI_MANIFEST, DOCKER_MANIFEST)

# uname -m -> the architecture's name in image indexes.
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "riscv64": "riscv64", "loongarch64": "loong64"}

# The variants that every CPU of an architecture runs, as containerd takes them: an image for another one may not start there.
_VARIANTS = {"arm64": (None, "v8"), "amd64": (None, "v1")}
# Of what describes an image, such as its build and its signature, in indexes that BuildKit makes.
_NO_PLATFORM = "unknown/unknown"

# Limits against invalid documents: real images have about ten layers, real indexes about ten platforms.
MAX_ENTRIES = 1000
_MAX_SIZE = 2**50  # bytes

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}\Z")
_NUMBER = re.compile(r"[0-9]{1,16}\Z", re.ASCII)


Descriptor = collections.namedtuple("Descriptor", "digest media_type size")


def is_digest(text):
    """Whether ``text`` is a digest such as sha256:0123..."""
    return isinstance(text, str) and bool(_DIGEST.match(text))


def sha256(content):
    """The digest of ``content`` (bytes), such as sha256:0123..."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


def architecture(machine=None):
    """The name that image indexes use for ``machine`` (``uname -m``; default: this machine's)."""
    machine = machine or os.uname().machine
    return ARCHITECTURES.get(machine, machine)


def number(text):
    """The number in a header, or None without one."""
    return int(text) if _NUMBER.match(text or "") else None


def parse(content):
    """The JSON object in ``content`` (bytes), or None if it is anything else."""
    try:
        document = json.loads(content.decode("utf-8"))
    # Deep nesting is a RecursionError.
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def encode(document):
    """The JSON object as bytes, always the same for the same object."""
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode("utf-8")


def is_index(document):
    """Whether the document is an index, which lists manifests, rather than a manifest."""
    return "manifests" in document


def problem(document):
    """Why the document (a dict) is neither a valid manifest nor a valid index, as part of a sentence, or None."""
    if is_index(document):
        return _list_problem(document["manifests"], "manifests", _entry_problem)
    if "layers" not in document:
        return "it has neither layers nor manifests"
    if not isinstance(document.get("config", {}), dict):
        return "its config is not an object"
    annotations = document.get("annotations")
    if annotations is not None and not (
        isinstance(annotations, dict) and all(isinstance(value, str) for value in annotations.values())
    ):
        return "its annotations are not strings"
    return _list_problem(document["layers"], "layers", _layer_problem)


def _list_problem(entries, name, check):
    if not isinstance(entries, list):
        return "its %s are not a list" % name
    if len(entries) > MAX_ENTRIES:
        return "it has more than %d %s" % (MAX_ENTRIES, name)
    return next((found for found in map(check, entries) if found), None)


def _layer_problem(layer):
    if not isinstance(layer, dict):
        return "a layer is not an object"
    if not is_digest(layer.get("digest")):
        return "a layer has no sha256 digest"
    size = layer.get("size")
    if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= _MAX_SIZE:
        return "a layer has no valid size"
    return None


def _entry_problem(entry):
    if not isinstance(entry, dict) or not isinstance(entry.get("platform") or {}, dict):
        return "one of its manifests is not an object with a platform"
    return None if is_digest(entry.get("digest")) else "one of its manifests has no sha256 digest"


def image_for(index, wanted):
    """The entry of a valid index for Linux on the architecture ``wanted``, or None."""
    return next((entry for entry in index["manifests"] if is_for(entry, wanted)), None)


def is_for(entry, wanted):
    """Whether the entry of a valid index is an image for Linux that every CPU of the architecture ``wanted`` runs."""
    return is_platform_of(entry.get("platform") or {}, wanted)


def is_platform_of(platform, wanted):
    """Whether an image for ``platform`` (dict with os, architecture and perhaps variant) is one for Linux on ``wanted``."""
    found = _platform(platform)
    return found[:2] == ["linux", wanted] and (found[2:] or [None])[0] in _VARIANTS.get(wanted, (None,))


def platform_name(entry):
    """The platform of an entry of a valid index, such as linux/arm64/v8."""
    return "/".join(_platform(entry.get("platform") or {}))


def is_attestation(entry):
    """Whether an entry of a valid index only says how one of the images was built."""
    annotations = entry.get("annotations")
    said = annotations.get("vnd.docker.reference.type") if isinstance(annotations, dict) else None
    return said == "attestation-manifest" or platform_name(entry) == _NO_PLATFORM


def offers(index):
    """What a valid index has, each platform once, such as linux/arm64/v8. Attestations are manifests without a platform."""
    seen = [platform_name(entry) for entry in index["manifests"]]
    named = list(dict.fromkeys(name for name in seen if name != _NO_PLATFORM))
    return named + (["manifests without a platform"] if _NO_PLATFORM in seen else [])


def _platform(found):
    """[operating system, architecture] of a platform, and the variant if it has one, as strings."""
    parts = [found[key] if isinstance(found.get(key), str) else "unknown" for key in ("os", "architecture")]
    variant = found.get("variant")
    return parts + [variant] if isinstance(variant, str) and variant else parts


def media_type(document, header):
    """The media type in the document; without one, that in the Content-Type header."""
    said = document.get("mediaType")
    return said if isinstance(said, str) else header
