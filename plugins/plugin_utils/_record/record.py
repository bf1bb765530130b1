# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's maintenance as it is written on the Node: names, record, approval."""

from __future__ import annotations

import calendar
import json
import time
from collections.abc import Callable, Collection, Iterable
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._run_package import version_info
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import annotations as data_annotations
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.annotations import Record
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import LabelChanges, Labels, Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import argument_specs

# Contract (names people use with kubectl).
LABEL_STATE = "npu.openfuyao.com/driver-upgrade-state"
LABEL_REBOOT_REQUIRED = "npu.openfuyao.com/reboot-required"
ANNOTATION_APPROVE = "npu.openfuyao.com/approve-reboot"
ANNOTATION_APPROVED_BY = "npu.openfuyao.com/approved-by"
# The version of the driver that the reboot was asked for: an approval counts for no other.
ANNOTATION_APPROVAL_FOR = "npuops.ascend/approval-for"
LABEL_SKIP = "npuops.ascend/skip"
LABEL_KEEP_CORDONED = "npuops.ascend/keep-cordoned"
LABEL_REQUESTED = "npuops.ascend/maintenance-requested"
# Who maintenances are to the API server. It remembers who cordoned a node, and that is how its cordon is known to be ours.
CORDON_MANAGER = "npuops.ascend-maintenance"
ANNOTATION_RECORD = kube_client.ANNOTATION_MAINTENANCE
ANNOTATION_LAST = "npuops.ascend/last-maintenance"

# As a merge patch of annotations.
NOT_APPROVED: LabelChanges = {ANNOTATION_APPROVE: None, ANNOTATION_APPROVED_BY: None, ANNOTATION_APPROVAL_FOR: None}

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

# Seconds. A record is beaten every 10 s, and no host call lasts longer than 60 s.
HEARTBEAT_LIMIT: int = argument_specs.default("npu_upgrade_heartbeat_limit")
BEAT_SECONDS = 10


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
    if not record["to"]:
        return "%s with %s" % (record["reason"], record["from"].get("version") or "an unknown driver")
    return "%s from %s to %s" % (
        record["reason"],
        record["from"].get("version") or "an unknown driver",
        record["to"].get("version") or "the same",
    )


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

    Setting what is set changes nothing, and what is taken away is nobody's: so it is who cordoned the node since it was last
    uncordoned.
    """
    for entry in node["metadata"].get("managedFields") or []:
        fields = (entry.get("fieldsV1") or {}).get("f:spec") or {}
        if unschedulable(node) and "f:unschedulable" in fields and not entry.get("subresource"):
            return entry.get("manager")
    return None


def left_cordoned(node: Object) -> bool:
    """Whether its cordon is ours: its driver did not work when its last maintenance ended, and nobody has uncordoned and
    cordoned it since. One of which nobody knows whose it is is not ours."""
    return LEFT in (last(node).get("times") or {}) and cordoned_by(node) == CORDON_MANAGER


def left_paused(node: Object) -> bool:
    """Whether the components are paused because of how its last maintenance ended."""
    marks = last(node).get("times") or {}
    return PAUSED in marks and (LEFT in marks or last(node).get("outcome") == "failed")


# --- approval ---


def approval(
    node: Object, now: float, max_age: float = 0, not_before: float | None = None, version: str | None = None
) -> tuple[Record | None, str | None]:
    """(approval, None), or (None, why there is none). ``max_age``: seconds, 0 = any; ``not_before``: seconds since 1970.
    All by the clock of the API server. ``version``: of the driver that the reboot is for, None = any.

    An approval is {time, manager, by, for}: when and by which program the annotation was set, as managedFields tell (None
    when they do not), who said to be it, and the version that it is for (None: any).
    """
    values = kube_client.annotations(node)
    name = node["metadata"]["name"]
    if not is_true(values, ANNOTATION_APPROVE):
        return None, "its reboot is not approved: %s" % approve([name], version)
    manager, when = annotated_at(node, ANNOTATION_APPROVE)
    since = seconds_of(when)
    again = "approve it again: kubectl annotate node %s %s- && kubectl annotate node %s %s=true" % ((name, ANNOTATION_APPROVE) * 2)
    if version and asked_for(node) not in (None, version):
        return None, "its approval was given for the driver %s, not for %s: %s" % (
            asked_for(node),
            version,
            approve([name], version),
        )
    if since is not None and max_age and now - since > max_age:
        return None, "its approval of %s is older than %d s: %s" % (when, max_age, again)
    if since is not None and not_before is not None and since < not_before:
        return None, "its approval of %s is older than the problem it is for: %s" % (when, again)
    who = {"manager": manager, "by": (values.get(ANNOTATION_APPROVED_BY) or "")[:256] or None}
    return dict(who, time=when, **{"for": asked_for(node) or version}), None


def approve(names: Iterable[str], version: str | None) -> str:
    """The command that approves the reboots of these nodes into a version of the driver; None: to recover them."""
    command = "kubectl annotate node %s %s=true" % (" ".join(names), ANNOTATION_APPROVE)
    # A version may come from a record, which whoever writes the Node can write, and people copy this into their shell.
    known = version and version_info.is_version(version)
    return command + (" %s=%s" % (ANNOTATION_APPROVAL_FOR, version) if known else "") + " --overwrite"


def asked_for(node: Object) -> str | None:
    """The version of the driver that an approval of the node's reboot is for, None when it was not asked for."""
    text = kube_client.annotations(node).get(ANNOTATION_APPROVAL_FOR) or ""
    return text if version_info.is_version(text) else None


