# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The CDI bridge: acts as kubelet for the upstream device plugin, and as device plugin for the kubelet.

    kubelet                                      bridge                                 upstream plugin
    <kubelet dir>/kubelet.sock         <-- Register --  --  Register -->  <plugin dir>/kubelet.sock
    ListAndWatch, Allocate, ...   -->  <kubelet dir>/npuops-*.sock   ...   <plugin dir>/Ascend910.sock

Each program sees its directory as /var/lib/kubelet/device-plugins; that of the plugin is a separate directory on the host. A
Session is one registration of one plugin, until it ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
import time
from dataclasses import dataclass
from typing import AsyncGenerator, Optional

from ansible_collections.npuops.ascend.plugins.module_utils._runtime import runtime_mode
from grpclib import GRPCError, Status

from . import api, ascend_runtime, translate, wire
from .awaited import Awaited
from .cdi_spec import SpecFile
from .changed import Changed
from .hints import Hints
from .marker import Markers
from .metrics import Metrics
from .rpc import Client, PeerGone, Server, describe, socket_identity

log = logging.getLogger(__name__)

KUBELET_SOCKET = "kubelet.sock"
# sun_path has 108 bytes, including the final zero.
_LONGEST_PATH = 107


@dataclass(frozen=True)
class Limits:
    """Time limits and intervals, in seconds."""

    connect: float = 5  # a plugin that registers is listening already
    options: float = 10
    register: float = 30  # includes the kubelet's connection back and its request for options
    stream_opens: float = 2  # from a successful registration to the kubelet's ListAndWatch; more at each retry
    allocate: float = 300  # more than 120 was observed with a wedged plugin
    other_calls: float = 60
    quiet: float = 1.0  # between the end of one stream to the kubelet and the next registration, see _offer
    retry_first: float = 1.0
    retry_longest: float = 10.0
    drain: float = 2.0  # for streams to end on their own before their connection is dropped
    poll: float = 0.5


