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

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.host_side import HostUnreachable

from support.kube.field_owners import note_cordon

NODES = "/api/v1/nodes"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/npu-operator/leases"
LEASE = LEASES + "/npu-maintenance"
EVENTS = "/api/v1/namespaces/default/events"
OLD, NEW = "25.2.0-k-aaaaaaaaaaaa", "25.5.0-k-bbbbbbbbbbbb"
RESOURCE = "huawei.com/Ascend910"
CHIPS = 8


class Killed(BaseException):
    """SIGKILL: nothing catches it."""


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
        """Somebody else writes the Node, with kubectl if it is a cordon."""
        before, node = self.node(name), copy.deepcopy(self.node(name))
        change(node)
        note_cordon(before, node, "kubectl-cordon", self.clock.now())
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

    def list(self, path, label_selector=None):
        self._world.check_light()
        key, _equals, value = (label_selector or "").partition("=")
        return [
            copy.deepcopy(item)
            for place, item in sorted(self._world.objects.items())
            if place.startswith(path + "/") and (not key or item["metadata"].get("labels", {}).get(key) == value)
        ]

    def request(self, method, path, body=None, label_selector=None, **_paging):
        if method == "get":
            return {"metadata": {}, "items": self.list(path, label_selector)}
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
        version = body.get("metadata", {}).pop("resourceVersion", None)
        if version not in (None, item["metadata"]["resourceVersion"]):
            raise kube_client.Conflict("the object has been modified")
        merge(item, body)
        note_cordon(self._world.objects[path], item, manager, self._world.clock.now())
        self._world.put(path, item)
        return copy.deepcopy(item)


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


class Host:
    """A host with a boot loader of its own mind; also the port that the cycle talks to (see _cycle_host)."""

    BOOT_SECONDS = 20.0

    def __init__(self, world, name, release):
        self._world, self.name = world, name
        self.driver = self.good = release
        self.next = self.previous = self.trial = None
        self.generation = 0
        self.kernel = self.next_kernel = "k"
        self.staged = set()  # releases for another kernel, which npu-driver-select takes in the place of one of their version
        self.boot_id = "boot-%s-0" % name
        self.boots = 0
        self.up = True
        self.returns = True  # whether it comes back from a reboot
        self.reachable = True
        self.holders = []
        self.going_down = False
        self.broken = set()  # releases that do not work
        self.tries = {}  # release -> how often it was tried
        self.plug_pulled = False  # power loss at the next reboot call, before anything is written
        self.booted_at = world.clock.now() - 10_000
        self.wedged = False  # the chips do not answer
        self.suspended = False  # the node agent has taken the driver out of service
        self.incurable = False  # nor do they after a reboot

    # --- life ---

    def go_down(self):
        """Power off and, if it returns, on again."""
        self.up = self.going_down = False
        self._set_ready(False)
        if self.returns:
            self._world.clock.at(self.BOOT_SECONDS, self.boot)

    def boot(self):
        self.boots += 1
        self.boot_id = "boot-%s-%d" % (self.name, self.boots)
        self.booted_at = self._world.clock.now()
        self.up, self.wedged, self.suspended = True, self.incurable, False
        self.kernel = self.next_kernel
        if self.next:
            self.driver, self.next = self._for_kernel(self.next), None
            self.trial = {"generation": self.generation, "release": self.driver, "boot_id": self.boot_id}
            self.tries[self.driver] = self.tries.get(self.driver, 0) + 1
        elif self.good:
            self.driver = self._for_kernel(self.good)
        self._world.clock.at(5.0, self._kubelet)

    def _for_kernel(self, release):
        fit = "%s-%s-" % (release.split("-")[0], self.kernel)
        return next((name for name in sorted(self.staged) if name.startswith(fit)), release)

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
            self._world.touch(self.name, lambda node: node["status"].update(conditions=[condition]))

    # --- the port ---

    def _reach(self):
        if not self.up or not self.reachable:
            raise HostUnreachable("Connection refused")

    def view(self, _wait=None):
        self._reach()
        works = self.driver not in self.broken
        return {
            "boot_id": self.boot_id,
            "generation": self.generation,
            "driver": self.driver,
            "good": self.good,
            "next": self.next,
            "previous": self.previous,
            "trial": self.trial,
            "holders": list(self.holders),
            "ready": {"version": self.driver.split("-")[0]} if works and not self.suspended else None,
            "failed": None if works else {"reason": "insmod failed"},
            "loaded_version": self.driver.split("-")[0],
            "unit": "active" if works else "failed",
            "uptime": self._world.clock.now() - self.booted_at,
            "kernel": self.kernel,
            "going_down": self.going_down,
        }

    def rebooted(self, boot_id, generation, release, refuse_held):
        self._reach()
        return self._world.mutate(
            "reboot %s %s" % (self.name, release), lambda: self._reboot(boot_id, generation, release, refuse_held), False
        )

    def _reboot(self, boot_id, generation, release, refuse_held):
        self._fence(generation)
        if self.plug_pulled:
            self.plug_pulled = False
            self.go_down()
            raise HostUnreachable("Connection reset")
        if boot_id != self.boot_id:
            return {"already": True, "queued": False, "held": []}
        if self.going_down:
            return {"already": False, "queued": True, "held": []}
        if refuse_held and self.holders:
            return {"already": False, "queued": False, "held": list(self.holders)}
        self.generation, self.next, self.going_down = generation, release, True
        self._world.clock.at(1.0, self.go_down)
        return {"already": False, "queued": True, "held": []}

    def _fence(self, generation):
        if generation < self.generation:
            raise NpuError("Another run has taken this host over (generation %d)" % self.generation)

    def confirmed(self, generation, release, boot_id):
        self._reach()
        self._world.mutate("confirm %s" % self.name, lambda: self._confirm(generation, release, boot_id), False)

    def _confirm(self, generation, release, boot_id):
        self._fence(generation)
        if boot_id != self.boot_id:
            raise NpuError("The host was rebooted since its driver was validated (boot ID %s)" % self.boot_id)
        if self.driver != release:
            raise NpuError("The driver of this boot is %s, not %s" % (self.driver, release))
        if self.good != release:
            self.previous, self.good, self.trial = self.good, release, None

    def withdrawn(self, generation):
        self._reach()

        def effect():
            self._fence(generation)
            self.generation, self.next = generation, None

        self._world.mutate("withdraw %s" % self.name, effect, False)

    def validate(self, version):
        self._reach()
        wrong = self.wedged or self.driver in self.broken or version not in (None, self.driver.split("-")[0])
        told = "npu_smi: failed" if self.wedged else "loaded_driver: %s" % self.driver
        return {"valid": not wrong, "checks": [], "msg": told if wrong else "all passed"}


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
            self._world.check_light()

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
