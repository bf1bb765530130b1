# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How one run reaches cluster and hosts. Each call is numbered; the schedule says what becomes of it."""

from __future__ import annotations

import email.utils
from collections.abc import Callable, Generator, Iterator
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import Clock
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.host_side import HostUnreachable

from simulator.api_server import BUDGETS, PODS, ApiServer, Object, copied
from simulator.host import Host
from simulator.schedule import Fault, Run
from simulator.timeline import Timeline

_LATENCY = 0.01  # seconds of a request, each way
_EVENT = 2.0  # seconds until a watch reports a change, at most
_SSH = 0.2
_HOST_TIMEOUT = 60.0  # of a call to a host that says nothing
_MOST_CALLS = 20_000


class Killed(BaseException):
    """SIGKILL: nothing catches it."""


class Endless(Exception):
    """A run makes calls without end."""


class Controller:
    """The process, or processes, of one run: its clock, and the fate of its calls. ``log(sentence)``."""

    def __init__(
        self,
        run: Run,
        faults: dict[int, Fault],
        timeline: Timeline,
        api: ApiServer,
        log: Callable[[str], None],
        telling: bool,
        heard: Callable[[str], None],
    ) -> None:
        self.telling, self.heard = telling, heard
        self.run, self._faults, self.timeline, self.api, self._log = run, faults, timeline, api, log
        self.skew = run.skew
        self.dead = False
        self.calls = 0
        self._answered = 0.0  # when the API server has answered last
        self.clock: Clock = _Clock(self)

    def alive(self) -> None:
        if self.dead:
            raise Killed

    def call(self, what: str, effect: Callable[[float | None], Any], writes: bool, host: Host | None = None) -> Any:
        """Make one call. ``effect(at)`` changes or reads the world; a reader returns the state at the time ``at``, None for now."""
        self.alive()
        self.calls += 1
        self.heard(self.run.name)
        if self.calls > _MOST_CALLS:
            raise Endless("%s makes calls without end" % self.run.name)
        fault, sent = self._faults.get(self.calls), self.timeline.time
        if fault is None:
            result = self._plain(what, effect, writes, host)
        else:
            self._log("%s: call %d, %s: %s" % (self.run.name, self.calls, what, _told(fault)))
            result = self._struck(what, effect, writes, host, fault)
        if host is None:
            self.clock.heard(email.utils.formatdate(self._answered, usegmt=True), self.timeline.time - sent)
        return result

    def _plain(self, what: str, effect: Callable[[float | None], Any], writes: bool, host: Host | None) -> Any:
        # What a write to a Node does is told by what changes on it.
        if writes and not what.startswith("patch /api/v1/nodes"):
            self._log("%s: %s" % (self.run.name, what))
        latency = _LATENCY if host is None else _SSH
        self._pass(latency)
        self._reach(host)
        self._answered = self.timeline.time
        self.api.acting = self.run.name
        try:
            result = effect(None)
        finally:
            self.api.acting = ""
        self._pass(latency)
        return result

    def _struck(self, what: str, effect: Callable[[float | None], Any], writes: bool, host: Host | None, fault: Fault) -> Any:
        kind = fault.kind
        if kind == "kill-before":
            self.kill()
        elif kind == "slow-before":
            self._pass(fault.seconds)
        elif kind == "clock":
            self.skew += fault.seconds
        elif kind == "outage":
            self.api.away_until = self.timeline.time + fault.seconds
        elif kind == "lost-before":
            raise self._lost(host)
        elif kind == "late":
            self._send_off(what, effect, writes, host, fault.seconds)
            self._pass(1.0)
            raise self._lost(host)
        elif kind == "orphan":
            self._send_off(what, effect, writes, host, fault.seconds)
            self.kill()
        elif host is None and kind == "conflict" and writes and not what.startswith("evict"):
            raise kube_client.Conflict("%s: the object has been modified" % what)
        elif host is None and kind == "unauthorized":
            raise kube_client.Unauthorized("The Kubernetes API does not accept the credentials (401 Unauthorized).")
        elif host is None and kind == "forbidden":
            missing = {"verb": "get", "resource": "nodes", "group": "", "namespace": None}
            raise NpuError("The Kubernetes API refuses: it is forbidden: RBAC: clusterrole not found.", missing=missing)
        elif host is None and kind == "busy":
            raise kube_client.TooManyRequests("The server is busy", 1)
        elif host is None and kind == "webhook" and writes:
            self._pass(10.0)
            raise kube_client.Unreachable("Internal error occurred: failed calling webhook: connection refused")
        at = self.timeline.time - fault.seconds if kind == "stale" and not writes and host is None else None
        result = self._plain(what, lambda _now: effect(at), writes, host)
        if kind == "kill-after":
            self.kill()
        elif kind == "lost-after":
            raise self._lost(host)
        elif kind == "slow-after":
            self._pass(fault.seconds)
        return result

    def _send_off(self, what: str, effect: Callable[[float | None], Any], writes: bool, host: Host | None, seconds: float) -> None:
        """The call is on its way, and arrives in so many ``seconds``."""
        if writes:
            self.timeline.at(seconds, lambda: self._late(what, effect, host))

    def _late(self, what: str, effect: Callable[[float | None], Any], host: Host | None) -> None:
        if host is not None and not host.answers:
            return
        try:
            effect(None)
            self._log("%s: %s takes effect only now" % (self.run.name, what))
        except NpuError as exc:
            self._log("%s: %s is refused when it arrives: %s" % (self.run.name, what, exc.message))

    def _reach(self, host: Host | None) -> None:
        if host is None:
            if self.timeline.time < self.api.away_until:
                raise self._lost(None)
            return
        if host.up and self.timeline.time < host.frozen_until:
            self._pass(_HOST_TIMEOUT)
            raise HostUnreachable("No answer within 60 s")
        if not host.answers:
            raise HostUnreachable("Connection refused")

    @staticmethod
    def _lost(host: Host | None) -> NpuError:
        if host is not None:
            return HostUnreachable("Connection reset")
        text = "Connection refused"
        return kube_client.Unreachable("The Kubernetes API cannot be reached: %s." % text, cause=text)

    def _pass(self, seconds: float) -> None:
        self.timeline.sleep(seconds)
        self.alive()

    def kill(self) -> None:
        self.dead = True
        self._log("%s is killed" % self.run.name)
        raise Killed


