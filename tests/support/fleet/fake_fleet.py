# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster, its hosts and the time, all in memory: for the state machine of the maintenance.

The cluster has exact compare-and-swap semantics, the host chooses its release at boot as npu-driver-select does, and the
time only passes in `sleep`. Every mutating call has a number, and at any of them the controller can be killed, before or
after it takes effect, or the API can go away for a while, before or after.
"""

from __future__ import annotations

import copy
import heapq
import itertools
import json
import time

from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import selectors as kube_selectors
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.host_side import HostUnreachable

from support.fleet.boot_loader import BootLoader
from support.kube.conditions import merged
from support.kube.field_owners import note_annotation, note_cordon

NODES = "/api/v1/nodes"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/npu-operator/leases"
LEASE = LEASES + "/npu-maintenance"
EVENTS = "/api/v1/namespaces/default/events"
OLD, NEW = "25.2.0-k-aaaaaaaaaaaa", "25.5.0-k-bbbbbbbbbbbb"
RESOURCE = "huawei.com/Ascend910"
CHIPS = 8


class Killed(BaseException):
    """SIGKILL: nothing catches it."""


def die(*_arguments):
    """In place of a call at which the run is to be killed."""
    raise Killed()


class Clock:
    """Seconds since 1970; things that happen by themselves are scheduled with `at`."""

    def __init__(self, start=1_700_000_000.0):
        self.time = start
        self._agenda, self._order = [], itertools.count()

    def now(self):
        return self.time

    monotonic = now

    def at(self, delay, action):
        heapq.heappush(self._agenda, (self.time + delay, next(self._order), action))

    def sleep(self, seconds):
        end = self.time + seconds
        while self._agenda and self._agenda[0][0] <= end:
            self.time, _order, action = heapq.heappop(self._agenda)
            action()
        self.time = end


class Fate:
    """What happens to the mutating call number `at`: "kill" or "dark", "before" or "after" it took effect."""

    def __init__(self, at=0, what="kill", when="before", dark=45.0):
        self.at, self.what, self.when, self.dark = at, what, when, dark
        self.calls = []

    def __str__(self):
        return "%s %s call %d" % (self.what, self.when, self.at)

    @property
    def met(self):
        return self.at <= len(self.calls)


class World:
    """`objects`: path -> object; `hosts`: name -> Host."""

    def __init__(self, clock=None):
        self.clock = clock or Clock()
        self.objects, self.hosts = {}, {}
        self.fate = Fate()
        self.dark_until = 0.0
        self.on_write = lambda path, body: None  # before a patch takes effect
        self.after_write = lambda: None
        self._version = itertools.count(100)
        self._uids = itertools.count(1)

    # --- making it ---

    def add(self, name, release=OLD, state="upgrade-required", cordoned=False, annotations=None, labels=None):
        host = Host(self, name, release)
        self.hosts[name] = host
        node_labels = {
            kube_client.LABEL_PRESENT: "",
            kube_client.LABEL_COMPONENTS: "enabled",
            "npu.openfuyao.com/driver-upgrade-state": state,
        }
        node_labels.update(labels or {})
        self.register(name, {key: value for key, value in node_labels.items() if value is not None}, annotations)
        if cordoned:
            self.node(name)["spec"]["unschedulable"] = True
        return host

    def register(self, name, labels=None, annotations=None):
        """A kubelet makes its Node."""
        self.put(
            NODES + "/" + name,
            {
                "metadata": {
                    "name": name,
                    "uid": "uid-%d" % next(self._uids),
                    "labels": dict(labels or {}),
                    "annotations": dict(annotations or {}),
                },
                "spec": {},
                "status": {
                    "allocatable": {RESOURCE: str(CHIPS)},
                    "conditions": [{"type": "Ready", "status": "True"}],
                    "nodeInfo": {"bootID": self.hosts[name].boot_id},
                },
            },
        )

    def put(self, path, item):
        item["metadata"]["resourceVersion"] = str(next(self._version))
        self.objects[path] = item

    def node(self, name):
        return self.objects[NODES + "/" + name]

    def touch(self, name, change):
        """Another client writes the Node, with kubectl if it is a cordon."""
        before, node = self.node(name), copy.deepcopy(self.node(name))
        change(node)
        note_cordon(before, node, "kubectl-cordon", self.clock.now())
        note_annotation(before, node, kube_client.ANNOTATION_WEDGED, "npu-node-agent", self.clock.now())
        self.put(NODES + "/" + name, node)

    def slots(self):
        lease = self.objects.get(LEASE)
        return json.loads(lease["metadata"]["annotations"]["npuops.ascend/slots"]) if lease else None

    # --- one controller's calls ---

    def mutate(self, what, effect, api):
        """Do `effect` unless the fate says otherwise."""
        fate = self.fate
        fate.calls.append(what)
        mine = len(fate.calls) == fate.at
        if mine and fate.what == "dark":
            self.dark_until = self.clock.now() + fate.dark
        if mine and fate.when == "before":
            self._strike(api)
        result = effect()
        self.after_write()
        if mine and fate.when == "after":
            self._strike(api)
        return result

    def _strike(self, api):
        if self.fate.what == "kill":
            raise Killed(str(self.fate))
        if api:
            raise kube_client.Unreachable("The Kubernetes API cannot be reached: Connection refused.")

    def check_light(self):
        if self.clock.now() < self.dark_until:
            raise kube_client.Unreachable("The Kubernetes API cannot be reached: Connection refused.")


class FakeCluster:
    """What the cycle uses of Cluster."""

    def __init__(self, world):
        self._world = world

    def get(self, path):
        self._world.check_light()
        item = self._world.objects.get(path)
        return copy.deepcopy(item)

    def list(self, path, label_selector=None, field_selector=None):
        """``field_selector``: spec.nodeName=NAME, of pods."""
        self._world.check_light()
        selector = kube_selectors.parse(label_selector, "labelSelector")
        on = (field_selector or "").partition("=")[2]
        return [
            copy.deepcopy(item)
            for place, item in sorted(self._world.objects.items())
            if place.startswith(path + "/") and (not selector or selector.matches(item["metadata"].get("labels", {})))
            if not on or item["spec"].get("nodeName") == on
        ]

    each = list

    def pieces(self, path, **_params):
        yield from ()  # of a log

    def stream(self, path, version, **_selectors):
        return None

    @property
    def without_retries(self):
        return self

    retrying_outages_only = without_retries

    def request(self, method, path, body=None, label_selector=None, field_selector=None, **params):
        if method == "get":
            return {"metadata": {}, "items": self.list(path, label_selector, field_selector)}
        if method == "patch":
            self._world.check_light()
            node = path.removesuffix("/status")
            return self._world.mutate(
                "PATCH %s (conditions)" % node, lambda: self._patch(node, body, params["field_manager"]), api=True
            )
        assert method == "post"
        self._world.check_light()
        place = "%s/%s" % (path, body["metadata"]["name"])

        def effect():
            if place in self._world.objects:
                raise kube_client.Conflict("already exists")
            self._world.put(place, copy.deepcopy(body))
            return copy.deepcopy(self._world.objects[place])

        return self._world.mutate("POST " + place, effect, api=True)

    def merge_patch(self, path, body, field_manager="python"):
        self._world.check_light()
        return self._world.mutate("PATCH %s %s" % (path, _told(body)), lambda: self._patch(path, body, field_manager), api=True)

    def _patch(self, path, body, manager):
        self._world.on_write(path, body)
        item = copy.deepcopy(self._world.objects.get(path))
        if item is None:
            raise kube_client.NotFound("%s not found" % path)
        body = copy.deepcopy(body)
        conditions = body.get("status", {}).pop("conditions", None)
        if conditions is not None:
            item["status"]["conditions"] = merged(item["status"].get("conditions", []), conditions)
        version = body.get("metadata", {}).pop("resourceVersion", None)
        if version not in (None, item["metadata"]["resourceVersion"]):
            raise kube_client.Conflict("the object has been modified")
        merge(item, body)
        note_cordon(self._world.objects[path], item, manager, self._world.clock.now())
        self._world.put(path, item)
        return copy.deepcopy(item)


class CountingCluster(FakeCluster):
    """Notes (time, path) of each read in ``read``, which is the world's, too."""

    def __init__(self, world):
        super().__init__(world)
        self.read = world.read = []

    def get(self, path):
        self.read.append((self._world.clock.now(), path))
        return super().get(path)

    def list(self, path, *selectors, **more):
        self.read.append((self._world.clock.now(), path))
        return super().list(path, *selectors, **more)

    each = list


