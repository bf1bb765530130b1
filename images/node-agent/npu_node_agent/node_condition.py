# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell everybody who watches Nodes whether the driver works, with a condition of the Node."""

from __future__ import annotations

import functools
import logging
from typing import NamedTuple, Optional, Sequence

from ansible_collections.npuops.ascend.plugins.module_utils._chips import chip_health

from .background import Background
from .changed import Changed
from .kube import STRATEGIC_MERGE_PATCH, Api, ApiError
from .marker import CAUSE, REASON, SINCE
from .report import rfc3339_now

log = logging.getLogger(__name__)

TYPE = "npuops.ascend/DriverReady"
_FORBIDDEN = 403
_HEARTBEAT = 5 * 60.0  # seconds; as often as the kubelet writes a status that does not change
_RETRY_FIRST, _RETRY_LONGEST = 2.0, 60.0
_LIMIT = 60  # seconds for one round of calls
_LONGEST_MESSAGE = 1024  # the limit of the admission policy


# Also the cause in the marker of the boot script npu-driver.
NO_DRIVER_FOR_KERNEL = "NoDriverForKernel"


class Verdict(NamedTuple):
    """What the condition says. No ``reason`` begins with "Npu": by that, the controller knows the conditions of a maintenance."""

    status: str
    reason: str
    message: str


NOT_LOADED = Verdict(
    "False",
    "DriverNotLoaded",
    "No NPU driver is loaded since the node booted; run npuops.ascend.install, or see journalctl -u npu-driver on the node",
)
IN_MAINTENANCE = Verdict(
    "False",
    "DriverInMaintenance",
    "A maintenance of this node has not validated the NPU driver yet; if none is under way, run the playbook that began it again",
)


def failed(marker: dict) -> Verdict:
    """``marker``: driver-failed."""
    reason = NO_DRIVER_FOR_KERNEL if marker.get(CAUSE) == NO_DRIVER_FOR_KERNEL else "DriverFailed"
    text = "The NPU driver does not work on this node: %s" % (marker.get(REASON) or "unknown reason")
    return Verdict("False", reason, text[:_LONGEST_MESSAGE])


def works(marker: dict, chips: Sequence[dict] = (), missing: Optional[str] = None) -> Verdict:
    """``marker``: driver-ready; ``chips``: of chip_health.view; ``missing``: a phrase about chips that are gone.

    The node serves as long as one chip does.
    """
    ill = chip_health.told(chips)
    told = "The NPU driver%s responds; %s" % (_version(marker), "; ".join(text for text in (missing, ill) if text))
    if chips and not any(map(chip_health.serves, chips)):
        return Verdict("False", "AllChipsUnhealthy", told[:_LONGEST_MESSAGE])
    if missing:
        return Verdict("True", "ChipsMissing", told[:_LONGEST_MESSAGE])
    if ill:
        return Verdict("True", "ChipsUnhealthy", told[:_LONGEST_MESSAGE])
    return Verdict("True", "DriverResponds", "The NPU driver%s lists all chips of this node" % _version(marker))


def wedged(marker: dict) -> Verdict:
    """``marker``: driver-suspended."""
    text = "The NPU driver%s stopped responding at %s; run npuops.ascend.heal, which reboots the node: %s" % (
        _version(marker),
        marker.get(SINCE) or "an unknown time",
        marker.get(REASON) or "unknown reason",
    )
    return Verdict("False", "DriverWedged", text[:_LONGEST_MESSAGE])


def _version(marker: dict) -> str:
    return " %s" % marker["version"] if marker.get("version") else ""


class DriverCondition:
    """Writes the wanted verdict to the Node, and again every ``heartbeat`` seconds. Does nothing without ``api`` or ``node``.

    An agent that stops writes nothing: its successor says the same.
    """

    def __init__(
        self, api: Optional[Api], node: str, changed: Changed, heartbeat: float = _HEARTBEAT, retry: float = _RETRY_FIRST
    ) -> None:
        self._api = api
        self._path = "/api/v1/nodes/" + node if node else ""
        self._changed = changed
        self._heartbeat = heartbeat
        self._retry = retry
        self._wanted: Optional[Verdict] = None
        self._done: Optional[Verdict] = None
        self._since = ""  # when the status of _done began
        self._background = Background("condition")

    def want(self, verdict: Verdict) -> None:
        """Set what the condition is to say. Before the first call, it stays as it is."""
        if verdict != self._wanted:
            self._wanted = verdict
            self._changed.notify()

    async def run(self) -> None:
        """Write until cancelled."""
        api = self._api
        if api is None or not self._path:
            await self._changed.until(lambda: False)
            return
        delay = self._retry
        complaint = ""
        while True:
            await self._changed.until(lambda: self._wanted != self._done, self._heartbeat if self._done else None)
            wanted = self._wanted
            assert wanted is not None  # or nothing would have changed
            problem, pause = "", 0.0
            try:
                since = await self._background.call(functools.partial(self._write, api, wanted), _LIMIT)
                if wanted != self._done:
                    log.info("condition %s: %s, %s", TYPE, wanted.status, wanted.reason)
                self._done, self._since, delay = wanted, since, self._retry
            except (OSError, ApiError, ValueError, KeyError, RuntimeError) as exc:  # including timeouts and missing threads
                if isinstance(exc, ApiError) and exc.status == _FORBIDDEN:
                    # Permissions may be older than this agent. Nothing depends on the condition, so it is tried rarely.
                    problem, pause = "the agent may not write the condition %s of its node: %s" % (TYPE, exc), self._heartbeat
                else:
                    problem, pause = "cannot write the condition %s, retrying: %s" % (TYPE, exc), delay
                    delay = min(delay * 2, _RETRY_LONGEST)
            if problem and problem != complaint:
                log.warning("%s", problem)
            complaint = problem
            if pause:
                # A new verdict would not help, because the problem is the API server.
                await self._changed.until(lambda: False, pause)

    def _write(self, api: Api, wanted: Verdict) -> str:
        """Make the calls of one write; blocking. Returns since when the condition has this status."""
        now = rfc3339_now()
        if self._done is None:
            found = _condition(api.request("GET", self._path))
            since = str(found.get("lastTransitionTime") or now) if found.get("status") == wanted.status else now
            if wanted == (found.get("status"), found.get("reason"), found.get("message")):
                return since
        else:
            since = self._since if self._done.status == wanted.status else now
        condition = {"type": TYPE, **wanted._asdict(), "lastTransitionTime": since, "lastHeartbeatTime": now}
        # Merged by type, so that the conditions of others stay as they are.
        api.request("PATCH", self._path + "/status", {"status": {"conditions": [condition]}}, STRATEGIC_MERGE_PATCH)
        return since


def _condition(node: dict) -> dict:
    for one in (node.get("status") or {}).get("conditions") or []:
        if one.get("type") == TYPE:
            return one
    return {}
