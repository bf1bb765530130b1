# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Since when the pods of a rollout work, and since when not."""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.plugin_utils._components import rollout_failure
from ansible_collections.npuops.ascend.plugins.plugin_utils._components.daemonset_view import DaemonSetView
from ansible_collections.npuops.ascend.plugins.plugin_utils._components.rollout_progress import BACK, Progress
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import daemonsets as kube_daemonsets
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import Clock

# For so long a pod must work before it counts: a kubelet reports every 10 s what its node offers.
SETTLE_SECONDS = 11.0
_BEAT_SECONDS = 10.0


class Watch:
    """Since when nodes work, and since when not, by this run's clock."""

    def __init__(self, clock: Clock, timeout: float) -> None:
        self._clock, self._timeout = clock, timeout
        self._works: dict[str, float] = {}
        self._replaced: dict[str, float] = {}
        self._pulls: dict[str, kube_daemonsets.Pulls] = {}
        self._hopeless: set[str] = set()
        self._with_template: set[str] = set()
        self._now = self._beat = clock.monotonic()
        self.proved = False

    def look(self, view: DaemonSetView, progress: Progress) -> None:
        self._now = self._clock.monotonic()
        wanted = {view.revisions.newest, progress.good if progress.direction == BACK else None} - {None}
        self._with_template = {name for name in view.pods if view.hash_on(name) in wanted}
        working = {
            name for name in view.working() if name in self._with_template and not view.short_of(name, progress.nodes.get(name, {}))
        }
        self._works = {name: self._works.get(name, self._now) for name in working}
        self.proved = self.proved or any(map(self.settled, working))
        self._replaced = {name: self._replaced.get(name, self._now) for name in progress.nodes}
        self._hopeless = {name for name in progress.nodes if name not in working and self._in_vain(view, name)}

    def _in_vain(self, view: DaemonSetView, name: str) -> bool:
        pod = view.pods.get(name)
        pulls = self._pulls.setdefault(name, kube_daemonsets.Pulls(self._clock.monotonic))
        if pod is not None and name in self._with_template and not kube_daemonsets.pod_ready(pod):
            if pulls.in_vain([pod]) or rollout_failure.keeps_ending(pod):
                return True
        return self._now - self._replaced[name] >= self._timeout

    def has_template(self, name: str) -> bool:
        """Whether the pod on that node needs no replacement."""
        return name in self._with_template

    def settled(self, name: str) -> bool:
        return name in self._works and self._now - self._works[name] >= SETTLE_SECONDS

    def is_hopeless(self, name: str) -> bool:
        return name in self._hopeless

    def beat_is_due(self) -> bool:
        now = self._clock.monotonic()
        if now - self._beat < _BEAT_SECONDS:
            return False
        self._beat = now
        return True
