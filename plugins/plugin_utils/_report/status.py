# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fleet as rows: what each host says and what the cluster says about its node, in one line a person can read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from ansible_collections.npuops.ascend.plugins.module_utils._chips import chip_health
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, one_line
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import columns as data_columns
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import host_answers
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.and_more import and_more
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.duration import duration
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import AskedHost, Facts
from ansible_collections.npuops.ascend.plugins.plugin_utils._heal.recovery_plan import HealPlan
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import daemonsets as kube_daemonsets
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import quantity as kube_quantity
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import shared_chips
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Object, Objects
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import component_names
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import resources as npu_resources
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import acceptance_gate, missing_chips, node_name
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import offers as node_offers
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import wedged_annotation
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import node_state
from ansible_collections.npuops.ascend.plugins.plugin_utils._report.node_state import Row, Seen, View

_MOST_NAMES = 20  # of nodes that have the same details
# What a node waits for an approval of.
ROLLOUT, RECOVERY = "rollout", "recovery"

_COLUMNS = (
    ("NODE", "node"),
    ("CHIPS", "chips_text"),
    ("WANTED", "driver_wanted"),
    ("LOADED", "driver_loaded"),
    ("CONTAINERD", "containerd"),
    ("CDI", "cdi"),
    ("AGENT", "agent"),
    ("PLUGIN", "plugin"),
    ("ALLOCATABLE", "allocatable_text"),
    ("STATE", "state_text"),
)


def node_views(
    nodes: Mapping[str, Object],
    pods: Objects,
    now: float,
    recovery: HealPlan | None = None,
    unhealthy: Mapping[str, list[str]] | None = None,
    isolated: Mapping[str, list[str]] | None = None,
) -> dict[str, View]:
    """What the table needs of every Node, by name. ``nodes``: Node objects by name; ``pods``: those in our namespace; ``now``:
    seconds since 1970; ``recovery``: a recovery_plan.HealPlan, to say what becomes of wedged nodes; ``unhealthy``: node -> phrases
    about pods on unhealthy devices; ``isolated``: the same about chips that are withheld until a person acts."""
    plugin, agent = _by_node(pods, component_names.DEVICE_PLUGINS.values()), _by_node(pods, [component_names.AGENT])
    told, awaiting = (recovery.told(), recovery.awaiting()) if recovery else ({}, set())
    views = {name: _node_view(node, plugin.get(name), agent.get(name), now, told.get(name)) for name, node in nodes.items()}
    for name, view in views.items():
        view["unhealthy"] = list((unhealthy or {}).get(name, ()))
        view["isolated"] = list((isolated or {}).get(name, ()))
        if name in awaiting:
            view["awaiting_approval"] = RECOVERY
    return views


def _by_node(pods: Objects, daemonsets: Collection[str]) -> dict[str | None, Object]:
    mine = (pod for pod in pods if component_names.daemonset_of(pod["metadata"], pod["metadata"].get("namespace")) in daemonsets)
    return {kube_daemonsets.pod_node(pod): pod for pod in mine}


def _node_view(node: Object, plugin_pod: Object | None, agent_pod: Object | None, now: float, recovery: str | None) -> View:
    ready, why = kube_client.node_ready(node)
    wedge = wedged_annotation.of(node)
    labels = kube_client.labels(node)
    step = maintenance_record.state(node)
    return {
        "ready": ready,
        "why": why,
        "unschedulable": bool(node.get("spec", {}).get("unschedulable")),
        "cordon_remains": maintenance_record.cordon_remains(node),
        "gate": acceptance_gate.level(node),
        "acceptance": acceptance_gate.last(node),
        "boot_id": kube_client.boot_id(node),
        "runtime": kube_client.node_info(node).get("containerRuntimeVersion"),
        "components": labels.get(kube_client.LABEL_COMPONENTS),
        "chip": labels.get(kube_client.LABEL_CHIP),
        "present": kube_client.LABEL_PRESENT in labels,
        "maintenance": _maintenance_told(node, now),
        # A person may have written anything into the label.
        "step": step if step in maintenance_record.STEPS else None,
        "awaiting_approval": ROLLOUT if step == maintenance_record.APPROVAL else None,
        "vnpu_change": kube_client.annotations(node).get(kube_client.ANNOTATION_VNPU_CHANGE),
        "allocatable": {
            name: count
            for name, text in (node.get("status", {}).get("allocatable") or {}).items()
            if npu_resources.is_npu(name) and (count := kube_quantity.whole(text)) is not None
        },
        "devices_per_chip": shared_chips.devices_per_chip([plugin_pod] if plugin_pod else []),
        "plugin": _pod_state(plugin_pod),
        "plugin_why": _pod_why(plugin_pod),
        "agent": _pod_state(agent_pod),
        "agent_why": _pod_why(agent_pod),
        "wedged": wedge.text if wedge else None,
        "recovery": recovery,
    }


