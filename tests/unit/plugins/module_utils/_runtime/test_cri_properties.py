# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status of a container runtime: any protobuf message, and what is none."""

from __future__ import annotations

import json
import socket
import struct
import tempfile
import threading

from ansible_collections.npuops.ascend.plugins.module_utils._runtime import cri as containerd_cri
from hypothesis import given
from hypothesis import strategies as st

from support.properties import bounded, few, hostile_json

INVALID = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def varint(number):
    parts = []
    while True:
        parts.append(number & 0x7F | (0x80 if number > 0x7F else 0))
        number >>= 7
        if not number:
            return bytes(parts)


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


conditions = st.tuples(st.sampled_from((b"RuntimeReady", b"NetworkReady", b"X")), st.booleans())


def message(listed, config, more=b""):
    status = b"".join(field(1, field(1, name) + (field(2, 1) if on else b"") + field(3, b"why")) for name, on in listed)
    return (
        field(1, status)
        + field(2, field(1, b"golang") + field(2, b'"go1.22"'))
        + more
        + field(2, field(1, b"config") + field(2, config))
    )


@given(
    st.lists(conditions, max_size=3, unique_by=lambda pair: pair[0]),
    st.booleans(),
    st.lists(st.text(max_size=8), max_size=3),
    st.binary(max_size=300),
)
def test_a_status_is_read_as_it_was_sent(listed, cdi, directories, other):
    config = json.dumps({"enableCDI": cdi, "cdiSpecDirs": directories, "containerd": {}}).encode()
    # Fields that this version does not know, of each wire type.
    more = field(9, other) + field(10, 7) + varint(11 << 3 | 5) + b"abcd" + varint(12 << 3 | 1) + b"abcdefgh"
    status = containerd_cri.parse_status(message(listed, config, more))
    assert (status.ready, status.cdi, status.cdi_spec_dirs) == (dict(listed).get(b"RuntimeReady", False), cdi, directories)


@st.composite
def damaged_messages(draw):
    config = draw(hostile_json({"enableCDI": True, "cdiSpecDirs": ["/etc/cdi"]})).encode("utf-8", "surrogatepass")
    content = bytearray(message(draw(st.lists(conditions, max_size=2)), config))
    for _number in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(content)))
        content[place : place + draw(st.integers(0, 3))] = draw(st.one_of(st.binary(max_size=4), st.just(b"\xff" * 12)))
    return bytes(content)


def answered(stream, timeout):
    """``status`` of a runtime that sends exactly these bytes; None if it raises CriError."""
    with tempfile.TemporaryDirectory() as directory, socket.socket(socket.AF_UNIX) as server:
        server.bind(directory + "/s")
        server.listen()

        def serve():
            connection, _address = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(stream)
                connection.shutdown(socket.SHUT_WR)
                connection.settimeout(60)
                try:
                    while connection.recv(65536):
                        pass
                except OSError:
                    pass

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            return containerd_cri.status(directory + "/s", timeout)
        except containerd_cri.CriError as exc:
            assert directory in str(exc)
            return None
        finally:
            thread.join()


def frame(kind, flags, stream, payload):
    return struct.pack(">IBI", len(payload) << 8 | kind, flags, stream) + payload


@few
@given(damaged_messages(), st.binary(max_size=30), st.integers(0, 12), st.integers(0, 9))
def test_a_status_is_a_value_or_a_cri_error(content, noise, kind, padding):
    with bounded():
        body = struct.pack(">BI", 0, len(content)) + content
        padded = frame(0, 0x8, 1, bytes([padding]) + body + b"\0" * padding)
        end = frame(1, 0x5, 1, b"")
        one = answered(frame(4, 0, 0, b"") + frame(0, 0, 1, body) + end, 60)
        other = answered(padded + frame(kind if kind not in (3, 7) else 2, 0, 3, noise) + end, 60)
        assert (one and vars(one)) == (other and vars(other))
        for stream in (noise, frame(kind, kind, 1, noise), frame(0, 0x9, 1, noise[:1])):
            found = answered(stream, 60)
            assert found is None or isinstance(found.ready, bool)


@given(st.one_of(damaged_messages(), st.binary(max_size=40)))
def test_a_message_is_a_status_or_invalid(content):
    try:
        with bounded():
            status = containerd_cri.parse_status(content)
    except INVALID:
        return
    assert isinstance(status.ready, bool) and isinstance(status.cdi, bool) and isinstance(status.cdi_spec_dirs, list)


@few
@given(st.sampled_from((b"\xff", b"\x80", b"\x08\x01", b"\x0a\x00", b"\x12\xff\xff\xff\x7f")))
def test_a_megabyte_is_read_or_refused_in_time(piece):
    try:
        with bounded():
            containerd_cri.parse_status(piece * (2**20 // len(piece)))
    except INVALID:
        pass
