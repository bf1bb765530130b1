# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What all parts of a node's maintenance work with: the request, the policy, the ports, and the words for what came of it."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._driver.releases import same_driver
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.annotations import Record
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import View
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain.node_drain import Drain
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain.smoke_pod import SmokePod
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import DENIAL_RETRY_SECONDS, Clock, RetryingCluster
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Labels, Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance import purpose as maintenance_purpose
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.host_side import HostSide, Port
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.window import Window
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import identity as node_identity
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods.pod_view import NAMESPACE
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import (
    approval,
    approval_event,
    max_parallel,
    node_log,
    run_liveness,
)
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import slots as maintenance_slots
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.min_available import MinAvailable
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.outcome import Outcome
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.record import PAUSED, TURNED, Job, Target

POLL = 2.0  # seconds
IDENTITY_LIMIT = 300  # seconds until a rebooted host's node must be the host's
HALT_SECONDS = 30  # after which a run that waits looks for a halt again
TELL = 60  # seconds after which what is waited for is told again
COMPONENTS_LIMIT = 120  # seconds until paused components have left
MOST_RETURNS = 3  # how often pods that come back onto the cordoned node are evicted again


# They make what empties the node, and the user's own pod on it, of (cluster, beat, say).
MakeDrain = Callable[[AnyCluster, Callable[[], None], Callable[[str], None]], Drain]
MakeSmokePod = Callable[[AnyCluster, Callable[[], None], Callable[[str], None]], SmokePod]
# It returns why no maintenance may begin now, as a clause, or None.
Alerts = Callable[[], str | None]


class Course(enum.Enum):
    """Where the record that this run works on is going. All but the first clear it away: what this run wants begins after it."""

    FORWARD = "to what this run wants"
    TO_BE_TURNED = "to something else, as far as is known, and its reboot is certain"
    AS_BEGUN = "to something else, which the host has confirmed: so it ends there"
    TURNED = "back to what the host has confirmed"


@dataclasses.dataclass
class Remembered:
    """What this run remembers of the record that it works on, and that is not on the Node: who continues it finds it out again."""

    confirmed_its_own: bool = False  # whether the host has confirmed the driver of a record that is to be turned
    asked: bool = False  # whether the intent is this run's own
    boot_id: str | None = None  # of the boot whose driver this run validates
    uncordons: int = 0  # by others, after each of which this run started over


class Uncordoned(Exception):
    """The node was uncordoned before its reboot was certain."""

    message = "the node was uncordoned; starting over"
    details: Mapping[str, Any] = {}


class Skipped(NpuError):
    """A user wants the node to be left out after all."""


class OutsideWindow(NpuError):
    """The node is not cordoned yet, and no maintenance may begin now."""


class Withdrawn(NpuError):
    """The approval is not there any more."""


class Outdated(NpuError):
    """The host has seen a later maintenance than the one that the record is of."""

    def __init__(self, message: str, view: View) -> None:
        super().__init__(message)
        self.view = view


class WrongHost(NpuError):
    """The host that is reached is not the one that the Node stands for."""


class AnotherBoot(WrongHost):
    """The host is in another boot than its Node says: another machine, or one that was rebooted a moment ago."""


class Invalid(NpuError):
    """The node is not in order with the driver it has now. Details ``trial_over``: the host was rebooted again;
    ``not_written``: it lacks only firmware, which was not written, and its driver is confirmed."""


