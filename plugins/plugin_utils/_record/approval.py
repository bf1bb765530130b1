# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the reboot of a node is approved: the annotations with which a person says so, what they count for, and how they are
asked for.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from ansible_collections.npuops.ascend.plugins.module_utils._run_package import version_info
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.annotations import Record
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import LabelChanges, Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import wedged_annotation

# Contract (names people use with kubectl).
ANNOTATION_APPROVE = "npu.openfuyao.com/approve-reboot"
ANNOTATION_APPROVED_BY = "npu.openfuyao.com/approved-by"
# The version of the driver that the reboot was asked for, or the wedge that it recovers from: an approval counts for no other.
ANNOTATION_APPROVAL_FOR = "npuops.ascend/approval-for"
_RECOVERY = re.compile(r"recovery-[0-9A-Za-z:-]{1,40}")

# As a merge patch of annotations.
NOT_APPROVED: LabelChanges = {ANNOTATION_APPROVE: None, ANNOTATION_APPROVED_BY: None, ANNOTATION_APPROVAL_FOR: None}


def given(
    node: Object, now: float, max_age: float = 0, not_before: float | None = None, purpose: str | None = None
) -> tuple[Record | None, str | None]:
    """(approval, None), or (None, why there is none). ``max_age``: seconds, 0 = any; ``not_before``: seconds since 1970, for an
    approval that does not say what it is for. All by the clock of the API server. ``purpose``: what the reboot is for, a version
    of the driver or ``recovery_of``; None = an approval of anything counts.

    An approval is {time, manager, by, for}: when and by which program the annotation was set, as managedFields tell (None
    when they do not), who said to be it, and the purpose that it is for (None: any).
    """
    values = kube_client.annotations(node)
    name, asked = node["metadata"]["name"], asked_for(node)
    if not maintenance_record.is_true(values, ANNOTATION_APPROVE):
        return None, "its reboot is not approved: %s" % command([name], purpose)
    manager, when = maintenance_record.annotated_at(node, ANNOTATION_APPROVE)
    since = maintenance_record.seconds_of(when)
    if purpose and asked not in (None, purpose):
        why = "its approval was given for %s, not for %s: %s"
        return None, why % (_phrase(asked), _phrase(purpose), command([name], purpose))
    if since is not None and max_age and now - since > max_age:
        again = "kubectl annotate node %s %s- && %s" % (name, ANNOTATION_APPROVE, command([name], purpose))
        return None, "its approval of %s is older than %d s: approve it again: %s" % (when, max_age, again)
    if not_before is not None and (asked is None or asked != purpose):
        doubt = _too_old(node, manager, when, not_before)
        if doubt:
            return None, "%s: approve it again: %s" % (doubt, command([name], purpose))
    who = {"manager": manager, "by": (values.get(ANNOTATION_APPROVED_BY) or "")[:256] or None}
    return dict(who, time=when, **{"for": asked or purpose}), None


def _too_old(node: Object, manager: str | None, when: str | None, not_before: float) -> str | None:
    """Why an approval that does not say what it is for is not known to be given after ``not_before``, or None. ``manager``,
    ``when``: of its annotation.

    managedFields have one time for all that a program has set, the time of its last change: of an approval that is not alone there,
    it proves nothing.
    """
    since = maintenance_record.seconds_of(when)
    if since is None:
        return "when its approval was given is not known"
    if since < not_before:
        return "its approval of %s is older than the problem it is for" % when
    others = _set_with_it(node)
    if others:
        return "when its approval was given is not known, because %s has also set %s" % (manager or "the same client", others[0])
    return None


def _set_with_it(node: Object) -> list[str]:
    """The other annotations that stand in managedFields together with that of the approval."""
    own = {ANNOTATION_APPROVE, ANNOTATION_APPROVED_BY, ANNOTATION_APPROVAL_FOR}
    entries = [owned for _entry, owned in kube_client.owned_keys(node, "annotations") if ANNOTATION_APPROVE in owned]
    return sorted(set().union(*entries) - own)


def command(names: Iterable[str], purpose: str | None) -> str:
    """The command that approves the reboots of these nodes for a purpose, see ``given``."""
    text = "kubectl annotate node %s %s=true" % (" ".join(names), ANNOTATION_APPROVE)
    # It may come from a record, which any client with write access to the Node can write, and people copy this into a shell.
    known = purpose and _is_purpose(purpose)
    return text + (" %s=%s" % (ANNOTATION_APPROVAL_FOR, purpose) if known else "") + " --overwrite"


def recovery_of(node: Object) -> str | None:
    """What an approval of the recovery of a wedged node is for: this wedge, not one of another day. None where it is not wedged."""
    wedge = wedged_annotation.of(node)
    if wedge is None:
        return None
    # One that a person wrote by hand has no time of its own.
    return "recovery-%s" % (wedge.began or hashlib.sha256(wedge.reason.encode()).hexdigest()[:12])


def asked_for(node: Object) -> str | None:
    """The purpose that an approval of the node's reboot is for, None when it does not say."""
    text = kube_client.annotations(node).get(ANNOTATION_APPROVAL_FOR) or ""
    return text if _is_purpose(text) else None


def _is_purpose(text: str) -> bool:
    return version_info.is_version(text) or _RECOVERY.fullmatch(text) is not None


def _phrase(purpose: str | None) -> str:
    return "the driver %s" % purpose if purpose and version_info.is_version(purpose) else purpose or "nothing"


def given_for(record: Record) -> str | None:
    """The purpose that the approval which the record has used is for; None without one."""
    approval = record.get("approval")
    return (approval.get("for") or (record.get("to") or {}).get("version")) if approval else None


def ask_for(node: Object, version: str | None) -> LabelChanges:
    """The annotations to write, as a merge patch of them, so that an approval is one for this version: what was approved when
    another one was asked for is not approved any more. An approval of the node's recovery stays until that has used it."""
    approved = ANNOTATION_APPROVE in kube_client.annotations(node)
    asked = asked_for(node)
    if not version or asked == version or (approved and asked and asked == recovery_of(node)):
        return {}
    changes: LabelChanges = {ANNOTATION_APPROVAL_FOR: version}
    return dict(NOT_APPROVED, **changes) if approved and asked else changes


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
