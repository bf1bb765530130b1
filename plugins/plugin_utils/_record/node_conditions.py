# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lifecycle conditions of a Node during its maintenance, for other controllers and for people.

Their types are those of KEP-5683, which Kubernetes 1.37 names in its API (k8s.io/api/core/v1). An API server of any version stores
them. What they say follows from label and record of the Node alone, so a run that continues a maintenance also corrects them.

The node agent leaves for the reboot. What it said of driver and chips is taken back until it runs again.
"""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import agent_conditions as kube_agent_conditions
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record

PLANNED, DRAINING, DRAINED, IN_MAINTENANCE = "MaintenancePlanned", "DrainInProgress", "Drained", "MaintenanceInProgress"
TYPES = (PLANNED, DRAINING, DRAINED, IN_MAINTENANCE)
# Their reason shows that conditions are ours: those of other controllers are left unchanged.
REASONS = {
    maintenance_record.UPGRADE_REASON: "NpuDriverUpgrade",
    maintenance_record.ROLLBACK_REASON: "NpuDriverRollback",
    maintenance_record.RECOVERY_REASON: "NpuRecovery",
}
_DUE = "NpuMaintenanceDue"
_OURS = (*REASONS.values(), _DUE)
# The kubelet writes a Node's status every few seconds.
_ATTEMPTS = 5
_DRAIN_STEPS = (maintenance_record.JOBS, maintenance_record.PODS, maintenance_record.DRAIN)


def told_by(node: Object) -> list[Object]:
    """The conditions of ours that the Node has."""
    found = (node.get("status") or {}).get("conditions") or []
    return [one for one in found if one.get("type") in TYPES and one.get("reason") in _OURS]


def patch(node: Object, now: float, ended: bool = False) -> Object | None:
    """The strategic merge patch of the Node's status, or None if its conditions are right. ``now``: seconds since 1970;
    ``ended``: whether the maintenance is about to end, whatever the Node says."""
    have = {one["type"]: one for one in told_by(node)}
    wanted = {} if ended else _wanted(node)
    for foreign in (node.get("status") or {}).get("conditions") or []:
        if foreign.get("type") not in have and foreign.get("status") == "True":
            wanted.pop(foreign.get("type"), None)
    changes: list[Object] = [{"type": kind, "$patch": "delete"} for kind in have if kind not in wanted]
    when = maintenance_record.rfc3339(now)
    for kind, (reason, message) in wanted.items():
        there = have.get(kind, {})
        if (there.get("status"), there.get("reason"), there.get("message")) == ("True", reason, message):
            continue
        since = there.get("lastTransitionTime") if there.get("status") == "True" else None
        changes.append(
            {
                "type": kind,
                "status": "True",
                "reason": reason,
                "message": message,
                "lastTransitionTime": since or when,
                "lastHeartbeatTime": when,
            }
        )
    if not ended and _agent_is_paused(node):
        changes += kube_agent_conditions.taken_back(node, when)
    return {"status": {"conditions": changes}} if changes else None


def write(cluster: AnyCluster, node: Object, now: float, ended: bool = False) -> Object | None:
    """Make the Node's conditions right; returns the Node as it is then if it was read or written for that.

    They only inform: a maintenance goes on even if they cannot be written. Only their removal waits until an outage ends, because
    no later run would remove them. Raises Unreachable then.
    """
    patient = cluster if ended else cluster.without_retries
    record, latest = _text(node), node
    try:
        for _attempt in range(_ATTEMPTS):
            body = patch(latest, now, ended)
            # A run that has written another record meanwhile also writes the conditions.
            if body is None or _text(latest) != record:
                break
            try:
                return _patch(patient, latest, body)
            except kube_client.Conflict:
                found = patient.get(maintenance_record.path_of(node["metadata"]["name"]))
                if found is None:
                    break
                latest = found
    except kube_client.Unreachable:
        if ended:
            raise
    except NpuError:
        pass
    return None if latest is node else latest


def _patch(cluster: AnyCluster, node: Object, body: Object) -> Object:
    # Only on top of this version: a request that was delayed must not tell what was true once.
    body["metadata"] = {"resourceVersion": node["metadata"]["resourceVersion"]}
    return cluster.request(
        "patch",
        maintenance_record.path_of(node["metadata"]["name"]) + "/status",
        body=body,
        content_type="application/strategic-merge-patch+json",
        field_manager=maintenance_record.CORDON_MANAGER,
    )


def _agent_is_paused(node: Object) -> bool:
    paused = kube_client.labels(node).get(kube_client.LABEL_COMPONENTS) == "paused"
    return paused and kube_client.ANNOTATION_MAINTENANCE in kube_client.annotations(node)


def _text(node: Object) -> str | None:
    return kube_client.annotations(node).get(maintenance_record.ANNOTATION_RECORD)


def _wanted(node: Object) -> dict[str, tuple[str, str]]:
    """{type: (reason, message)} of those that are to be True."""
    try:
        record = maintenance_record.decode(node)
    except NpuError:
        return {one["type"]: (one["reason"], one.get("message") or "") for one in told_by(node)}
    if record is None:
        if maintenance_record.state(node) in maintenance_record.DUE:
            return {PLANNED: (_DUE, "npuops.ascend is going to maintain this node: its NPU driver is due")}
        return {}
    reason = REASONS[maintenance_record.reason_of(record)]
    told = reason, "npuops.ascend: %s, by the run %s" % (maintenance_record.way(record), record["run"])
    wanted = {IN_MAINTENANCE: told}
    if record.get("step") in _DRAIN_STEPS:
        wanted[DRAINING] = told
    elif record.get("step") == maintenance_record.REBOOT or maintenance_record.intended(record):
        wanted[DRAINED] = told
    return wanted
