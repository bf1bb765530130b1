# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What must hold, looked at after every write and every call on a host, and when all runs have ended.

The world knows what no controller does: whose cordon it is, what a host really runs, which reboot was whose.
"""

from __future__ import annotations

import json
import time
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._driver.releases import same_driver
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import approval, node_conditions
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import halt as maintenance_halt
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import outcome as maintenance_outcome
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record

from simulator.api_server import DEPLOYMENTS, ETCD, LEASE, NODES, ApiServer, Object, node_path, rfc3339
from simulator.host import CHIPS, NEW, NEWER, RESOURCE, Host
from simulator.schedule import DOMAIN, Run, Schedule
from simulator.timeline import START

_RECORD, _LAST = maintenance_record.ANNOTATION_RECORD, maintenance_record.ANNOTATION_LAST
_OURS = maintenance_record.CORDON_MANAGER
_PARKED = "npuops.ascend/parked"
# Seconds. A run is dead when nothing is heard of it for npu_upgrade_heartbeat_limit, which is 90.
_SILENCE = 80.0
_MOMENT = 5.0
_LATE = 1000.0  # what a fault may hold up


class Violation(Exception):
    """Something that must not be. ``name``: of the invariant."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__("%s: %s" % (name, text))
        self.name = name


class Invariants:
    def __init__(self, schedule: Schedule, api: ApiServer) -> None:
        self._schedule, self._api = schedule, api
        self.pods: Any = None
        self.hosts: dict[str, Host] = {}
        # Nodes whose record a person took away or overwrote: what they are in then is not for a run to know.
        self.tainted: set[str] = set()
        self.replaced: set[str] = set()  # hosts whose machine was exchanged: of what was confirmed, the new one knows nothing
        self.lease_deleted = False
        self._powered: set[str] = set()  # hosts that lost power or rebooted by themselves
        self._opened: set[str] = set()  # nodes that a person uncordoned since their maintenance began
        self._tries: dict[tuple[str, int, str], int] = {}
        self._cordoned_by: dict[str, str] = {}
        self._ended: dict[tuple[str, str], list[dict[str, Any]]] = {}
        self._boots_at: dict[tuple[str, str], int] = {}
        self._approved_for: dict[str, str] = {}  # the version that was asked for when it was given
        # Approvals, each as (node, who gave it, when): with which a host was rebooted; and those of them whose maintenance has ended.
        self._used: set[tuple[str, Any, Any]] = set()
        self._over_with: set[tuple[str, Any, Any]] = set()
        self._approved_at: dict[str, float] = {}  # when a person last approved the reboot of a node
        self._approved_in: dict[str, str] = {}  # the boot for whose end a node's approval was used
        self._broke: dict[str, bool] = {}  # whether a run had to halt
        self._failures: dict[str, set[str]] = {}  # the nodes that failed in a run
        self._reboots: dict[str, list[str]] = {}  # the run that each of a host's reboots was of
        self._read_lease: dict[str, float] = {}
        self._wanted: dict[tuple[str, str], str | None] = {}
        self._firmware: dict[tuple[str, str], str | None] = {}
        self._wrote: dict[str, float] = {}  # when a record was last written
        self._halted_at = 0.0
        self._served: tuple[str, float] | None = None  # the node that came back into service last, and when
        self.paused_since: float | None = None  # since when a person has paused all rollouts
        self.running: set[str] = set()
        self.runs = {run.name: run for run in schedule.runs}
        self.api_calls: dict[str, float] = {}  # when a run last showed a sign of life
        self._dropped: dict[str, float] = {}  # when a node last came to offer fewer chips to pods
        self._woke: dict[str, float] = {}  # when a run that had stalled for long went on
        self._most_slots = [run.slots for run in schedule.runs]

    def heard(self, run: str) -> None:
        """The run makes a call."""
        now = self._api.timeline.time
        if now - self.api_calls.get(run, now) > _SILENCE:
            self._woke[run] = now
        self.api_calls[run] = now

    # --- after every write ---

    def written(self, path: str, before: Object | None, after: Object | None, writer: str) -> None:
        if path.startswith(NODES + "/"):
            self._node(path.rpartition("/")[2], before, after, writer)
        elif path == LEASE and after is None:
            self.lease_deleted = True
        elif path == LEASE and after is not None:
            had, has = (
                (item or {}).get("metadata", {}).get("annotations", {}).get("npuops.ascend/slots", "{}") for item in (before, after)
            )
            self._soaks(json.loads(had).get("holders", {}), json.loads(has).get("holders", {}))
            self._domains(json.loads(had).get("holders", {}), json.loads(has).get("holders", {}))
            self._leasts(json.loads(had).get("holders", {}), json.loads(has).get("holders", {}))
            halted = json.loads(has).get("halted")
            if halted and not json.loads(had).get("halted"):
                self._halted_at = self._api.timeline.time
                # The API server refuses one request. Rolling ones do so for seconds.
                if any(refusal in halted["why"] for refusal in ("401 Unauthorized", "it is forbidden")):
                    raise Violation("halt for a denial of a moment", halted["why"])
        elif path.startswith("/apis/apps/") and before is not None and after is not None:
            self._workload(before, after)

    def _soaks(self, had: dict[str, Any], has: dict[str, Any]) -> None:
        """No upgrade begins with a node before another one, which came back last, has served as long as its run wants."""
        now, run = self._api.timeline.time, self.runs.get(self._api.acting)
        for name, holder in had.items():
            node = self._api.peek(NODES + "/" + name)
            last = json.loads(node["metadata"]["annotations"].get(_LAST, "{}")) if node else {}
            # Who drops the slot of a run that died does not know how that ended.
            given = name not in has and holder["run"] == self._api.acting and last.get("run") == holder["run"]
            if given and last.get("outcome") == "success" and last.get("reason") != "recovery":
                self._served = (name, now)
        if run is None or run.kind != "upgrade" or not run.soak or self._served is None:
            return
        for name, holder in has.items():
            node = self._api.peek(NODES + "/" + name)
            begins = name not in (*had, self._served[0]) and holder.get("reason") != "recovery" and node and not _record(node)
            # The API server tells the time in whole seconds.
            if begins and now - self._served[1] < run.soak - 2:
                raise Violation("soak", "%s begins %d s after %s" % (name, now - self._served[1], self._served[0]))

    def _domains(self, had: dict[str, Any], has: dict[str, Any]) -> None:
        """No upgrade or rollback begins with a node of a domain of which as many are in maintenance as its run allows, or with one
        of another domain where those go together."""
        run = self.runs.get(self._api.acting)
        if run is None or not run.domain:
            return
        found = ((name, self._api.peek(NODES + "/" + name)) for name, holder in has.items() if not holder.get("aside"))
        same = {name: node for name, node in found if node and DOMAIN in node["metadata"]["labels"]}
        for name, node in same.items():
            begins = name not in had and has[name].get("reason") != "recovery" and not _record(node)
            if begins and run.domain < 0 and len({node["metadata"]["labels"][DOMAIN] for node in same.values()}) > 1:
                raise Violation("domains mix", "%s begins beside %s" % (name, ", ".join(sorted({*same} - {name}))))
            if begins and 0 < run.domain < len(same):
                raise Violation("domain", "%s begins, and of its domain %s" % (name, ", ".join(sorted({*same} - {name}))))

    def _leasts(self, had: dict[str, Any], has: dict[str, Any]) -> None:
        """No upgrade or rollback begins with a node that serves while the other ones that do have too few chips for its run."""
        run = self.runs.get(self._api.acting)
        if run is None or not run.least:
            return
        for name in has:
            node = self._api.peek(NODES + "/" + name)
            if node is None or name in had or has[name].get("reason") == "recovery" or _record(node) or not _offered(node):
                continue
            left = 0
            for other in self._schedule.names:
                there = self._api.peek(NODES + "/" + other)
                if there is not None and other not in has:
                    # The run has looked at the Nodes a moment before.
                    lately = self._api.timeline.time - self._dropped.get(other, -_LATE) < _LATE
                    left += CHIPS if lately else _offered(there)
            if left < run.least * CHIPS:
                raise Violation("too few chips", "%s begins, and %d remain" % (name, left))

    def _workload(self, before: Object, after: Object) -> None:
        """What a run has parked another one leaves alone as long as that run lives."""
        mark = before["metadata"].get("annotations", {}).get(_PARKED)
        if mark is None or _PARKED in after["metadata"].get("annotations", {}):
            return
        owner = json.loads(mark)["run"]
        last = self.api_calls.get(owner)
        if self._api.acting not in ("", owner) and owner in self.running and last is not None and not self.lease_deleted:
            # One that has not been heard of for long may be dead; the signs of life are on the Lease. One that has just woken
            # up again may wait for a host before it gives the next.
            now = self._api.timeline.time
            if now - last < _SILENCE and now - self._woke.get(owner, 0.0) > _SILENCE:
                name = before["metadata"]["name"]
                raise Violation("restored under a living run", "%s, parked by %s, by %s" % (name, owner, self._api.acting))

    def _node(self, name: str, before: Object | None, after: Object | None, writer: str) -> None:
        if before is not None and (after is None or _offered(after) < _offered(before)):
            self._dropped[name] = self._api.timeline.time
        if after is not None and writer == ETCD:
            self._restored(name, after)
            return
        if after is None or before is None:
            self._cordoned_by.pop(name, None)
            self.tainted.add(name)
            return
        if self._api.acting in self.runs and self.runs[self._api.acting].kind == "uninstall":
            self.tainted.add(name)  # with what it takes away goes what a cordon was for
        was, has = _record(before), _record(after)
        ours = writer == _OURS
        if ours:
            self._used_once(name, before, was, has)
        if not ours and was is not None and was != has:
            acting = self.runs.get(self._api.acting)
            if acting is not None:
                raise Violation("maintenance disturbed", "%s overwrites the record of %s" % (acting.name, name))
            self.tainted.add(name)
        self._cordon(name, before, after, writer, ours)
        self._in_window(name, before, after, was)
        self._without_alert(name, before, after, was)
        if ours and name not in self.tainted and name not in self.replaced:
            self._approval(name, before, after, was, has)
            self._dated(name, has)
        self._asked(name, before, after)
        if ours and has is not None and was is None:
            self._begun(name, has)
        if ours and has is not None and was is not None:
            self._taken_over(name, was, has)
        if ours and has is not None and "chips are worse" in (has["failure"] or "") and has.get("chips"):
            raise Violation("blamed for ill chips", "%s: %s" % (name, has["failure"]))  # they never get worse here
        if ours and has is not None and "network ports are worse" in (has["failure"] or ""):
            self._blamed_for_ports(name, was, has)
        if ours and has is not None and has["boot_id"] is not None and (was is None or was["boot_id"] is None):
            self._intended(name, before, was, has)
        acting = self.runs.get(self._api.acting)
        # Neither what a dead run had on its way, nor what a release writes before it ends the record.
        if ours and self._api.acting and (acting is None or acting.kind != "release"):
            self._wrote[name] = self._api.timeline.time
        if ours and was is not None and has is None:
            self._released(name, was)
            self._over(name, was, after)
        due = self._is_due(after)
        if ours and has is None and not due and node_conditions.told_by(after) and name not in self.tainted:
            raise Violation("condition without a reason", "%s has %s" % (name, node_conditions.told_by(after)[0]["type"]))
        cordoned = bool(after["spec"].get("unschedulable"))
        kept = after["metadata"].get("labels", {}).get(maintenance_record.LABEL_KEEP_CORDONED) == "true"
        if cordoned and not kept and has is None and self._cordoned_by.get(name) == _OURS and name not in self.tainted:
            last = maintenance_record.last(after)
            if maintenance_record.LEFT not in (last.get("times") or {}):
                raise Violation("cordon without a reason", "%s is cordoned by us, and nothing on it says why" % name)

    def _cordon(self, name: str, before: Object, after: Object, writer: str, ours: bool) -> None:
        had, has = (bool(item["spec"].get("unschedulable")) for item in (before, after))
        if had == has:
            return
        if has:
            self._cordoned_by[name] = writer
            return
        owner = self._cordoned_by.pop(name, None)
        acting = self.runs.get(self._api.acting)
        if not ours and acting is None:
            self._opened.add(name)
            return
        if owner != _OURS:
            raise Violation("foreign cordon touched", "%s was cordoned by %s" % (name, owner))
        if before["metadata"].get("labels", {}).get(maintenance_record.LABEL_KEEP_CORDONED) == "true":
            raise Violation("foreign cordon touched", "%s has the label keep-cordoned" % name)

    def _in_window(self, name: str, before: Object, after: Object, was: dict[str, Any] | None) -> None:
        """No maintenance of a rollout begins outside of the window of its run: its cordon is where it does."""
        run = self.runs.get(self._api.acting)
        begins = (was or {}).get("step") == maintenance_record.CORDON
        if run is None or not run.window or run.kind not in ("upgrade", "rollback") or not begins:
            return
        if before["spec"].get("unschedulable") or not after["spec"].get("unschedulable"):
            return
        # What is struck may be tried again for long.
        now, most = self._api.timeline.time, _LATE if self._struck(run.name) else _MOMENT
        if not any(_is_open(run.window, now - ago) for ago in range(0, int(most) + 1, 5)):
            raise Violation("cordon outside the window", "%s by %s, whose window is %s" % (name, run.name, run.window))

    def _without_alert(self, name: str, before: Object, after: Object, was: dict[str, Any] | None) -> None:
        """No maintenance begins while an alert of its run fires: its cordon is where it does."""
        run = self.runs.get(self._api.acting)
        begins = (was or {}).get("step") == maintenance_record.CORDON
        if run is None or not begins or before["spec"].get("unschedulable") or not after["spec"].get("unschedulable"):
            return
        since, most = self._api.timeline.time - START, _LATE if self._struck(run.name) else _MOMENT
        if all(run.fires(since - ago) for ago in range(0, int(most) + 1, 5)):
            raise Violation("cordon while an alert fires", "%s by %s" % (name, run.name))

    def _begun(self, name: str, record: dict[str, Any]) -> None:
        self._opened.discard(name)

    def _asked(self, name: str, before: Object, after: Object) -> None:
        """An approval is for what the node was asked for when it was given, or is asked for first."""
        (had, was), (there, asked) = (
            (notes.get(approval.ANNOTATION_APPROVE), notes.get(approval.ANNOTATION_APPROVAL_FOR))
            for notes in (item["metadata"].get("annotations", {}) for item in (before, after))
        )
        given = there is not None and (had is None or (asked != was and str(asked).startswith("recovery-")))
        if given and not (_record(before) or {}).get("approval"):
            self._approved_at[name] = self._api.timeline.time
        if there is None:
            self._approved_for.pop(name, None)
        elif asked is not None and (had is None or was is None):
            self._approved_for.setdefault(name, asked)

    def _approval(self, name: str, before: Object, after: Object, was: dict[str, Any] | None, has: dict[str, Any] | None) -> None:
        """An approval is used once, with the intent of the reboot that it is for, and given back if there was none."""
        had, there = (item["metadata"].get("annotations", {}).get(approval.ANNOTATION_APPROVE) for item in (before, after))
        recorded = (has or {}).get("approval")
        if has is not None and recorded is not None and (was or {}).get("approval") is None:
            if had != "true":
                raise Violation("approval from nowhere", "the record of %s has %s" % (name, recorded))
            if there is not None:
                raise Violation("approval used twice", "%s keeps it with the intent" % name)
            self._approved_in[name] = has["boot_id"]
            told = self.hosts[name].told_wedged_at
            recovers = has["reason"] == maintenance_record.RECOVERY_REASON
            # Of one second, as managedFields have it.
            if recovers and name not in self.tainted and self._approved_at.get(name, told) < told - 1:
                raise Violation("approval of another day", "%s wedged after it was approved" % name)
            given_for, wanted = self._approved_for.get(name), (has["to"] or {}).get("version")
            if wanted and given_for not in (None, wanted):
                raise Violation("approval for another version", "%s goes to %s, approved for %s" % (name, wanted, given_for))
        self._approved_version(name, has)
        if was is not None and has is None and there is None and not self._is_due(after):
            asked = after["metadata"].get("annotations", {}).get(approval.ANNOTATION_APPROVAL_FOR)
            if asked is not None:
                raise Violation("approval asked for nothing", "%s is not due, and is asked to approve %s" % (name, asked))
        if had is None and there is not None and (was is None or was.get("approval") is None):
            raise Violation("approval from nowhere", "%s gets one, and its record has none" % name)
        if was is not None and has is None and was.get("approval") is not None:
            used = self.hosts[name].boot_id != self._approved_in.get(name)
            returned = maintenance_record.last(after).get("outcome") not in ("success", "failed", "rolled-back")
            if used and had is None and there is not None:
                raise Violation("approval used twice", "%s was rebooted with it, and gets it back" % name)
            if not used and returned and there is None:
                raise Violation("approval lost", "%s was not rebooted with it" % name)

    def _restored(self, name: str, node: Object) -> None:
        """What the cluster says of the node is not what became of it: that its approvals are used once has to hold all the same."""
        self.tainted.add(name)
        owner = maintenance_record.cordoned_by(node)
        self._cordoned_by.pop(name, None)
        if owner is not None:
            self._cordoned_by[name] = owner
        self._approved_for.pop(name, None)
        if approval.asked_for(node) and maintenance_record.is_true(node["metadata"]["annotations"], approval.ANNOTATION_APPROVE):
            self._approved_for[name] = approval.asked_for(node) or ""

    @staticmethod
    def _grant(name: str, record: dict[str, Any] | None) -> tuple[str, Any, Any] | None:
        """The approval that the record has; None without one, or without the time that identifies it."""
        approval = (record or {}).get("approval") or {}
        return (name, approval.get("manager"), approval["time"]) if approval.get("time") else None

    def _used_once(self, name: str, before: Object, was: dict[str, Any] | None, has: dict[str, Any] | None) -> None:
        """Also where the cluster has forgotten it: the world has not. A machine that was exchanged knows nothing either."""
        had, there = self._grant(name, was), self._grant(name, has)
        taken = maintenance_record.is_true(before["metadata"].get("annotations", {}), approval.ANNOTATION_APPROVE)
        if there is not None and had is None and taken and there in self._used and name not in self.replaced:
            raise Violation("approval used twice", "%s was rebooted with that of %s before" % (name, there[2]))
        if has is None and had is not None and had in self._used:
            self._over_with.add(had)

    def _reboots_once(self, name: str, record: dict[str, Any] | None) -> None:
        grant = self._grant(name, record)
        if grant is None or name in self.replaced:
            return
        if grant in self._over_with:
            raise Violation("approval used twice", "%s is rebooted with that of %s, whose maintenance has ended" % (name, grant[2]))
        self._used.add(grant)

    @staticmethod
    def _approved_version(name: str, record: dict[str, Any] | None) -> None:
        """A record goes to the version that its approval was given for, or back to the driver before."""
        if record is None or record["reason"] == maintenance_record.RECOVERY_REASON:
            return
        back = record["step"] == maintenance_record.ROLLBACK or maintenance_record.TURNED in record["times"]
        given_for, wanted = (record["approval"] or {}).get("for"), (record["to"] or {}).get("version")
        if given_for and wanted and given_for != wanted and not back:
            raise Violation("approval for another version", "%s goes to %s, approved for %s" % (name, wanted, given_for))

    @staticmethod
    def _is_due(node: Object) -> bool:
        return maintenance_record.state(node) in (maintenance_record.UPGRADE, maintenance_record.APPROVAL)

    def _dated(self, name: str, record: dict[str, Any] | None) -> None:
        """Times are those of the API server, whatever the machine takes for the time, and wherever it is."""
        run = self.runs.get(record["run"]) if record else None
        if record is None or run is None or any(fault.kind == "clock" for fault in self._schedule.faults):
            return
        now = self._api.timeline.time
        for text in (record["heartbeat"], *record["recoveries"]):
            when = maintenance_record.seconds_of(text)
            # What is under way may be late, and what was recovered may be hours ago.
            if when is None or when - now > _SILENCE or (text == record["heartbeat"] and now - when > _LATE):
                raise Violation("wrong time", "the record of %s says %s, and it is %s" % (name, text, rfc3339(now)))

    def _taken_over(self, name: str, was: dict[str, Any], has: dict[str, Any]) -> None:
        if was["run"] == has["run"]:
            return
        silent = self._api.timeline.time - self._wrote.get(name, 0.0)
        if silent < _SILENCE:
            text = "%s takes %s over from %s, which wrote %.0f s ago" % (has["run"], name, was["run"], silent)
            raise Violation("living run taken over", text)

    def _released(self, name: str, was: dict[str, Any]) -> None:
        """A person gives back what runs have left, and not what one is at work on or may have reboot any moment."""
        acting = self.runs.get(self._api.acting)
        if acting is None or acting.kind != "release":
            return
        silent = self._api.timeline.time - self._wrote.get(name, 0.0)
        if silent < _SILENCE:
            raise Violation("living run released", "%s, on which %s wrote %.0f s ago" % (name, was["run"], silent))
        if was["boot_id"] is not None:
            raise Violation("released in its reboot", "%s, by the run %s" % (name, was["run"]))

    def _intended(self, name: str, before: Object, was: dict[str, Any] | None, has: dict[str, Any]) -> None:
        """A reboot is certain from now on: everything that keeps a node from it has been looked at."""
        if was is None or has["step"] != maintenance_record.REBOOT or name in self.tainted or self._stale:
            return
        labels, annotations = (before["metadata"].get(key, {}) for key in ("labels", "annotations"))
        if labels.get(maintenance_record.LABEL_SKIP) == "true":
            raise Violation("skip ignored", name)
        if not before["spec"].get("unschedulable"):
            raise Violation("reboot of a node in service", name)
        run = self.runs.get(has["run"])
        if run is not None and not run.auto and annotations.get(approval.ANNOTATION_APPROVE) != "true":
            if was.get("approval") is None:
                raise Violation("reboot without approval", name)
        if has["reason"] == maintenance_record.RECOVERY_REASON or self.lease_deleted:
            return
        release = has["to"].get("release")
        now, struck = self._api.timeline.time, any(fault.run == has["run"] for fault in self._schedule.faults)
        for pod in self.pods.on_node(name):
            there = now - self.pods.bound_at[pod["metadata"]["name"]]
            if (
                release
                and there > _MOMENT
                and "deletionTimestamp" not in pod["metadata"]
                and not struck
                and name not in self._opened
            ):
                raise Violation("intent under pods", "%s is on %s for %.0f s" % (pod["metadata"]["name"], name, there))
        lease = self._api.peek(LEASE)
        slots = json.loads(lease["metadata"]["annotations"]["npuops.ascend/slots"]) if lease else {}
        self._within_slots(name, has, slots.get("holders", {}))
        if self.paused_since is not None and self._must_know(has["run"], self.paused_since):
            raise Violation("intent while rollouts are paused", name)
        halted = slots.get("halted")
        if halted and maintenance_halt.binds(halted, has["reason"]) and self._must_know(has["run"], self._halted_at):
            raise Violation("reboot under a halt", name)
        proved = any(pool.endswith(" %s" % release) for pool in slots.get("proved", ()))
        # A record whose host came back with another kernel names another release than the one that was the first of its kind.
        if release and not proved and not self._kernels and not any(host.good == release for host in self.hosts.values()):
            for other in self._api.all(NODES):
                record = _record(other)
                aside = slots.get("holders", {}).get(other["metadata"]["name"], {}).get("aside")
                if other["metadata"]["name"] == name or record is None or record["boot_id"] is None or aside:
                    continue
                same = all(record["to"].get(key) == has["to"].get(key) for key in ("release", "firmware"))
                if same and other["metadata"]["name"] not in self.tainted:
                    raise Violation("second before the first", "%s tries %s like %s" % (name, release, other["metadata"]["name"]))

    def _within_slots(self, name: str, has: dict[str, Any], holders: dict[str, Any]) -> None:
        if self.tainted or 0 in self._most_slots or self._api.timeline.time - self._read_lease.get(has["run"], 0.0) > _MOMENT:
            return  # it may stall between its look at the Lease and its write to the Node
        if holders.get(name, {}).get("run") != has["run"]:
            raise Violation("slots", "%s is rebooted without a slot" % name)
        others = []
        for node in self._api.all(NODES):
            other, record = node["metadata"]["name"], _record(node)
            if other != name and record is not None and record["boot_id"] is not None and not holders.get(other, {}).get("aside"):
                others.append(other)
        if len(others) >= max(self._most_slots):
            raise Violation("slots", "%s is rebooted, and %s is in maintenance" % (name, ", ".join(others)))

    def lease_read(self, run: str) -> None:
        self._read_lease[run] = self._api.timeline.time

    def _over(self, name: str, was: dict[str, Any], after: Object) -> None:
        last = maintenance_record.last(after)
        self._count(name, was, last)
        self._ended.setdefault((was["run"], name), []).append(last)
        host, outcome = self.hosts[name], last.get("outcome")
        release = (was.get("to") or {}).get("release")
        if name in self.tainted or name in self.replaced:
            return
        flash = host.written or {}
        waits = (flash.get("state"), flash.get("boot_id")) == ("written", host.boot_id) and (was.get("to") or {}).get("firmware")
        # Who does not reach the host cannot tell what it has.
        struck = any(one.node == name and one.kind in ("freeze", "unreachable", "crossed") for one in self._schedule.incidents)
        if waits and host.answers and not struck and "in the chips already" not in (last.get("failure") or ""):
            raise Violation("waiting firmware not told", "%s: %s" % (name, last.get("failure")))
        if outcome == "success" and release and not same_driver(host.good, release):
            raise Violation("unconfirmed driver called done", "%s: %s is good, not %s" % (name, host.good, release))
        run = self.runs.get(was["run"])
        strict = run is not None and run.network == "strict" and self._all_the_same("network")
        if (
            outcome == "success"
            and strict
            and (was.get("ports") or {}).get("0", "").startswith("UP")
            and host.driver in host.loses_ports
        ):
            raise Violation("given back without ports", "%s, by the run %s" % (name, was["run"]))
        if outcome == "rolled-back" and (not same_driver(host.driver, host.good) or host.next):
            text = "%s: it runs %s, %s is good, next is %s" % (name, host.driver, host.good, host.next)
            raise Violation("not rolled back", text)

    def _blamed_for_ports(self, name: str, was: dict[str, Any] | None, record: dict[str, Any]) -> None:
        """Only where the user is strict about them, and only a driver with which they do not come up."""
        if was is not None and was["failure"] == record["failure"]:
            return  # judged when it was written; the host has been rebooted since
        run = self.runs.get(record["run"])
        if run is not None and run.network != "strict" and self._all_the_same("network"):
            raise Violation("blamed for ports", "%s, by %s: %s" % (name, run.name, record["failure"]))
        # Of chips that wedge in its validation, nothing is known: the driver is not known to work.
        if name not in self._schedule.lost_ports and not self.hosts[name].wedged:
            raise Violation("blamed for slow ports", "%s: %s" % (name, record["failure"]))

    def _all_the_same(self, setting: str) -> bool:
        return len({getattr(run, setting) for run in self._schedule.runs}) == 1

    def _count(self, name: str, was: dict[str, Any], last: dict[str, Any]) -> None:
        """As many failures as a run allows halt it, those of this run alone; and so does a node that does not work."""
        run, outcome, lease = self.runs.get(was["run"]), last.get("outcome"), self._api.peek(LEASE)
        if run is None or outcome not in ("rolled-back", "failed") or was.get("reason") == maintenance_record.RECOVERY_REASON:
            return
        crossed = any((incident.kind, incident.node) == ("crossed", name) for incident in self._schedule.incidents)
        if outcome == "failed" and crossed and was["boot_id"] in (None, self.hosts[name].boot_id):
            return  # another host answered for it, so it was given back with the driver that it had
        failures = self._failures.setdefault(run.name, set())
        failures.add(name)
        slots = json.loads(lease["metadata"]["annotations"]["npuops.ascend/slots"]) if lease else {}
        halted = maintenance_halt.of_failure(slots.get("halted")) or {}
        due = outcome == "failed" or 0 < run.max_failures <= len(failures)
        alone = len(self._schedule.runs) == 1 and not self._schedule.faults and not self.lease_deleted and not self.tainted
        if due and not halted and alone:
            raise Violation("no halt", "%s failed on %s" % (run.name, ", ".join(sorted(failures))))
        by = halted.get("who") == "the run " + run.name and halted.get("node") is None
        if not due and by and not self._broke.get(run.name) and not self.tainted:
            raise Violation("halt without a reason", "%s failed on %s: %s" % (run.name, ", ".join(sorted(failures)), halted["why"]))
        self._broke[run.name] = self._broke.get(run.name, False) or due

    # --- on hosts ---

    def rebooted(self, host: Host, boot_id: str, generation: int, release: str | None) -> None:
        node = self._api.peek(node_path(host.name))
        self._reboots_once(host.name, _record(node) if node else None)
        if node is None or host.name in self.tainted:
            return
        record = _record(node)
        if record is None or record["boot_id"] != boot_id:
            told = "none" if record is None else "of the boot %s" % record["boot_id"]
            raise Violation("reboot without an intent", "%s is rebooted out of %s; its record is %s" % (host.name, boot_id, told))
        self._reboots.setdefault(host.name, []).append(record["run"])
        if release is None or record.get("reason") == maintenance_record.RECOVERY_REASON or host.name in self._opened:
            return
        self._check_empty(host, "is rebooted")

    def _check_empty(self, host: Host, does: str) -> None:
        left = [
            pod["metadata"]["name"]
            for pod in self.pods.on_node(host.name)
            if "deletionTimestamp" not in pod["metadata"] and not self.pods.tolerates(pod)
        ]
        if left and not self._stale:
            raise Violation("reboot under pods", "%s %s under %s" % (host.name, does, ", ".join(left)))

    def writes_firmware(self, host: Host) -> None:
        acting = self.runs.get(self._api.acting)
        if acting is not None and (acting.keep_firmware or acting.kind != "upgrade"):
            # Whatever the record says, and whichever client has written it.
            raise Violation("firmware nobody asked for", "%s has %s write firmware" % (acting.name, host.name))
        node = self._api.peek(node_path(host.name))
        if node is None or host.name in self.tainted:
            return
        record = _record(node)
        if record is None or record["boot_id"] != host.boot_id or not (record["to"] or {}).get("firmware"):
            raise Violation("firmware without an intent", "%s writes firmware; its record is %s" % (host.name, record))
        # Where a write could fail, a person may ask for another one.
        told = any(incident.node == host.name for incident in self._schedule.incidents) or host.name in self._schedule.flash_fails
        if host.writes > 1 and not told and host.name not in self.replaced:
            raise Violation("firmware written twice", "%s writes its flash for the %d. time" % (host.name, host.writes))
        if host.name not in self._opened:
            self._check_empty(host, "writes firmware")

    @property
    def _kernels(self) -> bool:
        return any(incident.kind == "kernel" for incident in self._schedule.incidents)

    def _struck(self, run: str) -> bool:
        return any(fault.run == run or fault.kind == "outage" for fault in self._schedule.faults)

    def _must_know(self, run: str, since: float) -> bool:
        """Whether a run that writes now knows what the Lease has said ``since`` then, or would have known if it had looked.

        Between a look and the write there is always a moment, and a fault makes it long.
        """
        looked = self._read_lease.get(run, 0.0) > since
        return looked or (not self._struck(run) and self._api.timeline.time - since > _MOMENT)

    @property
    def _stale(self) -> bool:
        return any(fault.kind == "stale" for fault in self._schedule.faults)

    def lost_power(self, host: Host) -> None:
        self._powered.add(host.name)

    def tried(self, host: Host, release: str) -> None:
        node = self._api.peek(node_path(host.name))
        record = _record(node) if node else None
        if record is None or host.name in self._powered or host.name in self.tainted:
            return
        key = host.name, record["first_generation"], release
        self._tries[key] = self._tries.get(key, 0) + 1
        if self._tries[key] > 1:
            raise Violation("two reboots for one intent", "%s tries %s for the second time" % (host.name, release))

    def confirmed(self, host: Host, release: str) -> None:
        if release in host.broken:
            raise Violation("bad driver confirmed", "%s on %s" % (release, host.name))

    # --- what runs tell ---

    def begins(self, run: Run, name: str, release: str | None, firmware: str | None) -> None:
        self._wanted[run.name, name], self._firmware[run.name, name] = release, firmware
        self._boots_at[run.name, name] = self._reboots.get(name, []).count(run.name)

    def outcome(self, run: Run, name: str, told: dict[str, Any]) -> None:
        outcome, ended = told["outcome"], self._ended.get((run.name, name), [])
        if name in self.tainted or told.get("raised"):
            return
        if outcome == maintenance_outcome.DONE and not any(last.get("outcome") == "success" for last in ended):
            raise Violation("told wrongly", "%s calls %s done, and no maintenance of it ended so" % (run.name, name))
        host = self.hosts[name]
        wanted = self._wanted.get((run.name, name)) if name not in self.replaced else None
        if outcome == maintenance_outcome.DONE and wanted and not same_driver(host.good, wanted):
            raise Violation("told wrongly", "%s calls %s done, and %s is good, not %s" % (run.name, name, host.good, wanted))
        brought = (ended and (ended[-1].get("to") or {}).get("firmware")) or self._firmware.get((run.name, name))
        if outcome == maintenance_outcome.DONE and brought and host.firmware != brought:
            raise Violation("told wrongly", "%s calls %s done, and its chips run %s" % (run.name, name, host.firmware))
        # Where the plan has found a maintenance whose reboot was certain, its driver is the one that the run goes on to.
        configured = {NEWER if run.newer else NEW, self._wanted.get((run.name, name))}
        other = run.kind == "upgrade" and name not in self.replaced and not any(same_driver(host.good, one) for one in configured)
        if outcome == maintenance_outcome.UP_TO_DATE and other:
            raise Violation("told wrongly", "%s calls %s up to date, and %s is good" % (run.name, name, host.good))
        if outcome == maintenance_outcome.BUSY and not self._stale:
            node = self._api.peek(node_path(name))
            record = _record(node) if node else None
            if record is not None and record["run"] == run.name:
                raise Violation("told wrongly", "%s calls %s busy, and nobody else has it" % (run.name, name))
        if outcome in (maintenance_outcome.DEFERRED, maintenance_outcome.AWAITING, maintenance_outcome.WITHDRAWN):
            node = self._api.peek(node_path(name))
            record = _record(node) if node else None
            if record is not None and record["run"] == run.name:
                raise Violation("told wrongly", "%s tells %s of %s, and its record is still there" % (run.name, outcome, name))
            if self._reboots.get(name, []).count(run.name) > self._boots_at[run.name, name]:
                raise Violation("told wrongly", "%s tells %s of %s, and has rebooted it" % (run.name, outcome, name))

    def restored(self, run: Run, told: set[str]) -> None:
        """``told``: the workloads that the run reports as not restored."""
        for item in self._api.all(DEPLOYMENTS):
            mark, name = item["metadata"].get("annotations", {}).get(_PARKED), item["metadata"]["name"]
            if mark and json.loads(mark)["run"] == run.name and name not in told:
                raise Violation("told wrongly", "%s does not tell that %s stays parked" % (run.name, name))