def _told(fault: Fault) -> str:
    return fault.kind + (" (%g s)" % fault.seconds if fault.seconds else "")


class _Clock(Clock):
    """What the machine takes for the time is not what passes."""

    def __init__(self, controller: Controller) -> None:
        super().__init__()
        self._controller, self._timeline = controller, controller.timeline

    def wall(self) -> float:
        return self._timeline.time + self._controller.skew

    def monotonic(self) -> float:
        return self._timeline.time

    def sleep(self, seconds: float) -> None:  # type: ignore[override]
        self._timeline.sleep(seconds)
        self._controller.alive()


class Cluster:
    """As _kube.client.Cluster."""

    def __init__(self, controller: Controller) -> None:
        self._controller, self._api = controller, controller.api
        self.address = "https://simulated"

    def nodes(self) -> dict[str, Object]:
        return {node["metadata"]["name"]: node for node in self.list("/api/v1/nodes")}

    @property
    def without_retries(self) -> Cluster:
        return self

    def get(self, path: str, **_params: Any) -> Object | None:
        try:
            return self._controller.call("get " + path, lambda at: self._api.get(path, at), writes=False)
        except kube_client.NotFound:
            return None

    def list(self, path: str, **selectors: Any) -> list[Object]:
        return list(self.each(path, **selectors))

    def each(self, path: str, **selectors: Any) -> Iterator[Object]:
        return iter(self.request("get", path, **selectors)["items"])

    def pieces(self, path: str, **_params: Any) -> Generator[bytes, None, None]:
        """Of a log: no pod of the simulator has one."""
        self._controller.call("get " + path, lambda _at: None, writes=False)
        yield from ()

    def stream(self, path: str, version: str, **selectors: Any) -> Any:
        """A Stream of one object, or None."""
        if not self._controller.run.watches:
            return None
        self._controller.call("watch " + path, lambda _at: None, writes=False)
        return Stream(self._controller, "%s/%s" % (path, selectors["field_selector"].partition("=")[2]), version)

    def may(self, *_asked: Any, **_more: Any) -> bool:
        return True

    def merge_patch(self, path: str, body: Object, field_manager: str = "python", **_params: Any) -> Object:
        # What the caller does to it while the call is under way has no part in it.
        sent = copied(body)
        return self._controller.call(
            "patch %s%s" % (path, _gist(sent) if self._controller.telling else ""),
            lambda _at: self._api.patch(path, copied(sent), field_manager),
            writes=True,
        )

    def request(self, method: str, path: str, body: Object | None = None, **params: Any) -> Any:
        if method == "get":
            return self._controller.call("get " + path, lambda at: self._read(path, params, at), writes=False)
        if path.endswith("/eviction"):
            return self._evict(path, body or {}, bool(params.get("dry_run")))
        if method == "patch":
            node, sent = path.removesuffix("/status"), copied(body or {})
            return self._controller.call(
                "patch %s (conditions)" % node,
                lambda _at: self._api.patch(node, copied(sent), params["field_manager"]),
                writes=True,
            )
        if method == "delete":
            return self._controller.call("delete " + path, lambda _at: self._api.remove(path), writes=True)
        sent = copied(body)
        return self._controller.call("post " + path, lambda _at: self._api.post(path, copied(sent), "python"), writes=True)

    def _evict(self, path: str, body: Object, dry_run: bool) -> Any:
        name, uid = path.split("/")[-2], body["deleteOptions"]["preconditions"]["uid"]
        what = "%s %s" % ("asks about the eviction of" if dry_run else "evict", name)
        return self._controller.call(what, lambda _at: self._api.pods.evict(name, uid, dry_run), writes=not dry_run)

    def _read(self, path: str, params: dict[str, Any], at: float | None) -> Object:
        if path == PODS or path.endswith("/pods"):
            items = copied(self._api.pods.listed(params.get("field_selector")))
            namespace = path.split("/")[4] if path != PODS else None
            items = [pod for pod in items if namespace in (None, pod["metadata"]["namespace"])]
        elif path == BUDGETS:
            items = self._api.pods.budgets()
        elif path == "/apis":
            return {"kind": "APIGroupDiscoveryList", "items": []}
        elif path == "/version":
            return {}
        elif self._api.peek(path) is not None:
            return self._api.get(path, at)
        else:
            items = self._api.list(path, params.get("label_selector"), at)
        return {"metadata": {}, "items": items}


