# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the reboot of a node is approved: the annotations with which a person says so, what they count for, and how they are
asked for.
"""

from __future__ import annotations

from collections.abc import Iterable

from ansible_collections.npuops.ascend.plugins.module_utils._run_package import version_info
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.annotations import Record
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import LabelChanges, Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record

# Contract (names people use with kubectl).
ANNOTATION_APPROVE = "npu.openfuyao.com/approve-reboot"
ANNOTATION_APPROVED_BY = "npu.openfuyao.com/approved-by"
# The version of the driver that the reboot was asked for: an approval counts for no other.
ANNOTATION_APPROVAL_FOR = "npuops.ascend/approval-for"

# As a merge patch of annotations.
NOT_APPROVED: LabelChanges = {ANNOTATION_APPROVE: None, ANNOTATION_APPROVED_BY: None, ANNOTATION_APPROVAL_FOR: None}


def given(
    node: Object, now: float, max_age: float = 0, not_before: float | None = None, version: str | None = None
) -> tuple[Record | None, str | None]:
    """(approval, None), or (None, why there is none). ``max_age``: seconds, 0 = any; ``not_before``: seconds since 1970.
    All by the clock of the API server. ``version``: of the driver that the reboot is for, None = any.

    An approval is {time, manager, by, for}: when and by which program the annotation was set, as managedFields tell (None
    when they do not), who said to be it, and the version that it is for (None: any).
    """
    values = kube_client.annotations(node)
    name = node["metadata"]["name"]
    if not maintenance_record.is_true(values, ANNOTATION_APPROVE):
        return None, "its reboot is not approved: %s" % command([name], version)
    manager, when = maintenance_record.annotated_at(node, ANNOTATION_APPROVE)
    since = maintenance_record.seconds_of(when)
    again = "approve it again: kubectl annotate node %s %s- && kubectl annotate node %s %s=true" % ((name, ANNOTATION_APPROVE) * 2)
    if version and asked_for(node) not in (None, version):
        return None, "its approval was given for the driver %s, not for %s: %s" % (
            asked_for(node),
            version,
            command([name], version),
        )
    if since is not None and max_age and now - since > max_age:
        return None, "its approval of %s is older than %d s: %s" % (when, max_age, again)
    if since is not None and not_before is not None and since < not_before:
        return None, "its approval of %s is older than the problem it is for: %s" % (when, again)
    who = {"manager": manager, "by": (values.get(ANNOTATION_APPROVED_BY) or "")[:256] or None}
    return dict(who, time=when, **{"for": asked_for(node) or version}), None


def command(names: Iterable[str], version: str | None) -> str:
    """The command that approves the reboots of these nodes into a version of the driver; None: to recover them."""
    text = "kubectl annotate node %s %s=true" % (" ".join(names), ANNOTATION_APPROVE)
    # A version may come from a record, which any client with write access to the Node can write, and people copy this into a shell.
    known = version and version_info.is_version(version)
    return text + (" %s=%s" % (ANNOTATION_APPROVAL_FOR, version) if known else "") + " --overwrite"


def asked_for(node: Object) -> str | None:
    """The version of the driver that an approval of the node's reboot is for, None when it was not asked for."""
    text = kube_client.annotations(node).get(ANNOTATION_APPROVAL_FOR) or ""
    return text if version_info.is_version(text) else None


def given_for(record: Record) -> str | None:
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
    backup, or the Node was registered again. ``generation``: the largest that the host has seen."""
    return generation > maintenance_record.last(node).get("generation", 0)


def without_old(node: Object, generation: int) -> LabelChanges:
    """The annotations to write, as a merge patch of them, on a Node that is ``behind``: its approval may be the one that the
    maintenance has used of which only the host knows. {} where it is not, or has none."""
    if ANNOTATION_APPROVE not in kube_client.annotations(node) or not behind(node, generation):
        return {}
    return {ANNOTATION_APPROVE: None, ANNOTATION_APPROVED_BY: None}


def may_be_used(generation: int) -> str:
    """Why the approval of a Node that is ``behind`` does not count."""
    return (
        "it may have been used for a maintenance that its host has seen (generation %d) and its Node knows nothing of, as after the"
        " cluster was restored from a backup" % generation
    )


def caught_up(node: Object, generation: int) -> LabelChanges:
    """The annotations to write, as a merge patch of them, so that the Node is no longer ``behind``: an approval that is given from
    then on counts. No clocks are compared for that, of which each machine has another one."""
    if not behind(node, generation):
        return {}
    known = dict(maintenance_record.last(node) or {"run": "unknown"}, generation=generation)
    return dict(without_old(node, generation), **{maintenance_record.ANNOTATION_LAST: maintenance_record.encode(known)})