def _maintenance_told(node: Object, now: float) -> str | None:
    """The maintenance under way: what for, by which run, in which step and since when; None without one."""
    try:
        record = maintenance_record.decode(node)
    except NpuError as exc:
        return exc.message
    if record is None:
        return None
    before, after = (record.get("from") or {}).get("version"), (record.get("to") or {}).get("version")
    way = " from %s to %s" % (before or "?", after) if after else ""
    step, beat = record.get("step"), maintenance_record.seconds_of(record.get("heartbeat"))
    begun = maintenance_record.seconds_of((record.get("times") or {}).get(step))
    text = "%s%s by the run %s: %s" % (record.get("reason"), way, record["run"], step)
    text += " for %s" % duration(max(0, now - begun)) if begun is not None else ""
    # The clocks of two controllers may differ.
    text += ", last heartbeat %s ago" % duration(max(0, now - beat)) if beat is not None else ""
    return text + ("; %s" % one_line(record["failure"]) if record.get("failure") else "")


def _pod_state(pod: Object | None) -> str | None:
    if pod is None:
        return None
    return "running" if kube_daemonsets.pod_ready(pod) else "failing"


def _pod_why(pod: Object | None) -> str | None:
    if pod is None or kube_daemonsets.pod_ready(pod):
        return None
    return kube_daemonsets.why_pod_not_ready(pod, [], "")


def rows(hosts: Iterable[AskedHost], views: Mapping[str, View]) -> list[Row]:
    """One row (dict) per host in their order, then one per NPU node that no host of the inventory stands for.

    ``hosts``: as the npu_hosts filter makes them; ``views``: from node_views.
    """
    result = [_row(host, views) for host in hosts]
    known = {row["node"] for row in result}
    for name in sorted(views):
        if views[name]["present"] and name not in known:
            result.append(_foreign_row(name, views[name]))
    return [dict(row, healthy=healthy(row)) for row in result]


def healthy(row: Row) -> bool:
    """Whether nothing is wrong with the host; one that is to have no chips is healthy."""
    return row["state"] in (node_state.READY, node_state.NO_CHIP)


def line(row: Row) -> str:
    """Host, state and reason, for people."""
    return "%s: %s%s" % (row["host"] or row["node"], row["state"], ": " + row["reason"] if row["reason"] else "")


def may_get_better(all_rows: Iterable[Row]) -> bool:
    """Whether waiting makes sense: something is missing that comes by itself after an install or a reboot. Chips that are not OK
    do not become so by waiting."""
    return any(
        row["state"] in (node_state.NOT_READY, node_state.NO_AGENT, node_state.NO_PLUGIN)
        or (row["state"] == node_state.DEGRADED and not row["missing_chips"] and not chip_health.ill(row["chip_health"]))
        for row in all_rows
    )


def details(row: Row) -> list[str]:
    """What is wrong with a row and what to do about it, as lines: too long for a cell."""
    lines = []
    wrong = node_state.failed_checks(row) if row["state"] == node_state.INVALID else []
    for check in wrong:
        lines.append("  %s" % node_state.finding(check))
        lines.append("    -> %s" % check["message"])
    if wrong:
        lines += ["  %s" % phrase for phrase in node_state.users(row)]
    elif row["reason"]:
        lines.append("  %s" % row["reason"])
    return lines


def table(all_rows: Sequence[Row]) -> list[str]:
    """The rows as aligned lines, the heading first; below it the details of those that are not in order."""
    lines = [[heading for heading, _key in _COLUMNS]]
    lines += [[_cell(row, key) for _heading, key in _COLUMNS] for row in all_rows]
    text = data_columns.aligned(lines)
    # What many nodes have in common, such as a driver that wedges them all, is told once.
    alike: dict[tuple[str, ...], list[str]] = {}
    for row in all_rows:
        if not healthy(row):
            alike.setdefault((row["state"], *details(row)), []).append(row["host"] or row["node"])
    for (state, *told), names in alike.items():
        text += ["", "%s: %s" % (and_more(names, _MOST_NAMES), state), *told]
    return text


def _cell(row: Row, key: str) -> str:
    if key == "chips_text":
        return "%d x %s" % (row["chips"], row["chip"]) if row["chips"] else "-"
    if key == "allocatable_text":
        counts = [(row["allocatable"], row["resource"])] if row["resource"] else []
        counts += [(count["allocatable"], resource) for resource, count in row["vnpus"].items()]
        return ", ".join("%d %s" % count for count in counts) or "-"
    if key == "state_text":
        return row["state"] + (": " + row["reason"] if row["reason"] and healthy(row) else "")
    if key == "node" and row["host"] not in (None, row["node"]):
        return "%s (%s)" % (row["node"], row["host"])
    return str(row[key] or "-")


