# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts with a boot loader of their own mind, their kubelets and node agents; and what a run reaches of a host."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client

from simulator.api_server import ApiServer, node_path, rfc3339
from simulator.timeline import Timeline
from support.fleet.boot_loader import BootLoader

OLD, NEW, NEWER = RELEASES = ("25.2.0-k-aaaaaaaaaaaa", "25.5.0-k-bbbbbbbbbbbb", "25.6.0-k-cccccccccccc")
KERNELS = ("k", "k2")
FIRMWARE = "7.8.0.7.220"  # that the new driver may bring
RESOURCE = "huawei.com/Ascend910"
CHIPS = 8
STATE = "npu.openfuyao.com/driver-upgrade-state"


def of_kernel(release: str, kernel: str) -> str:
    """The release of the same driver for the ``kernel``."""
    version, _dash, rest = release.partition("-")
    return "%s-%s-%s" % (version, kernel, rest.rpartition("-")[2])


# Seconds.
_BOOT = 20.0
_REPLACEMENT = 60.0  # until another machine is there
_KUBELET = 5.0  # from the boot until the kubelet reports
_LOAD = 8.0  # until the driver is loaded: later than the kubelet is there
_GRACE = 40.0  # until a kubelet that says nothing is taken for gone
_COMPONENTS = 3.0  # until what a label asks for runs, or has left
_AGENT = 10.0
_LINKS = 30.0  # until the links of the ports are up


class Host(BootLoader):
    """``watch``: the Invariants, which hear of reboots and drivers; ``log(sentence)``; ``eager``: its kubelet reports Ready before
    it knows the new boot ID."""

    def __init__(self, timeline: Timeline, api: ApiServer, name: str, watch: Any, log: Callable[[str], None], eager: bool) -> None:
        super().__init__(name, OLD)
        self.load_seconds = _LOAD
        self._timeline, self._api, self._watch, self._log, self._eager = timeline, api, watch, log, eager
        self.booted_at = timeline.time - 10_000
        self.returns_after = _BOOT
        self.unreachable_until = self.frozen_until = self.told_wedged_at = 0.0
        self.components = True  # whether their pods run
        self.skew, self.chatty = 0.0, False
        self.loses_ports: set[str] = set()  # releases with which they are down
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
    def _offers(self) -> bool:
        return self.components and self.up and self.works and not self.loads and not self.wedged

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
        self.choose()
        self.booted_at, self.holders = self._timeline.time, []
        if self.trial and self.trial["boot_id"] == self.boot_id:
            self._watch.tried(self, self.driver)
        self._log("%s boots with %s%s" % (self.name, self.driver, "" if self.driver == self.good else " on trial"))
        self._lives += 1
        life = self._lives
        if self._eager:
            self._timeline.at(1.0, lambda: self._report(ready="True") if self._lives == life else None)
        self._timeline.at(_KUBELET, lambda: self._kubelet(life))
        # The components' pods wait for the driver, and offer its chips then.
        self._timeline.at(self.load_seconds + _COMPONENTS, lambda: self._settle() if self._lives == life else None)

    def replace(self) -> None:
        """Another machine takes its place, which is already set up."""
        self.go_down(_REPLACEMENT)
        self.set_up(OLD)
        self.incurable = False
        self._log("%s is another machine" % self.name)

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
        node = self._api.peek(node_path(self.name)) or {"metadata": {}}
        if self.wedged or kube_client.ANNOTATION_WEDGED in node["metadata"].get("annotations", {}):
            self._agent_soon()

    def _report(self, ready: str, boot_id: str | None = None) -> None:
        status: dict[str, Any] = {"conditions": [{"type": "Ready", "status": ready}]}
        if boot_id:
            status["nodeInfo"] = {"bootID": boot_id}
        if not self._offers:
            status["allocatable"] = {RESOURCE: "0"}
        self._api.change(node_path(self.name), {"status": status}, "kubelet")

    def report(self) -> None:
        """What its kubelet says now."""
        if self.up:
            self._report(ready="True", boot_id=self.boot_id)
            self.look_at_label()

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
            since = rfc3339(self._timeline.time + self.skew)
            self._tell({"since": since, "probes": 3, "reason": "npu-smi failed", "boot_id": self.boot_id})
        elif runs and told and not self.wedged:
            self._tell(None)
        if self.wedged or (told and not runs):
            self._agent_soon()
        self.look_at_label()

    def _tell(self, told: dict[str, Any] | None) -> None:
        self.suspended = told is not None
        self.told_wedged_at = self._timeline.time
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
        return self.answer(self.since_boot())

    def ports(self) -> dict[str, str] | None:
        """Link and address by chip."""
        if not self.works or self.wedged:
            return None
        down = self.driver in self.loses_ports or self.since_boot() < _LINKS
        return {str(chip): "%s 10.0.0.%d" % ("DOWN" if down else "UP", chip + 1) for chip in range(2)}

    def since_boot(self) -> float:
        return self._timeline.time - self.booted_at

    def validation(self, version: str | None) -> dict[str, Any]:
        told = super().validation(version)
        # As npu-smi may say, with all that it has to say of eight chips.
        return dict(told, msg=told["msg"] + ": " + "x" * 70_000) if self.chatty else told

    def update_os(self) -> None:
        """Its next boot is into another kernel, for which install has staged the drivers."""
        self.next_kernel = KERNELS[1]
        self.staged = {of_kernel(release, kernel) for release in RELEASES for kernel in KERNELS}

    def queued(self, boot_id: str, generation: int, release: str | None) -> None:
        self._watch.rebooted(self, boot_id, generation, release)
        self._timeline.at(1.0, self.go_down)

    def flash_begins(self) -> None:
        self._watch.writes_firmware(self)
        self._timeline.at(8.0, self.flash_ends)

    def confirm(self, generation: int, release: str, boot_id: str) -> None:
        super().confirm(generation, release, boot_id)
        self._watch.confirmed(self, release)
