# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbooks as far as they act on the cluster and its nodes: what is planned, labelled, maintained and told."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import node_drain, workload_search
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import parking as drain_parking
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import policy as drain_policy
from ansible_collections.npuops.ascend.plugins.plugin_utils._fleet import withdrawal
from ansible_collections.npuops.ascend.plugins.plugin_utils._heal import plan as heal_plan
from ansible_collections.npuops.ascend.plugins.plugin_utils._heal.settings import guards_of
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import RetryingCluster
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance import cycle as maintenance_cycle
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance import halt as maintenance_halt
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance import outcome as maintenance_outcome
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance import pending as maintenance_pending
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance import run_liveness
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance import slots as maintenance_slots
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.host_side import HostUnreachable
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import resolve

from simulator.api_server import LEASE
from simulator.controller import Cluster, Controller, HostPort, Killed
from simulator.host import CHIPS, NEW, RESOURCE, Host

NAMESPACE = "npu-operator"
# Shorter than the defaults, so that a schedule has few polls: what is waited for is the same.
_SETTINGS = {
    "pod_deletion": {"timeout": 120},
    "drain": {"timeout": 120},
    "reboot": {"timeout": 600},
    "approval_wait": 60,
    "max_failures": 1,
}


@functools.cache
def settings_of(auto: bool, slots: int, retry: bool, clear_halt: bool) -> dict[str, Any]:
    given = dict(_SETTINGS, auto=auto, max_parallel=slots, retry=retry, clear_halt=clear_halt)
    return resolve.settings("npu_upgrade", given)


@functools.cache
def heal_settings_of(auto: bool, slots: int) -> dict[str, Any]:
    return resolve.settings("npu_heal", {"auto": auto, "max_parallel": slots, "min_uptime": 30, "storm_percent": 100})


@functools.cache
def _drain_policy() -> drain_policy.DrainPolicy:
    return drain_policy.DrainPolicy.of(None, _SETTINGS["pod_deletion"], _SETTINGS["drain"])


@functools.cache
def _policy(auto: bool, slots: int, retry: bool, clear_halt: bool) -> maintenance_cycle.MaintenancePolicy:
    return maintenance_cycle.MaintenancePolicy.of(settings_of(auto, slots, retry, clear_halt))


