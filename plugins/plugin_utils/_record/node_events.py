# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Events about a Node, so that `kubectl describe node` shows what a maintenance does to it."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, one_line
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.annotations import Record
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record

# The API server accepts Events about objects without a namespace only here.
EVENTS = "/api/v1/namespaces/default/events"
COMPONENT = "npuops-maintenance"
NORMAL, WARNING = "Normal", "Warning"
_LONGEST = 1000  # characters; the API server refuses more than 1024

# What the label of the last maintenance's end is called in an Event. Anything else was given back before its reboot.
_ENDS = {
    "success": (NORMAL, "MaintenanceCompleted"),
    "rolled-back": (WARNING, "RolledBack"),
    "failed": (WARNING, "MaintenanceFailed"),
}


class Story(NamedTuple):
    """What an Event says. ``kind``: its type, NORMAL or WARNING."""

    kind: str
    reason: str
    message: str


def of_step(before: Record | None, record: Record) -> Story | None:
    """The Event of a record that was written over ``before``; None if it tells nothing new to people."""
    way, step = maintenance_record.way(record), record["step"]
    failure, failed_before = record.get("failure"), (before or {}).get("failure")
    moved = before is None or before["step"] != step
    if step == maintenance_record.ROLLBACK and moved:
        return Story(WARNING, "RollingBack", "%s: %s" % (way, failure or "it is not wanted any more"))
    if failure and failure != failed_before and not moved:
        return Story(WARNING, "MaintenanceHalted", "%s: %s" % (way, failure))
    if record["boot_id"] is not None and (before is None or before["boot_id"] is None):
        back = step == maintenance_record.ROLLBACK
        driver = record["from" if back else "to"].get("version") or record["from"].get("version")
        return Story(NORMAL, "Rebooting", "%s: reboots into the driver %s" % (way, driver or "that is installed"))
    if not moved:
        return None
    told = {
        maintenance_record.JOBS: ("Cordoned", "cordoned"),
        maintenance_record.PODS: ("Draining", "evicts the pods"),
        maintenance_record.UNCORDON: ("DriverConfirmed", "the driver works"),
    }
    if step not in told:
        return None
    reason, message = told[step]
    return Story(NORMAL, reason, "%s: %s" % (way, message))


def of_end(last: Record) -> Story:
    """The Event of a maintenance that ended. ``last``: its record, as the annotation last-maintenance has it."""
    kind, reason = _ENDS.get(last.get("outcome") or "", (NORMAL, "GivenBack"))
    text = maintenance_record.way(last)
    if reason != "MaintenanceCompleted" and last.get("failure"):
        text += ": " + last["failure"]
    return Story(kind, reason, text)


def body(node: Object, name: str, kind: str, reason: str, message: str, now: str) -> Object:
    """An Event object. ``name``: unique among Events of the namespace; ``now``: RFC 3339."""
    metadata = node["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "default"},
        "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": metadata["name"], "uid": metadata.get("uid", "")},
        "reason": reason,
        "message": one_line(message)[:_LONGEST],
        "type": kind,
        "count": 1,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "source": {"component": COMPONENT, "host": metadata["name"]},
        "reportingComponent": COMPONENT,
        "reportingInstance": metadata["name"],
    }


def name_of(node: Object, what: str, *parts: object) -> str:
    """A name for an Event; the same ``parts`` make the same."""
    metadata = node["metadata"]
    key = hashlib.sha256(" ".join(str(part) for part in (metadata.get("uid"), *parts)).encode()).hexdigest()[:12]
    return "%s.npu-%s.%s" % (metadata["name"][:200], what, key)


def tell(cluster: AnyCluster, node: Object, story: Story, now: str) -> None:
    """Create the Event. One request, and whatever becomes of it: a maintenance does not wait for what only people read.

    ``cluster``: one that does not retry.
    """
    name = name_of(node, "step", node["metadata"].get("resourceVersion"), story.reason, now)
    try:
        cluster.request("post", EVENTS, body=body(node, name, *story, now))
    except NpuError:
        pass
