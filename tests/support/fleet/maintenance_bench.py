# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One node of a fake fleet and the controllers that work on it."""

from __future__ import annotations

import dataclasses
import json

from ansible_collections.npuops.ascend.plugins.plugin_utils._heal.heal_settings import guards_of
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.cycle import (
    Cycle,
    MaintenancePolicy,
    MaintenanceRequest,
    Recovery,
)
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import node_conditions
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import valid_settings

from support.fleet.fake_fleet import CHIPS, NEW, NODES, OLD, RESOURCE, FakeCluster, Pods, World, merge

STATE = "npu.openfuyao.com/driver-upgrade-state"
APPROVE = "npu.openfuyao.com/approve-reboot"
APPROVAL_FOR = "npuops.ascend/approval-for"
REBOOT_REQUIRED = "npu.openfuyao.com/reboot-required"
RECORD = "npuops.ascend/maintenance"
LAST = "npuops.ascend/last-maintenance"
COMPONENTS = "npuops.ascend/components"
WEDGED = "npuops.ascend/wedged"
TARGET = {"version": "25.5.0", "release": NEW, "digest": "sha256:" + "b" * 64}


def policy_of(**settings):
    """Without approvals, unless ``settings`` says so; the rest as the role npu_upgrade has it."""
    return MaintenancePolicy.of(valid_settings.settings("npu_upgrade", {"auto": True, **settings}))


class Bench:
    """One node and the controllers that work on it."""

    def __init__(self, pods=None, smoke=None, **node):
        self.world = World()
        self.host = self.world.add("npu-a", **node)
        self.pods = pods or Pods(self.world)
        self.pods._world = self.world
        self.smoke = smoke
        self.alerts = None  # what says why no maintenance may begin now
        self.cluster = FakeCluster  # makes one for each controller
        self.said = []
        self.told = []  # the seconds of each line
        self.running = None
        self.world.after_write = self._check

    def run(self, run="run-1", until="done", order=None, **policy):
        self.running = run
        wanted = MaintenanceRequest("npu-a", run, target=TARGET, resource=RESOURCE, chips=CHIPS)
        wanted = dataclasses.replace(wanted, **(order or {}))
        return Cycle(
            self.cluster(self.world),
            self.host,
            self.pods,
            wanted,
            policy_of(**policy),
            self.world.clock,
            self._say,
            self.smoke,
            self.alerts,
        ).run(until)

    def _check(self):
        """What holds after every single write of a run, wherever it may be cut short then."""
        node = self.world.objects.get(NODES + "/npu-a")
        text = node and node["metadata"]["annotations"].get(RECORD)
        record = json.loads(text) if text else None
        if record and record["run"] == self.running:
            assert node["metadata"]["labels"][STATE] == record["step"]
            assert "npu-a" in self.world.slots()["holders"]
            if record["step"] in ("pod-deletion-required", "drain-required") or record["boot_id"]:
                assert record["unschedulable"] is not None

    def _say(self, step, seconds, sentence):
        self.said.append((step, sentence))
        self.told.append(seconds)

    @property
    def node(self):
        return self.world.node("npu-a")

    @property
    def labels(self):
        return self.node["metadata"]["labels"]

    @property
    def annotations(self):
        return self.node["metadata"]["annotations"]

    @property
    def last(self):
        return json.loads(self.annotations[LAST])

    @property
    def record(self):
        return json.loads(self.annotations[RECORD])

    @property
    def cordoned(self):
        return bool(self.node["spec"].get("unschedulable"))

    def wait(self, seconds):
        self.world.clock.sleep(seconds)

    def annotate(self, **values):
        """As kubectl annotate does; ``approve`` and ``record`` name the annotations, and None removes one."""
        names = {"approve": APPROVE, "record": RECORD}
        change = {names[key]: value for key, value in values.items()}
        self.world.touch("npu-a", lambda node: merge(node["metadata"]["annotations"], change))

    def cordon(self, wanted=True):
        """As kubectl cordon and uncordon do."""
        self.world.touch("npu-a", lambda node: merge(node["spec"], {"unschedulable": wanted or None}))

    def uncordon(self):
        self.cordon(False)

    def assert_upgraded(self, cordoned=False, boots=1):
        assert self.host.boots == boots
        assert self.host.tries == {NEW: 1}
        assert (self.host.driver, self.host.good, self.host.previous, self.host.next) == (NEW, NEW, OLD, None)
        assert STATE not in self.labels and REBOOT_REQUIRED not in self.labels
        assert self.labels[COMPONENTS] == "enabled"
        assert self.labels["npuops.ascend/driver-version"] == "25.5.0"
        self.assert_nothing_left(cordoned)
        assert self.last["outcome"] == "success"

    def assert_rolled_back(self, boots=2):
        assert self.host.boots == boots
        assert (self.host.driver, self.host.good, self.host.next) == (OLD, OLD, None)
        assert self.labels[STATE] == "upgrade-failed" and self.labels[COMPONENTS] == "enabled"
        assert self.last["outcome"] == "rolled-back"
        self.assert_nothing_left()

    def assert_nothing_left(self, cordoned=False):
        assert RECORD not in self.annotations and APPROVE not in self.annotations
        assert self.cordoned is cordoned
        assert self.world.slots()["holders"] == {}
        assert self.host.next is None
        due = [node_conditions.PLANNED] if self.labels.get(STATE) == "upgrade-required" else []
        assert [one["type"] for one in node_conditions.told_by(self.node)] == due


class Wedged(Bench):
    """A node whose chips stopped to answer a minute ago."""

    def __init__(self, incurable=False, state=None, **node):
        super().__init__(state=state, **node)
        self.host.incurable = incurable
        self.host.wedge()
        self.wait(60)
        assert WEDGED in self.annotations and self.labels[REBOOT_REQUIRED] == "true"

    def run(self, run="run-1", until="done", order=None, guards=None, **policy):
        wanted = {"reason": "recovery", "target": {}, "purpose": Recovery(guards_of(guards or {}))}
        return super().run(run, until, dict(wanted, **(order or {})), **policy)

    def upgrade(self, run="run-1", **policy):
        return super().run(run, **policy)

    def assert_recovered(self, cordoned=False, boots=1, state=None):
        assert self.host.boots == boots and self.host.tries == {}
        assert (self.host.driver, self.host.good, self.host.next) == (OLD, OLD, None)
        assert self.labels.get(STATE) == state and self.labels[COMPONENTS] == "enabled"
        self.wait(20)  # for the node agent
        assert WEDGED not in self.annotations and REBOOT_REQUIRED not in self.labels
        assert RECORD not in self.annotations and self.cordoned is cordoned
        assert self.world.slots()["holders"] == {} and not self.world.slots()["halted"]
        assert self.last["outcome"] == "success" and self.last["reason"] == "recovery"

    def assert_untouched(self):
        assert self.host.boots == 0 and not self.cordoned and RECORD not in self.annotations
        assert not (self.world.slots() or {}).get("holders")
