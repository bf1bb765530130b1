# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""gRPC over Unix sockets with messages as bytes, based on grpclib.

grpclib is pure Python and runs in the event loop: it needs no threads, no builds per architecture, and a third of the installed
size of the C library.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
from typing import Any, AsyncGenerator, Awaitable, Callable, Mapping, Optional

import grpclib.client
import grpclib.const
import grpclib.server
from grpclib import GRPCError, Status
from grpclib.encoding.base import CodecBase
from grpclib.exceptions import StreamTerminatedError
from grpclib.protocol import H2Protocol
from h2.exceptions import ProtocolError

Unary = Callable[[bytes], Awaitable[bytes]]
Streaming = Callable[[], AsyncGenerator[bytes, None]]


Stream = grpclib.server.Stream[Any, Any]
Handle = Callable[[Stream], Awaitable[None]]


class PeerGone(Exception):
    """The connection failed, or the peer does not speak gRPC."""


# What grpclib raises when the other side breaks off or breaks the rules.
_BROKEN = (OSError, StreamTerminatedError, ProtocolError, AssertionError, NotImplementedError)


def describe(error: Exception) -> str:
    """The text of an error of this module or of the peer."""
    if isinstance(error, GRPCError):
        return "%s: %s" % (error.status.name, error.message or "no message")
    return str(error) or type(error).__name__


class _Raw(CodecBase):
    __content_subtype__ = "proto"

    def encode(self, message: bytes, message_type: type) -> bytes:
        return message

    def decode(self, data: bytes, message_type: type) -> bytes:
        return data


class Client:
    """One connection to the server on a Unix socket, without reconnects."""

    def __init__(self, channel: grpclib.client.Channel) -> None:
        self._channel = channel

    @classmethod
    async def connect(cls, path: str, timeout: float) -> Client:
        """Raises PeerGone."""
        channel = grpclib.client.Channel(path=path, codec=_Raw())
        try:
            async with asyncio.timeout(timeout):
                await channel.__connect__()
        except (OSError, TimeoutError) as exc:
            channel.close()
            raise PeerGone("cannot connect to %s: %s" % (path, str(exc) or "no response within %g s" % timeout)) from exc
        return cls(channel)

    async def call(self, method: str, request: bytes, timeout: Optional[float]) -> bytes:
        """One response. Raises the server's GRPCError, DEADLINE_EXCEEDED after ``timeout`` seconds, or PeerGone."""
        try:
            self._check()
            return await grpclib.client.UnaryUnaryMethod(self._channel, method, bytes, bytes)(request, timeout=timeout)
        except TimeoutError:
            text = "no response" if timeout is None else "no response within %g s" % timeout
            raise GRPCError(Status.DEADLINE_EXCEEDED, text) from None
        except _BROKEN as exc:
            raise PeerGone(str(exc) or "connection lost") from exc

    async def stream(self, method: str, request: bytes) -> AsyncGenerator[bytes, None]:
        """The responses, until the server ends the stream. Raises GRPCError, PeerGone."""
        try:
            self._check()
            call = grpclib.client.UnaryStreamMethod(self._channel, method, bytes, bytes)
            async with call.open() as stream:
                await stream.send_message(request, end=True)
                async for message in stream:
                    yield message
        except _BROKEN as exc:
            raise PeerGone(str(exc) or "connection lost") from exc

    def close(self) -> None:
        """Drop the connection. Calls in progress end with PeerGone."""
        self._channel.close()

    def _check(self) -> None:
        # The channel would silently reconnect, possibly to another process that listens on that path now.
        if not self._channel._connected:
            raise PeerGone("connection lost")


class Server:
    """A gRPC server on a Unix socket to which only root can connect.

    ``unary`` and ``streaming`` map method names to coroutine functions and async generator functions.
    """

    def __init__(self, path: str, unary: Mapping[str, Unary], streaming: Mapping[str, Streaming]) -> None:
        self.path = path
        self._grpc = _GrpcServer([_Service(unary, streaming)], codec=_Raw())
        self._identity: Optional[tuple] = None

    async def start(self) -> None:
        """Listen, and replace an existing socket. Raises OSError."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        mask = os.umask(0o177)
        try:
            await self._grpc.start(path=self.path)
        finally:
            os.umask(mask)
        self._identity = socket_identity(self.path)

    def in_place(self) -> bool:
        """Whether the file at the path is still this socket. A starting kubelet removes all sockets in its directory."""
        return self._identity is not None and socket_identity(self.path) == self._identity

    def close(self) -> None:
        """Stop listening, cancel calls in progress, drop the connections, and remove the socket."""
        if self._identity is None:
            return
        if self.in_place():
            os.unlink(self.path)
        self._identity = None
        self._grpc.close()
        self._grpc.drop_connections()


def socket_identity(path: str) -> Optional[tuple]:
    """The identity of the socket file at ``path``; None if there is none. The inode number is not enough, because it is reused."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (found.st_dev, found.st_ino, found.st_ctime_ns) if stat.S_ISSOCK(found.st_mode) else None


class _GrpcServer(grpclib.server.Server):
    """grpclib's server stops listening on close() but leaves connections open, and their peers waiting."""

    def _protocol_factory(self) -> H2Protocol:
        protocol = super()._protocol_factory()
        self._open = [known for known in getattr(self, "_open", []) if not known.connection.is_closing()]
        made = protocol.connection_made

        def connection_made(transport: asyncio.BaseTransport) -> None:
            made(transport)
            self._open.append(protocol)

        protocol.connection_made = connection_made  # type: ignore[method-assign]  # grpclib offers no other place
        return protocol

    def drop_connections(self) -> None:
        for protocol in getattr(self, "_open", []):
            protocol.processor.close("server closed")


class _Service:
    def __init__(self, unary: Mapping[str, Unary], streaming: Mapping[str, Streaming]) -> None:
        self._methods = {
            **{name: _handler(_answer(call), grpclib.const.Cardinality.UNARY_UNARY) for name, call in unary.items()},
            **{name: _handler(_stream(call), grpclib.const.Cardinality.UNARY_STREAM) for name, call in streaming.items()},
        }

    def __mapping__(self) -> Mapping[str, grpclib.const.Handler]:
        return self._methods


def _handler(function: Handle, cardinality: grpclib.const.Cardinality) -> grpclib.const.Handler:
    return grpclib.const.Handler(function, cardinality, bytes, bytes)


def _answer(call: Unary) -> Handle:
    async def handle(stream: Stream) -> None:
        request = await stream.recv_message()
        if request is None:
            raise GRPCError(Status.INVALID_ARGUMENT, "no request message")
        await stream.send_message(await call(request))

    return handle


def _stream(call: Streaming) -> Handle:
    async def handle(stream: Stream) -> None:
        await stream.recv_message()
        await stream.send_initial_metadata()
        async with contextlib.aclosing(call()) as messages:
            async for message in messages:
                await stream.send_message(message)

    return handle
