# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host of a node under maintenance: asking it again until it answers, its reboot, and what it came back as.

The host itself is a port (``Port``), so that the cycle can be tested without one. Each of its methods may be repeated.
HostUnreachable: no connection, or it ended before the answer came; whether a change took effect is not known then. Any other
NpuError is what the host said.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from ansible_collections.npuops.ascend.plugins.module_utils._driver.releases import parts, same_driver
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.and_more import and_more
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.annotations import Record
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import (
    FirmwareAnswer,
    Holder,
    RebootAnswer,
    Verdict,
    View,
    VnpuAnswer,
)
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import retry as kube_retry
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import Clock
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import node_log
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record

# Seconds.
RETRY_SECONDS = 300  # without a connection, outside of a reboot
ASK_AGAIN = 60  # a host that was asked to reboot is asked again if its node does not come back, then after twice the time
ASK_AGAIN_MOST = 300  # seldom, since a host that is down may let a connection wait for half a minute
POLL = 1.0
LATE = 200  # without a watch, a reboot that lasts longer is looked at with each heartbeat only
REBOOT_BEAT = 30  # between two heartbeats while a watch reports no change of a rebooting host's Node, and the host is not called
READY_LIMIT = 1000  # npu-driver.service ends after 900
READY_WAIT = 30  # of one call, which must end within 60
HOLDERS_LIMIT = 60
FIRMWARE_LIMIT = 2400  # the host stops the package after 1800


Answer = TypeVar("Answer")


class Port(Protocol):
    """The host."""

    def view(self, wait: int | None = None, chips: bool = False, ports: bool = False) -> View:
        """What npu_trial_boot tells with state=view. Waits for the driver so many seconds. ``chips``: lists them, too; ``ports``:
        with their network ports."""

    def rebooted(self, boot_id: str, generation: int, release: str | None, refuse_held: bool) -> RebootAnswer:
        """The reboot is on its way, unless a process holds a chip."""

    def firmware_written(self, boot_id: str, generation: int, release: str, version: str, again: bool) -> FirmwareAnswer:
        """The firmware of the release, which must have that version, is being written into the chips, or is written, unless
        a process holds a chip."""

    def divided(self, layout: list[dict[str, Any]]) -> VnpuAnswer:
        """The chips have the virtual NPUs of the layout, and containerd knows them."""

    def confirmed(self, generation: int, release: str, boot_id: str) -> None:
        """The release is good from now on, unless this is another boot."""

    def withdrawn(self, generation: int) -> None:
        """No ``next`` is left."""

    def validate(self, version: str | None) -> Verdict:
        """What npu_validate tells."""


class HostUnreachable(NpuError):
    """No connection to the host."""

    told = "the host does not answer"


class HostBusy(HostUnreachable):
    """The host answers that another call, perhaps one that was cut off, still does what this one is to do."""

    told = "the host is busy"


class NotBack(NpuError):
    """The host did not come back from its reboot in time."""


class Held(NpuError):
    """A process holds a chip; no reboot is on its way."""


class NotSent(NpuError):
    """The host refused to be rebooted; no reboot is on its way."""


