# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The CRI call against a socket that speaks just enough HTTP/2. Real containerd answers it in tests/lab."""

from __future__ import annotations

import json
import socket
import struct
import threading

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._runtime import cri

from support.patience import PATIENCE

DATA, HEADERS, SETTINGS, PING, GOAWAY = 0, 1, 4, 6, 7


def field(number, value):
    """A protobuf field: bytes, text or a number below 128."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    data = value.encode() if isinstance(value, str) else value
    length, size = b"", len(data)
    while True:
        length += bytes([size & 0x7F | (0x80 if size > 0x7F else 0)])
        size >>= 7
        if not size:
            return bytes([number << 3 | 2]) + length + data


def status_response(ready=True, config=None):
    conditions = field(1, field(1, "RuntimeReady") + field(2, int(ready)) + field(3, "")) + field(
        1, field(1, "NetworkReady") + field(2, 0)
    )
    info = field(2, field(1, "golang") + field(2, '"go1.24"'))
    if config is not None:
        info += field(2, field(1, "config") + field(2, json.dumps(config)))
    return field(1, conditions) + info


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">IBI", len(payload) << 8 | kind, flags, stream) + payload


def grpc(message):
    return struct.pack(">BI", 0, len(message)) + message


@pytest.fixture
def serve(tmp_path):
    """Answers one connection with the given bytes; returns the socket's path and what was received."""
    servers = []

    def start(answer, close=False):
        path = str(tmp_path / ("%d.sock" % len(servers)))
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen(1)
        received = []

        def run():
            with listener.accept()[0] as connection:
                received.append(connection.recv(65536))
                connection.sendall(answer)
                while not close and connection.recv(65536):
                    pass

        thread = threading.Thread(target=run)
        thread.start()
        servers.append((listener, thread))
        return path, received

    yield start
    for listener, thread in servers:
        thread.join(PATIENCE)
        listener.close()


def test_answer_in_several_frames(serve):
    config = {"enableCDI": True, "cdiSpecDirs": ["/etc/cdi"], "registry": {"password": "x" * 300}}
    message = grpc(status_response(config=config))
    path, received = serve(
        frame(SETTINGS, 0, 0)
        + frame(PING, 0, 0, b"12345678")
        + frame(HEADERS, 4, 1, b"\x88")
        + frame(DATA, 0, 1, message[:7])
        + frame(DATA, 8, 1, b"\x02" + message[7:] + b"\0\0")
        + frame(HEADERS, 5, 1, b"\x00")
    )
    status = cri.status(path)
    assert (status.ready, status.cdi, status.cdi_spec_dirs) == (True, True, ["/etc/cdi"])
    assert received[0].startswith(b"PRI * HTTP/2.0") and b"/runtime.v1.RuntimeService/Status" in received[0]


@pytest.mark.parametrize(
    "config, expected",
    [
        ({"defaultRuntimeName": "runc", "runtimes": {"runc": {"options": {"SystemdCgroup": True}}}}, ("runc", "")),
        ({"defaultRuntimeName": "a", "runtimes": {"a": {"options": {"BinaryName": "/x"}}}}, ("a", "/x")),
        ({"defaultRuntimeName": "a", "runtimes": {"a": {"options": None}, "b": {}}}, ("a", "")),
        ({"defaultRuntimeName": "a", "runtimes": None}, ("a", "")),
        ({}, None),
        (None, None),
    ],
    ids=["runc", "program", "none", "runtimes", "empty", "null"],
)
def test_default_runtime(config, expected):
    assert cri.parse_status(status_response(config={"containerd": config})).default_runtime == expected


def test_cri_plugin_that_is_not_loaded(serve):
    path = serve(frame(SETTINGS, 0, 0) + frame(HEADERS, 5, 1, b"\x88"))[0]
    with pytest.raises(cri.CriError, match="CRI plugin is not loaded"):
        cri.status(path)


def test_daemon_that_hangs(serve):
    path = serve(frame(SETTINGS, 0, 0))[0]
    with pytest.raises(cri.CriError, match="timed out"):
        cri.status(path, timeout=0.2)


@pytest.mark.parametrize("answer", [b"", frame(GOAWAY, 0, 0), frame(3, 0, 1, b"\0\0\0\0"), b"HTTP/1.1 400 Bad Request\r\n"])
def test_other_ends(serve, answer):
    with pytest.raises(cri.CriError):
        cri.status(serve(answer, close=True)[0], timeout=PATIENCE)


def test_nobody_listens(tmp_path):
    with pytest.raises(cri.CriError, match="No such file"):
        cri.status(str(tmp_path / "none.sock"))


@pytest.mark.parametrize("config", [None, {}, {"enableCDI": False, "cdiSpecDirs": None}])
def test_cdi_off_or_unknown(config):
    status = cri.parse_status(status_response(config=config))
    assert (status.ready, status.cdi, status.cdi_spec_dirs) == (True, False, [])


def test_containerd_2_4_has_no_key_for_what_is_always_enabled():
    status = cri.parse_status(status_response(config={"cdiSpecDirs": ["/etc/cdi"]}))
    assert (status.cdi, status.cdi_spec_dirs) == (True, ["/etc/cdi"])


def test_runtime_that_is_not_ready():
    assert not cri.parse_status(status_response(ready=False)).ready


@pytest.mark.parametrize(
    "message",
    [b"\x0f", b"\x12\xff", b"\xff" * 40] + [field(2, field(1, "config") + field(2, text)) for text in ("[]", "{", b"\xff")],
)
def test_an_answer_that_is_no_status(serve, message):
    path = serve(frame(DATA, 1, 1, grpc(message)))[0]
    with pytest.raises(cri.CriError, match="not a container runtime"):
        cri.status(path)


def test_an_answer_that_does_not_end(serve):
    path = serve(frame(PING, 0, 0) * 20000, close=True)[0]
    with pytest.raises(cri.CriError, match="exceeds the limit"):
        cri.status(path)


def test_an_answer_that_is_sent_byte_by_byte(tmp_path):
    """Each is in time, all of them never are."""
    path = str(tmp_path / "slow.sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(1)
        over = threading.Event()

        def run():
            with listener.accept()[0] as connection:
                connection.sendall(struct.pack(">IBI", 1 << 28 | DATA, 0, 1))
                while not over.wait(0.05):
                    try:
                        connection.sendall(b"\0")
                    except OSError:
                        return

        thread = threading.Thread(target=run)
        thread.start()
        try:
            with pytest.raises(cri.CriError, match="timed out"):
                cri.status(path, timeout=1)
        finally:
            over.set()
            thread.join()


def test_a_padded_frame_without_its_padding(serve):
    with pytest.raises(cri.CriError, match="invalid frame"):
        cri.status(serve(frame(DATA, 0x9, 1, b""), close=True)[0], PATIENCE)


def test_a_number_that_does_not_end():
    """Each byte more made it slower: a mebibyte took minutes."""
    with pytest.raises(ValueError, match="does not end"):
        cri.parse_status(b"\xff" * 2**20)
