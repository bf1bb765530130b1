# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Add driver images to an ImageWhiteList, in the form in which those are written that it has.

The kind has no public definition. So nothing is added where no driver image shows the form, or where several lists have some.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._image.reference import is_registry, parse_reference
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Object

# <HDK>-<chip>-<kernel>-<os>, the tag of a driver image.
_TAG = re.compile(r"[0-9]+\.[0-9A-Za-z.]+-[0-9]{3}[0-9A-Za-z]*-[A-Za-z0-9_.]+-[A-Za-z0-9_.-]+\Z")
_NOT_CONTENT = ("apiVersion", "kind", "metadata", "status")
_MOST_DEPTH = 20


def is_driver_image(image: str) -> bool:
    """Whether the reference has the tag of a driver image."""
    return bool(_TAG.match(parse_reference(image).tag or ""))


def added(item: Object, images: Iterable[str]) -> tuple[Object, list[str]]:
    """(what of the object changes, the new entries) with which it names all ``images``. Raises NpuError."""
    content = {key: copy.deepcopy(value) for key, value in item.items() if key not in _NOT_CONTENT}
    lists = [(key, entries) for key, value in content.items() for entries in _lists(value) if _models(entries)]
    if len(lists) != 1:
        raise NpuError(
            "It has %s in which driver images are named, so it is not clear where and how to add one. Add the first one by hand: %s"
            % ("%d lists" % len(lists) if lists else "no list", ", ".join(images))
        )
    key, entries = lists[0]
    model = _models(entries)[-1]
    new = [entry for entry in dict.fromkeys(_as(model, image) for image in images) if entry not in entries]
    entries.extend(new)
    return ({key: content[key]} if new else {}), new


def _lists(value: Any, depth: int = 0) -> Iterator[list[Any]]:
    """All lists with texts in them, as they are in ``value``."""
    if depth > _MOST_DEPTH:
        return
    if isinstance(value, list) and any(isinstance(entry, str) for entry in value):
        yield value
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for child in children:
        yield from _lists(child, depth + 1)


def _models(entries: list[Any]) -> list[str]:
    """Those entries that name a driver image: a reference with its tag, or the tag alone."""
    return [entry for entry in entries if isinstance(entry, str) and _TAG.match(entry.rpartition(":")[2])]


def _as(model: str, image: str) -> str:
    """The name of ``image`` in the form of ``model``: the tag alone, with the repository, or with registry and repository."""
    reference = parse_reference(image)
    repository, colon, _tag = model.rpartition(":")
    if not colon:
        return str(reference.tag)
    first, slash, _rest = repository.partition("/")
    prefix = reference.registry + "/" if slash and is_registry(first) else ""
    return "%s%s:%s" % (prefix, reference.repository, reference.tag)
