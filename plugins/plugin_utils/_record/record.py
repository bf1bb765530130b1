# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's maintenance as it is written on the Node: names and record."""

from __future__ import annotations

import calendar
import json
import time
from collections.abc import Callable, Collection, Iterable
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import annotations as data_annotations
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.annotations import Record
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import LabelChanges, Labels, Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import spec_defaults

# Contract (names people use with kubectl).
LABEL_STATE = "npu.openfuyao.com/driver-upgrade-state"
LABEL_REBOOT_REQUIRED = "npu.openfuyao.com/reboot-required"
LABEL_SKIP = "npuops.ascend/skip"
LABEL_KEEP_CORDONED = "npuops.ascend/keep-cordoned"
LABEL_REQUESTED = "npuops.ascend/maintenance-requested"
# Who maintenances are to the API server. It remembers who cordoned a node, and that is how its cordon is known to be ours.
CORDON_MANAGER = "npuops.ascend-maintenance"
ANNOTATION_RECORD = kube_client.ANNOTATION_MAINTENANCE
ANNOTATION_LAST = "npuops.ascend/last-maintenance"

# Steps: the one that is due.
UPGRADE = "upgrade-required"
APPROVAL = "approval-required"
CORDON = "cordon-required"
JOBS = "wait-for-jobs-required"
PODS = "pod-deletion-required"
DRAIN = "drain-required"
REBOOT = "reboot-required"
VALIDATION = "validation-required"
ROLLBACK = "rollback-required"
UNCORDON = "uncordon-required"
FAILED = "upgrade-failed"
STEPS = (UPGRADE, APPROVAL, CORDON, JOBS, PODS, DRAIN, REBOOT, VALIDATION, ROLLBACK, UNCORDON, FAILED)
# Those of a node whose maintenance is due and has not begun.
DUE = (UPGRADE, APPROVAL)
# Until the reboot is intended, which the last of them does, everything can be given back.
BEFORE_INTENT = (CORDON, JOBS, PODS, DRAIN, REBOOT)
# Those of a node that may be out of service.
IN_HAND = (CORDON, JOBS, PODS, DRAIN, REBOOT, VALIDATION, ROLLBACK, UNCORDON)

# Marks among the record's times that are no steps. LEFT: out of service since no driver works; until one does, the cordon
# stays, and it is ours.
VALIDATED, PAUSED, INTENT, LEFT = "validated", "components-paused", "reboot", "left-cordoned"
# TURNED: what the record was for is not wanted any more, and its reboot was certain: the host goes back to what is confirmed.
TURNED = "turned-back"

# Why a node is in maintenance. A recovery has no target.
UPGRADE_REASON, ROLLBACK_REASON, RECOVERY_REASON = "upgrade", "rollback", "recovery"
REASONS = (UPGRADE_REASON, ROLLBACK_REASON, RECOVERY_REASON)

# Seconds. A record is beaten every 10 s where the host is called, every 20 s in a drain, every 30 s while a watch follows the
# reboot of its host. No host call lasts longer than 60 s.
HEARTBEAT_LIMIT: int = spec_defaults.default("npu_upgrade_heartbeat_limit")
BEAT_SECONDS = 10
CALM_BEAT_SECONDS = 20  # where the host is not called


# A driver as a record has it: {version, release, digest}, what is not known None; {} for none.
Target = dict[str, Any]
# A job of AWX: {id, url, user, workflow}, as far as they are known; None outside of AWX.
Job = dict[str, str] | None


# --- time as the record has it ---