class HostSide:
    """``log``: NodeLog, beaten while waiting; ``say(sentence)``."""

    def __init__(
        self,
        host: Port,
        log: node_log.NodeLog,
        clock: Clock,
        say: Callable[[str], None],
        retry_seconds: float = RETRY_SECONDS,
        at_once: int = 1,
        heartbeat_limit: float = maintenance_record.HEARTBEAT_LIMIT,
    ) -> None:
        """``at_once``: as of the MaintenanceRequest; ``heartbeat_limit``: as of the MaintenancePolicy."""
        self._at_once, self._beat_seconds = at_once, min(REBOOT_BEAT, heartbeat_limit / 3)
        self._host, self._log, self._clock, self._say, self._retry_seconds = host, log, clock, say, retry_seconds
        self._back: View | None = None  # the view with which the host has just come back

    # --- asked until it answers ---

    def view(self, wait: int | None = None, retry_seconds: float | None = None, chips: bool = False, ports: bool = False) -> View:
        return self._try(lambda: self._host.view(wait, chips, ports), retry_seconds)

    def look(self, again: bool = False, retry_seconds: float | None = None) -> View:
        """The view that was taken last, if nothing was decided by it yet; it may be that of the host that has just come back."""
        if again or self._back is None:
            self._back = self.view(retry_seconds=retry_seconds)
        return self._back

    def peek(self) -> View | None:
        """The view now, or None when the host does not answer, or has no more than an error to tell."""
        try:
            return self._host.view()
        except NpuError:
            return None

    def validate(self, version: str | None) -> Verdict:
        return self._try(lambda: self._host.validate(version))

    def divide(self, layout: list[dict[str, Any]]) -> VnpuAnswer:
        return self._try(lambda: self._host.divided(layout))

    def confirmed(self, generation: int, release: str, boot_id: str) -> None:
        self._try(lambda: self._host.confirmed(generation, release, boot_id))

    def withdrawn(self, generation: int) -> None:
        self._try(lambda: self._host.withdrawn(generation))

    def _try(self, call: Callable[[], Answer], retry_seconds: float | None = None) -> Answer:
        retry_seconds = self._retry_seconds if retry_seconds is None else kube_retry.limit(retry_seconds)
        deadline, said = self._clock.monotonic() + retry_seconds, False
        while True:
            try:
                # A call may last as long as the beat is late.
                self._log.beat()
                answer = call()
            except HostUnreachable as exc:
                if self._clock.monotonic() >= deadline:
                    what = "The host was busy for" if isinstance(exc, HostBusy) else "The host did not answer for"
                    raise HostUnreachable("%s %d s: %s" % (what, retry_seconds, exc.message))
                if not said:
                    text = "until it does" if retry_seconds == kube_retry.limit(0) else "for %d s" % retry_seconds
                    self._say("%s (%s); trying %s" % (exc.told, exc.message.rstrip("."), text))
                    said = True
                self._clock.sleep(POLL * 2)
            else:
                if said:
                    self._say("the host answers again")
                return answer

    # --- waiting ---

    def wait_free(self, chips: bool = False, ports: bool = False) -> View:
        """Wait until no process holds a chip; returns the view then, or at the limit. ``chips``, ``ports``: as for Port.view."""
        deadline = self._clock.monotonic() + HOLDERS_LIMIT
        while True:
            view = self.view(chips=chips, ports=ports)
            if not view["holders"] or self._clock.monotonic() >= deadline:
                return view
            self._say("waits for %s to release the chips" % holders_text(view["holders"]))
            self._clock.sleep(POLL * 2)

    def wait_driver(self) -> tuple[View, str | None]:
        """Wait until the boot unit has decided; returns (view, None) or (view, why the driver does not work)."""
        back, self._back = self._back, None
        view = self._wait_unit(lambda view: bool(view["ready"]) or view["unit"] == "failed", back)
        if view["ready"]:
            return view, None
        if view["unit"] == "failed":
            told = (view["failed"] or {}).get("reason")
            return view, "the driver does not work: %s" % (told or "see journalctl -b -u npu-driver")
        return view, "the driver was not ready %d s after the boot (npu-driver.service is %s)" % (READY_LIMIT, view["unit"])

    def wait_boot_unit(self) -> None:
        """Wait while the boot unit loads the driver. Whether that works is not asked: chips that hang are no reason to wait."""
        self._wait_unit(lambda view: view["unit"] != "activating")

    def _wait_unit(self, done: Callable[[View], bool], view: View | None = None) -> View:
        """The first view that is ``done``, or the one at the limit. ``view``: one that the caller already has."""
        deadline, said = self._clock.monotonic() + READY_LIMIT, False
        while True:
            # The host itself looks more often than a call could.
            view = view or self.view(READY_WAIT if said else None)
            if done(view) or self._clock.monotonic() >= deadline:
                return view
            view = None
            if said:
                self._clock.sleep(POLL)
            else:
                self._say("waits for the driver")
                said = True

    def write_firmware(self, release: str, version: str, again: bool) -> FirmwareAnswer:
        """Write the firmware of the release, which must have that version, into the chips, and wait until it is written.

        Only in the boot that the intent names.
        """
        record, deadline, said = self._log.own, self._clock.monotonic() + FIRMWARE_LIMIT, False
        while True:
            answer = self._try(
                lambda: self._host.firmware_written(record["boot_id"], record["generation"], release, version, again)
            )
            if answer["state"] != "writing":
                return answer
            # What has begun is not begun again.
            again = False
            if self._clock.monotonic() >= deadline:
                raise NpuError("The firmware was not written within %d s: see /var/lib/npuops/firmware.log there." % FIRMWARE_LIMIT)
            if not said:
                self._say("writes the firmware %s into the chips" % version)
                said = True
            self._clock.sleep(POLL)

    def wait_firmware(self) -> View:
        """Wait until no firmware is being written into the chips; returns the view then, or at the limit."""
        deadline, said = self._clock.monotonic() + FIRMWARE_LIMIT, False
        while True:
            view = self.view()
            if not is_writing(view) or self._clock.monotonic() >= deadline:
                return view
            if not said:
                self._say("waits until the firmware %s is written" % (view.get("firmware") or {}).get("version"))
                said = True
            self._clock.sleep(POLL)

    def reboot(self, release: str | None, timeout: float, refuse_held: bool) -> View:
        """Reboot the host that the record's intent names, unless it has, and wait until host and Node are back.

        Returns the host's view in the new boot. Raises NotBack, Held, NotSent; Gone is waited out.
        """
        try:
            return self._reboot(release, timeout, refuse_held)
        finally:
            self._log.waited()

    def _reboot(self, release: str | None, timeout: float, refuse_held: bool) -> View:
        record, started = self._log.own, self._clock.monotonic()
        ask_at, pause, seen, changed = started, ASK_AGAIN, _Seen(), True
        while True:
            now = self._clock.monotonic()
            boot_id = self._node_boot_id(seen, changed)
            if boot_id not in (None, record["boot_id"]):
                view = self._look(seen) if seen.ready else None
                # The Node's word alone is not enough: under a wrong alias it is another host's.
                if view and view["boot_id"] == boot_id:
                    self._back = view
                    return view
            elif now >= ask_at:
                self._ask(release, refuse_held, seen)
                ask_at, pause = self._clock.monotonic() + pause, min(pause * 2, ASK_AGAIN_MOST)
            if now - started >= kube_retry.limit(timeout):
                self._look(seen)
                raise NotBack("It did not come back within %d s: %s" % (timeout, seen.text(record["boot_id"])))
            seen.tell(self._say, now)
            soon = boot_id != record["boot_id"]  # the host is back, or will register its Node again
            changed = self._wait(now - started, soon) or soon

    def _wait(self, waited: float, soon: bool) -> bool:
        """Sleep until the Node changes, or until the next look. Return whether it may have changed.

        ``waited``: seconds since the reboot began; ``soon``: the next look is due also if the Node does not change.
        """
        pause = maintenance_record.BEAT_SECONDS if waited >= LATE else kube_retry.pause_after(waited, at_once=self._at_once)
        most = pause if soon else maintenance_record.BEAT_SECONDS
        return self._log.wait(pause, kube_retry.gather_seconds(self._at_once), most)

    def _beat(self) -> None:
        """Before a call to the host, which may last as long as the heartbeat is late."""
        with contextlib.suppress(node_log.Gone):  # the next look at the Node finds out
            self._log.beat()

    def _node_boot_id(self, seen: _Seen, changed: bool) -> str | None:
        """``changed``: whether the Node may have changed since it was last seen."""
        try:
            # The answer to a heartbeat is the Node, so where that is to be read anyway, one takes the place of a look.
            beaten = self._log.beat(maintenance_record.BEAT_SECONDS if changed else self._beat_seconds)
            node = self._log.node if beaten or not changed else self._log.look()
        except node_log.Gone as exc:
            seen.node, seen.ready = exc.message, False
            return None
        seen.ready, why = kube_client.node_ready(node)
        boot_id = kube_client.boot_id(node)
        seen.node = "the node is Ready" if seen.ready else "the node is not Ready (%s)" % why
        seen.node += ", its boot ID is %s" % boot_id
        return boot_id

    def _look(self, seen: _Seen) -> View | None:
        self._beat()
        try:
            view = self._host.view()
        except HostUnreachable as exc:
            seen.host = _unreachable_text(exc)
            return None
        seen.host = "the host answers and has the boot ID %s" % view["boot_id"]
        return view

    def _ask(self, release: str | None, refuse_held: bool, seen: _Seen) -> None:
        """One reboot call. The host sees to it that a boot ends once, however often it is asked."""
        self._beat()
        record = self._log.own
        try:
            answer = self._host.rebooted(record["boot_id"], record["generation"], release, refuse_held)
        except HostUnreachable as exc:
            seen.host = _unreachable_text(exc)  # most likely because it reboots; if not, it is asked again
            return
        except NpuError as exc:
            view = self._refuse_to_be_late(record)
            if view["going_down"] or view["boot_id"] != record["boot_id"]:
                seen.host = "the host goes down"  # an earlier call has sent it there
                return
            raise NotSent("The host was not rebooted: %s" % exc.message)
        if answer["held"]:
            text = "Not rebooted: %s." % held_text(answer["held"])
            raise Held(text, blockers=holder_blockers(answer["held"]))
        seen.host = "the host is back" if answer["already"] else "the host goes down"
        if answer["queued"]:
            self._say("reboots" + (" to try %s" % release if release else ""))

    def _refuse_to_be_late(self, record: Record) -> View:
        """The host now. Raises Lost when a later run has been there."""
        view = self.view()
        generation = view["generation"]
        if generation > record["generation"]:
            raise node_log.Lost(
                "The host has been rebooted by a later run (generation %d, this one has %d). This run leaves it unchanged."
                % (generation, record["generation"])
            )
        return view


