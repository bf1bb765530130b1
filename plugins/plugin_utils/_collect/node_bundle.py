# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bundle of a node: a tar.gz of regular files, each with a name and rights that are ours, and their index manifest.json."""

from __future__ import annotations

import io
import json
import os
import tarfile
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._collect.gathered import Gathered
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import write_atomic

SCHEMA = 1
MANIFEST = "manifest.json"
# Of what is missing, on the line of the node.
_MOST_TOLD = 5


def file_name(node: str, created: str) -> str:
    """``created``: UTC, as 20261126T123000Z."""
    return "%s-%s.tar.gz" % (node, created)


def manifest(part: Gathered, about: dict[str, Any]) -> dict[str, Any]:
    """The index; ``about``: what else is known of the bundle."""
    files = [{"name": file["name"], "bytes": len(_data(file)), "source": file["source"], "cut": file["cut"]} for file in part.files]
    return {"schema": SCHEMA, **about, "files": files, "left_out": part.left_out, "more_left_out": part.more_left_out}


def archive(part: Gathered, index: dict[str, Any], top: str, created: int) -> bytes:
    """The tar.gz, with all members in the directory ``top``; ``created``: seconds since 1970."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz", format=tarfile.PAX_FORMAT) as tar:
        _put(
            tar,
            "%s/%s" % (top, MANIFEST),
            (json.dumps(index, indent=1, ensure_ascii=False) + "\n").encode("utf-8", "replace"),
            created,
        )
        for file in part.files:
            _put(tar, "%s/%s" % (top, file["name"]), _data(file), created)
    return stream.getvalue()


def _put(tar: tarfile.TarFile, name: str, data: bytes, created: int) -> None:
    member = tarfile.TarInfo(name)  # a regular file of root's
    member.size, member.mtime, member.mode = len(data), created, 0o600
    tar.addfile(member, io.BytesIO(data))


def _data(file: dict[str, Any]) -> bytes:
    return file["text"].encode("utf-8", "replace")


def write(directory: str, name: str, data: bytes) -> str:
    """Write the file, which only this user may read; returns its path. Raises NpuError."""
    path = os.path.join(os.path.abspath(directory), name)
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        write_atomic(path, data, mode=0o600)
    except OSError as exc:
        raise NpuError(
            "The bundle %s cannot be written: %s. Set npu_collect_dir to a directory in which this user may create files"
            % (path, exc.strerror or exc)
        ) from None
    return path


def missing(part: Gathered) -> list[str]:
    """What is not in the bundle although it exists, each with the reason."""
    lacks = ["%s: %s" % (entry["what"], entry["why"]) for entry in part.left_out if not entry["absent"]]
    if part.more_left_out:
        lacks.append("%d more: the list of what is left out ends before them" % part.more_left_out)
    return lacks


def line(node: str, path: str, size: int, lacks: list[str], more_left_out: int = 0) -> str:
    """What people read of a node. The last of ``lacks`` may stand for ``more_left_out``."""
    told = "%s: %s (%.1f MiB)" % (node, path, size / 2**20)
    if not lacks:
        return told + ", complete"
    more = len(lacks) - _MOST_TOLD + max(0, more_left_out - 1)
    return "%s, without: %s%s" % (
        told,
        "; ".join(lacks[:_MOST_TOLD]),
        "; and %d more, see %s" % (more, MANIFEST) if len(lacks) > _MOST_TOLD else "",
    )