def rfc3339(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def seconds_of(text: str | None) -> int | None:
    """The inverse; None for what is no such time."""
    try:
        seconds = calendar.timegm(time.strptime(text or "", "%Y-%m-%dT%H:%M:%SZ"))
    except (TypeError, ValueError):
        return None
    return seconds if seconds >= 0 else None


# --- what a Node tells ---


def path_of(name: str) -> str:
    return "/api/v1/nodes/" + name


def decode(node: Object, annotation: str = ANNOTATION_RECORD) -> Record | None:
    """The record in the annotation of a Node, or None. Raises NpuError when it is not readable."""
    text = kube_client.annotations(node).get(annotation)
    if text is None:
        return None
    try:
        return data_annotations.parse(text, STEPS, REASONS)
    except data_annotations.Misfit as exc:
        raise unreadable(node, annotation, exc)


def check(node: Object) -> None:
    """Raise NpuError when something is written on the Node that cannot be read, and that decides what may be done to it."""
    for annotation in (ANNOTATION_RECORD, ANNOTATION_LAST):
        decode(node, annotation)


def unreadable(node: Object, annotation: str, why: object) -> NpuError:
    name = node["metadata"]["name"]
    text = (
        "The annotation %s of the node %s cannot be read: %s. It was edited, or a newer version of npuops.ascend wrote it:"
        " then use that one." % (annotation, name, why)
    )
    if annotation == ANNOTATION_RECORD:
        text += " Otherwise check whether the node is cordoned and what its label %s says, then remove" % LABEL_STATE
    else:
        text += " Otherwise find out why the node was last in maintenance, then remove"
    return NpuError("%s the annotation (kubectl annotate node %s %s-) and run again." % (text, name, annotation))


def last(node: Object) -> Record:
    """The record of the maintenance that ended last; {} without one, and when it cannot be read, which ``check`` tells."""
    try:
        return decode(node, ANNOTATION_LAST) or {}
    except NpuError:
        return {}


def state(node: Object) -> str | None:
    """The step that is due, None when the node is up to date."""
    return kube_client.labels(node).get(LABEL_STATE)


def is_true(values: Labels, name: str) -> bool:
    return values.get(name) == "true"


def unschedulable(node: Object) -> bool:
    return bool(node.get("spec", {}).get("unschedulable"))


def serves_pods(node: Object) -> bool:
    """Whether pods can get the node's chips: it is Ready, not cordoned and not wedged."""
    wedged = kube_client.ANNOTATION_WEDGED in kube_client.annotations(node)
    return kube_client.node_ready(node)[0] and not unschedulable(node) and not wedged


def reboot_required(node: Object, pending: bool) -> str | None:
    """The value of the label reboot-required: it has two reasons, a request that is ``pending`` and a wedge."""
    return "true" if pending or kube_client.ANNOTATION_WEDGED in kube_client.annotations(node) else None


def reboot_required_label(node: Object, record: Record) -> LabelChanges:
    """The label while the record is under way: it asks for no approval itself, but an upgrade that it came between may."""
    return {LABEL_REBOOT_REQUIRED: reboot_required(node, record.get("due") == APPROVAL)}


def intended(record: Record) -> bool:
    """Whether the reboot is certain: the host may be anywhere, and nothing can simply be given back."""
    return record.get("boot_id") is not None or record.get("step") not in BEFORE_INTENT


def is_lost(node: Object, holders: Callable[[], Collection[str]]) -> bool:
    """Whether a maintenance had the node in its hands, and its record is gone. ``holders()``: of the slots.

    Its step tells, which nothing else writes; or its slot together with components that it has paused.
    """
    if ANNOTATION_RECORD in kube_client.annotations(node):
        return False
    if state(node) in IN_HAND:
        return True
    paused = kube_client.labels(node).get(kube_client.LABEL_COMPONENTS) == "paused"
    return paused and state(node) != FAILED and node["metadata"]["name"] in holders()


def version_of(release: str | None) -> str:
    """The version in the name of a release."""
    return (release or "").partition("-")[0]


def way(record: Record) -> str:
    """What the maintenance is to do, as a phrase."""
    to, before = record.get("to"), (record.get("from") or {}).get("version") or "an unknown driver"
    if not to:
        return "%s with %s" % (reason_of(record), before)
    return "%s from %s to %s" % (reason_of(record), before, to.get("version") or "the same")


def reason_of(record: Record) -> str:
    return record.get("reason") or UPGRADE_REASON


def age(record: Record, now: float) -> float:
    """Seconds since the record's heartbeat; very old when it has none that can be read."""
    beat = seconds_of(record.get("heartbeat"))
    return now - beat if beat is not None else float("inf")


def annotated_at(node: Object, name: str) -> tuple[str | None, str | None]:
    """(the program that set the annotation, when: RFC 3339), as managedFields tell; (None, None) when they do not."""
    manager, when = None, None
    for entry, owned in kube_client.owned_keys(node, "annotations"):
        if name in owned and (entry.get("time") or "") >= (when or ""):
            manager, when = entry.get("manager"), entry.get("time")
    return manager, when


def cordoned_by(node: Object) -> str | None:
    """The program that set spec.unschedulable, as managedFields tell: None when it is not set, or they do not.

    Setting a field that is set changes no owner, and a removed field has none: so it is the program that cordoned the node
    since it was last uncordoned.
    """
    for entry in node["metadata"].get("managedFields") or []:
        fields = (entry.get("fieldsV1") or {}).get("f:spec") or {}
        if unschedulable(node) and "f:unschedulable" in fields and not entry.get("subresource"):
            return entry.get("manager")
    return None


def left_cordoned(node: Object) -> bool:
    """Whether its cordon is ours: its driver did not work when its last maintenance ended, and no other client has uncordoned
    and cordoned it since. A cordon whose owner is unknown is not ours."""
    return LEFT in (last(node).get("times") or {}) and cordoned_by(node) == CORDON_MANAGER


def cordon_is_ours(node: Object) -> bool:
    """Whether a maintenance cordoned the node, and no label says that it is to stay so."""
    return not is_true(kube_client.labels(node), LABEL_KEEP_CORDONED) and cordoned_by(node) == CORDON_MANAGER


def cordon_remains(node: Object) -> bool:
    """The same of a maintenance that has ended."""
    return ANNOTATION_RECORD not in kube_client.annotations(node) and cordon_is_ours(node)


def left_paused(node: Object) -> bool:
    """Whether the components are paused because of how its last maintenance ended."""
    marks = last(node).get("times") or {}
    return PAUSED in marks and (LEFT in marks or last(node).get("outcome") == "failed")


# --- the record ---


def encode(record: Record) -> str:
    return json.dumps(record, sort_keys=True, separators=(",", ":"))


def new_record(
    node: Object,
    run: str,
    now: str,
    generation: int,
    reason: str,
    from_driver: Target,
    target: Target,
    recoveries: Iterable[str] = (),
    job: Job | None = None,
) -> Record:
    """The record a maintenance begins with.

    ``from_driver``: {version, release}; ``target``: {version, release, digest}; ``generation``: larger than any that node
    or host has seen. ``first_generation`` tells the trial boots of this maintenance from older ones.
    ``recoveries``: when the node was rebooted to recover it, of late. ``job``: {id, url, user, workflow} of AWX, or None.
    """
    return {
        "run": run,
        "job": job,
        "generation": generation,
        "first_generation": generation,
        "heartbeat": now,
        "reason": reason,
        "from": from_driver,
        "to": target,
        "step": CORDON,
        "uid": node["metadata"].get("uid"),
        "unschedulable": None,
        "boot_id": None,
        "attempt": 1,
        "approval": None,
        "started": now,
        "times": {CORDON: now},
        "failure": None,
        "recoveries": list(recoveries),
    }


def ended(record: Record, outcome: str, now: str) -> str:
    """The annotation last-maintenance of a record that ends now."""
    return encode(data_annotations.bounded(dict(record, outcome=outcome, ended=now)))
