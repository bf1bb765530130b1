# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What happens in one simulation, all of it decided beforehand: made from a seed, kept as JSON, made shorter piece by piece."""

from __future__ import annotations

import dataclasses
import json
import random
from typing import Any

# The label of npu_upgrade_domain.
DOMAIN = "example.com/rack"
# What may become of one call, by its number within a run. ``seconds``: how long, where that has a meaning.
CALL_FAULTS = (
    "kill-before",  # the controller dies, and the call was never made
    "kill-after",  # it took effect, and the controller dies
    "orphan",  # the controller dies, and what it has sent takes effect only later
    "lost-before",  # no connection
    "lost-after",  # it took effect, and the answer is lost
    "late",  # no answer, and it takes effect only later
    "slow-before",  # the controller, or the network, takes its time before it takes effect
    "slow-after",  # and after it took effect
    "stale",  # what is read is of a replica that is behind
    "conflict",  # 409 without a visible reason
    "busy",  # 429
    "webhook",  # 500: an admission webhook does not answer
    "outage",  # the API server goes away for a while
    "clock",  # the controller's clock is set
)
# Drawn for few schedules, and after everything else: what the API server says of who asks.
REFUSALS = ("unauthorized", "forbidden")
# What happens on a node at a time, whichever run is at work there.
PERSON = ("cordon", "uncordon", "recordon", "keep", "approve", "unapprove", "skip", "unskip", "request")
MISHAPS = (
    "delete-node",
    "delete-lease",
    "remove-record",
    "remove-state",
    "pause-components",
    "replace",
    "crossed",
    "forge-firmware",
)
HARDWARE = ("power", "reboot", "freeze", "unreachable", "wedge", "unwedge", "hold", "late-return")
# Not drawn among the others: the one where the new driver brings firmware; an update of the OS, with which the next boot of a
# host is into another kernel, and into the release of its driver for that; a Node that comes back from a backup of the cluster; and
# an annotation that a person sets for another purpose.
_OF_FIRMWARE, _KERNEL, _RESTORE, _ANNOTATE = "forge-firmware", "kernel", "restore", "annotate"
# Drawn in pairs: a person pauses all rollouts, and lets them run again.
PAUSES = ("pause", "resume")
INCIDENTS = (*PERSON, *MISHAPS, *HARDWARE, _KERNEL, _RESTORE, _ANNOTATE, *PAUSES)
_ANY = tuple(kind for kind in INCIDENTS if kind not in (_OF_FIRMWARE, _KERNEL, _RESTORE, _ANNOTATE, *PAUSES))

# Windows of npu_upgrade_window, in the time zone of Run.window. A simulation begins there at 22:13:20: one that is open, one that is
# closed, those that open and close soon, one that is open for a moment.
WINDOWS = ("22:00-06:00", "06:00-22:00", "22:14-06:00", "22:16-06:00", "20:00-22:14", "20:00-22:16", "22:15-22:16")

KINDS = ("upgrade", "upgrade", "upgrade", "upgrade", "rollback", "rollback", "heal", "heal", "install", "uninstall")


@dataclasses.dataclass(frozen=True)
class Run:
    """A playbook that is started. ``start``: seconds; ``skew``: seconds by which its machine's clock is wrong; ``auto``:
    whether reboots need no approval; ``steps``: a process for each step of the cycle, as in the playbook, or one for all."""

    name: str
    kind: str
    start: float = 0.0
    skew: float = 0.0
    auto: bool = True
    steps: bool = False
    slots: int = 1
    park: bool = False
    retry: bool = False
    clear_halt: bool = False
    limit: str = ""  # one node, as with --limit
    hook_fails: bool = False
    defer: bool = True  # npu_upgrade_on_blocked
    canary: bool = False
    keep_firmware: bool = False
    newer: bool = False  # it wants a driver that is newer than the one that others want
    max_failures: int = 1
    storm_percent: int = 100
    jobs: bool = False  # npu_upgrade_wait_for_jobs: pods may end by themselves first
    window: str = ""  # one of WINDOWS, in Asia/Shanghai; "": it is always open
    soak: int = 0  # npu_upgrade_node_soak
    domain: int = 0  # npu_upgrade_domain.max_parallel; 0: without npu_upgrade_domain; -1: with its together
    least: int = 0  # npu_upgrade_min_available, in nodes' worth of chips
    alert_at: float = 0.0  # an alert of its npu_upgrade_alerts fires from then on, in seconds of the simulation,
    alert_for: float = 0.0  # for so long; 0: never
    network: str = "off"  # npu_validate_network
    watches: str = ""  # "granted", or "silent": granted, but a proxy holds the events back; "": its account may not watch

    def fires(self, seconds: float) -> bool:
        """Whether the alert fires so long after the start of the simulation."""
        return self.alert_at <= seconds < self.alert_at + self.alert_for