class Stream:
    """As _kube.stream.Stream, of one object."""

    def __init__(self, controller: Controller, path: str, version: str) -> None:
        self._controller, self._path, self._version = controller, path, version

    def arrived(self, seconds: float) -> bool:
        end = self._controller.timeline.time + seconds
        while self._controller.run.watches == "silent" or not self._has_changed():
            left = end - self._controller.timeline.time
            if left <= 0:
                return False
            self._controller.clock.sleep(min(_EVENT, left))
        return True

    def _has_changed(self) -> bool:
        there = self._controller.api.peek(self._path)
        return there is None or there["metadata"]["resourceVersion"] != self._version

    def close(self) -> None:
        pass


class HostPort:
    """As _maintenance.host_side.Port. ``reached()``: the host that answers now."""

    def __init__(self, controller: Controller, reached: Callable[[], Host]) -> None:
        self._controller, self._reached = controller, reached

    def view(self, _wait: int | None = None, chips: bool = False, ports: bool = False) -> Any:
        def seen(host: Host) -> dict[str, Any]:
            view = dict(host.view(), **({"chips": host.listed()} if chips else {}))
            return dict(view, ports=host.ports()) if ports else view

        return self._call("view with npu-smi" if chips or ports else "view", seen, writes=False)

    def facts(self) -> Any:
        """(view, validation of the driver that is loaded, firmware of the staged releases)."""
        return self._call("facts", lambda host: (host.view(), host.validation(None), dict(host.brings)), writes=False)

    def rebooted(self, boot_id: str, generation: int, release: str | None, refuse_held: bool) -> Any:
        what = "reboot out of %s (generation %d, release %s)" % (boot_id, generation, release)
        return self._call(what, lambda host: host.reboot(boot_id, generation, release, refuse_held))

    def firmware_written(self, boot_id: str, generation: int, release: str, version: str, again: bool) -> Any:
        what = "write the firmware of %s (generation %d, %s)" % (release, generation, boot_id)
        return self._call(what, lambda host: host.write_firmware(boot_id, generation, release, version, again))

    def divided(self, layout: list[dict[str, Any]]) -> Any:
        return self._call("divide into %s" % layout, lambda _host: {"changed": False, "msg": ""})

    def confirmed(self, generation: int, release: str, boot_id: str) -> None:
        what = "confirm %s (generation %d, %s)" % (release, generation, boot_id)
        self._call(what, lambda host: host.confirm(generation, release, boot_id))

    def withdrawn(self, generation: int) -> None:
        self._call("withdraw (generation %d)" % generation, lambda host: host.withdraw(generation))

    def validate(self, version: str | None) -> Any:
        return self._call("validate", lambda host: host.validation(version), writes=False)

    def _call(self, what: str, effect: Callable[[Host], Any], writes: bool = True) -> Any:
        host = self._reached()
        return self._controller.call("%s: %s" % (host.name, what), lambda _at: effect(host), writes, host)


def _gist(body: Object) -> str:
    """What a patch is about, for a story."""
    metadata, parts = body.get("metadata", {}), []
    for name, value in sorted((metadata.get("labels") or {}).items()):
        parts.append("%s=%s" % (name.rpartition("/")[2], value))
    for name, value in sorted((metadata.get("annotations") or {}).items()):
        parts.append("%s%s" % (name.rpartition("/")[2], " removed" if value is None else ""))
    if "unschedulable" in body.get("spec", {}):
        parts.append("cordon" if body["spec"]["unschedulable"] else "uncordon")
    elif body.get("spec"):
        parts.append(str(body["spec"]))
    return " (%s)" % ", ".join(parts) if parts else ""
