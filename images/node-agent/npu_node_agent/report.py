# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Report a wedged node to the cluster with an annotation, a label and an Event, and remove them afterwards."""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import time
from typing import Optional, Union

from .background import Background
from .changed import Changed
from .kube import MERGE_PATCH, Api, ApiError
from .marker import OUTPUT, PROBES, REASON, SINCE
from .metrics import Metrics

log = logging.getLogger(__name__)

WEDGED = "npuops.ascend/wedged"
MAINTENANCE = "npuops.ascend/maintenance"
REBOOT_REQUIRED = "npu.openfuyao.com/reboot-required"
UPGRADE_STATE = "npu.openfuyao.com/driver-upgrade-state"
APPROVAL_REQUIRED = "approval-required"
EVENT_REASON = "RebootRequired"
# The API server accepts Events about objects without a namespace only here.
EVENTS = "/api/v1/namespaces/default/events"

HEALTHY = "healthy"
_NOT_FOUND = 404
_EVENT_REFRESH = 15 * 60  # seconds; API servers drop Events after an hour
_LONGEST_MESSAGE = 1024  # the API server's limit
_RETRY_FIRST, _RETRY_LONGEST = 2.0, 60.0
_LIMIT = 120  # seconds for one round of calls


class Reporter:
    """Reports the wanted state to the API server, and retries until it succeeds. Does nothing without ``api`` or ``node``."""

    def __init__(self, api: Optional[Api], node: str, changed: Changed, metrics: Metrics, retry: float = _RETRY_FIRST):
        self._api = api
        self._node = node
        self._changed = changed
        self._metrics = metrics
        self._retry = retry
        self._wanted: Union[None, str, dict] = None
        self._done: Union[None, str, dict] = None
        self._withdrawn: Optional[str] = None  # the annotation that was removed, while its Event may exist
        self._background = Background("report")

    def want(self, state: Union[str, dict]) -> None:
        """Set the state to report: HEALTHY, or the driver-suspended marker. Before the first call, the Node is not changed."""
        if state != self._wanted:
            self._wanted = state
            self._changed.notify()

    async def run(self) -> None:
        """Report until cancelled."""
        api = self._api
        if api is None or not self._node:
            log.warning("no API server or node name: nothing is reported to the cluster")
            await self._changed.until(lambda: False)
            return
        delay = self._retry
        complaint = None
        self._metrics.pending("report", False)
        while True:
            refresh = _EVENT_REFRESH if isinstance(self._done, dict) else None
            await self._changed.until(lambda: self._wanted != self._done, refresh)
            wanted = self._wanted
            assert wanted is not None  # or nothing would have changed
            try:
                await self._background.call(functools.partial(self._report, api, wanted), _LIMIT)
                if wanted != self._done:
                    log.info("reported to the cluster: %s", "wedged" if isinstance(wanted, dict) else wanted)
                self._done, delay, complaint = wanted, self._retry, None
                self._metrics.pending("report", False)
            except (OSError, ApiError, ValueError, KeyError, RuntimeError) as exc:  # including timeouts and missing threads
                # Part of it may have taken effect: what the cluster has is not known.
                self._done = None
                self._metrics.pending("report", True)
                if str(exc) != complaint:
                    complaint = str(exc)
                    log.warning("cannot report to the API server, retrying: %s", exc)
                # A new state would not help, because the problem is the API server.
                await self._changed.until(lambda: False, delay)
                delay = min(delay * 2, _RETRY_LONGEST)

    def _report(self, api: Api, wanted: Union[str, dict]) -> None:
        """Make all calls of one report; blocking."""
        node = api.request("GET", "/api/v1/nodes/" + self._node)
        patch = node_patch(node, wanted)
        if patch and not isinstance(wanted, dict):
            self._withdrawn = _annotations(node)[WEDGED]
        if patch:
            # A concurrent write causes a conflict, and the retry starts from the new object.
            patch["metadata"]["resourceVersion"] = node["metadata"]["resourceVersion"]
            api.request("PATCH", "/api/v1/nodes/" + self._node, patch, MERGE_PATCH)
        if isinstance(wanted, dict):
            self._refresh_event(api, node, wanted)
            return
        if self._withdrawn is not None:
            # Also by a later try, which does not find the annotation any more.
            self._remove_event(api, self._withdrawn)
            self._withdrawn = None

    def _refresh_event(self, api: Api, node: dict, marker: dict) -> None:
        name = event_name(self._node, str(marker.get(SINCE)))
        now = rfc3339_now()
        try:
            event = api.request("GET", "%s/%s" % (EVENTS, name))
        except ApiError as exc:
            if exc.status != _NOT_FOUND:
                raise
            message = "reason=recovery since=%s: %s" % (marker.get(SINCE), marker.get(REASON))
            api.request("POST", EVENTS, new_event(node, name, EVENT_REASON, message, now))
        else:
            patch = {"count": event.get("count", 1) + 1, "lastTimestamp": now}
            api.request("PATCH", "%s/%s" % (EVENTS, name), patch, MERGE_PATCH)

    def _remove_event(self, api: Api, annotation: str) -> None:
        """Remove the Event, so that no reboot is approved for chips that work."""
        try:
            since = str(json.loads(annotation)[SINCE])
            api.request("DELETE", "%s/%s" % (EVENTS, event_name(self._node, since)))
        except (ValueError, KeyError, TypeError):
            pass  # not written by this agent, so there is no Event of it
        except ApiError as exc:
            if exc.status != _NOT_FOUND:
                raise