@dataclasses.dataclass(frozen=True)
class Workload:
    """A Deployment whose pods ask for chips. ``spare``: pods more than its budget demands, None without a budget; ``grace``:
    seconds that a pod takes to end; ``tolerates``: whether its pods come onto cordoned nodes."""

    name: str
    replicas: int = 1
    chips: int = 1
    spare: int | None = None
    grace: float = 2.0
    tolerates: bool = False


@dataclasses.dataclass(frozen=True)
class Fault:
    run: str
    call: int
    kind: str
    seconds: float = 0.0


@dataclasses.dataclass(frozen=True)
class Incident:
    time: float
    kind: str
    node: str
    seconds: float = 0.0


@dataclasses.dataclass(frozen=True)
class Schedule:
    """``firmware``: whether the new driver brings firmware that runs are to write; ``flash_fails``: nodes on which that fails;
    ``bad``: nodes on which the new driver does not work; ``wedged``: nodes whose chips do not answer from the start;
    ``ill``: nodes with chips that are not OK from the start, and stay so;
    ``eager``: kubelets report Ready at once, with the boot ID of the boot before; ``bad_newer``: nodes on which the newer one does not
    work; ``tells_kernel``: hosts know which kernel they boot next; ``host_skew``: seconds by which their clocks are wrong;
    ``chatty``: what they say is long; ``zone``: TZ of the controllers; ``lost_ports``: nodes whose network ports are down with the new
    driver."""

    seed: int = 0
    nodes: int = 1
    bad: tuple[str, ...] = ()
    wedged: tuple[str, ...] = ()
    incurable: tuple[str, ...] = ()
    eager: bool = False
    runs: tuple[Run, ...] = ()
    workloads: tuple[Workload, ...] = ()
    faults: tuple[Fault, ...] = ()
    incidents: tuple[Incident, ...] = ()
    firmware: bool = False
    flash_fails: tuple[str, ...] = ()
    ill: tuple[str, ...] = ()
    bad_newer: tuple[str, ...] = ()
    tells_kernel: bool = True
    host_skew: float = 0.0
    chatty: bool = False
    zone: str = ""
    lost_ports: tuple[str, ...] = ()

    @property
    def length(self) -> int:
        """How much happens: runs, faults and incidents."""
        return len(self.runs) + len(self.faults) + len(self.incidents)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple("node-%s" % letter for letter in "abcdef"[: self.nodes])

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> Schedule:
        told: dict[str, Any] = json.loads(text)
        for name, kind in (("runs", Run), ("workloads", Workload), ("faults", Fault), ("incidents", Incident)):
            told[name] = tuple(kind(**entry) for entry in told.get(name, ()))
        for name in ("bad", "wedged", "incurable", "flash_fails", "ill", "bad_newer", "lost_ports"):
            told[name] = tuple(told.get(name, ()))
        return cls(**told)


def make(seed: int) -> Schedule:
    """The Schedule of a seed. Small worlds: what goes wrong in a large fleet mostly goes wrong between two or three."""
    dice = random.Random(seed)
    theme = dice.choices((_anything, _waves, _takeover, _side_by_side, _parking), (32, 2, 2, 2, 2))[0]
    schedule = theme(dice, seed)
    # Each draws after the one before: a schedule from before there was the next one is the same that it was.
    for more in (
        _firmware,
        _ill,
        _settings,
        _windows,
        _restores,
        _pauses,
        _soaks,
        _domains,
        _leasts,
        _alerts,
        _releases,
        _watches,
        _ports,
        _early_approvals,
    ):
        schedule = more(dice, schedule)
    return schedule


