# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host has sent for its bundle, checked: it may be anything, of any size."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._collect import gathered
from ansible_collections.npuops.ascend.plugins.module_utils._collect.host_part import SCHEMA
from ansible_collections.npuops.ascend.plugins.module_utils._collect.member_names import is_member_name
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, printable

# In JSON, a character of a text is two at most. Names, sources and reasons are in addition.
_OVERHEAD = 4 * 2**20
# What gzip adds to what it cannot compress, and Base64 to that.
_ENCODED = 1.4
_MOST_COUNTED = 10**9
_GZIP = 16 + zlib.MAX_WBITS


def add(part: gathered.Gathered, answer: dict[str, Any], limit: int) -> None:
    """Add to ``part`` what the module npu_collect has answered with ``limit``. Raises NpuError, and adds nothing then."""
    content = _content(answer.get("content"), 2 * limit + _OVERHEAD)
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        raise _bad("it has no known schema")
    files, left_out = content.get("files"), content.get("left_out")
    if not isinstance(files, list) or not isinstance(left_out, list):
        raise _bad("it is not a list of files")
    if len(files) > gathered.MOST_FILES or len(left_out) > gathered.MOST_LEFT_OUT:
        raise _bad("it has too many files")
    more = content.get("more_left_out")
    if not isinstance(more, int) or isinstance(more, bool) or not 0 <= more <= _MOST_COUNTED:
        raise _bad("it does not count what is left out")
    names = set()
    for file in files:
        _check(file, {"name": str, "source": str, "text": str, "cut": bool})
        if not is_member_name("host/" + file["name"]) or file["name"] in names:
            raise _bad("%s is not the name of a file, or occurs twice" % printable(repr(file["name"]), 80))
        names.add(file["name"])
    for entry in left_out:
        _check(entry, {"what": str, "why": str, "absent": bool})
    for file in files:
        part.add("host/" + file["name"], file["text"], file["source"], cut=file["cut"])
    for entry in left_out:
        part.leave_out(entry["what"], entry["why"], absent=entry["absent"])
    part.more_left_out += more


def _content(encoded: Any, most: int) -> Any:
    """The JSON in it, of ``most`` bytes."""
    if not isinstance(encoded, str) or len(encoded) > most * _ENCODED:
        raise _bad("it is not a text, or too large")
    try:
        unpacker = zlib.decompressobj(_GZIP)
        text = unpacker.decompress(base64.b64decode(encoded, validate=True), most + 1)
        if len(text) > most:
            raise _bad("it unpacks to more than %d bytes" % most)
        if not unpacker.eof:
            raise _bad("it is cut off")
        return json.loads(text)
    except (ValueError, RecursionError, zlib.error) as exc:
        raise _bad(type(exc).__name__) from None


def _check(entry: Any, fields: dict[str, type]) -> None:
    # True is an int, too.
    if not isinstance(entry, dict) or not all(
        isinstance(entry.get(name), kind) and isinstance(entry[name], bool) == (kind is bool) for name, kind in fields.items()
    ):
        raise _bad("an entry has another form")


def _bad(why: str) -> NpuError:
    return NpuError(
        "The host sent something that is not the answer of npu_collect: %s. Check the host; nothing of the answer is used" % why
    )
