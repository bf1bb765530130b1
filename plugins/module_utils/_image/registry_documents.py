# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What registries send as JSON, checked before anybody relies on its shape."""

from __future__ import annotations

import json
import re

# An image has some ten layers, an index some ten platforms.
MAX_ENTRIES = 1000
# An exabyte is no layer.
_MAX_SIZE = 2**50

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}\Z")
_NUMBER = re.compile(r"[0-9]{1,16}\Z", re.ASCII)


def is_digest(text):
    """Whether ``text`` is a sha256 digest as registries write it."""
    return isinstance(text, str) and bool(_DIGEST.match(text))


def number(text):
    """The number in a header, or None where there is none."""
    return int(text) if _NUMBER.match(text or "") else None


def parse(content):
    """The JSON object in ``content`` (bytes), or None when it is anything else."""
    try:
        document = json.loads(content.decode("utf-8"))
    # Brackets without end are a RecursionError.
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def is_index(document):
    """Whether the document lists images, instead of being one."""
    return "manifests" in document


def problem(document):
    """Why the document (a dict) is neither an image's manifest nor an index, as part of a sentence, or None."""
    if is_index(document):
        return _list_problem(document["manifests"], "manifests", _entry_problem)
    if "layers" not in document:
        return "it has neither layers nor manifests"
    if not isinstance(document.get("config", {}), dict):
        return "its config is no object"
    annotations = document.get("annotations")
    if annotations is not None and not (
        isinstance(annotations, dict) and all(isinstance(value, str) for value in annotations.values())
    ):
        return "its annotations are no texts"
    return _list_problem(document["layers"], "layers", _layer_problem)


def _list_problem(entries, name, check):
    if not isinstance(entries, list):
        return "its %s are no list" % name
    if len(entries) > MAX_ENTRIES:
        return "it has more than %d %s" % (MAX_ENTRIES, name)
    return next((found for found in map(check, entries) if found), None)


def _layer_problem(layer):
    if not isinstance(layer, dict):
        return "a layer is no object"
    if not is_digest(layer.get("digest")):
        return "a layer has no sha256 digest"
    size = layer.get("size")
    if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= _MAX_SIZE:
        return "it does not tell the size of its layers"
    return None


def _entry_problem(entry):
    if not isinstance(entry, dict) or not isinstance(entry.get("platform") or {}, dict):
        return "one of its manifests is no object with a platform"
    return None if is_digest(entry.get("digest")) else "one of its manifests has no sha256 digest"


def platform(entry):
    """(operating system, architecture) of an entry of an index, as texts."""
    found = entry.get("platform") or {}
    return tuple(found[key] if isinstance(found.get(key), str) else "unknown" for key in ("os", "architecture"))


def media_type(document, header):
    """The media type that the document says it has, else what the header says."""
    said = document.get("mediaType")
    return said if isinstance(said, str) else header
