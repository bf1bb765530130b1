# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The health watch: suspends a ready driver that stops responding, and resumes it when it responds again."""

from __future__ import annotations

import contextlib
import logging
import time
from typing import Optional, Sequence

from ansible_collections.npuops.ascend.plugins.module_utils._chips import chip_faults, chip_health

from . import cdi_check, chips_condition, driver_condition, network_condition, probe
from .cdi_spec import SpecFile
from .changed import Changed
from .chip_faults import Faults
from .device_taints import DeviceTaints
from .hints import Hints
from .marker import OUTPUT, PROBES, REASON, SINCE, Markers
from .metrics import Metrics
from .node_conditions import NodeConditions
from .notice import Notices
from .probe import Probe
from .report import HEALTHY, Reporter
from .verdict import Verdict

log = logging.getLogger(__name__)

READY, SUSPENDED, MAINTENANCE, ABSENT = "ready", "suspended", "maintenance", "absent"
# Seconds between a probe and one because of a hint; doubled for each in a row: a chip that flaps must not keep npu-smi busy.
_SOONEST = 3.0
_STATES = (READY, SUSPENDED, MAINTENANCE, ABSENT)


class Watch:
    """Probes every ``interval`` seconds; after ``limit`` consecutive failures, the driver is wedged. Probes that a problem of the
    node itself prevented are ignored. After a hint it probes at once; if that probe fails, it does not count, because three hints
    in a row would leave the driver no time to respond.

    The host's markers are changed first, independently of the cluster. ``reporter``, ``conditions`` and ``taints`` report to the
    API server.
    """

    def __init__(
        self,
        markers: Markers,
        prober: Probe,
        faults: Faults,
        spec: SpecFile,
        host: cdi_check.HostPaths,
        reporter: Reporter,
        conditions: NodeConditions,
        taints: DeviceTaints,
        notices: Notices,
        changed: Changed,
        hints: Hints,
        metrics: Metrics,
        interval: float,
        limit: int,
    ) -> None:
        self._markers = markers
        self._probe = prober
        self._faults = faults
        self._spec = spec
        self._host = host
        self._reporter = reporter
        self._conditions = conditions
        self._taints = taints
        self._notices = notices
        self._changed = changed
        self._hints = hints
        self._metrics = metrics
        self._interval = interval
        self._limit = limit
        self._failures = 0
        self._undecided = 0
        self._pause = _SOONEST
        self._answered = False  # whether the chips have answered since this agent found the driver in its state
        self._generation = -1
        self._cdi_problems: list = []
        # As the last probe that counts found them; None: not known in this state of the driver.
        self._chips: Optional[Sequence[dict]] = None
        self._listed: Sequence[dict] = ()  # as the last probe that succeeded found them
        self._missing: Optional[str] = None
        self._unwritten: Optional[dict] = None  # what driver-suspended is to say of this wedge, until it could be written

    async def run(self) -> None:
        """Watch until cancelled. Reacts immediately when another program changes a marker."""
        hinted, due = False, 0.0
        while True:
            hints = self._hints.count
            if hinted:
                self._pause *= 2
            else:
                due, self._pause = time.monotonic() + self._interval, _SOONEST
            self._markers.poll()
            if self._generation != self._markers.generation:
                # What was seen earlier belongs to another state.
                self._failures, self._answered, self._chips, self._listed = 0, False, None, ()
            try:
                await self._look(hinted)
            except OSError as exc:
                log.error("cannot change the markers: %s", exc)
            self._publish()
            self._generation = self._markers.generation
            hinted = await self._wait(hints, due)

    async def _wait(self, hints: int, due: float) -> bool:
        """Wait until the next probe; returns whether a hint is its reason. ``hints``: their count before the last probe."""

        def changed() -> bool:
            return self._generation != self._markers.generation

        soonest = min(due, time.monotonic() + self._pause)
        if await self._changed.until(changed, max(0.0, soonest - time.monotonic())):
            return False
        await self._changed.until(lambda: changed() or self._hints.count != hints, max(0.0, due - time.monotonic()))
        return not changed() and time.monotonic() < due

    def _state(self) -> str:
        if self._markers.maintenance:
            return MAINTENANCE
        if self._markers.ready is not None:
            return READY
        return SUSPENDED if self._markers.suspended is not None else ABSENT

    async def _look(self, hinted: bool) -> None:
        if self._markers.ready is not None and self._markers.suspended is not None:
            log.info("the driver was loaded again, so the suspension has ended")
            self._markers.drop_suspended()
        if self._markers.suspended is None:
            self._unwritten = None
        state = self._state()
        if state in (MAINTENANCE, ABSENT):
            return
        self._check_cdi()
        before = self._markers.generation
        result = await self._timed_probe(hinted)
        self._markers.poll()
        if self._markers.generation != before:
            return  # the state changed during the probe; the next round starts immediately
        self._metrics.probes.inc(result=result.outcome)
        self._undecided = self._undecided + 1 if result.outcome == probe.UNDECIDED else 0
        self._answered = self._answered or result.outcome in (probe.OK, probe.OCCUPIED)
        if result.outcome == probe.OK:
            self._succeeded(result, state)
        elif result.outcome == probe.FAILED and hinted:
            log.warning("probe failed: %s", result.reason, extra={"output": result.output})
        elif result.outcome == probe.FAILED:
            self._failed(result, state)
        else:
            if result.outcome == probe.OCCUPIED:
                self._failures = 0  # the driver has answered, so what failed before and fails next is not consecutive
            log.warning("probe without a result: %s", result.reason, extra={"undecided": self._undecided})
            if self._undecided == self._limit:
                self._notices.tell("NPUProbeImpossible", "the chips of this node cannot be probed: %s" % result.reason)

    async def _timed_probe(self, hinted: bool) -> probe.Result:
        """A probe, with the fault codes of the chips that it lists."""
        started = time.monotonic()
        result = await self._probe.run()
        self._metrics.probe_duration.observe(time.monotonic() - started)
        return result._replace(chips=await self._faults.of(result.chips, hinted)) if result.outcome == probe.OK else result

    def _succeeded(self, result: probe.Result, state: str) -> None:
        if self._failures:
            log.info("npu-smi responds again after %d failures", self._failures)
        self._failures = 0
        self._metrics.last_success.set(time.time())
        if chip_health.told(result.chips) != chip_health.told(self._chips or ()):
            log.warning("health of the chips: %s", chip_health.told(result.chips) or "all are OK")
        self._chips = self._listed = result.chips
        if state == SUSPENDED:
            log.warning("the chips respond again, so the driver is ready again")
            self._markers.resume()
        self._reporter.want(HEALTHY)

    def _failed(self, result: probe.Result, state: str) -> None:
        self._failures += 1
        log.warning("probe failed: %s", result.reason, extra={"failures": self._failures, "output": result.output})
        if state == READY and self._failures >= self._limit:
            log.error("wedged: %d consecutive probes failed, so the driver is suspended", self._failures)
            self._markers.suspend()
        suspended = self._markers.suspended
        if suspended is None:
            return  # a single probe that fails is no verdict, and says nothing of the chips
        self._chips = result.chips
        # One that was ready until now may still have the explanation of an earlier wedge.
        if self._unwritten is None and (state == READY or SINCE not in suspended):
            since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            self._unwritten = {SINCE: since, REASON: result.reason, OUTPUT: result.output, PROBES: self._failures}
        if self._unwritten is not None:
            try:
                self._markers.explain(self._unwritten)
                self._unwritten = None
            except OSError as exc:
                # The cluster is told all the same, because it has the node healed.
                log.error("cannot write why the driver is suspended: %s", exc)
        if self._markers.suspended is not None:
            self._reporter.want(self._suspended())

    def _suspended(self) -> dict:
        """driver-suspended, with what could not be written into it."""
        return {**(self._markers.suspended or {}), **(self._unwritten or {})}

    def _check_cdi(self) -> None:
        problems = cdi_check.problems(self._spec, self._host, self._markers.ready)
        if problems != self._cdi_problems:
            for problem in problems:
                log.error("CDI spec: %s", problem)
            if not problems:
                log.info("CDI spec: valid again")
            self._cdi_problems = problems
        self._metrics.cdi_valid.set(0 if problems else 1)

    def _publish(self) -> None:
        state = self._state()
        self._look_at_chips()
        self._tell(state)
        for name in _STATES:
            self._metrics.driver_state.set(name == state, state=name)
        self._metrics.driver_info.clear()
        marker = self._markers.ready or self._markers.suspended
        if marker is not None:
            self._metrics.driver_info.set(1, version=str(marker.get("version") or ""), release=str(marker.get("release") or ""))
        self._metrics.probe_failures.set(self._failures)
        self._metrics.undecided.set(self._undecided)

    def _look_at_chips(self) -> None:
        """What is known of single chips, whatever the state of the driver."""
        self._metrics.chip_health.clear()
        self._metrics.chip_fault.clear()
        self._metrics.chips.clear()
        if self._chips is not None:
            self._metrics.chips.set(len(self._chips), source="npu-smi")
        for chip in self._chips or ():
            place = {"npu": str(chip["npu"]), "chip": str(chip["chip"]), "bus_id": chip["bus_id"]}
            self._metrics.chip_health.set(1, **place, health=chip["health"])
            for code in chip.get("codes", ()):
                level, meaning = chip_faults.level(code) or "", chip_faults.meaning(code)
                self._metrics.chip_fault.set(1, **place, code=code, level=level, meaning=meaning)
        with contextlib.suppress(OSError):
            self._metrics.chips.set(self._probe.on_pci(), source="pci")
            expected = self._probe.expected()
            self._metrics.chips_expected.clear()
            if expected.number:
                self._metrics.chips_expected.set(expected.number)
            self._metrics.chip_missing.clear()
            for address in expected.missing:
                self._metrics.chip_missing.set(1, bus_id=address)
            if expected.phrase != self._missing:
                log.warning("%s", expected.phrase or "no chip is missing any more")
            self._missing = expected.phrase

    def _tell(self, state: str) -> None:
        """Say on the Node what is known of driver, chips and ports. Of a driver that has not answered yet, nothing new is."""
        if state == READY and not self._answered:
            return
        driver = self._driver_verdict(state)
        if state == READY:
            chips, network = chips_condition.listed(self._listed, self._missing), network_condition.listed(self._listed)
            # Otherwise, nothing new is known of single chips, and their taints stay.
            if self._listed:
                self._taints.want(self._listed)
        else:
            chips = chips_condition.unknown(driver, None if state == MAINTENANCE else self._missing)
            network = network_condition.unknown(driver)
        self._conditions.want({driver_condition.TYPE: driver, chips_condition.TYPE: chips, network_condition.TYPE: network})

    def _driver_verdict(self, state: str) -> Verdict:
        if state == MAINTENANCE:
            return driver_condition.IN_MAINTENANCE
        if state == SUSPENDED:
            return driver_condition.wedged(self._suspended())
        if state == ABSENT:
            if self._markers.failed is not None:
                return driver_condition.failed(self._markers.failed)
            return driver_condition.LOADING if self._markers.loading else driver_condition.NOT_LOADED
        # A single probe that fails is no verdict: what the last one found counts until the driver is suspended.
        return driver_condition.works(self._markers.ready or {}, self._listed, self._missing)