@dataclasses.dataclass(frozen=True)
class MaintenanceRequest:
    """What this run wants of the node. ``target``: {version, release, digest, firmware}, or {} for a recovery; ``purpose``:
    Upgrade or Recovery."""

    node: str
    run: str
    reason: str = maintenance_record.UPGRADE_REASON
    target: Target = dataclasses.field(default_factory=dict)
    purpose: maintenance_purpose.Purpose = maintenance_purpose.Upgrade()
    resource: str = ""  # what the node offers, such as huawei.com/Ascend910; "": nothing is waited for
    chips: int = 0
    offers: Mapping[str, int] = dataclasses.field(default_factory=dict)  # {resource: count}; {}: the chips, all of them whole
    network: str = "off"  # what happens if network ports are worse after the reboot: warn, strict (the node goes back), or off
    vnpu_layout: list[dict[str, Any]] | None = None  # into what the chips are divided while they are not in use; None: no change
    namespace: str = NAMESPACE
    process: str | None = None  # of this run, for the record, see run_process; None: other runs cannot tell whether it has ended
    job: Job = None  # {id, url, user, workflow} of AWX, for the record
    failure: str | None = None  # what a hook of the user's found wrong: the node goes back
    pool: str = ""  # nodes with the same one are alike, and one of them goes first; "": by what they offer and get
    proved: bool = False  # whether a node of the pool has what this one is to get
    in_flight: tuple[str, ...] = ()  # the nodes that the run goes on with
    at_once: int = 1  # how many nodes the run may have in maintenance at once

    @property
    def release(self) -> str | None:
        """What the host is to end on; None when no other driver is wanted than the one that it has."""
        return self.target.get("release") or None

    @property
    def version(self) -> str | None:
        """Of the driver that a reboot is for; None when it is to recover the node."""
        return self.target.get("version") or None

    @property
    def firmware(self) -> str | None:
        """The version that the chips are to run in the end; None when they keep theirs."""
        return self.target.get("firmware") or None


@dataclasses.dataclass(frozen=True)
class MaintenancePolicy:
    """The variables npu_upgrade_* that the cycle itself goes by. Times in seconds, 0 as their documentation says."""

    auto: bool
    max_parallel: int
    reboot_timeout: int
    max_failures: int
    approval_wait: int
    approval_max_age: int
    heartbeat_limit: int
    retry: bool = False  # whether what failed before is tried again
    window: Window = Window()  # when it may begin
    node_soak: int = 0  # seconds that the node before serves until an upgrade begins
    # The label that says which nodes belong together, "" for none; how many of them at once; whether they go together instead.
    domain: tuple[str, int, bool] = ("", 0, False)
    alerts_wait: int = 0  # seconds to wait for the end of an alert
    min_available: MinAvailable = MinAvailable()  # how many chips are to remain allocatable

    @classmethod
    def of(cls, settings: Mapping[str, Any], auto: bool | None = None, recovers: bool = False) -> MaintenancePolicy:
        """From the complete settings of the role npu_upgrade, with the plan's number where max_parallel is a percentage. ``auto``:
        that of a recovery, where it is one; ``recovers``: whether it is."""
        return cls(
            auto=settings["auto"] if auto is None else auto,
            max_parallel=max_parallel.number_of(settings["max_parallel"]),
            reboot_timeout=settings["reboot"]["timeout"],
            max_failures=settings["max_failures"],
            approval_wait=settings["approval_wait"],
            approval_max_age=settings["approval_max_age"],
            heartbeat_limit=settings["heartbeat_limit"],
            retry=settings["retry"],
            # A wedged node serves no pod, so its reboot disturbs no more by day than by night.
            window=Window() if recovers else Window.of(settings["window"]),
            node_soak=settings["node_soak"],
            domain=cls.domain
            if recovers
            else (settings["domain"]["label"], settings["domain"]["max_parallel"], settings["domain"]["together"]),
            alerts_wait=0 if recovers else settings["alerts"]["wait"],
            # A wedged node serves no pod, so its reboot takes no chip away.
            min_available=MinAvailable(None if recovers else settings["min_available"]),
        )