def _unreachable_text(exc: NpuError) -> str:
    return "%s (%s)" % (exc.told if isinstance(exc, HostBusy) else "the host cannot be reached", exc.message.rstrip("."))


class _Seen:
    """What was seen last of a rebooting host, for people."""

    def __init__(self) -> None:
        self.host, self.node = "the host has not answered yet", "the node has not reported yet"
        self.ready = False
        self._told: float | None = None

    def text(self, old_boot_id: str) -> str:
        return "%s; %s. Before the reboot it was %s." % (self.host, self.node, old_boot_id)

    def tell(self, say: Callable[[str], None], now: float) -> None:
        if self._told is None or now - self._told >= 60:
            if self._told is not None:
                say("waits for the host to come back: %s; %s" % (self.host, self.node))
            self._told = now


def came_without_trial(view: View, record: Record) -> bool:
    """Whether the host rebooted without trying this maintenance's release (a power loss between intent and call)."""
    trial, wanted = view["trial"], maintenance_record.version_of(record["to"]["release"])
    # After a change of kernel it is another release of the version.
    return not (
        trial and maintenance_record.version_of(trial["release"]) == wanted and trial["generation"] >= record["first_generation"]
    )


def runs(view: View, release: str | None) -> bool:
    """Whether the host has the release, or the one of its version that npu-driver-select takes instead after a change of kernel."""
    if not release or not view["driver"] or view["driver"] == release:
        return bool(release) and view["driver"] == release
    return same_driver(view["driver"], release) and parts(view["driver"])[1] == view["kernel"]


