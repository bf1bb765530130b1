# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Protocol Buffers at wire level: a message as a list of fields, including unknown ones.

The bridge changes single fields of messages between two other programs. Unknown fields, such as those of later API versions, pass
through unchanged.
"""

from __future__ import annotations

from typing import Iterable, NamedTuple, Union

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class WireError(ValueError):
    """The bytes are not a Protocol Buffers message."""


class Field(NamedTuple):
    """One field as on the wire: ``value`` is an int for VARINT, bytes for all other kinds."""

    number: int
    kind: int
    value: Union[int, bytes]


def decode(data: bytes) -> list[Field]:
    """The fields of a message in their order. Raises WireError."""
    fields = []
    position = 0
    value: Union[int, bytes]
    while position < len(data):
        key, position = _read_varint(data, position)
        number, kind = key >> 3, key & 7
        if number == 0:
            raise WireError("field number 0 at byte %d" % position)
        if kind == VARINT:
            value, position = _read_varint(data, position)
        elif kind == BYTES:
            length, position = _read_varint(data, position)
            value, position = _read_bytes(data, position, length)
        elif kind == FIXED64:
            value, position = _read_bytes(data, position, 8)
        elif kind == FIXED32:
            value, position = _read_bytes(data, position, 4)
        else:
            raise WireError("wire type %d at byte %d" % (kind, position))
        fields.append(Field(number, kind, value))
    return fields


def encode(fields: Iterable[Field]) -> bytes:
    """The message with these fields, in this order."""
    out = bytearray()
    for number, kind, value in fields:
        out += _varint(number << 3 | kind)
        if isinstance(value, int):
            out += _varint(value)
        else:
            if kind == BYTES:
                out += _varint(len(value))
            out += value
    return bytes(out)


def blob(number: int, value: Union[bytes, str]) -> Field:
    """A string, bytes or message field."""
    return Field(number, BYTES, value.encode("utf-8") if isinstance(value, str) else value)


def messages(fields: Iterable[Field], number: int) -> list[bytes]:
    """The values of every field ``number``, which must be a string, bytes or message. Raises WireError."""
    return [content(field) for field in fields if field.number == number]


def content(field: Field) -> bytes:
    """The value of a field that must be a string, bytes or message. Raises WireError."""
    if field.kind != BYTES or not isinstance(field.value, bytes):
        raise WireError("field %d has the wrong wire type" % field.number)
    return field.value


def text(fields: Iterable[Field], number: int) -> str:
    """The string field ``number``, "" if absent; of several, the last, as the format requires. Raises WireError."""
    values = messages(fields, number)
    try:
        return values[-1].decode("utf-8") if values else ""
    except UnicodeDecodeError as exc:
        raise WireError("field %d is not UTF-8" % number) from exc


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    result = 0
    for shift in range(0, 70, 7):
        if position >= len(data):
            raise WireError("message ends inside a number")
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, position
    raise WireError("number of more than 10 bytes before byte %d" % position)


def _read_bytes(data: bytes, position: int, length: int) -> tuple[bytes, int]:
    if position + length > len(data):
        raise WireError("message ends inside a field of %d bytes" % length)
    return data[position : position + length], position + length


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
