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
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import drain_policy, eviction_dry_run, node_drain
from ansible_collections.npuops.ascend.plugins.plugin_utils._heal import recovery_plan
from ansible_collections.npuops.ascend.plugins.plugin_utils._heal.heal_settings import guards_of
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import RetryingCluster
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance import cycle as maintenance_cycle
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance import release as node_release
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.host_side import HostUnreachable
from ansible_collections.npuops.ascend.plugins.plugin_utils._park import parking as workload_parking
from ansible_collections.npuops.ascend.plugins.plugin_utils._park import workload_search
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import planner as rollout_planner
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import rollout_settings
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import snapshot as fleet_snapshot
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.rollout_plan import RolloutPlan
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import outcome as maintenance_outcome
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import pending as maintenance_pending
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import run_liveness
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import slots as maintenance_slots
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import valid_settings
from ansible_collections.npuops.ascend.plugins.plugin_utils._withdrawal import withdrawal

from simulator import asked_hosts
from simulator.api_server import LEASE
from simulator.controller import Cluster, Controller, HostPort, Killed
from simulator.host import CHIPS, NEW, NEWER, RESOURCE, Host
from simulator.schedule import DOMAIN, Run
from simulator.timeline import START

NAMESPACE = "npu-operator"
# Shorter than the defaults, so that a schedule has few polls: what is waited for is the same.
_SETTINGS = {
    "pod_deletion": {"timeout": 120},
    "drain": {"timeout": 120},
    "reboot": {"timeout": 600},
    "approval_wait": 60,
}
_JOBS = {"selector": "app=job-1", "timeout": 40}


@functools.cache
def settings_of(run: Run) -> dict[str, Any]:
    given = dict(
        _SETTINGS,
        auto=run.auto,
        max_parallel=run.slots,
        retry=run.retry,
        clear_halt=run.clear_halt,
        allow_older=True,
        workloads="park" if run.park else "leave",
        canary=run.canary,
        max_failures=run.max_failures,
        wait_for_jobs=_JOBS if run.jobs else {},
        window=_window(run.window),
        node_soak=run.soak,
        domain={"label": DOMAIN if run.domain else "", "max_parallel": max(run.domain, 1), "together": run.domain < 0},
        min_available={RESOURCE: run.least * CHIPS} if run.least else {},
        alerts={"wait": 120},
    )
    return valid_settings.settings("npu_upgrade", given)


def _window(text: str) -> list[dict[str, Any]]:
    begin, _to, end = text.partition("-")
    return [{"from": begin, "to": end, "timezone": "Asia/Shanghai"}] if text else []


@functools.cache
def heal_settings_of(auto: bool, slots: int, storm_percent: int) -> dict[str, Any]:
    return valid_settings.settings(
        "npu_heal", {"auto": auto, "max_parallel": slots, "min_uptime": 30, "storm_percent": storm_percent}
    )


@functools.cache
def _drain_policy(jobs: bool = False) -> drain_policy.DrainPolicy:
    return drain_policy.DrainPolicy.of(_JOBS if jobs else None, _SETTINGS["pod_deletion"], _SETTINGS["drain"])