class Playbook:
    """One run of a playbook. ``watch.outcome(run, node, outcome)`` hears what it tells of each node."""

    def __init__(self, controller: Controller, hosts: dict[str, Host], watch: Any, say: Callable[[str], None]) -> None:
        self._controller, self._watch, self._say = controller, watch, say
        self._run, self._clock = controller.run, controller.clock
        self._hosts = {name: host for name, host in hosts.items() if self._run.limit in ("", name)}
        self._cluster = RetryingCluster(Cluster(controller), say, self._clock)
        self._slots = maintenance_slots.Slots(self._cluster, NAMESPACE, self._clock)
        self._settings = settings_of(self._run.auto, self._run.slots, self._run.retry, self._run.clear_halt)

    def play(self) -> None:
        """To its end. What ends it early, as it would end the playbook, is told."""
        try:
            {
                "upgrade": self._roll,
                "rollback": self._roll,
                "heal": self._heal,
                "install": self._install,
                "uninstall": self._uninstall,
            }[self._run.kind]()
        except NpuError as exc:
            self._say("%s ends: %s" % (self._run.name, exc.message))

    # --- upgrade and rollback ---

    def _roll(self) -> None:
        run, nodes = self._run, {node["metadata"]["name"]: node for node in self._cluster.list("/api/v1/nodes")}
        held = self._slots.view()["halted"]
        views = {name: self._facts(name) for name in self._hosts}
        targets = {name: self._target(nodes.get(name), view) for name, view in views.items()}
        in_flight = [name for name in targets if name in nodes and kube_client.ANNOTATION_MAINTENANCE in _annotations(nodes[name])]
        due = [name for name, (_target, due) in targets.items() if due and name in nodes]
        settled = [name for name in targets if name not in due and views[name] is not None]
        if held and not run.clear_halt and maintenance_halt.binds(held, run.kind):
            due = [name for name in due if name in in_flight]
        maintenance_pending.label(self._cluster, due, settled, run.retry)
        if run.clear_halt:
            self._slots.clear_halt()
        self._slots.sweep()
        proved = any(view is not None and view["good"] == view["driver"] == NEW for view in views.values())
        if run.park and due and run.auto and not self._park():
            self._restore()
            return
        order = [name for name in due if name in in_flight] + [name for name in due if name not in in_flight]
        outcomes = self._each(order, lambda name: self._maintain(name, targets[name][0], in_flight, proved))
        if any(outcome.get("api_unreachable") for outcome in outcomes.values()):
            return
        deferred = [name for name in order if outcomes[name].get("outcome") == maintenance_outcome.DEFERRED]
        self._each(deferred, lambda name: self._maintain(name, targets[name][0], in_flight, proved))
        self._restore()

    def _each(self, names: list[str], maintain: Callable[[str], dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """{name: outcome}: one after the other, or all at once where there are several slots, as the plays of the playbook."""
        outcomes: dict[str, dict[str, Any]] = {}
        if self._run.slots == 1:
            for name in names:
                outcomes[name] = maintain(name)
                if outcomes[name].get("api_unreachable"):
                    break
            return dict({name: {} for name in names}, **outcomes)

        def task(name: str) -> None:
            # When the run is killed, so is each of its processes.
            with contextlib.suppress(Killed):
                outcomes[name] = maintain(name)

        for name in names:
            self._controller.timeline.start(0.0, functools.partial(task, name))
        while len(outcomes) < len(names):
            self._clock.sleep(0.5)
        return outcomes

    def _facts(self, name: str) -> dict[str, Any] | None:
        try:
            return HostPort(self._controller, self._hosts[name]).view()
        except HostUnreachable:
            return None

    def _target(self, node: dict[str, Any] | None, view: dict[str, Any] | None) -> tuple[dict[str, Any], bool]:
        """(what the node is to get, whether anything is due on it), as the plan has it."""
        record = _record(node)
        state = maintenance_record.state(node) if node else None
        if view is None:
            # Only what is in flight goes on without its host's facts.
            turns = record is not None and self._run.kind != record.get("reason")
            found = record["from" if turns and self._run.kind == "rollback" else "to"] if record else None
            return (dict(found, digest=None), True) if found and found.get("release") else ({}, False)
        if self._run.kind == "upgrade":
            release: str | None = NEW
        elif record and record["to"].get("release"):
            release = record["from"].get("release") if record.get("reason") == "upgrade" else record["to"]["release"]
        else:
            release = view["previous"] if view["good"] == NEW else None
        there = release is None or view["good"] == view["driver"] == release
        on_trial = view["trial"] is not None and view["driver"] != view["good"]
        begun = record is not None or on_trial or state in maintenance_record.IN_HAND
        if there:
            # What was begun all the same comes to an end, and nothing else is wanted.
            return {}, begun
        asked = release or view["good"]
        return {"version": asked.partition("-")[0], "release": asked, "digest": "sha256:" + asked[-1] * 64}, True

    def _maintain(self, name: str, target: dict[str, Any], in_flight: list[str], proved: bool) -> dict[str, Any]:
        request = maintenance_cycle.MaintenanceRequest(
            name,
            self._run.name,
            self._run.kind,
            target,
            resource=RESOURCE,
            chips=CHIPS,
            pool="pool %s" % target.get("release"),
            proved=proved and target.get("release") == NEW,
            in_flight=tuple(in_flight),
        )
        return self._cycle(request, self._run.slots, recovers=False)

    def _cycle(self, request: maintenance_cycle.MaintenanceRequest, slots: int, recovers: bool) -> dict[str, Any]:
        """One node, in a process for each step or in one for all."""
        policy = _policy(self._run.auto, slots, self._run.retry, self._run.clear_halt)
        result: dict[str, Any] = {}
        self._watch.begins(self._run, request.node, request.release)
        for until in maintenance_cycle.UNTIL if self._run.steps else ("done",):
            if until == "done" and self._run.hook_fails and not recovers:
                request = dataclasses.replace(request, failure="the hook failed")
            cycle = maintenance_cycle.Cycle(
                Cluster(self._controller),
                HostPort(self._controller, self._hosts[request.node]),
                lambda cluster, beat, say: node_drain.Drain(
                    cluster,
                    request.node,
                    _drain_policy(),
                    beat,
                    say,
                    self._clock.sleep,
                    self._clock.monotonic,
                    leave_stuck=recovers,
                    namespace=NAMESPACE,
                ),
                request,
                policy,
                self._clock,
                lambda step, _seconds, sentence: self._say(
                    "%s, %s, %s: %s" % (self._run.name, request.node, step or "-", sentence)
                ),
            )
            try:
                result = dict(cycle.run(until))
            except NpuError as exc:
                result = dict({"outcome": maintenance_outcome.FAILED, "reason": exc.message, "raised": True}, **exc.details)
            if result["outcome"] != maintenance_outcome.UNDER_WAY:
                break
        self._say("%s tells of %s: %s. %s" % (self._run.name, request.node, result["outcome"], result.get("reason") or ""))
        self._watch.outcome(self._run, request.node, result)
        return result

    # --- workloads ---

    def _parking(self) -> tuple[drain_parking.Parking, run_liveness.Life]:
        parking = drain_parking.Parking(self._cluster, self._run.name, self._clock.now())
        return parking, run_liveness.Life(self._cluster, NAMESPACE, self._run.name, self._clock)

    def _park(self) -> bool:
        parking, life = self._parking()
        try:
            found = workload_search.find(self._cluster, [RESOURCE], NAMESPACE, _drain_policy().jobs)
            if found.workloads:
                life.begin()
            parking.park(found.workloads)
            drain_parking.wait_until_stopped(self._cluster, found.workloads, self._clock, 120, self._say, life.beat)
        except NpuError as exc:
            self._say("%s parks nothing more: %s" % (self._run.name, exc.message))
            return False
        return True

    def _restore(self) -> None:
        parking, life = self._parking()
        try:
            drain_parking.restore_all(self._cluster, parking, life, self._run.name, self._settings["heartbeat_limit"], self._say)
            told = {entry["object"].rpartition("/")[2] for entry in parking.outcome.left}
            if not parking.outcome.unlisted:
                self._watch.restored(self._run, told)
        except NpuError as exc:
            self._say("%s restores nothing more: %s" % (self._run.name, exc.message))

    # --- heal ---

    def _heal(self) -> None:
        heal_settings = heal_settings_of(self._run.auto, self._run.slots)
        guards = guards_of(heal_settings)
        nodes = {node["metadata"]["name"]: node for node in self._cluster.list("/api/v1/nodes")}
        asked = []
        for name in self._hosts:
            view = self._facts(name)
            asked.append(_asked(name, view))
        plan = heal_plan.make(asked, nodes, guards, self._clock.now(), self._run.auto)
        if plan.storm:
            self._say("%s ends: %s" % (self._run.name, plan.storm))
            return
        if self._run.clear_halt:
            self._slots.clear_halt()
        self._slots.sweep()
        for entry in plan.due:
            request = maintenance_cycle.MaintenanceRequest(
                entry.name,
                self._run.name,
                maintenance_record.RECOVERY_REASON,
                {},
                maintenance_cycle.Recovery(guards),
                resource=RESOURCE,
                chips=CHIPS,
            )
            if self._cycle(request, self._run.slots, recovers=True).get("api_unreachable"):
                return

    # --- install ---

    def _install(self) -> None:
        """What install writes on the Nodes, when its hosts are in order."""
        wanted = []
        for name in self._hosts:
            view = self._facts(name)
            if view is not None and view["ready"]:
                labels = {
                    kube_client.LABEL_PRESENT: "",
                    kube_client.LABEL_COMPONENTS: "enabled",
                    kube_client.LABEL_DRIVER_VERSION: view["loaded_version"],
                }
                wanted.append({"name": name, "labels": labels, "annotations": {}, "boot_id": view["boot_id"]})
        kube_client.apply_metadata(_WithNodes(self._cluster), wanted)  # type: ignore[arg-type]

    # --- uninstall ---

    def _uninstall(self) -> None:
        """What uninstall takes from the Nodes, and the Lease with the last one."""
        asked = [_asked(name, self._facts(name)) for name in self._hosts]
        cluster = _WithNodes(self._cluster)
        nodes = cluster.nodes()
        departures = withdrawal.leaving(asked, nodes, self._cluster.list("/api/v1/pods"))
        problem = withdrawal.refusal(departures, force=False)
        if problem:
            raise NpuError(problem)
        withdrawal.take_back(self._cluster, NAMESPACE, departures, 120, clock=self._clock)
        if not withdrawal.others(departures, nodes):
            self._cluster.request("delete", LEASE)


class _WithNodes:
    """A RetryingCluster with Cluster.nodes, which goes the same way."""

    def __init__(self, cluster: RetryingCluster) -> None:
        self._cluster = cluster

    def nodes(self) -> dict[str, Any]:
        return {node["metadata"]["name"]: node for node in self._cluster.list("/api/v1/nodes")}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)


def _annotations(node: dict[str, Any]) -> dict[str, str]:
    return node["metadata"].get("annotations") or {}


def _record(node: dict[str, Any] | None) -> dict[str, Any] | None:
    try:
        return maintenance_record.decode(node) if node else None
    except NpuError:
        return None


def _asked(name: str, view: dict[str, Any] | None) -> Any:
    if view is None:
        return {"name": name, "config": {}, "facts": None, "unreachable": True, "error": "no connection", "variables": []}
    facts = {
        "family": {"resource": RESOURCE},
        "chip_count": CHIPS,
        "uptime": view["uptime"],
        "boot_id": view["boot_id"],
        "driver": {"failed": view["failed"]},
    }
    return {"name": name, "config": {}, "facts": facts, "unreachable": False, "error": None, "variables": []}