def approved_for(record: Record) -> str | None:
    """The version that the approval which the record has used is for; None without one."""
    approval = record.get("approval")
    return (approval.get("for") or (record.get("to") or {}).get("version")) if approval else None


def ask_for(node: Object, version: str | None) -> LabelChanges:
    """The annotations to write, as a merge patch of them, so that an approval is one for this version: what was approved when
    another one was asked for is not approved any more."""
    if not version or asked_for(node) == version:
        return {}
    asked: LabelChanges = {ANNOTATION_APPROVAL_FOR: version}
    if asked_for(node) and ANNOTATION_APPROVE in kube_client.annotations(node):
        asked.update(NOT_APPROVED, **asked)
    return asked


def no_longer_asked(node: Object) -> LabelChanges:
    """The annotations to write, as a merge patch of them, on a node that is not due: what was asked for once must not take the
    approval of another day away."""
    values = kube_client.annotations(node)
    stale = ANNOTATION_APPROVAL_FOR in values and ANNOTATION_APPROVE not in values
    return {ANNOTATION_APPROVAL_FOR: None} if stale else {}


# --- a Node that was put back in time ---


def behind(node: Object, generation: int) -> bool:
    """Whether the host has seen a maintenance that its Node, which is in none, knows nothing of: the cluster was restored from a
    backup, or the Node was registered anew. ``generation``: the largest that the host has seen."""
    return generation > last(node).get("generation", 0)


def without_old_approval(node: Object, generation: int) -> LabelChanges:
    """The annotations to write, as a merge patch of them, on a Node that is ``behind``: its approval may be the one that the
    maintenance has used of which only the host knows. {} where it is not, or has none."""
    if ANNOTATION_APPROVE not in kube_client.annotations(node) or not behind(node, generation):
        return {}
    return {ANNOTATION_APPROVE: None, ANNOTATION_APPROVED_BY: None}


def caught_up(node: Object, generation: int) -> LabelChanges:
    """The annotations to write, as a merge patch of them, so that the Node is no longer ``behind``: an approval that is given from
    then on counts. No clocks are compared for that, of which each machine has another one."""
    if not behind(node, generation):
        return {}
    known = dict(last(node) or {"run": "unknown"}, generation=generation)
    return dict(without_old_approval(node, generation), **{ANNOTATION_LAST: encode(known)})


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
