# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell everybody who watches Nodes whether driver, chips and network ports work, with conditions of the Node."""

from __future__ import annotations

import functools
import logging
from typing import Dict, Iterable, Optional

from .background import Background
from .changed import Changed
from .kube import STRATEGIC_MERGE_PATCH, Api, ApiError
from .metrics import Metrics
from .report import rfc3339_now
from .verdict import Verdict

log = logging.getLogger(__name__)

_FORBIDDEN = 403
_HEARTBEAT = 5 * 60.0  # seconds; as often as the kubelet writes a status that does not change
_RETRY_FIRST, _RETRY_LONGEST = 2.0, 60.0
_LIMIT = 60  # seconds for one round of calls

# By type. All conditions of the agent, in each call the same ones: they are written together.
Verdicts = Dict[str, Verdict]


class NodeConditions:
    """Writes the wanted conditions to the Node, and again every ``heartbeat`` seconds. Does nothing without ``api`` or ``node``.

    An agent that stops writes nothing: its successor says the same.
    """

    def __init__(
        self,
        api: Optional[Api],
        node: str,
        changed: Changed,
        metrics: Metrics,
        heartbeat: float = _HEARTBEAT,
        retry: float = _RETRY_FIRST,
    ) -> None:
        self._api = api
        self._path = "/api/v1/nodes/" + node if node else ""
        self._changed = changed
        self._metrics = metrics
        self._heartbeat = heartbeat
        self._retry = retry
        self._wanted: Verdicts = {}
        self._done: Verdicts = {}
        self._since: dict[str, str] = {}  # when the statuses of _done began
        self._background = Background("conditions")

    def want(self, verdicts: Verdicts) -> None:
        """Set what the conditions are to say. Before the first call, they are not changed."""
        if verdicts != self._wanted:
            self._wanted = verdicts
            self._changed.notify()

    async def run(self) -> None:
        """Write until cancelled."""
        api = self._api
        if api is None or not self._path:
            await self._changed.until(lambda: False)
            return
        delay, written = self._retry, False
        complaint = ""
        while True:
            await self._changed.until(lambda: self._wanted != self._done, self._heartbeat if self._done else None)
            wanted = self._wanted
            problem, pause = "", 0.0
            try:
                since = await self._background.call(functools.partial(self._write, api, wanted), _LIMIT)
                for kind, verdict in wanted.items():
                    if verdict != self._done.get(kind):
                        log.info("condition %s: %s, %s", kind, verdict.status, verdict.reason)
                self._done, self._since, delay, written = wanted, since, self._retry, True
                self._metrics.pending("conditions", False)
            except (OSError, ApiError, ValueError, KeyError, RuntimeError) as exc:  # including timeouts and missing threads
                forbidden = isinstance(exc, ApiError) and exc.status == _FORBIDDEN
                if forbidden:
                    # Permissions may be older than this agent. Nothing depends on the conditions, so it is tried rarely.
                    problem, pause = "the agent may not write the conditions of its node: %s" % exc, self._heartbeat
                else:
                    # It may have taken effect: what the Node has is not known.
                    self._done = {}
                    problem, pause = "cannot write the conditions, retrying: %s" % exc, delay
                    delay = min(delay * 2, _RETRY_LONGEST)
                # Without an admission policy, it never may.
                self._metrics.pending("conditions", written or not forbidden)
            if problem and problem != complaint:
                log.warning("%s", problem)
            complaint = problem
            if pause:
                # A new verdict would not help, because the problem is the API server.
                await self._changed.until(lambda: False, pause)

    def _write(self, api: Api, wanted: Verdicts) -> dict[str, str]:
        """Make the calls of one write; blocking. Returns since when the conditions have these statuses."""
        now = rfc3339_now()
        if not self._done:
            found = _conditions(api.request("GET", self._path), wanted)
            since = {
                kind: str(found[kind].get("lastTransitionTime") or now) if found[kind].get("status") == verdict.status else now
                for kind, verdict in wanted.items()
            }
            if all(verdict == _verdict(found[kind]) for kind, verdict in wanted.items()):
                return since
        else:
            since = {
                kind: self._since[kind] if kind in self._done and self._done[kind].status == verdict.status else now
                for kind, verdict in wanted.items()
            }
        conditions = [
            {"type": kind, **verdict._asdict(), "lastTransitionTime": since[kind], "lastHeartbeatTime": now}
            for kind, verdict in wanted.items()
        ]
        # Merged by type, so that the conditions of other clients are not changed.
        api.request("PATCH", self._path + "/status", {"status": {"conditions": conditions}}, STRATEGIC_MERGE_PATCH)
        return since


def _conditions(node: dict, kinds: Iterable[str]) -> dict[str, dict]:
    """The conditions of these types; {} for one that the Node does not have."""
    there = {one.get("type"): one for one in (node.get("status") or {}).get("conditions") or []}
    return {kind: there.get(kind, {}) for kind in kinds}


def _verdict(condition: dict) -> tuple:
    return condition.get("status"), condition.get("reason"), condition.get("message")
