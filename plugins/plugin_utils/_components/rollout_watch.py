# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Since when the pods of a rollout work, and since when not; and which nodes went down with them."""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.plugin_utils._components import rollout_failure
from ansible_collections.npuops.ascend.plugins.plugin_utils._components.daemonset_view import NOT_READY, DaemonSetView
from ansible_collections.npuops.ascend.plugins.plugin_utils._components.rollout_progress import BACK, Progress
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import daemonsets as kube_daemonsets
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import Clock

# For so long a pod must work before it counts: a kubelet reports every 10 s what its node offers.
SETTLE_SECONDS = 11.0
# Kubernetes calls a node NotReady up to 50 s after its host is down. Until then its pod looks as before, so it may seem to work.
_UNNOTICED_SECONDS = 60.0
_BEAT_SECONDS = 10.0


class Watch:
    """Since when nodes work, and since when not, by this run's clock. ``lost``: nodes that became NotReady with the new pod."""

    def __init__(self, clock: Clock, timeout: float) -> None:
        self._clock, self._timeout = clock, timeout
        self._works: dict[str, float] = {}
        self._replaced: dict[str, float] = {}
        self._pulls: dict[str, kube_daemonsets.Pulls] = {}
        self._hopeless: set[str] = set()
        self._with_template: set[str] = set()
        self._given: dict[str, float] = {}  # when a node was last one of those whose pod is being replaced
        self._proved_on: set[str] = set()
        self._now = self._beat = clock.monotonic()
        self.lost: list[str] = []

    def look(self, view: DaemonSetView, progress: Progress) -> None:
        self._now = self._clock.monotonic()
        wanted = {view.revisions.newest, progress.good if progress.direction == BACK else None} - {None}
        self._with_template = {name for name in view.pods if view.hash_on(name) in wanted}
        working = {
            name for name in view.working() if name in self._with_template and not view.short_of(name, progress.nodes.get(name, {}))
        }
        self._works = {name: self._works.get(name, self._now) for name in working}
        self._proved_on.update(filter(self.settled, working))
        self._look_for_lost(view, progress)
        self._replaced = {name: self._replaced.get(name, self._now) for name in progress.nodes}
        self._hopeless = {name for name in progress.nodes if name not in working and self._in_vain(view, name)}

    def _look_for_lost(self, view: DaemonSetView, progress: Progress) -> None:
        for name in progress.nodes:
            if name in self._with_template or name not in view.pods:
                self._given[name] = self._now
        for name, last in self._given.items():
            if self._now - last <= _UNNOTICED_SECONDS and name not in self.lost and view.why_not_waited_for(name) == NOT_READY:
                self.lost.append(name)

    def _in_vain(self, view: DaemonSetView, name: str) -> bool:
        pod = view.pods.get(name)
        pulls = self._pulls.setdefault(name, kube_daemonsets.Pulls(self._clock.monotonic))
        if pod is not None and name in self._with_template and not kube_daemonsets.pod_ready(pod):
            if pulls.in_vain([pod]) or rollout_failure.keeps_ending(pod):
                return True
        return self._now - self._replaced[name] >= self._timeout

    @property
    def proved(self) -> bool:
        """Whether a node works, or worked, that did not go down."""
        return not self._proved_on.issubset(self.lost)

    @property
    def replaced(self) -> list[str]:
        """The nodes that have, or had, a pod of the present template."""
        return sorted({*self._given, *self._with_template})

    @property
    def takes_hosts_down(self) -> bool:
        """Whether the template is to blame for ``lost``. One node, and one of a hundred, may go down by chance, where the template
        works on another."""
        # Whether one of them works may be known in some seconds.
        unproved = not self.proved and self._works.keys() <= set(self.lost)
        return len(self.lost) > 1 + len(self._proved_on) // 100 or bool(self.lost and unproved)

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