def _ill(dice: random.Random, schedule: Schedule) -> Schedule:
    return dataclasses.replace(schedule, ill=tuple(name for name in schedule.names if dice.random() < 0.1))


def _firmware(dice: random.Random, schedule: Schedule) -> Schedule:
    if dice.random() >= 0.15:
        return schedule
    schedule = dataclasses.replace(
        schedule, firmware=True, flash_fails=tuple(name for name in schedule.names if dice.random() < 0.2)
    )
    runs = tuple(dataclasses.replace(run, keep_firmware=dice.random() < 0.3) for run in schedule.runs)
    forged: tuple[Incident, ...] = ()
    if dice.random() < 0.2:
        forged = (Incident(round(dice.uniform(0, 90), 1), _OF_FIRMWARE, dice.choice(schedule.names)),)
    return dataclasses.replace(schedule, runs=runs, incidents=schedule.incidents + forged)


def _watches(dice: random.Random, schedule: Schedule) -> Schedule:
    if dice.random() < 0.5:
        return schedule
    runs = tuple(dataclasses.replace(run, watches=dice.choices(("granted", "silent"), (4, 1))[0]) for run in schedule.runs)
    return dataclasses.replace(schedule, runs=runs)


def _ports(dice: random.Random, schedule: Schedule) -> Schedule:
    if dice.random() >= 0.2:
        return schedule
    modes = ("strict",) if dice.random() < 0.5 else ("off", "warn", "strict")
    runs = tuple(dataclasses.replace(run, network=dice.choice(modes)) for run in schedule.runs)
    return dataclasses.replace(schedule, runs=runs, lost_ports=tuple(name for name in schedule.names if dice.random() < 0.4))


def _settings(dice: random.Random, schedule: Schedule) -> Schedule:
    """What people set differently, and what is not the same everywhere: versions, limits, kernels, clocks, words, time zones."""
    runs = tuple(
        dataclasses.replace(
            run,
            newer=run.kind == "upgrade" and dice.random() < 0.15,
            max_failures=dice.choice((0, 1, 1, 2)),
            storm_percent=dice.choice((100, 100, 30)),
            jobs=dice.random() < 0.1,
        )
        for run in schedule.runs
    )
    new: tuple[Incident, ...] = ()
    if dice.random() < 0.15:
        new = tuple(
            Incident(round(dice.choice((0.0, dice.uniform(0, 90))), 1), _KERNEL, name)
            for name in schedule.names
            if dice.random() < 0.7
        )
    refused: tuple[Fault, ...] = ()
    if dice.random() < 0.1:
        refused = (Fault(dice.choice(runs).name, dice.randint(1, 60), dice.choice(REFUSALS)),)
    return dataclasses.replace(
        schedule,
        runs=runs,
        bad_newer=tuple(name for name in schedule.names if dice.random() < 0.2),
        tells_kernel=dice.random() < 0.7,
        host_skew=dice.choice((0.0, 0.0, round(dice.uniform(-7200, 7200)))),
        chatty=dice.random() < 0.1,
        zone=dice.choice(("", "", "CST-8", "EST5EDT,M3.2.0,M11.1.0")),
        incidents=schedule.incidents + new,
        faults=schedule.faults + refused,
    )


def _windows(dice: random.Random, schedule: Schedule) -> Schedule:
    """Also of recoveries, which they do not bind."""
    if dice.random() >= 0.15:
        return schedule
    runs = tuple(dataclasses.replace(run, window=dice.choice(("", *WINDOWS))) for run in schedule.runs)
    return dataclasses.replace(schedule, runs=runs)