def _row(host: AskedHost, views: Mapping[str, View]) -> Row:
    facts = host.get("facts") or Facts()
    family = facts.get("family") or {}
    node = node_name.of_host(host)
    view = views.get(node)
    offers = node_offers.of(facts)
    missing = missing_chips.missing(facts, (host.get("config") or {}).get("chips"))
    row = {
        "host": host["name"],
        "node": node,
        "chips": facts.get("chip_count", 0),
        "chip": family.get("name"),
        "resource": family.get("resource"),
        "driver_wanted": _wanted(host) if facts.get("chip_count") or missing or not facts else None,
        "driver_loaded": _loaded(host, facts),
        "next_kernel": facts.get("next_kernel"),
        "firmware": (host.get("validation") or {}).get("firmware_version"),
        "containerd": _containerd(facts, view),
        "cdi": _cdi(host),
        "agent": view["agent"] if view else None,
        "plugin": view["plugin"] if view else None,
        "allocatable": view["allocatable"].get(family.get("resource"), 0) if view else 0,
        "devices_per_chip": view["devices_per_chip"] if view else 1,
        "devices_expected": _devices_expected(family.get("resource"), offers, view),
        "vnpus": {
            resource: {"wanted": count, "allocatable": view["allocatable"].get(resource, 0) if view else 0}
            for resource, count in offers.items()
            if resource != family.get("resource")
        },
        "missing_chips": missing,
        "checks": (host.get("validation") or {}).get("checks") or [],
        "chip_health": (host.get("validation") or {}).get("chip_health") or [],
        "unhealthy_pods": view["unhealthy"] if view else [],
        "isolated_chips": view["isolated"] if view else [],
        "acceptance": view["acceptance"] if view else None,
        "gate": view["gate"] if view else None,
        "step": view["step"] if view else None,
        "awaiting_approval": view["awaiting_approval"] if view else None,
    }
    row["state"], row["reason"] = node_state.of(Seen(host, facts, row, view or {}))
    told = [text for text in (row["reason"], _write_told(facts), *(facts.get("notes") or [])) if text]
    row["reason"] = "; ".join(told) or None
    return row


def _devices_expected(resource: str | None, offers: Mapping[str, int], view: View | None) -> int | None:
    """None of a host that has not said which chips it has."""
    if not resource or not offers:
        return None
    return offers.get(resource, 0) * (view["devices_per_chip"] if view else 1)


def _write_told(facts: Facts) -> str | None:
    """What the last write of firmware has left to do, or None."""
    waiting, flash = host_answers.waiting_firmware(facts), (facts.get("upgrade") or {}).get("flash") or {}
    if waiting:
        return "the firmware %s is in its chips already: they run it after the next boot" % waiting
    if flash.get("state") == "failed":
        return "the firmware %s could not be written into its chips: %s" % (flash.get("version"), one_line(flash.get("reason")))
    return None


def _foreign_row(name: str, view: View) -> Row:
    resource = next(iter(sorted(view["allocatable"])), None)
    return {
        "host": None,
        "node": name,
        "chips": 0,
        "chip": view["chip"],
        "resource": resource,
        "driver_wanted": None,
        "driver_loaded": None,
        "next_kernel": None,
        "firmware": None,
        "containerd": _containerd({}, view),
        "cdi": None,
        "agent": view["agent"],
        "plugin": view["plugin"],
        "allocatable": view["allocatable"].get(resource, 0),
        "devices_per_chip": view["devices_per_chip"],
        "devices_expected": None,
        "vnpus": {},
        "missing_chips": None,
        "checks": [],
        "chip_health": [],
        "unhealthy_pods": view["unhealthy"],
        "isolated_chips": view["isolated"],
        "acceptance": view["acceptance"],
        "gate": view["gate"],
        "step": view["step"],
        "awaiting_approval": view["awaiting_approval"],
        "state": node_state.UNKNOWN_HOST,
        "reason": "an NPU node that is not among the hosts of this run" + ("" if view["ready"] else "; " + view["why"]),
    }


def _wanted(host: AskedHost) -> str | None:
    config = host.get("config") or {}
    return "preinstalled" if config.get("driver_source") == "preinstalled" else config.get("driver_version")


def _loaded(host: AskedHost, facts: Facts) -> str | None:
    validation, driver = host.get("validation") or {}, facts.get("driver") or {}
    # The facts may be older than the installation that the validation judged.
    if validation.get("valid"):
        return validation.get("version")
    return driver.get("loaded_version") or (driver.get("loaded_release") or "").partition("-")[0] or None


def _containerd(facts: Facts, view: View | None) -> str | None:
    runtime = facts.get("runtime") or {}
    if runtime.get("version"):
        return runtime["version"] if runtime.get("name") == "containerd" else "%(name)s %(version)s" % runtime
    return (view or {}).get("runtime")


def _cdi(host: AskedHost) -> str | None:
    """on or off; ascend: the host gives chips to containers by ascend-docker-runtime instead."""
    for check in (host.get("validation") or {}).get("checks") or []:
        if check["name"] == "cdi_running":
            return "on" if check["ok"] else "off"
        if check["name"] == "ascend_runtime_config":
            return "ascend"
    return None
