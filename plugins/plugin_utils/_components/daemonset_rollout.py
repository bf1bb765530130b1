# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A changed pod template, brought to the nodes one after the other; and back, by itself, where it does not work.

While it lasts, the DaemonSet's update strategy is OnDelete: Kubernetes replaces no pod that is not deleted here. Each step reads
the cluster and decides again, so a run that continues a killed one does the same as a run that was never interrupted.
"""

from __future__ import annotations

import collections
import os
import re
import socket
import uuid
from collections.abc import Callable
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._components import revisions as components_revisions
from ansible_collections.npuops.ascend.plugins.plugin_utils._components import rollout_failure
from ansible_collections.npuops.ascend.plugins.plugin_utils._components.daemonset_view import NOT_READY, DaemonSetView
from ansible_collections.npuops.ascend.plugins.plugin_utils._components.held_daemonset import (
    ATTEMPTS,
    HeldDaemonSet,
    LookAgain,
    back_to_kubernetes,
    fingerprint_of,
    is_as_left,
)
from ansible_collections.npuops.ascend.plugins.plugin_utils._components.rollout_pace import Pace
from ansible_collections.npuops.ascend.plugins.plugin_utils._components.rollout_progress import (
    ANNOTATION,
    BACK,
    FORWARD,
    Progress,
    progress_of,
)
from ansible_collections.npuops.ascend.plugins.plugin_utils._components.rollout_watch import Watch
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import objects as kube_objects
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.daemonsets import strategy_of
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import Clock
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.sign_of_life import DEAD_SECONDS, POLL_SECONDS, SignOfLife
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyKindCluster, Object

_OBSERVE_SECONDS = 60.0
_MOST_NAMED, _LONGEST_LINE = 20, 2000


class DaemonSetRollout:
    """Brings one DaemonSet about as defined.

    ``say(sentence)``: progress for people. ``told``: of the rollouts that were done, or would be, {daemonset, from, to, nodes,
    first, not_waited_for}.
    """

    def __init__(
        self,
        cluster: AnyKindCluster,
        definition: Object,
        pace: Pace,
        say: Callable[[str], None],
        clock: Clock,
        run: str | None = None,
    ) -> None:
        self._cluster, self._definition, self._pace, self._clock = cluster, definition, pace, clock
        self._label = kube_objects.label(definition)
        self._say = lambda sentence: say("%s: %s" % (self._label, sentence))
        self._run = run or _name_of_this_run()
        metadata = definition["metadata"]
        self._held = HeldDaemonSet(cluster, metadata["namespace"], metadata["name"], self._label, self._run)
        self._before: Object | None = None
        self._restored = False
        self.told: list[dict[str, Any]] = []

    def bring_about(self, check_mode: bool = False) -> kube_objects.Change | None:
        """As _kube.objects.apply. Raises NpuError if the new template does not work; the one before is back then."""
        for _attempt in range(ATTEMPTS):
            try:
                return self._bring_about(check_mode)
            except (LookAgain, kube_client.Conflict):
                continue
        raise NpuError("Another client keeps changing %s. Run this again later." % self._label)

    def _bring_about(self, check_mode: bool) -> kube_objects.Change | None:
        actual = self._cluster.get(self._held.path)
        if actual is None:
            return self._apply(check_mode)
        self._before = self._before or actual
        progress = progress_of(actual)
        if progress is None:
            return self._begin(actual, check_mode)
        if check_mode:
            return self._would_continue(actual, progress)
        if progress.run == self._run:  # the answer to its first request was lost
            return self._roll_to_the_end(progress)
        actual, progress = self._take_over(progress)
        if not is_as_left(actual, progress):
            self._held.hand_over(actual, progress)
            self._say("it was changed after an earlier run began to roll it out; starting over")
            raise LookAgain
        return self._continue(actual, progress)

    # --- how it begins ---

    def _apply(self, check_mode: bool) -> kube_objects.Change | None:
        return kube_objects.apply(self._cluster, self._definition, check_mode)

    def _begin(self, actual: Object, check_mode: bool) -> kube_objects.Change | None:
        patch = kube_objects.patch_for(actual, self._definition)
        if patch is None:
            return kube_objects.change("change", self._definition, self._before or {}, actual) if self._restored else None
        after = self._cluster.merge_patch(self._held.path, patch, dry_run="All")
        changes = fingerprint_of(after) != fingerprint_of(actual)
        if not changes or strategy_of(after).get("type") == "OnDelete":
            return self._apply(check_mode)
        view = self._view(actual, check_mode)
        if not view.working():
            self._say("its pods work on no node that is Ready and not in maintenance, so Kubernetes replaces them all")
            return self._apply(check_mode)
        good = _good(view)
        view.revisions.template(good)
        self._tell(view, actual["spec"]["template"], after["spec"]["template"])
        if check_mode:
            return kube_objects.change("change", self._definition, actual, after)
        progress = Progress(self._run, good, fingerprint_of(after), strategy_of(after))
        self._held.put(actual, progress, after["spec"]["template"])
        return self._roll_to_the_end(progress)

    def _continue(self, actual: Object, progress: Progress) -> kube_objects.Change | None:
        progress = self._held.write(progress.but(run=self._run), progress.run)
        if progress.direction == BACK:
            self._say("an earlier run began to restore the previous template; this one completes that")
            progress = self._roll(progress)
            self._end_back(progress)
            if self._failed_before(progress):
                raise NpuError(self._failure(progress), changed=True)
            raise LookAgain
        view = self._view(actual, False)
        good = view.revisions.template(progress.good)
        # To see what the definition changes, compare it with the previous template.
        base = dict(actual, spec=dict(actual["spec"], template=good, updateStrategy=progress.strategy))
        wanted = self._held.as_stored(base, kube_objects.patch_for(base, self._definition))
        unchanged = self._held.as_stored(base, None)
        if _print(wanted) == progress.template:
            self._say("an earlier run began to roll it out; this one continues")
            self._tell(view, good, wanted, progress)
        elif _print(wanted) == _print(unchanged):
            self._say("an earlier run began to roll out another template; this one restores the previous template")
            self._tell(view, actual["spec"]["template"], unchanged, progress)
            progress = self._held.turn(progress.but(direction=BACK, template=_print(unchanged)), unchanged)
        else:
            self._say("an earlier run began to roll out another template; this one replaces it")
            self._tell(view, good, wanted, progress)
            progress = self._held.turn(progress.but(template=_print(wanted)), wanted)
        return self._roll_to_the_end(progress)

    def _would_continue(self, actual: Object, progress: Progress) -> kube_objects.Change | None:
        """In check mode."""
        self._say("a rollout of it is under way, or was interrupted; this run would complete it")
        patch = kube_objects.patch_for(actual, self._definition)
        if patch is None:
            return None
        return kube_objects.change(
            "change", self._definition, actual, self._cluster.merge_patch(self._held.path, patch, dry_run="All")
        )

    def _take_over(self, progress: Progress) -> tuple[Object, Progress]:
        """The DaemonSet as soon as the run that rolls it out is dead. Raises LookAgain when it has ended."""
        self._say("the run %s rolls it out; waiting until that run ends, or is silent for %d s" % (progress.run, DEAD_SECONDS))
        life = SignOfLife(self._cluster, self._held.path, progress)
        while True:
            self._clock.sleep(POLL_SECONDS)
            actual = life.look()
            present = progress_of(actual) if actual else None
            if actual is None or present is None:
                raise LookAgain
            if life.is_dead(present):
                return actual, present

    def _tell(self, view: DaemonSetView, before: Object, after: Object, begun: Progress | None = None) -> None:
        """``begun``: by an earlier run, whose nodes are waited for although their pods do not work."""
        old, new = components_revisions.images(before), components_revisions.images(after)
        working = view.working()
        reasons = {name: view.why_not_waited_for(name) for name in view.pods if name not in working}
        begun_on = begun.nodes if begun else {}
        others = [(name, why or "its pod does not work") for name, why in reasons.items() if why or name not in begun_on]
        first = view.least_used(working) if working else None
        self.told = [
            {
                "daemonset": self._label.partition(" ")[2],
                "from": old,
                "to": new,
                "nodes": len(view.pods),
                "first": first,
                "not_waited_for": [{"node": name, "why": why} for name, why in others],
            }
        ]
        what = "image %s -> %s" % (old, new) if old != new else "another pod template with the image %s" % new
        self._say(
            "%s on %s: %s first, then %d at a time" % (what, _nodes(len(view.pods)), first, self._pace.at_once(view.desired))
            + ("; not waited for: %s" % _named(others) if others else "")
        )

    # --- the way ---

    def _roll_to_the_end(self, progress: Progress) -> kube_objects.Change | None:
        progress = self._roll(progress)
        if progress.direction == FORWARD:
            return self._end_forward(progress)
        self._end_back(progress)
        if progress.failure:
            raise NpuError(self._failure(progress), changed=True)
        raise LookAgain

    def _roll(self, progress: Progress) -> Progress:
        """Until all nodes that are waited for have pods of the present template; where that fails, back. Returns the progress."""
        watch = Watch(self._clock, self._pace.timeout)
        told: set[str] = set()

        def beat() -> None:
            nonlocal progress
            if watch.beat_is_due():
                progress = self._held.write(progress.but(beat=progress.beat + 1))

        while True:
            actual = self._held.get()
            self._held.check(actual, progress)
            view = self._view(actual, False, beat)
            lost_before = len(watch.lost)
            watch.look(view, progress)
            nodes = dict(progress.nodes)
            if progress.direction == FORWARD and watch.takes_hosts_down:
                what = "does not work on %s" % rollout_failure.why_lost(view, watch.lost)
                # Those that seemed to work are to be restored, too.
                progress = self._turn_back(progress.but(nodes=dict.fromkeys(watch.lost, {}) | nodes), view, what)
                watch = Watch(self._clock, self._pace.timeout)
                continue
            for name in watch.lost[lost_before:]:
                if name not in nodes:
                    self._say("%s became NotReady after its pod was replaced" % name)
            for name in progress.nodes:
                reason = view.why_not_waited_for(name)
                if reason:
                    self._say("%s is not waited for any more: %s" % (name, reason))
                if reason == NOT_READY and progress.direction == BACK and name in view.pods and not watch.has_template(name):
                    # A host that comes up again is not to start it again.
                    self._delete(view.pods[name])
                if reason or watch.settled(name):
                    del nodes[name]
                if not reason and watch.settled(name) and name not in told:
                    told.add(name)
                    self._say("%s works" % name)
            bad = next((name for name in nodes if watch.is_hopeless(name)), None)
            if bad is not None:
                why = rollout_failure.why(self._cluster, view, bad, nodes[bad])
                if progress.direction == BACK:
                    return progress.but(failure=_also_not(progress, bad, why))
                progress = self._turn_back(progress.but(nodes=nodes), view, "does not work on %s: %s" % (bad, why))
                watch = Watch(self._clock, self._pace.timeout)
                continue
            todo = [name for name in view.working() if name not in nodes and not watch.has_template(name)]
            limit = self._pace.at_once(view.desired) if watch.proved or progress.direction == BACK else int(not watch.lost)
            if todo and not watch.proved and not nodes:
                todo = [view.least_used(todo)]
            for name in todo[: max(0, limit - len(nodes))]:
                nodes[name] = view.chips(name)
            if not nodes and not todo:
                if progress.direction == BACK or watch.proved or not watch.replaced:
                    return progress
                # Of what an earlier run has replaced, this one has to see that it works.
                nodes = {name: view.chips(name) for name in view.working()[:1]}
                if not nodes:
                    seen = [(name, view.why_not_waited_for(name) or "its pod does not work") for name in watch.replaced]
                    progress = self._turn_back(progress, view, "was not seen to work on any node: %s" % _named(seen))
                    watch = Watch(self._clock, self._pace.timeout)
                    continue
            if nodes != progress.nodes or watch.beat_is_due():
                progress = self._held.write(progress.but(nodes=nodes, beat=progress.beat + 1))
            for name in nodes:
                if name in view.pods and not watch.has_template(name):
                    self._delete(view.pods[name])
            self._clock.sleep(POLL_SECONDS)

    def _turn_back(self, progress: Progress, view: DaemonSetView, what: str) -> Progress:
        image = components_revisions.images(view.daemonset["spec"]["template"])
        failure = "with the image %s it %s" % (image, what)
        self._say(failure)
        good = self._held.as_stored(view.daemonset, None, view.revisions.template(progress.good))
        self._say("restoring the previous template, with the image %s" % components_revisions.images(good))
        back = progress.but(direction=BACK, failed=progress.template, failure=failure, template=_print(good))
        return self._held.turn(back, good)

    def _end_forward(self, progress: Progress) -> kube_objects.Change | None:
        """The rest of the definition, and Kubernetes has the DaemonSet again."""

        def patch(actual: Object) -> Object:
            wanted = kube_objects.patch_for(actual, self._definition) or {}
            spec = {key: value for key, value in (wanted.get("spec") or {}).items() if key != "template"}
            spec.setdefault("updateStrategy", progress.strategy)
            metadata = dict(wanted.get("metadata") or {})
            metadata["annotations"] = dict(metadata.get("annotations") or {}, **{ANNOTATION: None})
            return {"metadata": metadata, "spec": spec}

        after = self._held.end(progress, patch)
        return kube_objects.change("change", self._definition, self._before or {}, after)

    def _end_back(self, progress: Progress) -> None:
        self._held.end(progress, lambda _actual: back_to_kubernetes(progress.strategy))
        self._restored = True
        self._say("the previous template is restored")

    def _failed_before(self, progress: Progress) -> bool:
        """Whether this run wants what an earlier one has found not to work."""
        actual = self._cluster.get(self._held.path)
        patch = kube_objects.patch_for(actual, self._definition) if actual else None
        if not progress.failure or patch is None:
            return False
        return fingerprint_of(self._cluster.merge_patch(self._held.path, patch, dry_run="All")) == progress.failed

    def _failure(self, progress: Progress) -> str:
        actual = self._cluster.get(self._held.path) or {}
        image = components_revisions.images(actual["spec"]["template"]) if actual else "?"
        # It may come from the annotation, which any client may have edited.
        lines = (rollout_failure.printable(line, _LONGEST_LINE) for line in (progress.failure or "").splitlines()[:_MOST_NAMED])
        failure = "\n  ".join(lines)
        return (
            "%s: %s\nIts previous template with the image %s is restored on all nodes that had the new one; nothing else of this"
            " run is undone. Correct the image or the settings of the component, and run this again."
            % (self._label, failure, image)
        )

    # --- what it is about ---

    def _view(self, daemonset: Object, check_mode: bool, meanwhile: Callable[[], None] = lambda: None) -> DaemonSetView:
        """As soon as its controller has seen it as it is. It may have been away with the API server: ``meanwhile`` shows that this
        run lives."""
        began = self._clock.monotonic()
        while True:
            view = DaemonSetView(self._cluster, daemonset)
            if view.observed or check_mode:
                return view
            if self._clock.monotonic() - began >= _OBSERVE_SECONDS:
                raise NpuError(
                    "%s: the controller manager has not seen its present generation for %d s. Check whether it runs: kubectl get"
                    " pods -n kube-system. Then run this again." % (self._label, _OBSERVE_SECONDS)
                )
            self._clock.sleep(POLL_SECONDS)
            meanwhile()
            daemonset = self._held.get()

    def _delete(self, pod: Object) -> None:
        metadata = pod["metadata"]
        path = "/api/v1/namespaces/%s/pods/%s" % (metadata["namespace"], metadata["name"])
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": metadata["uid"]}}
        try:
            self._cluster.request("delete", path, body=options)
        except (kube_client.NotFound, kube_client.Conflict):
            pass  # it is gone already, or another one has its name
        except NpuError as exc:
            raise NpuError(
                "%s: the rollout stopped, because the pod %s cannot be deleted: %s Run this again to continue it."
                % (self._label, metadata["name"], exc.message)
            )


def _good(view: DaemonSetView) -> str:
    """The hash of the template that works: the present one, if it works anywhere, else the one that works on most nodes."""
    hashes = collections.Counter(filter(None, map(view.hash_on, view.working())))
    newest = view.revisions.newest
    if newest and hashes.get(newest):
        return newest
    return hashes.most_common(1)[0][0] if hashes else str(newest)


def _print(template: Object) -> str:
    return components_revisions.fingerprint(template)


def _also_not(progress: Progress, name: str, why: str) -> str:
    return "%s\nWith the previous template it does not work on %s either: %s" % (progress.failure or "restored", name, why)


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else "%d nodes" % count


def _named(nodes: list[tuple[str, str]]) -> str:
    text = ", ".join("%s (%s)" % item for item in nodes[:_MOST_NAMED])
    return text if len(nodes) <= _MOST_NAMED else "%s and %s more" % (text, _nodes(len(nodes) - _MOST_NAMED))


def _name_of_this_run() -> str:
    host = re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname())[:64]
    return "run-%s-%d-%s" % (host, os.getpid(), uuid.uuid4().hex[:8])