def _restores(dice: random.Random, schedule: Schedule) -> Schedule:
    """A node that was approved comes back from a backup, maybe with that approval, and one more run meets it."""
    if dice.random() >= 0.08:
        return schedule
    node, when = dice.choice(schedule.names), round(dice.uniform(60, 400), 1)
    approved, backup = round(dice.uniform(0, 30), 1), round(dice.uniform(0, 120), 1)
    new = [Incident(approved, "approve", node), Incident(when, _RESTORE, node, max(round(when - backup, 1), 1.0))]
    if dice.random() < 0.5:
        # Into the version that it has: what was approved once can be wanted again.
        new.insert(0, Incident(0.0, "request", node))
    if dice.random() < 0.3:
        new.append(Incident(round(when + dice.uniform(0, 600), 1), "approve", node))
    first = dataclasses.replace(schedule.runs[0], auto=False) if dice.random() < 0.8 else schedule.runs[0]
    kind = dice.choice(("upgrade", "upgrade", "upgrade", "rollback", "heal"))
    start = round(when + dice.uniform(30, 600), 1)
    last = Run("%s-%d" % (kind, len(schedule.runs) + 1), kind, start, auto=dice.random() < 0.2, steps=dice.random() < 0.3)
    return dataclasses.replace(schedule, runs=(first, *schedule.runs[1:], last), incidents=(*schedule.incidents, *new))


def _early_approvals(dice: random.Random, schedule: Schedule) -> Schedule:
    """A node is approved, and wedges later; a person sets another annotation, then heal runs."""
    if dice.random() >= 0.05:
        return schedule
    node, wedged = dice.choice(schedule.names), round(dice.uniform(60, 400), 1)
    approved, noted = round(dice.uniform(0, wedged), 1), round(wedged + dice.uniform(0, 120), 1)
    new = [Incident(approved, "approve", node), Incident(wedged, "wedge", node), Incident(noted, _ANNOTATE, node)]
    if dice.random() < 0.3:
        new.append(Incident(round(noted + dice.uniform(0, 120), 1), "approve", node))
    start = round(noted + dice.uniform(30, 300), 1)
    last = Run("heal-%d" % (len(schedule.runs) + 1), "heal", start, auto=dice.random() < 0.1, steps=dice.random() < 0.3)
    return dataclasses.replace(schedule, runs=(*schedule.runs, last), incidents=(*schedule.incidents, *new))


def _soaks(dice: random.Random, schedule: Schedule) -> Schedule:
    if dice.random() >= 0.1:
        return schedule
    return dataclasses.replace(schedule, runs=tuple(dataclasses.replace(run, soak=dice.choice((30, 300))) for run in schedule.runs))


def _domains(dice: random.Random, schedule: Schedule) -> Schedule:
    """Of runs that would have several nodes in maintenance at once."""
    if schedule.nodes < 2 or dice.random() >= 0.15:
        return schedule
    slots = dice.choice((0, 2, 3))
    domain = dice.choice((0, -1))  # for all runs: one that lets domains mix disturbs another one's that does not
    runs = tuple(dataclasses.replace(run, domain=domain or dice.choice((0, 1, 1)), slots=slots) for run in schedule.runs)
    return dataclasses.replace(schedule, runs=runs)


def _leasts(dice: random.Random, schedule: Schedule) -> Schedule:
    """The same for all runs: no run knows what another one is to keep."""
    if schedule.nodes < 2 or dice.random() >= 0.1:
        return schedule
    slots, least = dice.choice((0, 2, 3)), dice.randrange(1, schedule.nodes)
    return dataclasses.replace(schedule, runs=tuple(dataclasses.replace(run, least=least, slots=slots) for run in schedule.runs))


def _alerts(dice: random.Random, schedule: Schedule) -> Schedule:
    if dice.random() >= 0.1:
        return schedule
    begin, lasts = round(dice.choice((0.0, dice.uniform(0, 300))), 1), round(dice.choice((dice.uniform(5, 90), 2000.0)), 1)
    runs = tuple(dataclasses.replace(run, alert_at=begin, alert_for=lasts) if dice.random() < 0.8 else run for run in schedule.runs)
    return dataclasses.replace(schedule, runs=runs)


def _releases(dice: random.Random, schedule: Schedule) -> Schedule:
    """A person gives back what runs have left, or seem to have; most often when one has just died, or another one comes."""
    if dice.random() >= 0.15:
        return schedule
    start = round(dice.choice((dice.uniform(0, 120), dice.uniform(60, 900))), 1)
    limit = dice.choice(schedule.names) if dice.random() < 0.5 else ""
    return dataclasses.replace(
        schedule, runs=(*schedule.runs, Run("release-%d" % (len(schedule.runs) + 1), "release", start, limit=limit))
    )