class WatchingCluster(CountingCluster):
    """Its account may watch; notes (time, path) of each watch in ``watched``, which is the world's, too."""

    def __init__(self, world):
        super().__init__(world)
        self.watched = world.watched = []

    def stream(self, path, version, field_selector):
        path = "%s/%s" % (path, field_selector.partition("=")[2])
        self.watched.append((self._world.clock.now(), path))
        return _Stream(self._world, path, version)


class _Stream:
    def __init__(self, world, path, version):
        self._world, self._path, self._version = world, path, version

    def arrived(self, seconds):
        end = self._world.clock.now() + seconds
        while self._world.objects[self._path]["metadata"]["resourceVersion"] == self._version:
            if self._world.clock.now() >= end:
                return False
            self._world.clock.sleep(0.1)
        return True

    def close(self):
        pass


def merge(target, patch):
    """RFC 7386."""
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict):
            merge(target.setdefault(key, {}), value)
        else:
            target[key] = value


def _told(body):
    labels = body.get("metadata", {}).get("labels", {})
    return labels.get("npu.openfuyao.com/driver-upgrade-state", "")


class Host(BootLoader):
    """Also the port that the cycle talks to (see _maintenance.host_side)."""

    BOOT_SECONDS = 20.0

    def __init__(self, world, name, release):
        super().__init__(name, release)
        self._world = world
        self.returns = True  # whether it comes back from a reboot
        self.ports = None  # link and address by chip; None: the chips have none
        self.reachable = True
        self.plug_pulled = False  # power loss at the next reboot call, before anything is written
        self.booted_at = world.clock.now() - 10_000

    # --- life ---

    def go_down(self):
        """Power off and, if it returns, on again."""
        self.up = self.going_down = False
        self._set_ready(False)
        if self.returns:
            self._world.clock.at(self.BOOT_SECONDS, self.boot)

    def since_boot(self):
        return self._world.clock.now() - self.booted_at

    def boot(self):
        self.choose()
        self.booted_at = self._world.clock.now()
        self._world.clock.at(5.0, self._kubelet)

    def wedge(self):
        """The chips stop to answer, and the node agent says so until they do again, as long as it runs."""
        self.wedged = True
        self._agent()

    def _agent(self):
        node = self._world.objects.get(NODES + "/" + self.name)
        runs = (
            node is not None
            and self.up
            and self.driver not in self.broken
            and node["metadata"]["labels"].get(kube_client.LABEL_COMPONENTS) == "enabled"
        )
        told = node is not None and json.loads(node["metadata"]["annotations"].get(kube_client.ANNOTATION_WEDGED, "null"))
        if runs and self.wedged and (not told or told["boot_id"] != self.boot_id):
            since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._world.clock.now()))
            self._tell({"since": since, "probes": 3, "reason": "npu-smi failed", "boot_id": self.boot_id})
        elif runs and told and not self.wedged:
            self._tell(None)
        self._world.clock.at(10.0, self._agent)

    def _tell(self, told):
        self.suspended = told is not None

        def change(node):
            merge(
                node["metadata"],
                {
                    "annotations": {kube_client.ANNOTATION_WEDGED: told and json.dumps(told)},
                    "labels": {"npu.openfuyao.com/reboot-required": "true" if told else None},
                },
            )

        self._world.touch(self.name, change)

    def _kubelet(self):
        name = self.name
        if NODES + "/" + name not in self._world.objects:
            self._world.register(name)
        self._world.touch(name, lambda node: node["status"]["nodeInfo"].update(bootID=self.boot_id))
        self._world.clock.at(2.0, lambda: self._set_ready(True))

    def _set_ready(self, ready):
        if NODES + "/" + self.name in self._world.objects:
            condition = {"type": "Ready", "status": "True" if ready else "Unknown"}
            self._world.touch(
                self.name, lambda node: node["status"].update(conditions=merged(node["status"]["conditions"], [condition]))
            )

    # --- the port ---

    def _reach(self):
        if not self.up or not self.reachable:
            raise HostUnreachable("Connection refused")

    def view(self, _wait=None, chips=False, ports=False):
        self._reach()
        looked = {**({"chips": self.listed()} if chips else {}), **({"ports": self.ports} if ports else {})}
        return dict(self.answer(self.since_boot()), **looked)

    def rebooted(self, boot_id, generation, release, refuse_held):
        self._reach()
        return self._world.mutate(
            "reboot %s %s" % (self.name, release), lambda: self._reboot(boot_id, generation, release, refuse_held), False
        )

    def _reboot(self, boot_id, generation, release, refuse_held):
        self.fence(generation)
        if self.plug_pulled:
            self.plug_pulled = False
            self.go_down()
            raise HostUnreachable("Connection reset")
        return self.reboot(boot_id, generation, release, refuse_held)

    def queued(self, _boot_id, _generation, _release):
        self._world.clock.at(1.0, self.go_down)

    def firmware_written(self, boot_id, generation, release, version, again):
        self._reach()
        answer = self._world.mutate(
            "firmware %s" % self.name, lambda: self.write_firmware(boot_id, generation, release, version, again), False
        )
        if answer["state"] == "failed":
            answer["msg"] = self.written["reason"]
        return answer

    def flash_begins(self):
        self._world.clock.at(8.0, self.flash_ends)

    def divided(self, layout):
        self._reach()
        self._world.mutate("divide %s" % self.name, lambda: self.divide(layout), False)
        return {"changed": True, "msg": "create them"}

    def confirmed(self, generation, release, boot_id):
        self._reach()
        self._world.mutate("confirm %s" % self.name, lambda: self.confirm(generation, release, boot_id), False)

    def withdrawn(self, generation):
        self._reach()
        self._world.mutate("withdraw %s" % self.name, lambda: self.withdraw(generation), False)

    def validate(self, version):
        self._reach()
        return self.validation(version)


