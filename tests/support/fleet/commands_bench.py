# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One node of a fake fleet, and upgrade, rollback and heal as people run them: the real plan, the label, the node's cycle."""

from __future__ import annotations

import itertools
import json

from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import disruption_budgets
from ansible_collections.npuops.ascend.plugins.plugin_utils._heal import recovery_plan
from ansible_collections.npuops.ascend.plugins.plugin_utils._heal.heal_settings import guards_of
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.cycle import Recovery
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import planner as rollout_planner
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import rollout_settings
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import snapshot as fleet_snapshot
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import pending as maintenance_pending
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record

from support.fleet import hosts as fleet
from support.fleet.fake_fleet import CHIPS, NEW, NODES, OLD, FakeCluster, Fate, Killed, merge
from support.fleet.maintenance_bench import LAST, Bench
from support.fleet.planning import asked
from support.kube.field_owners import cordon_of

OLDER = "25.0.0-k-000000000000"  # what was good before OLD
OTHER = "26.0.0-k-dddddddddddd"  # yet another one
GUARDS = guards_of({"old_approvals": True})


def version_of(release):
    return release.partition("-")[0]


def _digest(release):
    return "sha256:" + release[-12:] + "0" * 52


class Commands(Bench):
    """``wanted``: the release that the inventory configures."""

    def __init__(self, release=OLD, previous=OLDER, wanted=NEW, upgraded=False, wedged=False, **node):
        """``upgraded``: whether its last upgrade brought ``release``."""
        super().__init__(release=release, state=None, **node)
        self.host.previous, self.wanted = previous, wanted
        self._runs = itertools.count(1)
        self.world.touch("npu-a", lambda node: node["status"]["nodeInfo"].update(containerRuntimeVersion="containerd://2.1.5"))
        if upgraded:
            ended = {"run": "run-0", "generation": 0, "reason": "upgrade", "outcome": "success", "times": {}}
            ended["ended"] = ended["started"] = maintenance_record.rfc3339(self.world.clock.now() - 5000)
            ended["to"] = {"version": version_of(release), "release": release, "digest": None}
            self.world.touch("npu-a", lambda node: node["metadata"]["annotations"].update({LAST: json.dumps(ended)}))
        if self.cordoned:
            self.world.touch("npu-a", lambda node: node["metadata"].update(managedFields=[cordon_of("kubectl-cordon")]))
        if wedged:
            self.host.wedge()
            self.wait(60)

    # --- commands; each returns the plan's verdict and the cycle's outcome (None when nothing was due) ---

    def upgrade(self, **settings):
        return self._roll("upgrade", **settings)

    def rollback(self, **settings):
        return self._roll("rollback", **settings)

    def heal(self):
        run = "run-%d" % next(self._runs)
        made = recovery_plan.make([self._seen()], {"npu-a": self.node}, GUARDS, self.world.clock.now(), auto=True)
        verdict = made.entries[0].verdict if made.entries else None
        if not made.due:
            return verdict, None
        order = {"reason": "recovery", "target": {}, "purpose": Recovery(GUARDS)}
        return verdict, self.run(run, order=order)

    def command(self, name):
        return {"upgrade": self.upgrade, "rollback": self.rollback, "heal": self.heal}[name]()

    def plan(self, reason="upgrade", **settings):
        snapshot = fleet_snapshot.FleetSnapshot({"npu-a": self.node}, {}, disruption_budgets.Budgets([]))
        lookups = rollout_settings.Lookups(
            resolve=lambda reference, config, machine: _digest(self.wanted),
            size=lambda *_args: 2**30,
            support=lambda *_args: ([], []),
            confirm=lambda pods: [],
            now=self.world.clock.now(),
        )
        slots = self.world.slots() or {"max": 1, "halted": None, "holders": {}}
        return rollout_planner.make([self._seen()], snapshot, slots, asked(reason, **settings), lookups)

    def _roll(self, reason, **settings):
        plan = self.plan(reason, **settings)
        (entry,) = plan.entries
        assert plan.green or entry.deferrable, plan.problem  # npu_upgrade_on_blocked: defer
        maintenance_pending.label(FakeCluster(self.world), plan.due_nodes, plan.settled_nodes, clock=self.world.clock)
        if entry.order is None and not entry.deferrable:
            return entry.verdict, None
        # As the playbook hands it on.
        target = {key: (entry.target or {}).get(key) or "" for key in ("version", "release", "digest")}
        return entry.verdict, self.run("run-%d" % next(self._runs), order={"reason": reason, "target": target})

    # --- what the plan gets to see ---

    def _seen(self):
        host, version = self.host, version_of(self.wanted)
        if not host.up or not host.reachable:
            return fleet.unreachable("npu-a")
        view = host.view()
        trial = view["trial"]["release"] if view["trial"] and view["trial"]["boot_id"] == view["boot_id"] else None
        staged = {
            name: {"version": version_of(name), "kernel": "k", "digest": _digest(name), "firmware": None}
            for name in (OLDER, OLD, NEW, OTHER)
        }
        return fleet.host(
            "npu-a",
            kernel="k",
            boot_id=host.boot_id,
            chip_count=CHIPS,
            uptime=view["uptime"],
            config={"driver_version": version},
            driver={
                "managed": True,
                "loaded": True,
                "release": host.driver,
                "good": host.good,
                "next": host.next,
                "loaded_release": host.driver,
                "loaded_version": version_of(host.driver),
            },
            upgrade={"previous": host.previous, "trial": trial, "staged": staged, "holders": []},
        )

    # --- people ---

    def kubectl(self, line):
        """What kubectl annotate, label, uncordon and delete do to the node."""
        words = line.split()
        verb, changes = words[1], [word for word in words[4:] if not word.startswith("--")]
        if verb == "delete":
            self.world.objects.pop(NODES + "/npu-a")
            return

        def change(node):
            if verb == "uncordon":
                merge(node["spec"], {"unschedulable": None})
            kind = {"label": "labels", "annotate": "annotations"}.get(verb)
            for word in changes if kind else []:
                name, _equals, value = word.partition("=")
                merge(node["metadata"][kind], {name.rstrip("-"): value or None})

        self.world.touch("npu-a", change)

    # --- a run that dies ---

    def dies(self, name, at, when="before"):
        """The command ``name`` is killed at its mutating call number ``at``. Whether it came that far."""
        self.world.fate = Fate(at, "kill", when)
        try:
            self.command(name)
        except Killed:
            pass
        met, self.world.fate = self.world.fate.met, Fate()
        return met