def _pauses(dice: random.Random, schedule: Schedule) -> Schedule:
    if dice.random() >= 0.1:
        return schedule
    begin, lasts = round(dice.uniform(0, 300), 1), round(dice.choice((dice.uniform(5, 60), dice.uniform(60, 1200))), 1)
    times = zip((begin, begin + lasts), PAUSES, strict=True)
    new = tuple(Incident(time, kind, schedule.names[0]) for time, kind in times if kind == "pause" or dice.random() < 0.7)
    return dataclasses.replace(schedule, incidents=schedule.incidents + new)


def _anything(dice: random.Random, seed: int) -> Schedule:
    nodes = dice.choices((1, 2, 3), (5, 4, 1))[0]
    names = Schedule(nodes=nodes).names

    def some(chance: float) -> tuple[str, ...]:
        return tuple(name for name in names if dice.random() < chance)

    wedged = some(0.15)
    runs = tuple(_run(dice, number, names) for number in range(dice.choices((1, 2, 3), (4, 5, 2))[0]))
    return Schedule(
        seed=seed,
        nodes=nodes,
        bad=some(0.12),
        wedged=wedged,
        incurable=tuple(name for name in wedged if dice.random() < 0.2),
        eager=dice.random() < 0.2,
        runs=runs,
        workloads=tuple(_workload(dice, number) for number in range(dice.choices((0, 1, 2), (4, 4, 1))[0])),
        faults=tuple(_fault(dice, runs) for _number in range(dice.choices((0, 1, 2, 3), (3, 4, 3, 1))[0])),
        incidents=tuple(_incident(dice, names) for _number in range(dice.choices((0, 1, 2, 3), (4, 4, 3, 1))[0])),
    )


# Themes: what seldom meets by chance, and often in a fleet.


def _waves(dice: random.Random, seed: int) -> Schedule:
    """A driver is proved on one node; then several get it at once, and one of them fails while another is still drained."""
    names = Schedule(nodes=3).names
    first, bad = dice.sample(names, 2)
    runs = (
        dataclasses.replace(_run(dice, 0, names), kind="upgrade", name="upgrade-1", auto=True, limit=first),
        dataclasses.replace(_run(dice, 1, names), kind="upgrade", name="upgrade-2", auto=True, limit="", slots=2, start=60.0),
    )
    return Schedule(
        seed=seed,
        nodes=3,
        bad=(bad,),
        runs=runs,
        workloads=(Workload("job-1", chips=8, grace=dice.choice((30.0, 60.0, 61.0, 90.0))),),
        faults=tuple(_fault(dice, runs) for _number in range(dice.choice((0, 0, 1)))),
    )


def _takeover(dice: random.Random, seed: int) -> Schedule:
    """A run dies in the middle, and what it had sent arrives when the next one has taken its node over."""
    names = Schedule(nodes=1).names
    kinds = dice.choice(("upgrade", "upgrade", "rollback", "heal")), dice.choice(("upgrade", "rollback", "rollback", "heal"))
    runs = tuple(
        dataclasses.replace(_run(dice, number, names), kind=kind, name="%s-%d" % (kind, number + 1), auto=True, skew=0.0)
        for number, kind in enumerate(kinds)
    )
    fault = Fault(runs[0].name, dice.randint(36, 52), dice.choice(("orphan", "late")), dice.choice((100.0, 120.0, 150.0)))
    return Schedule(seed=seed, nodes=1, bad=names if dice.random() < 0.2 else (), runs=runs, faults=(fault,))


def _side_by_side(dice: random.Random, seed: int) -> Schedule:
    """Two runs begin at about the same time, and one of them stalls between its look and its first writes."""
    names = Schedule(nodes=dice.choice((1, 2))).names
    starts = (0.0, dice.choice((0.0, round(dice.uniform(0, 60), 1))))
    runs = tuple(dataclasses.replace(_run(dice, number, names), auto=True, start=start) for number, start in enumerate(starts))
    seconds = dice.choice((1.0, 2.0, 3.0, 20.0, 100.0, 400.0))
    fault = Fault(dice.choice(runs).name, dice.randint(1, 22), dice.choice(("slow-before", "slow-after")), seconds)
    return Schedule(seed=seed, nodes=len(names), runs=runs, faults=(fault,))


