# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import time

from ansible.utils.display import Display
from ansible_collections.npuops.ascend.plugins.module_utils import (
    _cluster,
    _eviction,
    _knobs,
    _parking,
    _patience,
    _plan,
    _preflight,
    _slots,
    _snapshot,
    _white_list,
    _workloads,
)
from ansible_collections.npuops.ascend.plugins.module_utils._errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._files import read_text
from ansible_collections.npuops.ascend.plugins.module_utils._registry import parse_reference
from ansible_collections.npuops.ascend.plugins.plugin_utils import _images, _support
from ansible_collections.npuops.ascend.plugins.plugin_utils._hosts import HOSTS, HostsAction

_ON_BLOCKED = ("report", "refuse", "defer")
_display = Display()
_CONTROLLER_BOOT_ID = "/proc/sys/kernel/random/boot_id"


class ActionModule(HostsAction):
    """See the documentation of the module npu_plan."""

    # raw: values of job templates are strings, and an empty one means the default.
    ARGUMENTS = {
        "hosts": HOSTS,
        "namespace": {"type": "str", "default": "npu-operator"},
        "reason": {"type": "str", "choices": list(_plan.REASONS), "default": "upgrade"},
        "auto": {"type": "raw"},
        "max_parallel": {"type": "raw"},
        "approval_max_age": {"type": "raw"},
        "wait_for_jobs": {"type": "raw"},
        "pod_deletion": {"type": "raw"},
        "drain": {"type": "raw"},
        "retry": {"type": "raw"},
        "clear_halt": {"type": "raw"},
        "workloads": {"type": "raw"},
        "on_blocked": {"type": "raw"},
        "canary": {"type": "raw"},
    }

    def act(self, params):
        wishes = _plan.Wishes(
            _eviction.Policy.of(params["wait_for_jobs"], params["pod_deletion"], params["drain"]),
            reason=params["reason"],
            auto=_knobs.flag("npu_upgrade_auto", params["auto"], False),
            approval_max_age=_knobs.number("npu_upgrade_approval_max_age", params["approval_max_age"], 0, "seconds"),
            max_parallel=_knobs.number("npu_upgrade_max_parallel", params["max_parallel"], 1, "a number of nodes"),
            retry=_knobs.flag("npu_upgrade_retry", params["retry"], False),
            clear_halt=_knobs.flag("npu_upgrade_clear_halt", params["clear_halt"], False),
            canary=_knobs.flag("npu_upgrade_canary", params["canary"], False),
            park=_knobs.choice("npu_upgrade_workloads", params["workloads"], "leave", ("leave", "park")) == "park",
        )
        on_blocked = _knobs.choice("npu_upgrade_on_blocked", params["on_blocked"], "report", _ON_BLOCKED)
        cluster = _patience.PatientCluster(_cluster.connect(params), _display.warning, _patience.Clock())
        _snapshot.check_readable(cluster, params["namespace"])
        missing = [entry for entry in _plan.permissions(params["namespace"]) if not cluster.may(*entry)]
        snapshot = _snapshot.Snapshot.read(cluster, _registries(params["hosts"]), params["namespace"])
        slots = _slots.Slots(cluster, params["namespace"], _patience.Clock()).view()
        may_evict = not any(resource == "pods/eviction" for _verb, resource, *_where in missing)
        found = None
        if wishes.park:
            # What is parked needs no eviction, and no room elsewhere.
            found = _workloads.find(cluster, _resources(params["hosts"]), params["namespace"], wishes.policy.jobs)
            missing += _workloads.missing_permissions(cluster, found.workloads)
            snapshot = snapshot.without(found.takes_away)
        plan = _plan.make(params["hosts"], snapshot, slots, wishes, _tools(cluster, snapshot, may_evict))
        if found:
            plan.cluster_notes += _parking.notes(found, plan.park)
        plan.cluster_reasons += ["the Kubernetes user may not %s" % _cluster.describe_permission(*entry) for entry in missing]
        return _result(plan, on_blocked)


def _tools(cluster, snapshot, may_evict):
    white_list = _white_list.WhiteList.find(cluster)
    return _plan.Tools(
        resolve=_images.resolve,
        size=_images.size,
        support=_support.judge,
        confirm=lambda pods: _snapshot.confirm(cluster, pods, snapshot.budgets) if may_evict else [],
        now=time.time(),
        own_boot_id=(read_text(_CONTROLLER_BOOT_ID) or "").strip() or None,
        own_pod=_eviction.own_pod_name(),
        white_list=white_list.why_not if white_list else None,
    )


def _resources(hosts):
    """The names of the resources that the hosts' chips are."""
    families = [(host.get("facts") or {}).get("family") or {} for host in hosts]
    return sorted({family["resource"] for family in families if family.get("resource")})


def _registries(hosts):
    """The registries that the hosts' driver images come from."""
    found = set()
    for host in hosts:
        config = dict(_preflight.CONFIG_DEFAULTS, **{key: val for key, val in host["config"].items() if val is not None})
        text = config["driver_image"] or config["driver_repository"]
        if text and config["driver_source"] == "image":
            try:
                found.add(parse_reference(text).registry)
            except NpuError:
                pass  # told with the host's verdict
    return sorted(found)


def _result(plan, on_blocked):
    """The plan as a result. What stops the run is ``refusal``: a failed task would bury the table under all of the data."""
    result = dict(
        plan.result(),
        table=_plan.table(plan),
        due_nodes=plan.due_nodes,
        settled_nodes=plan.settled_nodes,
        problem=plan.problem,
        refusal=None,
    )
    if (on_blocked == "refuse" and not plan.green) or (on_blocked == "defer" and plan.cluster_reasons):
        result["refusal"] = plan.problem
    result["msg"] = result["summary"]
    return result
