# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An adoption, or the way back: first the DaemonSets of others are kept off nodes that move, then nodes move, then the DaemonSets
are set aside, or restored."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._adopt import left_daemonset
from ansible_collections.npuops.ascend.plugins.plugin_utils._adopt.findings import Survey
from ansible_collections.npuops.ascend.plugins.plugin_utils._adopt.left_daemonset import ASIDE, MOVING
from ansible_collections.npuops.ascend.plugins.plugin_utils._adopt.move import Move, write_node
from ansible_collections.npuops.ascend.plugins.plugin_utils._adopt.sides import Ours, Theirs
from ansible_collections.npuops.ascend.plugins.plugin_utils._components.rollout_pace import Pace
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import daemonsets as kube_daemonsets
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import Clock
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, LabelChanges, Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster.foreign import (
    ANNOTATION_ADOPTION,
    LABEL_ADOPTED,
    is_restricted,
)

_POLL_SECONDS = 1.0
_OBSERVE_SECONDS = 60.0
_MOST_NAMED = 20


class Adoption:
    """``components``: by node, the names of our DaemonSets that are to run there; ``back``: the way back."""

    def __init__(
        self,
        cluster: AnyCluster,
        survey: Survey,
        namespace: str,
        components: Mapping[str, Collection[str]],
        back: bool,
        pace: Pace,
        say: Callable[[str], None],
        clock: Clock,
    ) -> None:
        self._cluster, self._survey, self._back, self._say, self._clock = cluster, survey, back, say, clock
        theirs, ours = Theirs(survey.plugins, survey.exporters), Ours(namespace, components)
        self._move = Move(cluster, ours if back else theirs, theirs if back else ours, pace, say, clock)

    def todo(self, due: Sequence[str]) -> list[str]:
        """What a run does, as phrases, [] if nothing."""
        moves = ["move %s" % name for name in due]
        if self._back:
            touched = [item for item in self._survey.found if ANNOTATION_ADOPTION in kube_client.annotations(item)]
            return moves + ["restore %s" % left_daemonset.label_of(item) for item in touched]
        return moves + [
            "set %s aside" % left_daemonset.label_of(item)
            for item in self._survey.found
            if (due or not left_daemonset.is_held(item, ASIDE)) and _desired(item) <= len(due)
        ]

    def carry_out(self, due: Sequence[str]) -> list[str]:
        """Returns what was done, as phrases. Raises NpuError."""
        found = self._survey.found
        if due:
            self._label_all()
            found = [left_daemonset.hold(self._cluster, item, MOVING) for item in found]
        done = ["move %s" % name for name in self._move.move(due)]
        for item in found:
            done += self._restore(item) if self._back else self._set_aside(item)
        return done

    def _label_all(self) -> None:
        """Theirs must not come to nodes that keep our components: on the way back, those that are not of this run; otherwise, those
        that install or join has added while theirs were set aside."""
        coming = [item for item in self._survey.found if self._back or is_restricted(item, ASIDE)]
        if not coming:
            return
        # With the label, a node would lose another device plugin of theirs that serves it.
        others = Theirs([item for item in self._survey.plugins if item not in coming], ())
        served = {kube_daemonsets.pod_node(pod) for pod in others.pods(self._cluster)}

        def patch(node: Object) -> tuple[LabelChanges, LabelChanges]:
            labels = kube_client.labels(node)
            theirs = any(left_daemonset.selects(item, labels) for item in coming)
            due = theirs and labels.get(kube_client.LABEL_COMPONENTS) and LABEL_ADOPTED not in labels
            return {LABEL_ADOPTED: "true"} if due else {}, {}

        for name, node in self._cluster_nodes().items():
            if name not in served and any(patch(node)):
                with contextlib.suppress(kube_client.NotFound):  # deleted meanwhile
                    write_node(self._cluster, name, patch)

    def _set_aside(self, item: Object) -> list[str]:
        if left_daemonset.is_held(item, ASIDE):
            return []
        actual = self._observed(item)
        if _desired(actual):
            self._say(
                "%s still runs on nodes that are not of this run, %d of them. Run this again for them"
                % (left_daemonset.label_of(item), _desired(actual))
            )
            return []
        left_daemonset.hold(self._cluster, item, ASIDE)
        return ["set %s aside" % left_daemonset.label_of(item)]

    def _restore(self, item: Object) -> list[str]:
        if ANNOTATION_ADOPTION not in kube_client.annotations(self._cluster.get(left_daemonset.path_of(item)) or item):
            return []
        labels = {name: kube_client.labels(node) for name, node in self._cluster_nodes().items()}
        left = [name for name in sorted(labels) if LABEL_ADOPTED in labels[name] and left_daemonset.selects(item, labels[name])]
        if left:
            self._say(
                "%s is kept off nodes that are not of this run: %s%s. Run this again for them"
                % (left_daemonset.label_of(item), ", ".join(left[:_MOST_NAMED]), ", ..." if len(left) > _MOST_NAMED else "")
            )
            return []
        left_daemonset.restore(self._cluster, item)
        return ["restore %s" % left_daemonset.label_of(item)]

    def _cluster_nodes(self) -> dict[str, Object]:
        return {node["metadata"]["name"]: node for node in self._cluster.each("/api/v1/nodes")}

    def _observed(self, item: Object) -> Object:
        """As soon as its controller has seen it as it is."""
        began = self._clock.monotonic()
        while True:
            actual = self._cluster.get(left_daemonset.path_of(item))
            if actual is None:
                raise NpuError("%s was deleted. Run this again" % left_daemonset.label_of(item))
            status = actual.get("status") or {}
            seen = status.get("observedGeneration", 0) >= actual["metadata"].get("generation", 0)
            # A node that has just moved counts until the controller has looked at its label.
            if seen and not _desired(actual):
                return actual
            if self._clock.monotonic() - began >= (10.0 if seen else _OBSERVE_SECONDS):
                if seen:
                    return actual
                raise NpuError(
                    "%s: the controller manager has not seen its present generation for %d s. Check whether it runs, then run this"
                    " again" % (left_daemonset.label_of(item), _OBSERVE_SECONDS)
                )
            self._clock.sleep(_POLL_SECONDS)


def _desired(daemonset: Object) -> int:
    """On how many nodes it is to run, or still does."""
    status = daemonset.get("status") or {}
    return max(status.get("desiredNumberScheduled") or 0, status.get("currentNumberScheduled") or 0)
