# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan for made-up hosts, nodes and pods: ``make()``."""

from __future__ import annotations

import json

from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import disruption_budgets
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import planner as rollout_planner
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import rollout_settings
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import snapshot as fleet_snapshot
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.mindcluster_version_lines import MindClusterVersionLines
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods import pod_view
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import valid_settings

from support.fleet.hosts import KERNEL, NEW, NEW_DIGEST, NEW_RELEASE, OLD, OLD_DIGEST, OLD_RELEASE, host
from support.kube.stub import node

NOW = 1795264200.0  # 2026-11-21T12:30:00Z
APPROVED = {"npu.openfuyao.com/approve-reboot": "true"}
STATE = "npu.openfuyao.com/driver-upgrade-state"
RESOURCE = "huawei.com/Ascend910"


def nodes_of(*names, **kwargs):
    return {name: node(name, boot_id="boot-" + name, allocatable={RESOURCE: "8"}, **kwargs) for name in names}


def snapshot_of(nodes, pods=(), budgets=(), **kwargs):
    by_node = {}
    for item in pods:
        by_node.setdefault(item["spec"]["nodeName"], []).append(pod_view.Pod(item))
    if kwargs.get("claims"):
        kwargs["claims"].mark(pod for some in by_node.values() for pod in some)
    version_lines = MindClusterVersionLines(pod_view.NAMESPACE)
    for item in pods:
        version_lines.look(item)
    return fleet_snapshot.FleetSnapshot(nodes, by_node, disruption_budgets.Budgets(budgets), version_lines=version_lines, **kwargs)


def asked(reason="upgrade", **settings):
    """Of a run without approvals, unless ``settings`` says so."""
    return rollout_settings.RolloutSettings.of(valid_settings.settings("npu_upgrade", {"auto": True, **settings}), reason)


def make(
    hosts,
    nodes=None,
    pods=(),
    budgets=(),
    slots=None,
    lookups=None,
    registry_nodes=None,
    reason="upgrade",
    components=None,
    claims=None,
    **settings,
):
    nodes = nodes_of(*[entry["name"] for entry in hosts]) if nodes is None else nodes
    defaults = {
        "resolve": lambda reference, config, machine: NEW_DIGEST,
        "size": lambda *_args: 2**30,
        "support": lambda *_args: ([], []),
        "confirm": lambda pods: [],
        "now": NOW,
    }
    return rollout_planner.make(
        hosts,
        snapshot_of(nodes, pods, budgets, registry_nodes=registry_nodes, claims=claims),
        slots or {"max": 1, "halted": None, "holders": {}},
        asked(reason, **settings),
        rollout_settings.Lookups(**dict(defaults, **(lookups or {}))),
        components,
    )


def only(entry, **kwargs):
    """The entry of a single host."""
    (found,) = make([entry], **kwargs).entries
    return found


def record(**changes):
    return dict(
        {"run": "r1", "generation": 3, "heartbeat": "2026-11-21T12:00:00Z", "step": "drain-required",
         "to": {"version": NEW, "release": NEW_RELEASE, "digest": NEW_DIGEST}},
        **changes,
    )  # fmt: skip


def under_way(reason, to, **changes):
    old, new = ({"version": name.partition("-")[0], "release": name} for name in (OLD_RELEASE, NEW_RELEASE))
    found = record(reason=reason, to={"old": old, "new": new, "": {}}[to], **{"from": new if to == "old" else old}, **changes)
    return nodes_of("a", annotations={"npuops.ascend/maintenance": json.dumps(found)})


TRIED = {"boot_id": "boot-before", "step": "validation-required", "times": {}}


def backward(**changes):
    staged = {
        OLD_RELEASE: {"version": OLD, "kernel": KERNEL, "digest": OLD_DIGEST, "firmware": None},
        NEW_RELEASE: {"version": NEW, "kernel": KERNEL, "digest": NEW_DIGEST, "firmware": None},
    }
    return host(loaded=NEW_RELEASE, upgrade=dict({"previous": OLD_RELEASE, "staged": staged, "holders": []}, **changes))


def ended(outcome="success", minutes=10, **changes):
    last = record(started="2026-11-20T10:00:00Z", ended="2026-11-20T10:%02d:00Z" % minutes, outcome=outcome, **changes)
    return {"npuops.ascend/last-maintenance": json.dumps(last)}
