# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One schedule, from its start to the state that is left when a person has cleaned up after it."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import random
import time
from collections.abc import Iterator

import greenlet
from ansible_collections.npuops.ascend.plugins.module_utils._driver.releases import same_driver
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record

from simulator import people
from simulator.api_server import DEPLOYMENTS, NODES, ApiServer, Object, node_path
from simulator.controller import Controller, Killed
from simulator.host import FIRMWARE, KERNELS, NEW, NEWER, STATE, Host, of_kernel
from simulator.invariants import Invariants, Violation, at_the_end
from simulator.playbooks import Playbook
from simulator.pods import PARKED, Pods
from simulator.schedule import DOMAIN, Fault, Run, Schedule
from simulator.timeline import START, Timeline

_LONGEST = 6 * 3600.0  # seconds of virtual time for all runs of a schedule
_CLEAN = 4 * 3600.0


@dataclasses.dataclass
class Result:
    """``violation``: what must not be and was, or None; ``calls``: of all runs; ``story``: what happened, if it was asked for;
    ``states``: what the nodes' labels said one after the other."""

    schedule: Schedule
    violation: Violation | None = None
    calls: int = 0
    story: list[str] = dataclasses.field(default_factory=list)
    states: set[tuple[str, ...]] = dataclasses.field(default_factory=set)


class Simulation:
    def __init__(self, schedule: Schedule, tell: bool = False) -> None:
        # Pauses of the product are never quite the same; here they are.
        random.seed(schedule.seed)
        self.schedule, self._tell = schedule, tell
        self.timeline = Timeline()
        self.api = ApiServer(self.timeline)
        self.result = Result(schedule)
        self.invariants = Invariants(schedule, self.api)
        self.foreign: set[str] = set()  # nodes that a person keeps cordoned
        self.hosts = {
            name: Host(self.timeline, self.api, name, self.invariants, self.log, schedule.eager) for name in schedule.names
        }
        for name, host in self.hosts.items():
            for release, nodes in ((NEW, schedule.bad), (NEWER, schedule.bad_newer)):
                if name in nodes:
                    host.broken.update(of_kernel(release, kernel) for kernel in KERNELS)
            if name in schedule.lost_ports:
                host.loses_ports.update(of_kernel(NEW, kernel) for kernel in KERNELS)
            if schedule.firmware:
                host.brings.update(dict.fromkeys((of_kernel(NEW, kernel) for kernel in KERNELS), FIRMWARE))
            host.tells_next_kernel = schedule.tells_kernel
            host.skew, host.chatty = schedule.host_skew, schedule.chatty
            host.flash_fails = name in schedule.flash_fails
            host.incurable = name in schedule.incurable
            if name in schedule.ill:
                host.health[2:4] = ["Warning", "Critical"]
            # Two domains where those go together, otherwise one.
            rack = 2 if any(run.domain < 0 for run in schedule.runs) and name in schedule.names[1:2] else 1
            host.register({kube_client.LABEL_PRESENT: "", kube_client.LABEL_COMPONENTS: "enabled",
                           kube_client.LABEL_DRIVER_VERSION: "25.2.0", DOMAIN: "rack-%d" % rack})  # fmt: skip
        self.pods = self.api.pods = Pods(self.timeline, self.api, self.hosts, schedule.workloads)
        self.invariants.pods, self.invariants.hosts = self.pods, self.hosts
        self.api.on_write = self._written
        self.api.on_lease_read = self.invariants.lease_read
        for name in schedule.wedged:
            self.hosts[name].wedge()
        self.addresses = {name: name for name in self.hosts}
        self.cleaning = False
        self._running = 0
        self.active: set[str] = set()  # runs that have begun, and are not over

    def reached(self, name: str) -> Host:
        """The host at the address that the inventory has for ``name``."""
        return self.hosts[self.addresses[name]]

    def log(self, sentence: str) -> None:
        if self._tell:
            self.result.story.append("%8.2f  %s" % (self.timeline.time - START, sentence))

    def run(self) -> Result:
        """The Result."""
        try:
            for incident in self.schedule.incidents:
                self.timeline.at(incident.time, functools.partial(people.happen, self, incident))
            for run in self.schedule.runs:
                self._start(run)
            self._until_they_end(_LONGEST)
            self._clean_up()
            at_the_end(self.schedule, self.api, self.hosts, self.invariants, self.foreign)
            self._check_workloads()
        except Violation as exc:
            self.result.violation = exc
            self.log("VIOLATION %s" % exc)
        except Exception as exc:
            self.result.violation = Violation("crash", "%s: %s" % (type(exc).__name__, exc))
            self.result.violation.__cause__ = exc
            self.log("VIOLATION %s" % self.result.violation)
        return self.result

    def _start(self, run: Run, faults: tuple[Fault, ...] | None = None) -> None:
        faults = self.schedule.faults if faults is None else faults
        mine = {fault.call: fault for fault in faults if fault.run == run.name}
        controller = Controller(run, mine, self.timeline, self.api, self.log, self._tell, self.invariants.heard)
        self._running += 1
        self.invariants.running.add(run.name)
        self.invariants.runs[run.name] = run

        def task() -> None:
            self.log("%s starts" % run.name)
            self.active.add(run.name)
            try:
                Playbook(controller, self.hosts, self.reached, self.invariants, self.log).play()
            except Killed:
                pass
            finally:
                self._running -= 1
                self.active.discard(run.name)
                self.invariants.running.discard(run.name)
                self.result.calls += controller.calls
            self.log("%s is over" % run.name)

        self.timeline.start(run.start, task)

    def _until_they_end(self, most: float) -> None:
        if not self.timeline.run(lambda: self._running == 0, most):
            raise Violation("never ends", "after %d s %d runs are not over" % (most, self._running))

    def _written(self, path: str, before: Object | None, after: Object | None, writer: str) -> None:
        if path.startswith(NODES + "/"):
            name = path.rpartition("/")[2]
            if self._tell and before and after:
                self._tell_node(name, before, after, writer)
            had, has = ((item or {}).get("metadata", {}).get("labels", {}) for item in (before, after))
            if had.get(kube_client.LABEL_COMPONENTS) != has.get(kube_client.LABEL_COMPONENTS):
                self.hosts[name].look_at_label()
            if had.get(STATE) != has.get(STATE):
                self.result.states.add(tuple(self._state(other) for other in self.hosts))
            self.pods_may_move(before, after)
        elif path.startswith("/apis/apps/") and writer != "kube-controller-manager":
            self.pods.soon()
        self.invariants.written(path, before, after, writer)

    def pods_may_move(self, before: Object | None, after: Object | None) -> None:
        if before is None or after is None or before["spec"] != after["spec"] or before["status"] != after["status"]:
            self.pods.soon()

    def _state(self, name: str) -> str:
        node = self.api.peek(node_path(name))
        return (node or {}).get("metadata", {}).get("labels", {}).get(STATE, "")

    def _tell_node(self, name: str, before: Object, after: Object, writer: str) -> None:
        parts = []
        if bool(before["spec"].get("unschedulable")) != bool(after["spec"].get("unschedulable")):
            parts.append("cordoned" if after["spec"].get("unschedulable") else "uncordoned")
        for key in ("labels", "annotations"):
            had, has = before["metadata"].get(key, {}), after["metadata"].get(key, {})
            for label in sorted({*had, *has}):
                if had.get(label) != has.get(label) and label != maintenance_record.ANNOTATION_RECORD:
                    value = has.get(label)
                    parts.append("%s %s" % (label.rpartition("/")[2], "removed" if value is None else "is %s" % value[:80]))
        parts += _status_changes(before["status"], after["status"])
        if parts:
            self.log("    %s, by %s: %s" % (name, writer, "; ".join(parts)))

    # --- afterwards ---

    def _clean_up(self) -> None:
        """The world calms down, and a person does what the messages advise: heal, then upgrade, until nothing is left."""
        self.log("--- all runs are over; a person cleans up ---")
        self.cleaning = True
        people.calm(self)
        self.timeline.run(lambda: False, 60.0)
        for number in range(1, 3 + self.schedule.nodes):
            for kind in ("heal", "upgrade"):
                name = "clean-%s-%d" % (kind, number)
                self._start(Run(name, kind, retry=number < 3, clear_halt=kind == "upgrade", slots=1), ())
                self._until_they_end(_CLEAN)
                people.calm(self)
                self.timeline.run(lambda: False, 30.0)
            if number == 2:
                self._write_firmware_again()
            if self._is_clean():
                return

    def _write_firmware_again(self) -> None:
        """A person has checked the chips on which a write failed: as the message says, for each node by itself."""
        failed = [name for name, host in self.hosts.items() if (host.written or {}).get("state") == "failed"]
        for name in failed:
            self._start(Run("clean-firmware-%s" % name, "upgrade", retry=True, clear_halt=True, limit=name), ())
            self._until_they_end(_CLEAN)
            people.calm(self)

    def _is_clean(self) -> bool:
        for name, host in self.hosts.items():
            node = self.api.peek(node_path(name))
            if node is None or maintenance_record.ANNOTATION_RECORD in node["metadata"]["annotations"]:
                return False
            if NEW not in host.broken and not same_driver(host.good, NEW):
                return False
        return not any(PARKED in item["metadata"].get("labels", {}) for item in self.api.all(DEPLOYMENTS))

    def _check_workloads(self) -> None:
        wanted = {workload.name: workload.replicas for workload in self.schedule.workloads}
        for item in self.api.all(DEPLOYMENTS):
            metadata, replicas = item["metadata"], item["spec"].get("replicas")
            if PARKED in metadata.get("labels", {}) or replicas != wanted[metadata["name"]]:
                raise Violation("parked and not restored", "%s has %s replicas" % (metadata["name"], replicas))