class Bridge:
    """Serves every plugin that registers, until run() is cancelled."""

    def __init__(
        self,
        kubelet_dir: str,
        plugin_dir: str,
        markers: Markers,
        spec: SpecFile,
        changed: Changed,
        metrics: Metrics,
        hints: Hints,
        limits: Limits = Limits(),
    ) -> None:
        self.kubelet_dir = kubelet_dir
        self.plugin_dir = plugin_dir
        self.markers = markers
        self.spec = spec
        self.changed = changed
        self.metrics = metrics
        self._hints = hints
        self._unhealthy: dict[str, frozenset] = {}
        self.limits = limits
        self.kubelet_identity: Optional[tuple] = None
        self._generation = -1
        self._sessions: dict[str, Session] = {}
        self._tasks: set[asyncio.Task] = set()
        self._stream_ended: dict[str, float] = {}
        self.awaited = Awaited(plugin_dir, KUBELET_SOCKET)

    async def run(self) -> None:
        """Serve until cancelled. Then end the streams and remove the sockets, which does not affect workloads."""
        self.kubelet_identity = socket_identity(self.kubelet_socket)
        self.awaited.begin()
        server: Optional[Server] = None
        complaint = None
        try:
            while True:
                try:
                    if server is None or not server.in_place():
                        server = await self._listen(server)
                        complaint = None
                except OSError as exc:
                    if str(exc) != complaint:
                        complaint = str(exc)
                        log.error("cannot listen for device plugins, retrying: %s", exc)
                self._look()
                await asyncio.sleep(self.limits.poll)
        finally:
            if server is not None:
                server.close()
            for session in self._sessions.values():
                session.end("the agent is stopping")
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=self.limits.drain + 1)

    def translate(self, answer: bytes) -> tuple[bytes, list]:
        """An AllocateResponse in the words of what gives chips to the containers of this host. See the functions that do it."""
        if runtime_mode.read(os.path.join(self.plugin_dir, runtime_mode.NAME)) == runtime_mode.ASCEND:
            return ascend_runtime.allocate(answer)
        return translate.allocate(answer, self.spec.provided_by)

    def _look(self) -> None:
        """Detect a new kubelet.sock and changed markers."""
        self.markers.poll()
        if self._generation != self.markers.generation:
            self._generation = self.markers.generation
            log.info("driver is %s", "ready" if self.markers.ready else "not ready, so all devices are Unhealthy")
            self.count_devices()
        self.see_kubelet()

    def see_kubelet(self) -> Optional[tuple]:
        """The identity of the current kubelet socket, or None."""
        identity = socket_identity(self.kubelet_socket)
        if identity != self.kubelet_identity:
            self.kubelet_identity = identity
            log.info("kubelet socket %s", "is new" if identity else "was removed")
            self.changed.notify()
        return identity

    async def _listen(self, old: Optional[Server]) -> Server:
        if old is not None:
            log.warning("the agent's socket %s was removed, listening again", old.path)
            old.close()
        os.makedirs(self.plugin_dir, mode=0o750, exist_ok=True)
        server = Server(os.path.join(self.plugin_dir, KUBELET_SOCKET), {api.REGISTER: self._register}, {})
        await server.start()
        log.info("waiting for device plugins on %s", server.path)
        return server

    @property
    def kubelet_socket(self) -> str:
        """The registration socket of the kubelet."""
        return os.path.join(self.kubelet_dir, KUBELET_SOCKET)

    async def _register(self, request: bytes) -> bytes:
        """Registration.Register, called by a plugin. As with the kubelet, the plugin retries after an error."""
        try:
            registration = api.Registration.decode(request)
        except ValueError as exc:
            log.warning("refused a registration: %s", exc)
            raise GRPCError(Status.UNKNOWN, "refused: %s" % exc) from exc
        try:
            path = os.path.join(self.plugin_dir, registration.endpoint)
            plugin = await Client.connect(path, self.limits.connect)
        except PeerGone as exc:
            log.warning("refused the registration of %s: %s", registration.resource, exc)
            raise GRPCError(Status.UNKNOWN, str(exc)) from exc
        try:
            options = await plugin.call(api.GET_OPTIONS, b"", self.limits.options)
        except (GRPCError, PeerGone) as exc:
            plugin.close()
            log.warning("refused the registration of %s: cannot get the plugin options: %s", registration.resource, describe(exc))
            raise GRPCError(Status.UNKNOWN, "failed to get device plugin options: %s" % describe(exc)) from exc
        log.info("plugin registered %s", registration.resource, extra={"resource": registration.resource})
        self.metrics.plugin_registrations.inc(resource=registration.resource)
        old = self._sessions.get(registration.resource)
        if old is not None:
            old.end("the plugin registered again")
        session = Session(self, registration, plugin, options)
        self._sessions[registration.resource] = session
        task = asyncio.create_task(self._run(session, old))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return b""

    async def _run(self, session: Session, old: Optional[Session]) -> None:
        try:
            await session.run(old)
        except Exception:
            log.exception("session of %s failed", session.resource, extra={"resource": session.resource})
        finally:
            if self._sessions.get(session.resource) is session:
                del self._sessions[session.resource]
            self.count_devices()
            self.changed.notify()

    def stream_ended(self, resource: str) -> None:
        """Record that the kubelet's stream of this resource has ended."""
        self._stream_ended[resource] = time.monotonic()

    def quiet_for(self, resource: str) -> float:
        """Seconds until this resource may be registered with the kubelet again."""
        ended = self._stream_ended.get(resource)
        return 0.0 if ended is None else max(0.0, ended + self.limits.quiet - time.monotonic())

    def listed(self, resource: str, devices: dict) -> None:
        """The plugin has listed ``devices`` with their health. It hears of faults from the driver, so it often knows first."""
        unhealthy = frozenset(name for name, health in devices.items() if health != api.HEALTHY)
        before, self._unhealthy[resource] = self._unhealthy.get(resource, frozenset()), unhealthy
        if unhealthy - before:
            self._hints.tell("the device plugin lists %d more of its devices as Unhealthy" % len(unhealthy - before))
        elif before - unhealthy:
            self._hints.tell("the device plugin lists %d more of its devices as Healthy" % len(before - unhealthy))

    def count_devices(self) -> None:
        """Publish the numbers of devices."""
        self.metrics.devices.clear()
        for resource, session in self._sessions.items():
            for health in (api.HEALTHY, api.UNHEALTHY):
                self.metrics.devices.set(session.count(health), resource=resource, health=health)


