# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who watches a rollout from outside: every state the Nodes and the Lease were in, and what must be true of all of them.

It follows the API itself, not what a playbook says. Both watches are ordered by etcd's one revision, so "at once" means at
once. It goes on from the last revision after a broken connection; where the server cannot, there is a gap, and with a gap
nothing is proved: that is a problem, too.
"""

from __future__ import annotations

import json
import pathlib
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from support.kube.api import Gone, KubeApi, Watch
from support.patience import PATIENCE

STATE = "npu.openfuyao.com/driver-upgrade-state"
REBOOT_REQUIRED = "npu.openfuyao.com/reboot-required"
APPROVAL = "npu.openfuyao.com/approve-reboot"
REQUESTED = "npuops.ascend/maintenance-requested"
COMPONENTS = "npuops.ascend/components"
VERSION = "npuops.ascend/driver-version"
RECORD = "npuops.ascend/maintenance"
LAST = "npuops.ascend/last-maintenance"
SLOTS = "npuops.ascend/slots"
LEASE = "npu-maintenance"
CONDITIONS = ("MaintenancePlanned", "DrainInProgress", "Drained", "MaintenanceInProgress")


@dataclass(frozen=True)
class Sight:
    """One state of one object. `first`: it was so when the observer came. `gone`: it was deleted."""

    revision: int
    kind: str  # "node" or "lease"
    name: str
    object: dict = field(compare=False)
    first: bool = False
    gone: bool = False
    when: float = field(default=0.0, compare=False)

    @property
    def cordoned(self) -> bool:
        return bool(self.object.get("spec", {}).get("unschedulable"))

    @property
    def labels(self) -> dict:
        return self.object["metadata"].get("labels") or {}

    @property
    def annotations(self) -> dict:
        return self.object["metadata"].get("annotations") or {}

    @property
    def record(self) -> dict | None:
        """The maintenance under way."""
        return json.loads(self.annotations[RECORD]) if RECORD in self.annotations else None

    @property
    def conditions(self) -> list[str]:
        """Types of the conditions of ours."""
        found = self.object.get("status", {}).get("conditions") or []
        return [one["type"] for one in found if str(one.get("reason")).startswith("Npu")]

    @property
    def boot_id(self) -> str:
        return self.object.get("status", {}).get("nodeInfo", {}).get("bootID", "")

    @property
    def slots(self) -> dict:
        """Of the Lease: max, halted, holders."""
        return {"max": 0, "halted": None, "holders": {}, **json.loads(self.annotations.get(SLOTS, "{}"))}


class Observer:
    """`with Observer(kubeconfig, namespace) as observer: ...`, then `observer.problems(...)`.

    :param namespace: of the Lease

    `gaps`: why something may have been missed, as sentences.
    """

    def __init__(self, kubeconfig: pathlib.Path, namespace: str) -> None:
        self._api = KubeApi(kubeconfig)
        self._lists = {
            "node": ("/api/v1/nodes", {}),
            "lease": (f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases", {"fieldSelector": f"metadata.name={LEASE}"}),
        }
        self._sights: list[Sight] = []
        self.gaps: list[str] = []
        self._reached: dict[str, int] = {}  # kind -> last revision that its watch has told of
        self._watches: dict[str, Watch] = {}
        self._stop = threading.Event()
        self._news = threading.Condition()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Observer:
        for kind, (path, selectors) in self._lists.items():
            query = "?fieldSelector=" + selectors["fieldSelector"] if selectors else ""
            first = self._api.get(path + query)
            for item in first["items"]:
                self._saw(kind, item, first=True)
            self._reached[kind] = int(first["metadata"]["resourceVersion"])
            self._threads.append(threading.Thread(target=self._follow, args=(kind,), daemon=True))
        self.begun = self.now("node")
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind, *_exc: object) -> None:
        try:
            if kind is None:
                self.catch_up()
        finally:
            self._stop.set()
            for watch in list(self._watches.values()):
                watch.end()
            for thread in self._threads:
                thread.join(PATIENCE)

    @property
    def timeline(self) -> list[Sight]:
        """Everything seen so far, in the order in which it happened."""
        with self._news:
            return sorted(self._sights, key=lambda sight: (not sight.first, sight.revision))

    def now(self, kind: str = "node") -> dict[str, Sight]:
        """The last state of each object of a kind."""
        return {sight.name: sight for sight in self.timeline if sight.kind == kind}

    def wait(self, condition, timeout: float, what: str) -> Sight:
        """Return the first state, past or to come, of which `condition(sight)` is true; as long as that takes, at least PATIENCE."""
        timeout = max(timeout, PATIENCE)
        end, looked = time.monotonic() + timeout, 0
        while True:
            with self._news:
                fresh, looked = self._sights[looked:], len(self._sights)
                for sight in fresh:
                    if condition(sight):
                        return sight
                left = end - time.monotonic()
                assert left > 0, f"{what}: not seen within {timeout:.0f} s"
                if len(self._sights) == looked:
                    self._news.wait(left)

    def catch_up(self, timeout: float = PATIENCE) -> None:
        """Wait until the watches have told everything that the API says now. What they do not tell is a gap.

        Once it has ended, it had; what the kubelets write afterwards is not its business.
        """
        if self._stop.is_set():
            return
        wanted = {}
        for kind, (path, selectors) in self._lists.items():
            query = "?fieldSelector=" + selectors["fieldSelector"] if selectors else ""
            wanted[kind] = {
                item["metadata"]["name"]: int(item["metadata"]["resourceVersion"]) for item in self._api.get(path + query)["items"]
            }
        end = time.monotonic() + timeout
        for kind, revisions in wanted.items():
            for name, revision in revisions.items():
                while (seen := self.now(kind).get(name)) is None or seen.revision < revision:
                    if time.monotonic() > end or self.gaps:
                        self.gaps.append(f"the watch never told of {kind} {name} at revision {revision}")
                        return
                    with self._news:
                        self._news.wait(0.2)

    def problems(
        self, max_parallel: int, reboots: dict[str, int], unasked: Iterable[str] = (), only: str | None = None
    ) -> list[str]:
        """What was wrong at any time: see `problems` below, and gaps. `only`: of this node."""
        timeline = [sight for sight in self.timeline if sight.kind == "lease" or only in (None, sight.name)]
        return self.gaps + problems(timeline, max_parallel, reboots, unasked)

    def _follow(self, kind: str) -> None:
        path, selectors = self._lists[kind]
        lost_since = None
        while not self._stop.is_set():
            try:
                watch = self._watches[kind] = Watch(self._api.credentials, path, str(self._reached[kind]), **selectors)
                if self._stop.is_set():  # meanwhile: who ended the watches did not know this one
                    watch.end()
                lost_since = None
                for event in watch:
                    if event["type"] != "BOOKMARK":
                        self._saw(kind, event["object"], gone=event["type"] == "DELETED")
                    self._reached[kind] = int(event["object"]["metadata"]["resourceVersion"])
            except Gone as gone:
                self.gaps.append(f"the watch of {kind}s has a gap after revision {self._reached[kind]}: {gone}")
                return
            except (OSError, ValueError) as error:
                if self._stop.is_set():
                    return
                lost_since = lost_since or time.monotonic()
                if time.monotonic() - lost_since > PATIENCE:
                    self.gaps.append(f"the watch of {kind}s did not come back: {error}")
                    return
                self._stop.wait(0.5)

    def _saw(self, kind: str, item: dict, first: bool = False, gone: bool = False) -> None:
        metadata = item["metadata"]
        with self._news:
            self._sights.append(Sight(int(metadata["resourceVersion"]), kind, metadata["name"], item, first, gone, time.time()))
            self._news.notify_all()


def problems(timeline: list[Sight], max_parallel: int, reboots: dict[str, int], unasked: Iterable[str] = ()) -> list[str]:
    """Every way in which a rollout went wrong, as sentences.

    :param timeline: states in the order of their revisions; the first of a node is how it was before
    :param max_parallel: how many nodes may be out of service at once, 0: any number
    :param reboots: node -> how often it must have rebooted; other nodes: never
    :param unasked: nodes that were also rebooted by something else, without intent
    """
    result = []
    first = {sight.name: sight for sight in timeline if sight.first and sight.kind == "node"}
    boots = {name: [sight.boot_id] for name, sight in first.items()}
    for sight, nodes, holders in _moments(timeline):
        where = f"at revision {sight.revision}"
        out = sorted(
            name for name, node in nodes.items() if node.record or (node.cordoned and not (name in first and first[name].cordoned))
        )
        if max_parallel and len(out) > max_parallel:
            result.append(f"{where} {len(out)} nodes are out of service, {max_parallel} may be: {', '.join(out)}")
        if max_parallel and len(holders) > max_parallel:
            result.append(f"{where} {len(holders)} slots are taken, {max_parallel} may be")
        result += [
            f"{where} {name} has a record and no slot" for name, node in nodes.items() if node.record and name not in holders
        ]
        if sight.kind == "node" and not sight.gone:
            result += [
                f"{where} {sight.name} {what}"
                for what in _node_problems(
                    sight, first.setdefault(sight.name, sight), boots.setdefault(sight.name, [sight.boot_id]), sight.name in unasked
                )
            ]
    result += _generations(timeline)
    for name, seen in boots.items():
        if len(seen) - 1 != reboots.get(name, 0):
            result.append(f"{name} rebooted {len(seen) - 1} times, not {reboots.get(name, 0)}")
    return result


def _node_problems(now: Sight, first: Sight, boots: list[str], unasked: bool) -> Iterator[str]:
    """What is wrong with one node; `boots`, the boot IDs seen so far, gets a new one."""
    same_object = now.object["metadata"].get("uid") == first.object["metadata"].get("uid")
    if first.cordoned and not now.cordoned and same_object:
        yield "is uncordoned, and it was somebody else's cordon"
    record = now.record
    if record and now.labels.get(STATE) != record["step"]:
        yield f"says {now.labels.get(STATE)} in its label and {record['step']} in its record"
    if now.conditions and not record and now.labels.get(STATE) not in ("upgrade-required", "approval-required"):
        yield f"has the conditions {', '.join(now.conditions)}, and nothing on it says why"
    if now.boot_id and now.boot_id != boots[-1]:
        if not unasked and (not record or record.get("boot_id") != boots[-1]):
            yield f"has rebooted without an intent for the boot {boots[-1]}"
        if not unasked and not now.cordoned:
            yield "has rebooted while pods could be scheduled on it"
        boots.append(now.boot_id)


def _moments(timeline: list[Sight]) -> Iterator[tuple[Sight, dict[str, Sight], dict]]:
    """Each change, with all nodes and the holders of slots as they were at that moment."""
    nodes: dict[str, Sight] = {}
    holders: dict = {}
    for sight in timeline:
        if sight.kind == "lease":
            holders = {} if sight.gone else sight.slots["holders"]
        elif sight.gone:
            nodes.pop(sight.name, None)
        else:
            nodes[sight.name] = sight
        if not sight.first:
            yield sight, dict(nodes), holders


def _generations(timeline: list[Sight]) -> list[str]:
    """A takeover counts up; a generation that falls means that a run wrote what it had read long ago."""
    result, last = [], {}
    for sight in timeline:
        if sight.kind == "node" and not sight.gone and (record := sight.record):
            key = (sight.name, sight.object["metadata"].get("uid"))
            if record["generation"] < last.get(key, 0):
                result.append(
                    f"at revision {sight.revision} the generation of {sight.name} falls from {last[key]} to {record['generation']}"
                )
            last[key] = record["generation"]
    return result


def left_behind(nodes: Iterable[Sight], lease: Sight | None) -> list[str]:
    """What a finished rollout must not leave in the cluster, as sentences."""
    result = []
    for node in nodes:
        result += [
            f"{node.name} has still the label {key}={node.labels[key]}"
            for key in (STATE, REBOOT_REQUIRED, REQUESTED)
            if key in node.labels
        ]
        # As long as its label says that the node is due, so does its condition.
        due = ["MaintenancePlanned"] if node.labels.get(STATE) in ("upgrade-required", "approval-required") else []
        result += [f"{node.name} has still the condition {kind}" for kind in node.conditions if kind not in due]
        result += [f"{node.name} has still the annotation {key}" for key in (RECORD, APPROVAL) if key in node.annotations]
        if node.labels.get(COMPONENTS, "enabled") != "enabled":
            result.append(f"{node.name}: components are {node.labels[COMPONENTS]}")
    if lease is not None:
        result += [f"the Lease names {name} as holder of a slot" for name in lease.slots["holders"]]
        if lease.slots["halted"]:
            result.append(f"the Lease says halted: {lease.slots['halted']}")
    return result
