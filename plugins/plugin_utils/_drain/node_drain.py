# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pods of one node leave before it reboots: evictions, tried until they succeed or the time is up.

Only through the eviction API, so that disruption budgets hold.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NoReturn

from ansible_collections.npuops.ascend.plugins.plugin_utils._data.and_more import and_more
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import eviction, eviction_dry_run
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain.disruption_budgets import Budgets
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain.drain_policy import DrainPolicy
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.api_watch import Watch
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.clock import Clock
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import pause_after
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods import pod_view
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods.blocker import (
    BUDGET,
    RETURNING,
    STATIC,
    TERMINATING,
    Blocked,
    Blocker,
    told,
)
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods.claims import HeldClaims
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods.pod_view import COMPONENT, NAMESPACE, NPU, OTHER, Pod

# Seconds between two looks at the pods of a node. Jobs may take hours, on many nodes at once.
_LONGEST_PAUSE = 15.0
# Seconds until the next look where a watch reports no change, and between two calls of ``beat()`` meanwhile.
_UNCHANGED, _BEAT = 60.0, 10.0
_RETRY_SECONDS = 2
_RETRY_MAX_SECONDS = 15


def _nothing(*_args: object) -> None:
    pass


class Drain:
    """What happens to the pods of one node, in the order of the cycle. Every method may be repeated at any time.

    ``beat()`` is called at least every 15 s while something is waited for; ``say(sentence)`` when what is waited for
    changes.
    """

    def __init__(
        self,
        cluster: AnyCluster,
        node: str,
        policy: DrainPolicy,
        beat: Callable[[], None] = _nothing,
        say: Callable[[str], None] = _nothing,
        clock: Clock | None = None,
        leave_stuck: bool = False,
        namespace: str = NAMESPACE,
        at_once: int = 1,
    ) -> None:
        """``node``: the node's name; ``namespace``: of our components; ``at_once``: how many nodes are drained at once, about;
        ``leave_stuck``: pods that were told to end and did not
        until the limit are left where they are. Their processes may hang in a driver that does not answer."""
        self._cluster, self._node, self._policy = cluster, node, policy
        self._beat, self._say_to, self._clock = beat, say, clock or Clock()
        self._own_pod = pod_view.own_pod_name()
        self._leave_stuck, self._namespace, self._at_once = leave_stuck, namespace, at_once
        self._said: str | None = None
        self._claims = HeldClaims()
        self._watch = Watch(cluster, self._clock, pod_view.PATH, field_selector=pod_view.on_node(node))

    def simulate(self) -> list[Blocker]:
        """The Blockers there are now; nothing is changed."""
        pods = self._pods(afresh=True)
        found = eviction_dry_run.simulate(
            self._cluster, pods, self._policy, own_pod=self._own_pod, beat=self._beat, claims=self._heeded_claims
        )
        # Where pods that do not end are left, so are those that cannot be told to.
        return [blocker for blocker in found if not (self._leave_stuck and blocker.kind == STATIC)]

    def wait_for_jobs(self) -> list[Pod]:
        """Let the pods of npu_upgrade_wait_for_jobs finish. Returns those that still run at the limit (Pod objects)."""
        if not self._policy.jobs:
            return []
        return self._wait_until_gone(
            lambda pod: pod.kind in (NPU, OTHER) and self._policy.jobs.matches(pod.labels),
            self._policy.jobs_timeout,
            "waits for the jobs %s",
        )

    def evict_npu_pods(self) -> int:
        """Evict what asks for a chip and wait until it is gone. Returns how many pods went. Raises Blocked."""
        return self._evict(NPU)

    def evict_others(self) -> int:
        """Evict the rest and wait until it is gone. Returns how many pods went. Raises Blocked."""
        return self._evict(OTHER)

    def evict_returned(self, rounds: int) -> int:
        """Evict what came onto the emptied node since, until a look finds nothing. Returns how many pods went.

        Raises Blocked, also when after so many ``rounds`` there are some again.
        """
        gone = 0
        for left in range(rounds, -1, -1):
            # What was told to end and cannot is left where that is allowed.
            pods = [pod for pod in self._pods() if self._policy.goes(pod) and not (self._leave_stuck and pod.terminating)]
            if not pods:
                return gone
            if left:
                gone += self.evict_npu_pods() + self.evict_others()
        why = "%s and came back %d times; configure its controller to keep it off this node"
        self._give_up([Blocker(RETURNING, pod, why % (_how_it_returns(pod), rounds)) for pod in pods])

    def wait_components_gone(self, timeout: int) -> None:
        """Wait for the pods of the paused components to leave. Raises Blocked after ``timeout`` seconds."""
        remaining = self._wait_until_gone(lambda pod: pod.kind == COMPONENT, timeout, "waits for the components %s to leave")
        if remaining and not self._are_left(remaining):
            self._give_up([_still_there(pod, self._claims) for pod in remaining], timeout)

    def _pods(self, afresh: bool = False) -> list[Pod]:
        """``afresh``: the claims are read again, although those of all pods are known."""
        pods = [Pod(item, self._namespace) for item in self._watch.list()]
        if afresh or not self._claims.know(pods):
            self._claims = HeldClaims.read(self._cluster, pods, self._policy.dra_drivers)
        else:
            self._claims.mark(pods)
        return pods

    @property
    def _heeded_claims(self) -> HeldClaims | None:
        """None where pods that do not end are left: the plugin may come back with the reboot."""
        return None if self._leave_stuck else self._claims

    def _wait_until_gone(self, which: Callable[[Pod], bool], timeout: int, sentence: str) -> list[Pod]:
        started = self._clock.monotonic()
        try:
            while True:
                remaining = [pod for pod in self._pods() if which(pod)]
                if not remaining or self._is_over(started, timeout):
                    return remaining
                self._say(sentence % _names(remaining))
                self._pause(started, timeout)
        finally:
            self._watch.end()

    def _evict(self, kind: str) -> int:
        try:
            return self._evict_until_gone(kind)
        finally:
            self._watch.end()

    def _evict_until_gone(self, kind: str) -> int:
        policy, timeout = self._policy, self._policy.timeout(kind)
        started = self._clock.monotonic()
        budgets = Budgets.read(self._cluster)
        gone: set[str | None] = set()
        attempts: dict[str | None, _Attempt] = {}
        first: set[str | None] | None = None
        come_back: set[tuple[str, str]] = set()
        while True:
            pods = [pod for pod in self._pods(afresh=first is None) if policy.goes(pod) and pod.kind == kind]
            first = {pod.uid for pod in pods} if first is None else first
            gone.update(uid for uid in attempts if uid not in {pod.uid for pod in pods})
            if not pods:
                return len(gone)
            found = eviction_dry_run.objections(pods, policy, budgets, self._own_pod, self._heeded_claims)
            hopeless = [blocker for blocker in found if blocker.kind != BUDGET]
            if hopeless:
                self._give_up(hopeless)
            evicted = False
            for pod in _next(pods):
                evicted |= self._try(pod, attempts.setdefault(pod.uid, _Attempt(returned=pod.uid not in first)))
                if self._is_over(started, timeout):
                    break  # with a webhook that hangs each takes half a minute
            if self._is_over(started, timeout):
                if self._are_left(pods):
                    return len(gone)
                budgets = Budgets.read(self._cluster)
                self._pods(afresh=True)
                self._give_up([_why_there(pod, attempts.get(pod.uid), budgets, self._claims) for pod in pods], timeout)
            come_back.update((pod.owner_text or pod.label, _how_it_returns(pod)) for pod in pods if pod.uid not in first)
            self._say(_waits_for([pod for pod in pods if pod.uid in first], come_back, timeout))
            refused = any(attempts[pod.uid].last_refusal for pod in pods if pod.uid in attempts and not attempts[pod.uid].accepted)
            self._pause(started, timeout, soon=refused, changed=evicted)

    def _is_over(self, started: float, timeout: int) -> bool:
        return timeout > 0 and self._clock.monotonic() - started >= timeout

    def _are_left(self, pods: Sequence[Pod]) -> bool:
        """Whether these go down with the host, all of them told to end and not able to."""
        if not self._leave_stuck or not all(pod.terminating for pod in pods):
            return False
        self._say("no longer waits for %s: terminating, but stuck" % _names(pods))
        return True

    def _try(self, pod: Pod, attempt: _Attempt) -> bool:
        """One eviction, unless the server asked to wait longer. Return whether it was accepted now."""
        if attempt.accepted or self._clock.monotonic() < attempt.not_before:
            return False
        self._beat()
        try:
            eviction.evict(self._cluster, pod)
        except (kube_client.NotFound, kube_client.Conflict):
            return False  # gone, or another pod by that name: the next listing tells
        except kube_client.Refused as exc:
            attempt.refused(exc, self._clock.monotonic())
            return False
        attempt.accepted = True
        return True

    def _give_up(self, blockers: Sequence[Blocker], timeout: int | None = None) -> NoReturn:
        head = "%s is not drained" % self._node
        if timeout:
            head += " after %d s" % timeout
        raise Blocked("%s: %s" % (head, told(blockers)), blockers)

    def _say(self, sentence: str) -> None:
        if sentence != self._said:
            self._said = sentence
            self._say_to(sentence)

    def _pause(self, started: float, timeout: int, soon: bool = False, changed: bool = False) -> None:
        """Sleep until the pods change, or until the next look. ``soon``: that is due also if no pod changes; ``changed``: by this
        run, since they were listed, which a watch would report at once."""
        now = self._clock.monotonic()
        waited = now - started
        left = max(0.0, timeout - waited) if timeout else float("inf")
        pause = min(pause_after(waited, _LONGEST_PAUSE, self._at_once), left)
        if changed:
            self._clock.sleep(min(pause, pause_after(0, at_once=self._at_once)))
            return
        end = now + (pause if soon else min(_UNCHANGED, left))
        while True:
            self._beat()
            most = min(_BEAT, end - self._clock.monotonic())
            if most <= 0 or self._watch.wait(pause, pause_after(0, at_once=self._at_once), most):
                return