class Playbook:
    """One run of a playbook. ``reached(name)``: the host that answers at the address of the host ``name``;
    ``watch.outcome(run, node, outcome)`` hears what the run tells of each node."""

    def __init__(
        self,
        controller: Controller,
        hosts: dict[str, Host],
        reached: Callable[[str], Host],
        watch: Any,
        say: Callable[[str], None],
    ) -> None:
        self._controller, self._watch, self._say = controller, watch, say
        self._run, self._clock = controller.run, controller.clock
        self._reached = reached
        self._hosts = {name: host for name, host in hosts.items() if self._run.limit in ("", name)}
        self._cluster = RetryingCluster(Cluster(controller), say, self._clock)
        self._slots = maintenance_slots.Slots(self._cluster, NAMESPACE, self._clock)
        self._settings = settings_of(
            dataclasses.replace(self._run, name="", start=0.0, skew=0.0, limit="", alert_at=0.0, alert_for=0.0)
        )

    def play(self) -> None:
        """To its end. What ends it early, as it would end the playbook, is told."""
        try:
            {
                "upgrade": self._roll,
                "rollback": self._roll,
                "heal": self._heal,
                "install": self._install,
                "uninstall": self._uninstall,
                "release": self._release,
            }[self._run.kind]()
        except NpuError as exc:
            self._say("%s ends: %s" % (self._run.name, exc.message))

    # --- upgrade and rollback ---

    def _roll(self) -> None:
        run = self._run
        plan = self._plan()
        self._say("%s plans: %s" % (run.name, plan.summary))
        if plan.cluster_reasons or (not plan.green and not run.defer):
            self._restore()
            raise NpuError("The plan refuses: %s" % plan.problem)
        if run.clear_halt:
            self._slots.clear_halt()
        self._slots.sweep()
        maintenance_pending.label(self._cluster, plan.due_nodes, plan.settled_nodes, clock=self._clock, versions=plan.due_versions)
        if plan.park and not self._park(plan.park):
            self._restore()
            return
        made = plan.result()
        order = made["order"] + made["deferred"]
        outcomes = self._each(order, lambda name: self._maintain(made, name))
        if any(outcome.get("api_unreachable") for outcome in outcomes.values()):
            return
        deferred = [name for name in order if outcomes[name].get("outcome") == maintenance_outcome.DEFERRED]
        self._each(deferred, lambda name: self._maintain(made, name))
        self._restore()

    def _plan(self) -> RolloutPlan:
        """As npu_plan makes it."""
        asked = self._ask_all()
        settings = rollout_settings.RolloutSettings.of(self._settings, self._run.kind)
        snapshot = fleet_snapshot.FleetSnapshot.read(self._cluster, (), NAMESPACE)
        slots = self._slots.view()
        if settings.park:
            found = workload_search.find(self._cluster, [RESOURCE], NAMESPACE, settings.policy.jobs, {})
            snapshot = snapshot.without(found.takes_away)
        lookups = rollout_settings.Lookups(
            resolve=lambda reference, _config, _machine: asked_hosts.digest_of(reference.rpartition(":")[2].partition("-")[0]),
            size=lambda *_image: 2**20,
            support=lambda *_versions: ([], []),
            confirm=lambda pods: eviction_dry_run.confirm(self._cluster, pods, snapshot.budgets, map),
            now=self._clock.now(),
        )
        return rollout_planner.make(asked, snapshot, slots, settings, lookups)

    def _ask_all(self) -> list[Any]:
        """What all hosts of the run answer."""
        return [self._ask(name) for name in self._hosts]

    def _ask(self, name: str) -> Any:
        try:
            return asked_hosts.ask(name, self._port(name), self._version, "keep" if self._run.keep_firmware else "match")
        except HostUnreachable:
            return asked_hosts.unreachable(name, self._version)

    @property
    def _version(self) -> str:
        return (NEWER if self._run.newer else NEW).partition("-")[0]

    def _port(self, name: str) -> HostPort:
        return HostPort(self._controller, lambda: self._reached(name))

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

    def _maintain(self, plan: dict[str, Any], name: str) -> dict[str, Any]:
        host = plan["hosts"][name]
        target = {key: (host["to"] or {}).get(key) or "" for key in ("version", "release", "digest")}
        if (host["to"] or {}).get("firmware"):
            target["firmware"] = host["to"]["firmware"]
        request = maintenance_cycle.MaintenanceRequest(
            host["node"],
            self._run.name,
            self._run.kind,
            target,
            resource=host["resource"] or "",
            chips=host["chips"],
            pool=host["pool"] or "",
            proved=host["proved"],
            in_flight=tuple(plan["in_flight"]),
            network=self._run.network,
        )
        return self._cycle(request, self._run.slots, recovers=False)

    def _alert(self) -> str | None:
        """As FiringAlerts.refusal."""
        return "the alert Simulated fires" if self._run.fires(self._controller.timeline.time - START) else None

    def _cycle(self, request: maintenance_cycle.MaintenanceRequest, slots: int, recovers: bool) -> dict[str, Any]:
        """One node, in a process for each step or in one for all."""
        policy = maintenance_cycle.MaintenancePolicy.of(dict(self._settings, max_parallel=slots), recovers=recovers)
        result: dict[str, Any] = {}
        self._watch.begins(self._run, request.node, request.release, request.firmware)
        for until in maintenance_cycle.UNTIL if self._run.steps else ("done",):
            if until == "done" and self._run.hook_fails and not recovers:
                request = dataclasses.replace(request, failure="the hook failed")
            cycle = maintenance_cycle.Cycle(
                Cluster(self._controller),
                self._port(request.node),
                lambda cluster, beat, say: node_drain.Drain(
                    cluster,
                    request.node,
                    _drain_policy(self._run.jobs and not recovers),
                    beat,
                    say,
                    self._clock,
                    leave_stuck=recovers,
                    namespace=NAMESPACE,
                ),
                request,
                policy,
                self._clock,
                lambda step, _seconds, sentence: self._say(
                    "%s, %s, %s: %s" % (self._run.name, request.node, step or "-", sentence)
                ),
                alerts=self._alert,
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

    def _parking(self) -> tuple[workload_parking.Parking, run_liveness.Life]:
        parking = workload_parking.Parking(self._cluster, self._run.name, self._clock.now())
        return parking, run_liveness.Life(self._cluster, NAMESPACE, self._run.name, self._clock)

    def _park(self, resources: list[str]) -> bool:
        parking, life = self._parking()
        try:
            found = workload_search.find(self._cluster, resources, NAMESPACE, _drain_policy().jobs, {})
            if found.workloads:
                life.begin()
            parking.park(found.workloads)
            workload_parking.wait_until_stopped(self._cluster, found.workloads, self._clock, 120, self._say, life.beat)
        except NpuError as exc:
            self._say("%s parks nothing more: %s" % (self._run.name, exc.message))
            return False
        return True

    def _restore(self) -> None:
        parking, life = self._parking()
        try:
            limit = self._settings["heartbeat_limit"]
            workload_parking.restore_all(self._cluster, parking, life, self._run.name, limit, self._say, {})
            told = {entry["object"].rpartition("/")[2] for entry in parking.outcome.left}
            if not parking.outcome.unlisted:
                self._watch.restored(self._run, told)
        except NpuError as exc:
            self._say("%s restores nothing more: %s" % (self._run.name, exc.message))

    # --- heal ---

    def _heal(self) -> None:
        heal_settings = heal_settings_of(self._run.auto, self._run.slots, self._run.storm_percent)
        guards = guards_of(heal_settings)
        nodes = {node["metadata"]["name"]: node for node in self._cluster.list("/api/v1/nodes")}
        plan = recovery_plan.make(self._ask_all(), nodes, guards, self._clock.now(), self._run.auto)
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
                network=self._run.network,
            )
            if self._cycle(request, self._run.slots, recovers=True).get("api_unreachable"):
                return

    # --- install ---

    def _install(self) -> None:
        """What install writes on the Nodes, when its hosts are in order."""
        wanted = []
        for asked in self._ask_all():
            if asked["ready"] is not None:
                labels = {
                    kube_client.LABEL_PRESENT: "",
                    kube_client.LABEL_COMPONENTS: "enabled",
                    kube_client.LABEL_DRIVER_VERSION: asked["facts"]["driver"]["loaded_version"],
                }
                name, boot_id = asked["name"], asked["facts"]["boot_id"]
                wanted.append({"name": name, "labels": labels, "annotations": {}, "boot_id": boot_id})
        kube_client.apply_metadata(Cluster(self._controller), wanted)  # type: ignore[arg-type]

    # --- release ---

    def _release(self) -> None:
        """As a person without npu_release_force, who answers for the host then."""
        order = node_release.Order("li.na", "incident 4711")
        done = node_release.release(
            self._cluster, NAMESPACE, list(self._hosts), order, self._settings["heartbeat_limit"], self._say
        )
        for line in done.lines + done.problems:
            self._say("%s tells: %s" % (self._run.name, line))

    # --- uninstall ---

    def _uninstall(self) -> None:
        """What uninstall takes from the Nodes, and the Lease with the last one."""
        cluster = Cluster(self._controller)
        nodes = cluster.nodes()
        departures = withdrawal.leaving(self._ask_all(), nodes, cluster.list("/api/v1/pods"))
        problem = withdrawal.refusal(departures, force=False)
        if problem:
            raise NpuError(problem)
        withdrawal.take_back(cluster, NAMESPACE, departures, 120, clock=self._clock)
        if not withdrawal.others(departures, nodes):
            cluster.request("delete", LEASE)
