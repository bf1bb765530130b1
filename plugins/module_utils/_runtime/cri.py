# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Query a container runtime over its CRI socket: whether it responds, and whether CDI is enabled in the running process.

Only the daemon knows its active configuration: the file may be newer, and its timestamp is meaningless after a copy or a clock
change. crictl, which can query the same, is missing on many hosts. So this module implements one call, runtime.v1.Status: one gRPC
request (HTTP/2 with literal headers), the data frames of the response, and the few protobuf fields that matter.
"""

from __future__ import annotations

import json
import socket
import struct
import time

_METHOD = "/runtime.v1.RuntimeService/Status"
_VERBOSE = b"\x08\x01"  # field 1, true
_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _GOAWAY, _WINDOW_UPDATE = 0, 1, 3, 4, 7, 8
_END_STREAM, _END_HEADERS, _PADDED = 0x1, 0x4, 0x8
_WINDOW = 1 << 24  # bytes; a response has some kilobytes
_MAX_FRAMES = 10000  # a limit for responses of tiny frames without end
_VARINT_BITS = 70  # ten bytes with seven bits each
_FRAME_HEADER = struct.Struct(">IBI")


class CriError(Exception):
    """The runtime does not respond; the text says why."""


class CriStatus:
    """``ready``: the condition RuntimeReady; ``cdi``: whether CDI is enabled in the running process, with ``cdi_spec_dirs``;
    ``default_runtime``: (name, program) as a containerd_config.Dump has it, None if the process does not tell.
    """

    def __init__(self, ready, cdi, cdi_spec_dirs, default_runtime=None):
        self.ready = ready
        self.cdi = cdi
        self.cdi_spec_dirs = cdi_spec_dirs
        self.default_runtime = default_runtime


def status(address, timeout=5):
    """The CriStatus of the runtime at the Unix socket ``address``; raises CriError after at most ``timeout`` seconds."""
    try:
        answer = _call(address, _METHOD, _VERBOSE, timeout)
    except (OSError, struct.error) as exc:
        raise CriError("%s: %s" % (address, exc)) from None
    try:
        return parse_status(answer)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        raise CriError("%s: the process that listens there is not a container runtime: its status is invalid" % address) from None


def parse_status(answer):
    """The CriStatus in the bytes of a verbose StatusResponse."""
    ready = False
    config = {}
    for number, value in _fields(answer):
        if number == 1:  # RuntimeStatus
            for dummy, condition in _fields(value):
                fields = dict(_fields(condition))
                if fields.get(1) == b"RuntimeReady":
                    ready = bool(fields.get(2, 0))
        elif number == 2:  # info, a map
            pair = dict(_fields(value))
            if pair.get(1) == b"config":
                config = json.loads(pair.get(2, b"{}").decode("utf-8"))
    # The rest of the configuration may contain registry passwords, so it is not returned.
    # containerd 2.4 has no enableCDI any more: CDI is always enabled.
    return CriStatus(
        ready,
        bool(config.get("enableCDI", "cdiSpecDirs" in config)),
        list(config.get("cdiSpecDirs") or []),
        _default_runtime(config.get("containerd") or {}),
    )


def _default_runtime(config):
    name = config.get("defaultRuntimeName")
    if not name:
        return None
    options = ((config.get("runtimes") or {}).get(name) or {}).get("options") or {}
    return str(name), str(options.get("BinaryName") or "")


def _call(address, method, message, timeout):
    deadline = time.monotonic() + timeout
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout)
        connection.connect(address)
        headers = (
            (":method", "POST"),
            (":scheme", "http"),
            (":path", method),
            (":authority", "localhost"),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
        )
        block = b"".join(b"\x00" + _string(name) + _string(value) for name, value in headers)
        body = struct.pack(">BI", 0, len(message)) + message
        connection.sendall(
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
            + _frame(_SETTINGS, 0, 0, struct.pack(">HI", 4, _WINDOW))
            + _frame(_WINDOW_UPDATE, 0, 0, struct.pack(">I", _WINDOW))
            + _frame(_HEADERS, _END_HEADERS, 1, block)
            + _frame(_DATA, _END_STREAM, 1, body)
        )
        answer = _answer(connection, deadline)
    if len(answer) < 5:
        # The reason is in compressed headers; in practice there is only one.
        raise OSError("containerd responds, but its CRI plugin is not loaded")
    return answer[5 : 5 + struct.unpack(">I", answer[1:5])[0]]


def _answer(connection, deadline):
    """The data of the request's stream, up to its end."""
    answer = b""
    for dummy in range(_MAX_FRAMES):
        length_type, flags, stream_id = _FRAME_HEADER.unpack(_exactly(connection, 9, deadline))
        length, kind = length_type >> 8, length_type & 0xFF
        payload = _exactly(connection, length, deadline)
        if kind == _SETTINGS and not flags & 1:
            connection.sendall(_frame(_SETTINGS, 1, 0, b""))
        elif kind == _GOAWAY:
            raise OSError("the runtime closed the connection")
        elif stream_id == 1 and kind == _DATA:
            if flags & _PADDED:
                if not payload:
                    raise OSError("the runtime sent an invalid frame")
                payload = payload[1 : len(payload) - payload[0]]
            answer += payload
            if len(answer) > _WINDOW:
                break
        elif stream_id == 1 and kind == _RST_STREAM:
            raise OSError("the runtime cancelled the request")
        if stream_id == 1 and kind in (_DATA, _HEADERS) and flags & _END_STREAM:
            return answer
    raise OSError("the response exceeds the limit")


def _frame(kind, flags, stream_id, payload):
    return _FRAME_HEADER.pack(len(payload) << 8 | kind, flags, stream_id) + payload


def _string(text):
    return bytes([len(text)]) + text.encode("ascii")


def _exactly(connection, count, deadline):
    """The next ``count`` bytes, all before the deadline, however slowly they arrive."""
    parts = []
    while count:
        left = deadline - time.monotonic()
        if left <= 0:
            raise OSError("timed out")
        connection.settimeout(left)
        data = connection.recv(min(count, 1 << 16))
        if not data:
            raise OSError("the connection was closed")
        parts.append(data)
        count -= len(data)
    return b"".join(parts)


def _fields(message):
    """(number, value) of each field of a protobuf message; an int for numbers, bytes for all other types."""
    position = 0
    while position < len(message):
        tag, position = _varint(message, position)
        wire = tag & 7
        if wire == 0:
            value, position = _varint(message, position)
        elif wire == 2:
            length, position = _varint(message, position)
            value = message[position : position + length]
            position += length
        else:
            size = {1: 8, 5: 4}[wire]
            value = message[position : position + size]
            position += size
        yield tag >> 3, value


def _varint(message, position):
    value = shift = 0
    while True:
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value, position
        if shift >= _VARINT_BITS:
            raise ValueError("a number that does not end")