class Work:
    """One node's maintenance by one run.

    ``log``: NodeLog, ``slots``: Slots, ``host``: HostSide, ``pods``: Drain, ``smoke``: SmokePod or None.
    """

    def __init__(
        self,
        cluster: AnyCluster,
        host: Port,
        pods: MakeDrain,
        request: MaintenanceRequest,
        policy: MaintenancePolicy,
        clock: Clock,
        say: Callable[[str, float, str], None],
        smoke: MakeSmokePod | None = None,
        alerts: Alerts | None = None,
    ) -> None:
        """As for Cycle."""
        self.request, self.policy, self.clock = request, policy, clock
        self._say_to, self._started = say, clock.monotonic()
        self._said: tuple[str, float] | None = None  # (the sentence, when)
        self._asked = clock.monotonic()  # when it was looked for a halt
        self.cluster = RetryingCluster(cluster, self.say, clock, denial_retry_seconds=DENIAL_RETRY_SECONDS)
        self.log = node_log.NodeLog(self.cluster, request.node, request.run, clock, self.still, request.process)
        limit = min(maintenance_slots.HOLDER_LIMIT, policy.heartbeat_limit)
        self.life = run_liveness.Life(self.cluster, request.namespace, request.run, clock)
        self.slots = maintenance_slots.Slots(self.cluster, request.namespace, clock, limit)
        self.host = HostSide(host, self.log, clock, self.say, at_once=request.at_once, heartbeat_limit=policy.heartbeat_limit)
        self.pods = pods(self.cluster, self.beat, self.say)
        self.smoke = smoke(self.cluster, self.beat, self.say) if smoke else None
        self._alerts = alerts
        self.remembered = Remembered()
        # Of the record that was taken up, until its host has been compared with it; and what the host said then, if it answered.
        self.found_generation: int | None = None
        self.found_view: View | None = None

    # --- telling ---

    def say(self, sentence: str, step: str | None = None) -> None:
        if step is None:
            record = self.log.record
            node = self.log.node
            step = record["step"] if record else maintenance_record.state(node) if node else None
        self._say_to(step or "", self.seconds(), sentence)
        self._said = sentence, self.clock.monotonic()

    def still(self) -> None:
        """While waiting: repeat the last message after a minute. A run that is silent for long is taken for dead."""
        self.life.beat()
        if self._said and self.clock.monotonic() - self._said[1] >= TELL:
            sentence = self._said[0]
            self.say("still: " + sentence)
            self._said = sentence, self._said[1]

    def seconds(self) -> float:
        """Since the maintenance began; since this run did, as long as it has not."""
        begun = maintenance_record.seconds_of(self.log.started)
        return max(0, self.clock.now() - begun) if begun is not None else self.clock.monotonic() - self._started

    def outcome(
        self, outcome: str, reason: str | None = None, blockers: Iterable[Any] | None = (), step: str | None = None
    ) -> Outcome:
        node = self.log.node
        return {
            "outcome": outcome,
            "step": step or (maintenance_record.state(node) if node else None),
            "reason": reason,
            "seconds": round(self.seconds()),
            "blockers": list(blockers or ()),
            "intended": self.log.record is not None and maintenance_record.intended(self.log.record),
        }

    # --- looking ---

    @property
    def course(self) -> Course:
        record = self.log.own
        if maintenance_record.reason_of(record) != self.request.reason:
            return Course.AS_BEGUN if self.remembered.confirmed_its_own else Course.TO_BE_TURNED
        return Course.TURNED if self.marked(TURNED) else Course.FORWARD

    def components(self) -> str | None:
        return kube_client.labels(self.log.node).get(kube_client.LABEL_COMPONENTS)

    def components_back(self) -> Labels:
        """The label with which the components we paused run again; {} when there is nothing to give back."""
        paused = self.marked(PAUSED) and self.components() == "paused"
        return {kube_client.LABEL_COMPONENTS: "enabled"} if paused else {}

    def pausing(self) -> tuple[Labels, dict[str, str]]:
        """(labels, times of the record) with which the components leave; ({}, as they are) when they do not run."""
        times = dict(self.log.own["times"])
        if self.components() != "enabled":
            return {}, times
        return {kube_client.LABEL_COMPONENTS: "paused"}, dict(times, **{PAUSED: self.log.now()})

    def marked(self, mark: str) -> bool:
        return mark in self.log.own["times"]

    def wants_more(self) -> bool:
        """Whether this run wants another driver than the one on which the record ends, which it may have found, or firmware that
        the record does not ask for and the chips do not run. Asks the host."""
        to, request = self.log.own["to"], self.request
        if request.release and not same_driver(request.release, to.get("release")):
            return True
        return request.firmware != to.get("firmware") and self.lacks_firmware() is not None

    def lacks_firmware(self) -> str | None:
        """What the chips run instead of the firmware that this run wants; None if there is nothing to want. Asks the host."""
        if self.request.firmware is None:
            return None
        found = self.host.validate(None).get("firmware_version") or "unknown"
        return None if found == self.request.firmware else found

    def check_identity(self, view: View) -> None:
        """Raise AnotherBoot when the host with this view is not the one the Node stands for."""
        boot_id = kube_client.boot_id(self.log.look())
        if view["boot_id"] != boot_id:
            raise AnotherBoot(
                "The host that the inventory reaches for %s is not the node %s of the cluster: its boot ID is %s, the node's"
                " is %s. Neither was changed. %s."
                % (self.request.node, self.request.node, view["boot_id"], boot_id, node_identity.ADVICE)
            )

    def check_generation(self, view: View) -> None:
        """Raise Outdated when the record that was taken up is of an older maintenance than the host has seen. ``view``: of this
        node's own host."""
        found, self.found_generation = self.found_generation, None
        # Each generation is on the Node before it is on the host, so only a Node that was put back in time has a smaller one.
        if found is not None and view["generation"] > found:
            text = (
                "The record of its maintenance (generation %d) is older than what its host has seen (generation %d), as after the"
                " cluster was restored from a backup: it was dropped, and the host keeps its driver %s. Run again, which makes a"
                " new plan."
            )
            raise Outdated(text % (found, view["generation"], view["good"] or view["driver"]), view)
        if found is not None and "unseen" in self.log.own:
            # Before anything is sent to the host: from then on it has seen the number of this run.
            self.log.write(lambda _node, record: node_log.Change({name: record[name] for name in record if name != "unseen"}))

    def check_found(self) -> None:
        """The same, with what a host said that is known to be this node's."""
        view, self.found_view = self.found_view, None
        if view is not None:
            self.check_own_generation(view)

    def check_own_generation(self, view: View) -> None:
        """The same, unless the host with this view may be another node's."""
        if self.found_generation is not None and view["boot_id"] == kube_client.boot_id(self.log.look()):
            self.check_generation(view)

    def check_not_older(self) -> None:
        """The same, where nothing was heard of the host since the record was taken up: waits for it as for one that reboots."""
        if self.found_generation is not None:
            self.known_host(self.policy.reboot_timeout)

    def check_unique(self) -> None:
        """Raise WrongHost when another Node says that it is the same machine: one of the two would reboot the other's host."""
        nodes = {
            # No more of each than that: they may be thousands, and every maintenance under way has them in memory.
            node["metadata"]["name"]: {"status": {"nodeInfo": kube_client.node_info(node)}}
            for node in self.cluster.each("/api/v1/nodes")
        }
        why = node_identity.twins(nodes).get(self.request.node)
        if why:
            raise WrongHost("The host of %s is not rebooted: %s." % (self.request.node, why))

    def known_host(self, retry_seconds: float | None = None) -> View:
        """The host's view, as soon as it is certain that it is this node's: after a reboot the kubelet takes a moment to say so.

        ``retry_seconds``: seconds for a host that may be rebooting. Raises WrongHost, and Outdated.
        """
        deadline = None
        while True:
            view = self.host.look(again=deadline is not None, retry_seconds=retry_seconds)
            if view["boot_id"] == self.log.own["boot_id"]:
                self.check_generation(view)
                return view  # not rebooted yet: this node's own, whatever its Node says meanwhile
            try:
                self.check_identity(view)
                self.check_generation(view)
                return view
            except WrongHost:
                over = deadline is not None and self.clock.monotonic() >= deadline
                if over or self._is_another_node(view["boot_id"]):
                    raise
            if deadline is None:
                # From now on: the host may have taken its time to come back.
                deadline = self.clock.monotonic() + IDENTITY_LIMIT
                self.say("waits until the node reports the boot ID of the host")
            self.clock.sleep(POLL)

    def refuse_another_node(self) -> None:
        """Raise WrongHost when the host is certainly another node's. One that reboots now cannot be asked."""
        view = self.host.peek()
        if view is not None and view["boot_id"] != self.log.own["boot_id"] and self._is_another_node(view["boot_id"]):
            self.check_identity(view)

    def _is_another_node(self, boot_id: str) -> bool:
        nodes = self.cluster.each("/api/v1/nodes")
        return any(kube_client.boot_id(node) == boot_id and node["metadata"]["name"] != self.request.node for node in nodes)

    def approval(self, node: Object, version: str | None) -> tuple[Record | None, str | None]:
        """(approval, None) or (None, why there is none). ``version``: of the driver that the reboot leads to, None = any."""
        return approval.given(
            node,
            self.clock.now(),
            self.policy.approval_max_age,
            self.request.purpose.approval_not_before(node),
            self.request.purpose.approval_for(node, version),
        )

    def pool(self, target: Target) -> str | None:
        """The kind of the node with this ``target``, for Slots; None when that is known to work, or there is none."""
        release, request = target.get("release"), self.request
        if not release or (request.proved and release == request.release):
            return None
        if request.pool and release == request.release:
            return request.pool
        # A record may be about another release than the one that is wanted now.
        return "%s %s" % (request.pool.rpartition(" ")[0] or request.resource, release)

    def domain(self) -> maintenance_slots.Domain | None:
        """The domain of the node, None if it belongs to none."""
        label, most, together = self.policy.domain
        value = kube_client.labels(self.log.node).get(label) if label else None
        return maintenance_slots.Domain(label, value, most, together) if value is not None else None

    def check_slot(self) -> None:
        """Raise Halted or NotYet when the node may not go on to its reboot. A slot that was lost meanwhile is taken again."""
        self._asked = self.clock.monotonic()
        node, run, reason = self.request.node, self.request.run, self.request.reason
        if self.slots.check(node, run, reason):
            return
        pool = self.pool(self.log.own["to"])
        why = self.slots.take(
            node,
            run,
            self.policy.max_parallel,
            self.request.purpose.most_at_once,
            reason,
            pool,
            self.request.in_flight,
            domain=self.domain(),
        )
        if why is not None:
            raise maintenance_slots.NotYet("Its slot was released because this run showed no heartbeat for a while: %s." % why)

    def outside_window(self) -> str | None:
        """Why no maintenance may begin now, or None. By the clock of the cluster, which all controllers share."""
        return self.policy.window.refusal(self.clock.now())

    def shortage(self) -> str | None:
        """Why too few chips would remain allocatable while the node is in maintenance, as a clause, or None."""
        least = self.policy.min_available
        if not least:
            return None
        nodes = least.nodes(self.cluster)
        return least.shortage(nodes, self.request.node, self.slots.view()["holders"])

    def alert(self) -> str | None:
        """The alert because of which no maintenance may begin now, as a clause, or None."""
        return self._alerts() if self._alerts else None

    # --- writing ---

    def beat(self) -> None:
        """While waiting: show that this run lives. Raises what stops a reboot that is not certain yet: a person or a halt."""
        self.log.beat(min(maintenance_record.CALM_BEAT_SECONDS, self.policy.heartbeat_limit / 3))
        record = self.log.record
        if record and not maintenance_record.intended(record) and record["step"] != maintenance_record.CORDON:
            self.may_go_on(self.log.node, record)
            if self.clock.monotonic() - self._asked >= HALT_SECONDS:
                self.check_slot()

    def may_go_on(self, node: Object, record: Record) -> None:
        """A guard of NodeLog.step before the reboot: people may still stop it, or a chip that answers again."""
        self.request.purpose.check_still_due(node)
        check_skip(node)
        if not maintenance_record.unschedulable(node):
            raise Uncordoned()

    def due(self, record: Record, step: str, **fields: Any) -> Record:
        """The record with ``step`` as the one that is due."""
        times = dict(record["times"])
        if step != record["step"]:
            times[step] = self.log.now()
        return dict(record, step=step, heartbeat=self.log.now(), times=times, **fields)

    def tell_event(self) -> None:
        """The Event that asks for the approval, new or refreshed. For a recovery the node agent does."""
        if self.request.purpose.recovers:
            return
        version = self.request.version
        text = "to=%s: %s" % (version, approval.command([self.request.node], version))
        try:
            approval_event.ask(self.cluster.retrying_outages_only, self.log.node, self.request.reason, text, self.log.now())
        except (kube_client.Refused, kube_client.Forbidden) as exc:
            self.say("no Event asks for the approval: %s" % exc.message)


def check_skip(node: Object) -> None:
    if maintenance_record.is_true(kube_client.labels(node), maintenance_record.LABEL_SKIP):
        raise Skipped("It has the label %s=true." % maintenance_record.LABEL_SKIP)