def _parking(dice: random.Random, seed: int) -> Schedule:
    """A run has parked workloads and waits for a host, or has died; another run comes."""
    names = Schedule(nodes=dice.choice((1, 2))).names
    first = dataclasses.replace(_run(dice, 0, names), kind="upgrade", name="upgrade-1", auto=True, park=True, limit="")
    start = round(dice.uniform(60, 400), 1)
    runs = (first, dataclasses.replace(_run(dice, 1, names), start=start))
    node = dice.choice(names)
    return Schedule(
        seed=seed,
        nodes=len(names),
        runs=runs,
        workloads=tuple(_workload(dice, number) for number in range(dice.choice((1, 2)))),
        faults=(_fault(dice, (first,)),) if dice.random() < 0.3 else (),
        incidents=(Incident(round(dice.uniform(5, 90), 1), dice.choice(("freeze", "unreachable", "late-return")), node, 400.0),),
    )


def _run(dice: random.Random, number: int, names: tuple[str, ...]) -> Run:
    kind = dice.choice(KINDS)
    # Most often one begins when another is in the middle, or has just died.
    start = 0.0 if number == 0 else round(dice.choice((dice.uniform(0, 3), dice.uniform(0, 60), dice.uniform(60, 400))), 1)
    return Run(
        name="%s-%d" % (kind, number + 1),
        kind=kind,
        start=start,
        skew=dice.choices((0.0, round(dice.uniform(-7200, 7200))), (4, 1))[0],
        auto=dice.random() < 0.75,
        steps=dice.random() < 0.3,
        slots=dice.choices((1, 2, 0), (6, 4, 1))[0],
        park=dice.random() < 0.15,
        retry=dice.random() < 0.2,
        clear_halt=dice.random() < 0.15,
        limit=dice.choice(names) if len(names) > 1 and dice.random() < 0.25 else "",
        hook_fails=dice.random() < 0.04,
        defer=dice.random() < 0.75,
        canary=dice.random() < 0.06,
    )


def _workload(dice: random.Random, number: int) -> Workload:
    replicas = dice.choice((1, 1, 2))
    return Workload(
        name="job-%d" % (number + 1),
        replicas=replicas,
        chips=dice.choice((1, 4, 8)),
        spare=dice.choice((None, None, 0, 1)),
        grace=dice.choice((1.0, 5.0, 30.0, 400.0)),
        tolerates=dice.random() < 0.1,
    )


def _fault(dice: random.Random, runs: tuple[Run, ...]) -> Fault:
    # What a run that dies, or whose words come late, leaves to the next one is where most mistakes are made.
    kind = dice.choice(CALL_FAULTS if dice.random() < 0.6 else ("kill-before", "kill-after", "orphan", "late", "slow-before"))
    seconds = {
        "late": dice.choice((1, 10, 60, 200)),
        "orphan": dice.choice((10, 60, 120, 200)),
        "slow-before": dice.choice((2, 20, 100, 400)),
        "slow-after": dice.choice((2, 20, 100, 400)),
        "stale": dice.choice((1, 10, 60)),
        "outage": dice.choice((5, 45, 300)),
        "clock": dice.choice((-86400, -3600, -30, 30, 3600, 86400)),
    }.get(kind, 0)
    # A run of one node makes some seventy calls, most of what matters among the first fifty.
    return Fault(dice.choice(runs).name, int(dice.triangular(1, 100, 18)), kind, float(seconds))


def _incident(dice: random.Random, names: tuple[str, ...]) -> Incident:
    kind = dice.choice(_ANY if dice.random() < 0.7 else ("remove-record", "remove-state", "delete-node", "recordon", "late-return"))
    time = dice.choice((dice.uniform(0, 15), dice.uniform(0, 90), dice.uniform(0, 400)))
    seconds = {
        "freeze": dice.choice((20, 120, 400)),
        "unreachable": dice.choice((20, 120, 400)),
        "late-return": 900,
        "crossed": dice.choice((20, 120, 400)),
    }.get(kind, 0)
    return Incident(round(time, 1), kind, dice.choice(names), float(seconds))
