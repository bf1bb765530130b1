# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a run that has parked workloads lives: a sign of life that it renews, beside the slots of all runs.

A run may have parked workloads and no node in maintenance: before its first one, between two, or while people decide. So what
the records of nodes tell is not enough. A run is dead when its sign has not changed for a while by the clock of the run that
asks; the clocks of two machines are never compared.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import Clock
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Labels
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.slots import LEASE, new_lease

_PREFIX = "npuops.ascend/parked-by."
_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,48}[A-Za-z0-9]")
_LOOK_SECONDS = 5.0
_LATE_SECONDS = 45.0


def _key(run: str) -> str:
    """The annotation of a run; by its name, if that can be part of one."""
    name = run if _RUN.fullmatch(run) else hashlib.sha256(run.encode()).hexdigest()[:16]
    return _PREFIX + name


class Life:
    """One run's own sign of life."""

    def __init__(self, cluster: AnyCluster, namespace: str, run: str, clock: Clock) -> None:
        # Never waited for: a sign that comes late is not worth an outage's wait.
        self._cluster, self._clock, self._namespace = cluster.without_retries, clock, namespace
        self._collection = "/apis/coordination.k8s.io/v1/namespaces/%s/leases" % namespace
        self._path = "%s/%s" % (self._collection, LEASE)
        self._run = run
        self._shown = True  # whether there may be a sign to renew
        self._sign: str | None = None  # as last seen or written here; many processes of one run share it
        self._last = clock.monotonic()

    def begin(self) -> None:
        """Before the first workload is parked. Raises NpuError: nothing may be parked without it."""
        try:
            self._write()
        except kube_client.NotFound:
            self._shown = False  # without our namespace there is no other run

    def beat(self) -> None:
        """Renew the sign, if this run has one and it is time to."""
        if not self._shown or self._clock.monotonic() - self._last < maintenance_record.BEAT_SECONDS:
            return
        # Who comes here seldom, because a host does not answer, does not wait for others of this run to do it.
        late = self._clock.monotonic() - self._last >= _LATE_SECONDS
        self._last = self._clock.monotonic()
        try:
            sign = self.signs().get(_key(self._run))
            self._shown = sign is not None
            if sign is not None and (sign == self._sign or late):
                self._write()
            else:
                self._sign = sign  # it is new here; another process renews it
        except NpuError:
            pass  # the next one may come through, and who needs the API for more says what is wrong

    def end(self, runs: Iterable[str] = ()) -> None:
        """When nothing is parked by this run any more, nor by the dead ``runs``."""
        lease = self._cluster.get(self._path)
        gone = {_key(run): None for run in [self._run, *runs]}
        gone = {key: None for key in gone if lease is not None and key in kube_client.annotations(lease)}
        if gone:
            self._cluster.merge_patch(self._path, {"metadata": {"annotations": gone}})
        self._shown = False

    def signs(self) -> Labels:
        """{annotation: sign} of all runs."""
        lease = self._cluster.get(self._path)
        values = kube_client.annotations(lease) if lease is not None else {}
        return {key: value for key, value in values.items() if key.startswith(_PREFIX)}

    def _write(self) -> None:
        # Two in one second are to differ.
        sign = "%s %.3f" % (maintenance_record.rfc3339(self._clock.now()), self._clock.monotonic())
        self._sign, self._last = sign, self._clock.monotonic()
        annotations = {_key(self._run): sign}
        try:
            self._cluster.merge_patch(self._path, {"metadata": {"annotations": annotations}})
        except kube_client.NotFound:
            try:
                self._cluster.request("post", self._collection, body=new_lease(self._namespace, annotations))
            except kube_client.Conflict:
                self._cluster.merge_patch(self._path, {"metadata": {"annotations": annotations}})


def living(
    cluster: AnyCluster, runs: Collection[str], life: Life, limit: float, clock: Clock, say: Callable[[str], None]
) -> set[str]:
    """Those of ``runs`` (names) that show a sign of life within ``limit`` seconds: on the Lease, or on a node in maintenance.

    One without any sign at all is dead at once. ``life``: the Life of the run that asks.
    """
    before = _all_signs(cluster, runs, life)
    pending, alive, told = {run for run in runs if before[run]}, set(), False
    started = clock.monotonic()
    while pending and clock.monotonic() - started < limit:
        if not told:
            say("waits for a heartbeat of the run %s, at most %d s" % (", ".join(sorted(pending)), limit))
            told = True
        life.beat()
        clock.sleep(_LOOK_SECONDS)
        now = _all_signs(cluster, pending, life)
        alive |= {run for run in pending if now[run] and now[run] != before[run]}
        pending -= alive
    return alive


def _all_signs(cluster: AnyCluster, runs: Iterable[str], life: Life) -> dict[str, list[Any]]:
    """{run: [what shows that it lives]}."""
    signs = life.signs()
    found: dict[str, list[Any]] = {run: [signs[_key(run)]] if _key(run) in signs else [] for run in runs}
    for node in cluster.each("/api/v1/nodes"):
        try:
            record = maintenance_record.decode(node)
        except NpuError:
            continue  # reported by the run that works on the node
        if record and record["run"] in found:
            found[record["run"]].append((node["metadata"]["name"], record.get("heartbeat"), record.get("step")))
    return found