class Session:
    """One plugin's registration: its devices, and the endpoint that offers them to the kubelet."""

    def __init__(self, bridge: Bridge, registration: api.Registration, plugin: Client, options: bytes) -> None:
        self.resource = registration.resource
        self._bridge = bridge
        self._limits = bridge.limits
        self._registration = registration
        self._plugin = plugin
        self._options = options
        self._list: Optional[bytes] = None
        self._ended: Optional[str] = None
        self._streams = 0
        self._done = False

    def end(self, reason: str) -> None:
        """End this session; run() then returns soon."""
        if self._ended is None:
            self._ended = reason
            log.info("session ends: %s", reason, extra={"resource": self.resource})
            self._plugin.close()
            self._bridge.changed.notify()

    def count(self, health: str) -> int:
        """The number of devices with this health, as offered to the kubelet."""
        offered = self._offered()
        return 0 if offered is None else list(api.devices(offered).values()).count(health)

    async def run(self, old: Optional[Session]) -> None:
        """Run from the plugin's first list until its stream, or the agent, ends."""
        watch = asyncio.create_task(self._watch_plugin())
        try:
            if old is not None:
                await self._bridge.changed.until(lambda: old._done)
            await self._offer()
        finally:
            self.end("cancelled")
            watch.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watch
            self._done = True

    async def _watch_plugin(self) -> None:
        """Read the plugin's lists immediately, because a plugin that cannot send blocks its health check."""
        try:
            async with contextlib.aclosing(self._plugin.stream(api.LIST_AND_WATCH, b"")) as lists:
                async for message in lists:
                    devices = api.devices(message)
                    log.info("plugin lists devices", extra={"resource": self.resource, "devices": devices})
                    self._list = message
                    self._bridge.listed(self.resource, devices)
                    self._bridge.count_devices()
                    self._bridge.changed.notify()
            self.end("the plugin ended its stream")
        except wire.WireError as exc:
            self.end("the plugin sent an invalid list: %s" % exc)
        except (GRPCError, PeerGone) as exc:
            self.end("the plugin's stream broke: %s" % describe(exc))
        finally:
            self.end("the plugin's stream is no longer read")  # never leave healthy devices behind

    def _offered(self) -> Optional[bytes]:
        """The list to send to the kubelet now."""
        if self._list is None or self._bridge.markers.ready:
            return self._list
        return api.all_unhealthy(self._list)

    # Towards the kubelet

    async def _offer(self) -> None:
        """Keep the resource registered with the current kubelet until the session ends.

        A registration while the previous stream is open, or has just ended, is lost: when a stream ends, the kubelet disconnects
        the *newest* client of that resource. Hence the quiet time. If it happens nevertheless, the stream ends early, which leads
        to the next round.
        """
        bridge = self._bridge
        await bridge.changed.until(lambda: self._ended is not None or self._list is not None)
        delay = self._limits.retry_first
        complaint = None
        while self._ended is None:
            if bridge.kubelet_identity is None:
                await bridge.changed.until(lambda: self._ended is not None or bridge.kubelet_identity is not None)
                continue
            if await self._sleep(bridge.quiet_for(self.resource)):
                break
            # Not the identity from the last poll: otherwise a new kubelet would be registered with twice, which interrupts calls.
            kubelet = bridge.see_kubelet()
            endpoint = self._endpoint()
            try:
                await endpoint.start()
                await self._register(endpoint)
                if not await bridge.changed.until(
                    lambda: self._ended is not None or self._streams > 0, self._limits.stream_opens * delay
                ):
                    raise PeerGone("the kubelet accepted the registration, but did not request the devices")
                delay, complaint = self._limits.retry_first, None
                await bridge.changed.until(
                    lambda: self._ended is not None or self._streams == 0 or bridge.kubelet_identity != kubelet
                )
            except (OSError, GRPCError, PeerGone) as exc:
                if describe(exc) != complaint:
                    complaint = describe(exc)
                    log.warning("cannot register with the kubelet, retrying: %s", complaint, extra={"resource": self.resource})
                await bridge.changed.until(lambda: self._ended is not None or bridge.kubelet_identity != kubelet, delay)
                delay = min(delay * 2, self._limits.retry_longest)
            finally:
                await self._close(endpoint)

    async def _sleep(self, seconds: float) -> bool:
        """Sleep, at most until the session ends; returns whether it has ended."""
        return await self._bridge.changed.until(lambda: self._ended is not None, seconds)

    async def _register(self, endpoint: Server) -> None:
        kubelet = await Client.connect(self._bridge.kubelet_socket, self._limits.connect)
        try:
            request = self._registration.with_endpoint(os.path.basename(endpoint.path))
            await kubelet.call(api.REGISTER, request, self._limits.register)
        finally:
            kubelet.close()
        log.info("registered with the kubelet", extra={"resource": self.resource})
        self._bridge.metrics.kubelet_registrations.inc(resource=self.resource)

    async def _close(self, endpoint: Server) -> None:
        """If the session has ended, let the kubelet's streams end cleanly; then drop all connections."""
        if self._ended is not None:
            await self._bridge.changed.until(lambda: self._streams == 0, self._limits.drain)
        endpoint.close()
        await self._bridge.changed.until(lambda: self._streams == 0, self._limits.drain)

    def _endpoint(self) -> Server:
        return Server(
            endpoint_path(self._bridge.kubelet_dir, self.resource),
            {
                api.GET_OPTIONS: self._get_options,
                api.ALLOCATE: self._allocate,
                api.PREFERRED_ALLOCATION: self._preferred,
                api.PRE_START: self._pre_start,
            },
            {api.LIST_AND_WATCH: self._list_and_watch},
        )

    async def _get_options(self, request: bytes) -> bytes:
        return self._options

    async def _list_and_watch(self) -> AsyncGenerator[bytes, None]:
        """The current list, and every later one; what a slow reader misses is replaced by the newest."""
        sent: Optional[bytes] = None
        self._streams += 1
        self._bridge.changed.notify()
        try:
            while self._ended is None:
                offered = self._offered()
                if offered is not None and offered != sent:
                    sent = offered
                    yield offered
                    self._bridge.awaited.offered(self._registration.endpoint)
                    continue
                await self._bridge.changed.until(lambda: self._ended is not None or self._offered() != sent)
        finally:
            self._streams -= 1
            self._bridge.stream_ended(self.resource)
            self._bridge.changed.notify()

    async def _allocate(self, request: bytes) -> bytes:
        if not self._bridge.markers.ready:
            self._bridge.metrics.allocations.inc(resource=self.resource, result="not-ready")
            raise GRPCError(Status.UNAVAILABLE, "the NPU driver of this node is not ready")
        try:
            answer = await self._call(api.ALLOCATE, request, self._limits.allocate)
            translated, names = self._bridge.translate(answer)
        except (OSError, ValueError) as exc:
            self._bridge.metrics.allocations.inc(resource=self.resource, result="error")
            raise GRPCError(Status.INTERNAL, "cannot translate the response of the device plugin: %s" % exc) from exc
        except GRPCError:
            self._bridge.metrics.allocations.inc(resource=self.resource, result="error")
            raise
        self._bridge.metrics.allocations.inc(resource=self.resource, result="ok")
        log.info("allocated", extra={"resource": self.resource, "chips": names})
        return translated

    async def _preferred(self, request: bytes) -> bytes:
        return await self._call(api.PREFERRED_ALLOCATION, request, self._limits.other_calls)

    async def _pre_start(self, request: bytes) -> bytes:
        return await self._call(api.PRE_START, request, self._limits.other_calls)

    async def _call(self, method: str, request: bytes, timeout: float) -> bytes:
        """The plugin's response; its errors are passed on."""
        try:
            return await self._plugin.call(method, request, timeout)
        except PeerGone as exc:
            raise GRPCError(Status.UNAVAILABLE, "the device plugin of %s is not running: %s" % (self.resource, exc)) from exc


def endpoint_path(directory: str, resource: str) -> str:
    """The agent's socket for a resource. A name that is too long for a socket address is replaced with its hash."""
    path = os.path.join(directory, "npuops-%s.sock" % resource.replace("/", "_"))
    if len(os.fsencode(path)) > _LONGEST_PATH:
        path = os.path.join(directory, "npuops-%s.sock" % hashlib.sha256(resource.encode()).hexdigest()[:16])
    return path