def has_confirmed(view: View, release: str | None) -> bool:
    """Whether the host runs the release, or that of its version for its kernel, and it is confirmed."""
    return runs(view, release) and same_driver(view["good"], view["driver"])


def kernel_without(view: View, release: str) -> str | None:
    """The kernel that the next boot loads, if neither the release nor another one of its version is staged for it; or None."""
    kernel = view.get("next_kernel") or view["kernel"]
    wanted = (parts(release)[0], kernel)
    return None if any(parts(name)[:2] == wanted for name in (release, *view["releases"])) else kernel


def on_trial(view: View) -> bool:
    """Whether this boot tries a driver that has not been confirmed."""
    trial, driver = view["trial"], view["driver"]
    return bool(trial and trial["release"] == driver != view["good"] and trial["boot_id"] == view["boot_id"])


def trial_runs(view: View, release: str | None) -> bool:
    """Whether the host is in an unconfirmed trial boot of ``release`` already: then a reboot is not needed."""
    return on_trial(view) and runs(view, release)


def is_writing(view: View) -> bool:
    """Whether firmware is being written into the chips: a reboot now could damage them."""
    return (view.get("firmware") or {}).get("state") == "writing"


def waiting_firmware(view: View) -> str | None:
    """The version of the firmware that was written in this boot, and that the chips run after the next one; None without any."""
    flash = view.get("firmware") or {}
    return flash.get("version") if (flash.get("state"), flash.get("boot_id")) == ("written", view["boot_id"]) else None


def holders_text(holders: Sequence[Holder]) -> str:
    return and_more(["%(command)s (pid %(pid)s, %(device)s)" % holder for holder in holders])


def held_text(holders: Sequence[Holder]) -> str:
    return "processes on the host that belong to no pod to be evicted hold chips: %s" % holders_text(holders)


def holder_blockers(holders: Sequence[Holder]) -> list[dict[str, Any]]:
    return [
        {"kind": "process", "pod": None, "node": None, "owner": None, "budget": None, "text": holders_text([holder])}
        for holder in holders
    ]
