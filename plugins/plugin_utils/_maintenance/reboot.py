# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reboot of a node: everything that must hold before it becomes certain, in order, and the one patch that makes it certain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._chips import chip_health
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, sentence
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.annotations import Record
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import View
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance import host_side as maintenance_host_side
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.context import Withdrawn, Work
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import approval
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.node_log import Change

# Raises what keeps the node from its reboot (problems.py says what that means for the node).
Guard = Callable[[Work, View], None]


def of_this_node(work: Work, view: View) -> None:
    """The host that answers is the one that the Node stands for."""
    work.check_identity(view)


def of_no_other_node(work: Work, _view: View) -> None:
    """No other Node says that it is the same machine."""
    work.check_unique()


def with_a_slot(work: Work, _view: View) -> None:
    """The node still has its slot, and the rollout is not halted."""
    work.check_slot()


def into_a_kernel_with_the_driver(work: Work, view: View) -> None:
    """The OS may have been updated since the plan."""
    to = work.log.own["to"]
    kernel = maintenance_host_side.kernel_without(view, to["release"]) if to.get("release") else None
    if kernel is not None:
        raise NpuError(
            "Not rebooted: the next boot of the host loads kernel %s, for which driver %s is not staged. Run npuops.ascend.upgrade"
            " again: its plan says whether there is an image for that kernel." % (kernel, to.get("version"))
        )


def without_holders(work: Work, view: View) -> None:
    """No process uses the chips. Those of a wedged node most likely hang in the kernel, and only the reboot ends them.

    A chip that the driver reserves for a container, without a process that has it open (_chips/reservations.py), is not used: the
    container ends with the reboot, as all processes of the host that no guard asks for. Before anything is touched, the plan names
    such a container if it is outside of Kubernetes (_inspect/facts.py), because a person can still end it.
    """
    if view["holders"] and work.request.purpose.recovers:
        work.say("reboots although %s" % maintenance_host_side.held_text(view["holders"]))
    elif view["holders"]:
        raise held(view)


def approved(work: Work, node: Object, record: Record) -> Record | None:
    """The approval on the Node, None if it has none. Raises Withdrawn if the reboot takes one."""
    given, why = work.approval(node, (record["to"] or {}).get("version"))
    if given is None and record["approval"] is None and not work.policy.auto:
        raise Withdrawn(sentence(why))
    return given


# In this order. What is said of the host counts only if it is the right one. A trial that runs already needs no reboot, so nothing
# but the first two keeps the node from its validation. With the patch itself come may_go_on (excluded, uncordoned, no longer due)
# and approved, on the Node that it changes.
OF_THE_HOST: tuple[Guard, ...] = (of_this_node, of_no_other_node)
OF_THE_REBOOT: tuple[Guard, ...] = (with_a_slot, into_a_kernel_with_the_driver, without_holders)


def check(work: Work, view: View, guards: tuple[Guard, ...]) -> None:
    for guard in guards:
        guard(work, view)


def intend(work: Work, view: View) -> None:
    """Write the intent: the boot ID that the host has now, and the approval consumed. From then on, the reboot is certain."""
    chips = _chips_before(work, view)

    def decide(node: Object, record: Record) -> Change:
        work.may_go_on(node, record)
        given = approved(work, node, record)
        changed = work.due(record, maintenance_record.REBOOT, boot_id=view["boot_id"], **chips)
        changed["times"][maintenance_record.INTENT] = work.log.now()
        if given is not None:
            changed["approval"] = dict(given, job=(work.request.job or {}).get("id"))
        labels = maintenance_record.reboot_required_label(node, record)
        gone = dict(approval.NOT_APPROVED)
        if given is None and work.request.purpose.recovers:
            gone = {}  # it was given for an upgrade
        elif work.request.purpose.recovers and approval.asked_for(node) != approval.recovery_of(node):
            del gone[approval.ANNOTATION_APPROVAL_FOR]  # an upgrade that it came between still asks for it
        return Change(work.request.purpose.intend(changed, work.log.now()), labels, gone)

    work.log.write(decide)


def _chips_before(work: Work, view: View) -> dict[str, Any]:
    """What the record remembers of the chips and their ports, so that the new driver is blamed only for what is worse with it."""
    if work.request.purpose.recovers:
        return {}
    chips = view.get("chips")
    return {"chips": None if chips is None else chip_health.by_key(chips), "ports": view.get("ports")}


def held(view: View) -> maintenance_host_side.Held:
    text = "Not rebooted: %s." % maintenance_host_side.held_text(view["holders"])
    return maintenance_host_side.Held(text, blockers=maintenance_host_side.holder_blockers(view["holders"]))
