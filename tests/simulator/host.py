# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts with a boot loader of their own mind, their kubelets and node agents; and what a run reaches of a host."""

from __future__ import annotations

import json
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client

from simulator.api_server import ApiServer, node_path, rfc3339
from simulator.timeline import Timeline

OLD, NEW = "25.2.0-k-aaaaaaaaaaaa", "25.5.0-k-bbbbbbbbbbbb"
RESOURCE = "huawei.com/Ascend910"
CHIPS = 8
STATE = "npu.openfuyao.com/driver-upgrade-state"

# Seconds.
_BOOT = 20.0
_KUBELET = 5.0  # from the boot until the kubelet reports
_GRACE = 40.0  # until a kubelet that says nothing is taken for gone
_COMPONENTS = 3.0  # until what a label asks for runs, or has left
_AGENT = 10.0


class Host:
    """``log(sentence)``; ``before_reboot(host, boot_id, generation, release)`` is called when a run's reboot takes effect."""

    def __init__(self, timeline: Timeline, api: ApiServer, name: str, watch: Any, log: Any, eager: bool) -> None:
        self._timeline, self._api, self._watch, self._log, self._eager = timeline, api, watch, log, eager
        self.name = name
        self.driver: str = OLD
        self.good: str = OLD
        self.next: str | None = None
        self.previous: str | None = None
        self.trial: dict[str, Any] | None = None
        self.generation = 0
        self.boots = 0
        self.boot_id = "boot-%s-0" % name
        self.booted_at = timeline.time - 10_000
        self.up = True
        self.returns_after = _BOOT
        self.unreachable_until = self.frozen_until = 0.0
        self.holders: list[dict[str, Any]] = []
        self.going_down = False
        self.broken: set[str] = set()
        self.wedged = self.suspended = self.incurable = False
        self.components = True  # whether their pods run
        self._lives = 0  # tells what was planned in an earlier life from the present one

    # --- life ---

    def register(self, labels: dict[str, str] | None = None) -> None:
        """The kubelet makes its Node."""
        item = {
            "metadata": {"name": self.name, "labels": dict(labels or {}), "annotations": {}},
            "spec": {},
            "status": {
                "allocatable": {RESOURCE: str(CHIPS if self._offers else 0)},
                "conditions": [{"type": "Ready", "status": "True"}],
                "nodeInfo": {"bootID": self.boot_id},
            },
        }
        self._api.create(node_path(self.name), item, "kubelet")

    @property
    def works(self) -> bool:
        return self.driver not in self.broken

    @property
    def _offers(self) -> bool:
        return self.components and self.up and self.works and not self.wedged

    def go_down(self, returns_after: float | None = None) -> None:
        """Power off, and on again."""
        if not self.up:
            return
        self.up = self.going_down = False
        self.frozen_until = 0.0
        self._lives += 1
        life = self._lives
        self._log("%s goes down" % self.name)
        self._timeline.at(_GRACE, lambda: None if self.up or self._lives != life else self._report(ready="Unknown"))
        self._timeline.at(self.returns_after if returns_after is None else returns_after, lambda: self._boot(life))
        self.returns_after = _BOOT

    def _boot(self, life: int) -> None:
        if self.up or self._lives != life:
            return
        self.boots += 1
        self.boot_id = "boot-%s-%d" % (self.name, self.boots)
        self.booted_at = self._timeline.time
        self.up, self.wedged, self.suspended, self.holders = True, self.incurable, False, []
        if self.next:
            self.driver, self.next = self.next, None
            self.trial = {"generation": self.generation, "release": self.driver, "boot_id": self.boot_id}
            self._watch.tried(self, self.driver)
        else:
            self.driver = self.good
        self._log("%s boots with %s%s" % (self.name, self.driver, "" if self.driver == self.good else " on trial"))
        self._lives += 1
        life = self._lives
        if self._eager:
            self._timeline.at(1.0, lambda: self._report(ready="True") if self._lives == life else None)
        self._timeline.at(_KUBELET, lambda: self._kubelet(life))

    def power_on(self) -> None:
        self.returns_after = _BOOT
        if not self.up:
            self._boot(self._lives)

    def _kubelet(self, life: int) -> None:
        if self._lives != life:
            return
        if self._api.peek(node_path(self.name)) is None:
            self.register()
        self._report(ready="True", boot_id=self.boot_id)
        self.look_at_label()
        if self.wedged:
            self._agent_soon()

    def _report(self, ready: str, boot_id: str | None = None) -> None:
        status: dict[str, Any] = {"conditions": [{"type": "Ready", "status": ready}]}
        if boot_id:
            status["nodeInfo"] = {"bootID": boot_id}
        if not self._offers:
            status["allocatable"] = {RESOURCE: "0"}
        self._api.change(node_path(self.name), {"status": status}, "kubelet")

    def restart_kubelet(self) -> None:
        if self.up and self._api.peek(node_path(self.name)) is None:
            self.register()
            self._report(ready="True", boot_id=self.boot_id)
            self.look_at_label()

    def look_at_label(self) -> None:
        """The DaemonSets follow the label, and the kubelet what they offer."""
        self._timeline.at(_COMPONENTS, self._settle)

    def _settle(self) -> None:
        node = self._api.peek(node_path(self.name))
        if node is None:
            return
        self.components = node["metadata"].get("labels", {}).get(kube_client.LABEL_COMPONENTS) == "enabled"
        offered = str(CHIPS if self._offers else 0)
        if self.up and node["status"]["allocatable"].get(RESOURCE) != offered:
            self._api.change(node_path(self.name), {"status": {"allocatable": {RESOURCE: offered}}}, "kubelet")

    def wedge(self) -> None:
        self.wedged = True
        self._log("the chips of %s stop to answer" % self.name)
        self._agent_soon()

    def unwedge(self) -> None:
        self.wedged = False
        self._agent_soon()

    def _agent_soon(self) -> None:
        life = self._lives
        self._timeline.at(_AGENT, lambda: self._agent() if self._lives == life else None)

    def _agent(self) -> None:
        """The node agent says so as long as it runs, until they answer again."""
        node = self._api.peek(node_path(self.name))
        if node is None or not self.up:
            return
        told = json.loads(node["metadata"].get("annotations", {}).get(kube_client.ANNOTATION_WEDGED, "null"))
        runs = self.works and node["metadata"].get("labels", {}).get(kube_client.LABEL_COMPONENTS) == "enabled"
        if runs and self.wedged and (not told or told["boot_id"] != self.boot_id):
            since = rfc3339(self._timeline.time)
            self._tell({"since": since, "probes": 3, "reason": "npu-smi failed", "boot_id": self.boot_id})
        elif runs and told and not self.wedged:
            self._tell(None)
        if self.wedged or (told and not runs):
            self._agent_soon()
        self.look_at_label()

    def _tell(self, told: dict[str, Any] | None) -> None:
        self.suspended = told is not None
        metadata = {
            "annotations": {kube_client.ANNOTATION_WEDGED: told and json.dumps(told)},
            "labels": {"npu.openfuyao.com/reboot-required": "true" if told else None},
        }
        self._api.change(node_path(self.name), {"metadata": metadata}, "npu-node-agent")

    # --- what npu_trial_boot and npu_validate do on it ---

    @property
    def answers(self) -> bool:
        return self.up and self._timeline.time >= max(self.unreachable_until, self.frozen_until)

    def view(self) -> dict[str, Any]:
        version = self.driver.partition("-")[0]
        return {
            "boot_id": self.boot_id,
            "generation": self.generation,
            "driver": self.driver,
            "good": self.good,
            "next": self.next,
            "previous": self.previous,
            "trial": dict(self.trial) if self.trial else None,
            "holders": list(self.holders),
            "ready": {"version": version} if self.works and not self.suspended else None,
            "failed": None if self.works else {"reason": "insmod failed"},
            "loaded_version": version,
            "unit": "active" if self.works else "failed",
            "uptime": self._timeline.time - self.booted_at,
            "kernel": "k",
            "going_down": self.going_down,
        }

    def rebooted(self, boot_id: str, generation: int, release: str | None, refuse_held: bool) -> dict[str, Any]:
        self._fence(generation)
        if boot_id != self.boot_id:
            return {"already": True, "queued": False, "held": []}
        if self.going_down:
            return {"already": False, "queued": True, "held": []}
        if refuse_held and self.holders:
            return {"already": False, "queued": False, "held": list(self.holders)}
        self._watch.rebooted(self, boot_id, generation, release)
        self.generation, self.next, self.going_down = generation, release, True
        self._timeline.at(1.0, self.go_down)
        return {"already": False, "queued": True, "held": []}

    def confirmed(self, generation: int, release: str, boot_id: str) -> None:
        self._fence(generation)
        if boot_id != self.boot_id:
            raise NpuError("The host was rebooted since its driver was validated (boot ID %s)" % self.boot_id)
        if self.driver != release:
            raise NpuError("The driver of this boot is %s, not %s" % (self.driver, release))
        self._watch.confirmed(self, release)
        if self.good != release:
            self.previous, self.good, self.trial = self.good, release, None

    def withdrawn(self, generation: int) -> None:
        self._fence(generation)
        self.generation, self.next = generation, None

    def validate(self, version: str | None) -> dict[str, Any]:
        wrong = self.wedged or not self.works or version not in (None, self.driver.partition("-")[0])
        told = "npu_smi: failed" if self.wedged else "loaded_driver: %s" % self.driver
        return {"valid": not wrong, "checks": [], "msg": told if wrong else "all passed"}

    def _fence(self, generation: int) -> None:
        if generation < self.generation:
            raise NpuError("Another run has taken this host over (generation %d)" % self.generation)
