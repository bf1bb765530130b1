# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of a maintenance, from the cordon to the uncordon. cycle.py has them in their order.

Each does what is due, writes on the Node which step is due next, and returns None; or it ends the maintenance, and returns the
outcome.
"""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import one_line
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.annotations import Record
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import View
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance import firmware_write, reboot, rollback_step
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance import host_side as maintenance_host_side
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.context import (
    COMPONENTS_LIMIT,
    MOST_RETURNS,
    AnotherBoot,
    Course,
    Invalid,
    OutsideWindow,
    Work,
    check_skip,
)
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.end import Ending
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.validation import Check
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods.blocker import told
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.node_log import Change
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.outcome import DEFERRED, Outcome
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.record import VALIDATED

MOST_ATTEMPTS = 3


# --- until the node is empty ---


def cordon(work: Work) -> Outcome | None:
    work.check_slot()
    found = work.pods.simulate()
    blockers = [blocker for blocker in found if not blocker.may_give_way]
    if blockers:
        text = "; ".join(blocker.text for blocker in blockers)
        results = [blocker.result() for blocker in blockers]
        return Ending(work).give_back(DEFERRED, "Not cordoned: %s." % text.rstrip("."), results)

    def decide(node: Object, record: Record) -> Change:
        closed = work.outside_window()
        if closed:
            raise OutsideWindow(closed)
        alert = work.alert()
        if alert:
            raise OutsideWindow("Not cordoned: %s. Run again when that has ended." % alert)
        shortage = work.shortage()
        if shortage:
            raise OutsideWindow("Not cordoned: %s. Run again when more nodes serve." % shortage)
        work.request.purpose.check_still_due(node)
        check_skip(node)
        # Looked at only now, because the run may have waited: another client may have taken over the cordon of an earlier
        # maintenance. A cordon of ours whose record was removed is still ours.
        ours = maintenance_record.cordoned_by(node) == maintenance_record.CORDON_MANAGER
        before = maintenance_record.unschedulable(node) and not ours
        return Change(work.due(record, maintenance_record.JOBS, unschedulable=before), cordon=True)

    work.log.write(decide)
    work.say("cordoned", maintenance_record.CORDON)
    if found:
        work.say("may give way to the cordon: %s" % told(found))
    return None


def wait_for_jobs(work: Work) -> None:
    remaining = work.pods.wait_for_jobs()
    if remaining:
        work.say("no longer waits for %d pods" % len(remaining))
    work.log.step(maintenance_record.PODS, guard=work.may_go_on)


def evict_npu_pods(work: Work) -> None:
    count = work.pods.evict_npu_pods()
    if count:
        work.say("NPU pods gone: %d" % count)
    work.log.step(maintenance_record.DRAIN, guard=work.may_go_on)


def drain(work: Work) -> None:
    """Evict the other pods, then pause the components. No pod uses the chips then, so the host gets its virtual NPUs."""
    count = work.pods.evict_others()
    if count:
        work.say("other pods gone: %d" % count)
    labels, times = work.pausing()
    if labels:
        work.log.step(maintenance_record.DRAIN, labels=labels, guard=work.may_go_on, times=times)
    work.pods.wait_components_gone(COMPONENTS_LIMIT)
    _divide(work)
    work.log.step(maintenance_record.REBOOT, guard=work.may_go_on)


def _divide(work: Work) -> None:
    """Give the host its virtual NPUs. After the reboot it has to have them again."""
    layout = work.request.vnpu_layout
    if layout is None or work.request.purpose.recovers or work.course is not Course.FORWARD:
        return
    view = work.host.wait_free()
    if view["holders"]:
        raise reboot.held(view)
    # The virtual NPUs stay if the node is given back after all, so first check for what asks for that.
    work.check_own_generation(view)
    work.may_go_on(work.log.look(), work.log.own)
    work.check_slot()
    reboot.approved(work, work.log.node, work.log.own)
    answer = work.host.divide(layout)
    if answer["changed"]:
        changed = one_line(answer["msg"])
        work.say("virtual NPUs: %s" % changed)
        work.log.step(maintenance_record.DRAIN, vnpus=changed)


# --- reboot ---


def intend(work: Work) -> None:
    """Nothing runs on the node any more: make its reboot certain, if everything still allows it."""
    count = work.pods.evict_returned(MOST_RETURNS)
    if count:
        work.say("pods that had come back gone: %d" % count)
    # A recovery needs no listing, and npu-smi would hang in it.
    looks = not work.request.purpose.recovers
    view = work.host.wait_free(chips=looks, ports=looks and work.request.network != "off")
    try:
        reboot.check(work, view, reboot.OF_THE_HOST)
    except AnotherBoot:
        # A person has rebooted it during the drain, and the kubelet takes a moment to say so. Then this step begins again.
        work.known_host()
        return
    work.check_generation(view)
    if maintenance_host_side.trial_runs(view, work.log.own["to"].get("release")):
        work.log.step(maintenance_record.VALIDATION, guard=work.may_go_on, to=_tried(work, view))
        return
    reboot.check(work, view, reboot.OF_THE_REBOOT)
    reboot.intend(work, view)
    work.remembered.asked = True


def reboot_host(work: Work) -> Outcome | None:
    """Write the firmware, reboot, and see what the host came back with."""
    release = work.log.own["to"].get("release")
    if not work.remembered.asked:
        work.refuse_another_node()
        work.check_not_older()
    problem = firmware_write.write(work, release)
    if problem:
        return rollback_step.begin(work, problem)
    view = work.host.reboot(release, work.policy.reboot_timeout, refuse_held=not work.request.purpose.recovers)
    work.check_generation(view)
    work.say("is back")
    record = work.log.own
    if release is None or maintenance_host_side.runs(view, release):
        work.log.step(maintenance_record.VALIDATION, labels=work.components_back(), to=_tried(work, view))
    elif not maintenance_host_side.came_without_trial(view, record):
        why = "the trial of %s ended by itself: the host was rebooted again" % release
        return rollback_step.begin(work, why, rebooted=True)
    elif record["attempt"] >= MOST_ATTEMPTS:
        why = "the host booted %d times without trying %s; see journalctl -u npu-driver-select there"
        return rollback_step.begin(work, why % (record["attempt"], release), rebooted=True)
    else:
        work.say("the host booted without trying %s (a power loss?): trying again" % release)
        work.log.step(maintenance_record.REBOOT, **_next_attempt(record))
    return None


def _tried(work: Work, view: View) -> Record:
    """``to`` of the record: the host may try another release of the version, that for its new kernel."""
    to: Record = work.log.own["to"]
    if not to.get("release") or view["driver"] == to["release"]:
        return to
    work.say("its kernel is %s now: tries %s" % (view["kernel"], view["driver"]))
    return dict(to, release=view["driver"], digest=None)


# --- validation ---


def validate(work: Work) -> Outcome | None:
    to, check = work.log.own["to"], Check(work)
    _validated_boot(work)
    try:
        trial = to.get("release") is not None
        check.in_order(to.get("version"), to.get("release"), to.get("firmware"), trial)
        check.run_smoke_pod()
    except Invalid as exc:
        return _refuse(work, exc)
    times = dict(work.log.own["times"], **{VALIDATED: work.log.now()})
    work.log.step(maintenance_record.VALIDATION, times=times)
    return None


def confirm(work: Work) -> Outcome | None:
    """Have the host take the driver as good, in the boot in which it was validated."""
    release, boot_id = work.log.own["to"].get("release"), _validated_boot(work)
    try:
        confirmed = release is None or Check(work).confirm(release, boot_id)
    except Invalid as exc:
        return _refuse(work, exc)
    if confirmed:
        work.log.step(maintenance_record.UNCORDON)
        return None
    work.remembered.boot_id, times = None, dict(work.log.own["times"])
    del times[VALIDATED]
    work.say("the host was rebooted again: validating it again")
    work.log.step(maintenance_record.VALIDATION, times=times)
    return None


def _validated_boot(work: Work) -> str:
    if work.remembered.boot_id is None:
        work.remembered.boot_id = work.known_host()["boot_id"]
    return work.remembered.boot_id


def _refuse(work: Work, problem: Invalid) -> Outcome | None:
    # What another machine says under this one's address is no reason to give up a driver.
    work.refuse_another_node()
    record = work.log.own
    if not problem.details.get("not_written") or record["attempt"] >= MOST_ATTEMPTS:
        return rollback_step.begin(work, problem.message, rebooted=problem.details.get("trial_over", False))
    # The host went down between intent and write, and is back on its confirmed driver: it is drained and rebooted again.
    work.say("the host was rebooted before its firmware was written: trying again")
    work.remembered.boot_id, work.remembered.asked = None, False
    work.log.step(maintenance_record.DRAIN, **_next_attempt(record))
    return None


def _next_attempt(record: Record) -> Record:
    """What changes in the record. Its number is one that the host has not seen, as that of each record without an intent."""
    return {"boot_id": None, "attempt": record["attempt"] + 1, "generation": record["generation"] + 1}


def finish(work: Work) -> Outcome | None:
    """None if the record was for something else, and what this run wants is to begin yet."""
    work.check_not_older()
    more = work.wants_more()
    outcome = Ending(work).finish(more)
    return None if more else outcome