def _is_open(window: str, now: float) -> bool:
    """By what a clock in Shanghai shows, which is eight hours ahead all year."""
    shown = time.strftime("%H:%M", time.gmtime(now + 8 * 3600))
    begin, _to, end = window.partition("-")
    return begin <= shown < end if begin < end else shown >= begin or shown < end


def _offered(node: Object) -> int:
    """The chips that pods may ask the node for."""
    ready, _why = kube_client.node_ready(node)
    serves = (
        ready and not maintenance_record.unschedulable(node) and kube_client.ANNOTATION_WEDGED not in kube_client.annotations(node)
    )
    return kube_client.allocatable(node, RESOURCE) if serves else 0


def _record(node: Object) -> dict[str, Any] | None:
    text = node["metadata"].get("annotations", {}).get(_RECORD)
    try:
        return json.loads(text) if text else None
    except ValueError:
        return None


def at_the_end(schedule: Schedule, api: ApiServer, hosts: dict[str, Host], invariants: Invariants, foreign: set[str]) -> None:
    """After the runs, and the clean ones that a person starts then: nothing of ours is left, and every node is where it should be.

    ``foreign``: nodes that a person keeps cordoned.
    """
    lease = api.peek(LEASE)
    slots = json.loads(lease["metadata"]["annotations"].get("npuops.ascend/slots", "{}")) if lease else {}
    for name in slots.get("holders", {}):
        # One whose run died before it began is free as soon as another run needs it.
        if name not in hosts or _record(api.peek(node_path(name)) or {"metadata": {}}) is not None:
            raise Violation("slot not given back", "of %s" % name)
    for name, host in hosts.items():
        node = api.peek(node_path(name))
        if node is None:
            raise Violation("node lost", "%s has no Node" % name)
        labels = node["metadata"].get("labels", {})
        if _record(node) is not None:
            raise Violation("never ends", "%s still has a record: %s" % (name, _record(node)))
        still_due = maintenance_record.state(node) in (maintenance_record.UPGRADE, maintenance_record.APPROVAL)
        told = [one["type"] for one in node_conditions.told_by(node) if not (still_due and one["type"] == node_conditions.PLANNED)]
        if told and not host.incurable:
            raise Violation("condition left behind", "%s still has %s" % (name, ", ".join(told)))
        if host.next:
            raise Violation("left to try", "%s tries %s at its next boot" % (name, host.next))
        hopeless = host.incurable
        if NEW in host.broken:
            if same_driver(host.good, NEW) and name not in invariants.tainted:
                raise Violation("bad driver confirmed", "%s ends on it" % name)
        elif not hopeless and not (same_driver(host.good, NEW) and same_driver(host.driver, NEW)):
            raise Violation("not upgraded", "%s runs %s, %s is good" % (name, host.driver, host.good))
        if labels.get(kube_client.LABEL_COMPONENTS) != "enabled" and not hopeless:
            raise Violation("components not given back", "on %s they are %s" % (name, labels.get(kube_client.LABEL_COMPONENTS)))
        told = labels.get(kube_client.LABEL_DRIVER_VERSION)
        if not hopeless and told != host.driver.partition("-")[0]:
            raise Violation("wrong label", "%s says %s, and its driver is %s" % (name, told, host.driver))
        cordoned = bool(node["spec"].get("unschedulable"))
        kept = labels.get(maintenance_record.LABEL_KEEP_CORDONED) == "true"
        # A Node that is registered again is not cordoned: the maintenance restores a person's cordon with its own.
        kept = kept or bool(maintenance_record.last(node).get("unschedulable"))
        # A cluster that was restored from a backup may have forgotten why a run left the node to a person.
        kept = kept or (name in invariants.tainted and maintenance_record.last(node).get("outcome") == "failed")
        if cordoned and not kept and name not in foreign and not hopeless:
            raise Violation("cordon not given back", "%s stays cordoned by %s" % (name, maintenance_record.cordoned_by(node)))
        if not cordoned and name in foreign:
            raise Violation("foreign cordon touched", "%s is not cordoned any more" % name)