def node_patch(node: dict, wanted: Union[str, dict]) -> dict:
    """The merge patch that changes ``node`` to ``wanted``; {} if no change is necessary."""
    annotations, labels = _annotations(node), node["metadata"].get("labels") or {}
    value: Optional[str]
    reboot: Optional[str]
    if isinstance(wanted, dict):
        value, reboot = wedged_annotation(wanted), "true"
    elif WEDGED not in annotations:
        return {}  # this agent did not set the label
    else:
        value, reboot = None, "true" if _approval_pending(annotations, labels) else None
    metadata = {}
    if annotations.get(WEDGED) != value:
        metadata["annotations"] = {WEDGED: value}
    if labels.get(REBOOT_REQUIRED) != reboot:
        metadata["labels"] = {REBOOT_REQUIRED: reboot}
    return {"metadata": metadata} if metadata else {}


def wedged_annotation(marker: dict) -> str:
    """The value of the annotation: since, probes, reason, output and the boot ID."""
    return json.dumps({key: marker.get(key) for key in (SINCE, PROBES, REASON, OUTPUT, "boot_id")}, sort_keys=True)


def event_name(node: str, since: str) -> str:
    """One name per wedge, so that a repeated report finds the Event of the first."""
    return "%s.npu-recovery.%s" % (node[:200], hashlib.sha256(since.encode()).hexdigest()[:12])


def new_event(node: dict, name: str, reason: str, message: str, now: str) -> dict:
    """A Warning about this node."""
    metadata = node["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "default"},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Node",
            "name": metadata["name"],
            "uid": metadata.get("uid", ""),
        },
        "reason": reason,
        "message": message[:_LONGEST_MESSAGE],
        "type": "Warning",
        "count": 1,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "source": {"component": "npuops-node-agent", "host": metadata["name"]},
        "reportingComponent": "npuops-node-agent",
        "reportingInstance": metadata["name"],
    }


def _approval_pending(annotations: dict, labels: dict) -> bool:
    """Whether a maintenance waits for approval, which also requires the label."""
    if labels.get(UPGRADE_STATE) == APPROVAL_REQUIRED:
        return True
    try:
        return json.loads(annotations.get(MAINTENANCE) or "{}").get("step") == APPROVAL_REQUIRED
    except (ValueError, AttributeError):
        return False


def _annotations(node: dict) -> dict:
    return node["metadata"].get("annotations") or {}


def rfc3339_now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