def _status_changes(before: Object, after: Object) -> list[str]:
    parts = []
    had, has = ({one["type"]: one["status"] for one in status["conditions"]} for status in (before, after))
    for kind in sorted({*had, *has}):
        if had.get(kind) != has.get(kind):
            parts.append("%s %s" % (kind, has.get(kind, "removed")))
    if before["nodeInfo"] != after["nodeInfo"]:
        parts.append("boot %s" % after["nodeInfo"]["bootID"])
    if before["allocatable"] != after["allocatable"]:
        parts.append("offers %s chips" % ", ".join(after["allocatable"].values()))
    return parts


def simulate(schedule: Schedule, tell: bool = False) -> Result:
    """In a greenlet of its own, so that simulations do not share a hub."""
    results: list[Result] = []
    with _time_zone(schedule.zone):
        greenlet.greenlet(lambda: results.append(Simulation(schedule, tell).run())).switch()
    return results[0]


@contextlib.contextmanager
def _time_zone(zone: str) -> Iterator[None]:
    """``zone``: as TZ; "" leaves that of the process."""
    before = os.environ.get("TZ")
    if zone:
        os.environ["TZ"] = zone
        time.tzset()
    try:
        yield
    finally:
        if zone:
            os.environ.pop("TZ")
            os.environ.update({} if before is None else {"TZ": before})
            time.tzset()