class _Attempt:
    """The evictions tried on one pod."""

    def __init__(self, returned: bool) -> None:
        self.returned = returned  # it came when others had been evicted already
        self.accepted = False
        self.not_before = 0.0
        self.last_refusal: kube_client.Refused | None = None
        self._refusals = 0

    def refused(self, exc: kube_client.Refused, now: float) -> None:
        self.last_refusal = exc
        self._refusals += 1
        asked = getattr(exc, "retry_after", None)
        own = min(_RETRY_SECONDS * self._refusals, _RETRY_MAX_SECONDS)
        self.not_before = now + (own if asked is None else min(asked, _RETRY_MAX_SECONDS))


def _next(pods: Sequence[Pod]) -> list[Pod]:
    """Those to evict now. Who serves the kubelet leaves last: the plugin of a DRA driver has to unprepare the others' claims."""
    waiting = [pod for pod in pods if not pod.terminating]
    if any(pod.claims for pod in pods):
        waiting = [pod for pod in waiting if pod.claims or not pod.kubelet_plugin]
    return waiting


def _why_there(pod: Pod, attempt: _Attempt | None, budgets: Budgets, claims: HeldClaims) -> Blocker:
    """The Blocker for a pod that is still there at the limit."""
    if attempt is not None and attempt.last_refusal is not None and not attempt.accepted:
        return eviction.refusal(pod, budgets, attempt.last_refusal)
    if attempt is not None and attempt.returned:
        why = "it was started on the cordoned node while others were evicted: %s; configure its controller to keep it off this node"
        return Blocker(RETURNING, pod, why % _how_it_returns(pod))
    if attempt is None and pod.kubelet_plugin and not pod.terminating:
        return Blocker(TERMINATING, pod, "it leaves after the pods that hold ResourceClaims")
    return _still_there(pod, claims)


def _still_there(pod: Pod, claims: HeldClaims) -> Blocker:
    stuck = claims.objection(pod)
    if stuck:
        return stuck
    why = "it was to terminate by %s and still runs" % pod.terminating if pod.terminating else "it still runs"
    held = claims.labels(pod)
    return Blocker(TERMINATING, pod, why + ("; it holds the ResourceClaim %s" % held if held else ""))


def _how_it_returns(pod: Pod) -> str:
    return "it tolerates the cordon" if pod.tolerates_cordon else "its spec.nodeName names this node"


def _waits_for(pods: Sequence[Pod], come_back: Collection[tuple[str, str]], timeout: int) -> str:
    """For progress messages: the ``pods`` that ran from the beginning, and the owners of those that come back under new names."""
    parts = ["waits for the pods %s to leave" % _names(pods)] if pods else []
    parts += ["a pod of %s comes back each time: %s" % (owner, how) for owner, how in sorted(come_back)[:3]]
    if come_back:
        parts.append("gives up after %d s" % timeout if timeout else "there is no limit (timeout: 0)")
    return "; ".join(parts)


def _names(pods: Sequence[Pod]) -> str:
    return and_more([pod.label for pod in pods])