class Pods:
    """The port that Drain is, with a given number of pods to evict one by one."""

    def __init__(self, world, npu=1, others=1, blockers=(), seconds=5.0, on_drain=None):
        self._world, self.npu, self.others, self.blockers, self.seconds = world, npu, others, list(blockers), seconds
        self.on_drain = on_drain
        self._beat = None

    def __call__(self, cluster, beat, say):
        self._beat = beat
        return self

    def simulate(self):
        return self.blockers

    def wait_for_jobs(self):
        return []

    def evict_npu_pods(self):
        return self._evict("npu")

    def evict_returned(self, _rounds):
        return self.evict_npu_pods() + self.evict_others()

    def evict_others(self):
        if self.on_drain:
            self.on_drain()
        return self._evict("others")

    def _evict(self, kind):
        count = 0
        while getattr(self, kind):
            # As the real one, which tries again.
            while self._world.clock.now() < self._world.dark_until:
                self._world.clock.sleep(1)

            def effect():
                setattr(self, kind, getattr(self, kind) - 1)

            self._world.mutate("evict " + kind, effect, api=False)
            count += 1
            for _second in range(int(self.seconds)):
                self._world.clock.sleep(1)
                self._beat()
        return count

    def wait_components_gone(self, timeout):
        self._beat()
