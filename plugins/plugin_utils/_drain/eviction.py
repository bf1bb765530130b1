# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pods of a node: which have to go before it reboots, what keeps them, and how they go.

Only through the eviction API, so that disruption budgets hold. What keeps a pod is told by name: budget, pod, owner.
"""

from __future__ import annotations

import dataclasses
import os
import socket
import time

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._fleet import components as fleet_components
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import selectors as kube_selectors
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import pause_after
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import values as settings_values

NAMESPACE = "npu-operator"  # of our components, unless another one is given
RESOURCE_PREFIX = "huawei.com/"
BUDGETS = "/apis/policy/v1/poddisruptionbudgets"

# What a pod is to a drain; the first that fits counts.
FINISHED = "finished"  # nothing of it runs
MIRROR = "mirror"  # a static pod: the kubelet's own, ends with the reboot
COMPONENT = "component"  # ours: leaves when the node's components are paused
DAEMONSET = "daemonset"  # would come back at once
NPU = "npu"  # asks for a chip: evicted first
OTHER = "other"

# Kinds of blocker.
BUDGET, BUDGETS_OVERLAP, NO_CONTROLLER, EMPTY_DIR, NPU_DAEMONSET = (
    "budget",
    "several-budgets",
    "no-controller",
    "empty-dir",
    "npu-daemonset",
)
OWN_RUN, REFUSED, TERMINATING, RETURNING = "own-run", "refused", "terminating", "returning"
FAILING = "failing"  # its eviction has no proper answer, most likely because of an admission webhook that is down

# Seconds between two looks at the pods of a node. Jobs may take hours, on many nodes at once.
_LONGEST_PAUSE = 15.0
_RETRY_SECONDS = 2
_RETRY_MAX_SECONDS = 15
# So many dry runs of one node may fail; each may take as long as a webhook that hangs.
_MOST_FAILING = 3


class Blocked(NpuError):
    """Pods that do not go. ``blockers``: list of dicts, see Blocker.result(); they are in the result as well."""

    def __init__(self, message, blockers):
        super().__init__(message, blockers=[blocker.result() for blocker in blockers])
        self.blockers = self.details["blockers"]


def _nothing(*_args):
    pass


# --- policy ---


@dataclasses.dataclass(frozen=True)
class DrainPolicy:
    """How pods are made to go: npu_upgrade_wait_for_jobs, npu_upgrade_pod_deletion and npu_upgrade_drain."""

    jobs: kube_selectors.Selector
    jobs_timeout: int  # seconds; 0 = without limit
    deletion_force: bool
    deletion_timeout: int
    deletion_delete_empty_dir: bool
    drain_enable: bool
    drain_force: bool
    drain_timeout: int
    drain_delete_empty_dir: bool
    drain_skip: kube_selectors.Selector

    @classmethod
    def of(cls, wait_for_jobs=None, pod_deletion=None, drain=None):
        """From the three variables (dicts or None). Values may be strings, an empty one means the default.

        Raises NpuError naming the variable and key.
        """
        jobs = _Keys("npu_upgrade_wait_for_jobs", wait_for_jobs, ("selector", "timeout"))
        deletion = _Keys("npu_upgrade_pod_deletion", pod_deletion, ("force", "timeout", "delete_empty_dir"))
        drained = _Keys("npu_upgrade_drain", drain, ("enable", "force", "timeout", "delete_empty_dir", "skip_selector"))
        return cls(
            jobs=jobs.selector("selector"),
            jobs_timeout=jobs.seconds("timeout", 0),
            deletion_force=deletion.flag("force", False),
            deletion_timeout=deletion.seconds("timeout", 300),
            deletion_delete_empty_dir=deletion.flag("delete_empty_dir", False),
            drain_enable=drained.flag("enable", True),
            drain_force=drained.flag("force", False),
            drain_timeout=drained.seconds("timeout", 300),
            drain_delete_empty_dir=drained.flag("delete_empty_dir", False),
            drain_skip=drained.selector("skip_selector"),
        )

    def goes(self, pod):
        """Whether the pod has to leave before the reboot."""
        kind = pod.kind
        return kind == NPU or (kind == OTHER and self.drain_enable and not self.drain_skip.matches(pod.labels))

    def timeout(self, kind):
        """Seconds for pods of the kind NPU or OTHER; 0 = without limit."""
        return self.deletion_timeout if kind == NPU else self.drain_timeout

    def _variable(self, pod):
        return "npu_upgrade_pod_deletion" if pod.kind == NPU else "npu_upgrade_drain"

    def objection(self, pod):
        """The Blocker that the policy itself is to the pod's eviction, or None."""
        force, delete_empty_dir = self.drain_force, self.drain_delete_empty_dir
        if pod.kind == NPU:
            force, delete_empty_dir = self.deletion_force, self.deletion_delete_empty_dir
        if pod.owner is None and not force:
            why = "it has no controller and would be lost; delete it, or set %s.force: true" % self._variable(pod)
            return Blocker(NO_CONTROLLER, pod, why)
        if pod.empty_dir and not delete_empty_dir:
            why = "its emptyDir data would be lost; set %s.delete_empty_dir: true to allow that" % self._variable(pod)
            return Blocker(EMPTY_DIR, pod, why)
        return None


class _Keys:
    """One variable with its keys."""

    def __init__(self, variable, values, keys):
        self._variable, self._values = variable, settings_values.mapping(variable, values, keys)

    def flag(self, key, default):
        return settings_values.flag("%s.%s" % (self._variable, key), self._values.get(key), default)

    def seconds(self, key, default):
        return settings_values.number("%s.%s" % (self._variable, key), self._values.get(key), default, "a number of seconds")

    def selector(self, key):
        return kube_selectors.parse(self._values.get(key), "%s.%s" % (self._variable, key))


# --- pods ---


class Pod:
    """What a drain needs of a Pod object; small, because a plan has all of the cluster's in memory."""

    __slots__ = (
        "empty_dir",
        "kind",
        "labels",
        "name",
        "namespace",
        "node",
        "owner",
        "phase",
        "ready",
        "requests",
        "terminating",
        "uid",
    )

    def __init__(self, item, ours=NAMESPACE):
        """``item``: a Pod object; ``ours``: the namespace of our components."""
        metadata, spec, status = item["metadata"], item.get("spec") or {}, item.get("status") or {}
        self.namespace, self.name = metadata.get("namespace", "default"), metadata["name"]
        self.uid = metadata.get("uid")
        self.labels = metadata.get("labels") or {}
        self.node = spec.get("nodeName")
        self.owner = _owner(metadata)  # (kind, name) or None
        self.terminating = metadata.get("deletionTimestamp")
        self.phase = status.get("phase")
        self.ready = any(entry.get("type") == "Ready" and entry.get("status") == "True" for entry in status.get("conditions") or [])
        self.empty_dir = any("emptyDir" in volume for volume in spec.get("volumes") or [])
        self.requests = _npu_requests(spec)  # {resource: count}
        self.kind = self._kind(metadata, ours)

    def _kind(self, metadata, ours):
        if self.phase in ("Succeeded", "Failed"):
            return FINISHED
        if "kubernetes.io/config.mirror" in (metadata.get("annotations") or {}):
            return MIRROR
        if fleet_components.daemonset_of(metadata, ours):
            return COMPONENT
        if self.owner and self.owner[0] == "DaemonSet":
            return DAEMONSET
        return NPU if self.requests else OTHER

    @property
    def label(self):
        return "%s/%s" % (self.namespace, self.name)

    @property
    def owner_text(self):
        """``Deployment train/web``, or None without a controller."""
        return "%s %s/%s" % (self.owner[0], self.namespace, self.owner[1]) if self.owner else None


def _owner(metadata):
    """(kind, name) of what would create the pod again; a Deployment rather than its ReplicaSet."""
    for owner in metadata.get("ownerReferences") or []:
        if not owner.get("controller"):
            continue
        kind, name = owner["kind"], owner["name"]
        # Its ReplicaSets are named <deployment>-<pod template hash>: no need to read each of them.
        suffix = "-" + ((metadata.get("labels") or {}).get("pod-template-hash") or "")
        if kind == "ReplicaSet" and len(suffix) > 1 and name.endswith(suffix):
            return "Deployment", name[: -len(suffix)]
        return kind, name
    return None


def _npu_requests(spec):
    counts = {}
    for container in spec.get("containers") or []:
        resources = container.get("resources") or {}
        # A request that is not written is the limit.
        for name, count in dict(resources.get("limits") or {}, **(resources.get("requests") or {})).items():
            if name.startswith(RESOURCE_PREFIX) and str(count) not in ("0", ""):
                counts[name] = counts.get(name, 0) + _count(count)
    return counts


def _count(quantity):
    """Extended resources are whole numbers; ``2k`` is legal."""
    text = str(quantity)
    return int(text) if text.isdigit() else {"k": 1000}.get(text[-1:], 1) * int(text[:-1] or 0)


def pods_of_node(cluster, node, ours=NAMESPACE):
    """The Pods (class Pod) of the node named ``node``: one request. ``ours``: the namespace of our components."""
    return [Pod(item, ours) for item in cluster.each("/api/v1/pods", field_selector="spec.nodeName=" + node)]


def own_pod_name():
    """The name of the pod this process runs in, or None outside of Kubernetes."""
    return socket.gethostname() if os.environ.get("KUBERNETES_SERVICE_HOST") else None


# --- disruption budgets ---


class Budget:
    """A PodDisruptionBudget."""

    def __init__(self, item):
        status = item.get("status") or {}
        self.namespace, self.name = item["metadata"]["namespace"], item["metadata"]["name"]
        self.selector = item["spec"].get("selector")
        self.always_evicts_unhealthy = item["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow"
        self.allowed = status.get("disruptionsAllowed", 0)
        self.healthy, self.desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)

    @property
    def label(self):
        return "%s/%s" % (self.namespace, self.name)

    def covers(self, pod):
        return pod.namespace == self.namespace and kube_selectors.matches_object(self.selector, pod.labels)

    def allows(self, pod):
        """Whether one eviction of the pod is allowed now, by the budget's status."""
        if pod.phase == "Pending":
            return True
        if not pod.ready and (self.always_evicts_unhealthy or 0 < self.desired <= self.healthy):
            return True
        return self.allowed > 0

    def result(self):
        return {
            "namespace": self.namespace,
            "name": self.name,
            "disruptions_allowed": self.allowed,
            "current_healthy": self.healthy,
            "desired_healthy": self.desired,
        }


class Budgets:
    """All budgets, found by namespace and, where they ask for one, by a label."""

    def __init__(self, items):
        self._found_by = {}
        for item in items:
            budget = Budget(item)
            # One label that a pod must have anyway; thousands of pods need not be held against thousands of budgets.
            label = next(iter(((budget.selector or {}).get("matchLabels") or {}).items()), None)
            self._found_by.setdefault((budget.namespace, label), []).append(budget)

    @classmethod
    def read(cls, cluster):
        return cls(cluster.each(BUDGETS))

    def of(self, pod):
        """The budgets that cover the pod."""
        found_by = self._found_by
        candidates = list(found_by.get((pod.namespace, None), ()))
        for label in pod.labels.items():
            candidates += found_by.get((pod.namespace, label), ())
        return [budget for budget in candidates if budget.covers(pod)]

    def objection(self, pod):
        """The Blocker that the budgets are by what their status says, or None."""
        covering = self.of(pod)
        if len(covering) > 1 and pod.phase != "Pending":
            names = ", ".join(budget.label for budget in covering)
            why = "several PodDisruptionBudgets cover it (%s), which the eviction API rejects; keep only one" % names
            return Blocker(BUDGETS_OVERLAP, pod, why, covering[0])
        for budget in covering:
            if not budget.allows(pod):
                return _budget_blocker(pod, budget)
        return None


def _budget_blocker(pod, budget):
    why = "the PodDisruptionBudget %s allows no disruption now: %d healthy, %d needed" % (
        budget.label,
        budget.healthy,
        budget.desired,
    )
    return Blocker(BUDGET, pod, why, budget)


class Blocker:
    """Why one pod does not go."""

    def __init__(self, kind, pod, why, budget=None):
        """``why``: a clause that says what keeps the pod, and what to do when that is not plain."""
        self.kind, self.pod, self.why, self.budget = kind, pod, why, budget

    @property
    def text(self):
        owner = self.pod.owner_text
        return "the pod %s%s cannot be evicted: %s" % (self.pod.label, " (%s)" % owner if owner else "", self.why)

    def result(self):
        return {
            "kind": self.kind,
            "pod": self.pod.label,
            "node": self.pod.node,
            "owner": self.pod.owner_text,
            "budget": self.budget.result() if self.budget else None,
            "text": self.text,
        }


def told(blockers):
    """The blockers as one sentence part: those with the same cause together, three pods at most by name.

    ``blockers``: Blocker objects.
    """
    causes = {}
    for blocker in blockers:
        causes.setdefault((blocker.why, blocker.pod.owner_text), []).append(blocker.pod.label)
    parts = []
    for (why, owner), names in causes.items():
        shown = ", ".join(names[:3]) + (" and %d more" % (len(names) - 3) if len(names) > 3 else "")
        plural = "s" if len(names) > 1 else ""
        parts.append("the pod%s %s%s cannot be evicted: %s" % (plural, shown, " (%s)" % owner if owner else "", why))
    return "; ".join(parts)


# --- looking ahead ---


def objections(pods, policy, budgets, own_pod=None):
    """The Blockers of these pods of one node that can be told without asking: policy, budgets' status, chips in use by
    DaemonSets, the run's own pod.

    What a status cannot tell: that a budget which allows one disruption now allows the next once the evicted pod is
    ready elsewhere. Pods of one budget go one after the other, so one that allows any is no blocker.
    """
    found = []
    for pod in pods:
        blocker = _objection(pod, policy, budgets, own_pod)
        if blocker:
            found.append(blocker)
    return found


def _objection(pod, policy, budgets, own_pod):
    if pod.kind == DAEMONSET and pod.requests:
        why = "a DaemonSet recreates it at once, and it uses %s; keep the DaemonSet off this node" % _used(pod)
        return Blocker(NPU_DAEMONSET, pod, why)
    if not policy.goes(pod):
        return None
    if own_pod and pod.name == own_pod:
        return Blocker(OWN_RUN, pod, "Ansible itself runs in it; run it on another node")
    if pod.terminating:
        return None
    return policy.objection(pod) or budgets.objection(pod)


def _used(pod):
    return ", ".join("%d %s" % (count, name) for name, count in sorted(pod.requests.items()))


def simulate(cluster, pods, policy, budgets=None, own_pod=None, beat=_nothing):
    """The Blockers of one node's pods, confirmed by the API server through dry-run evictions (one request per pod).

    ``budgets``: read when not given; ``beat()`` is called before each request. Nothing is changed. Pods of jobs that are waited
    for do not count: they may be gone when it is their turn.
    """
    budgets = Budgets.read(cluster) if budgets is None else budgets
    pods = [pod for pod in pods if not policy.jobs.matches(pod.labels)]
    found = objections(pods, policy, budgets, own_pod)
    blocked = {blocker.pod.uid for blocker in found}
    for pod in pods:
        if sum(blocker.kind == FAILING for blocker in found) >= _MOST_FAILING:
            break
        if policy.goes(pod) and not pod.terminating and pod.uid not in blocked:
            beat()
            blocker = dry_run(cluster, pod, budgets)
            if blocker:
                found.append(blocker)
    return found


def dry_run(cluster, pod, budgets):
    """The Blocker the API server names for an eviction that it only pretends, or None."""
    try:
        _post(cluster, pod, dry_run="All")
    except kube_client.NotFound:
        return None
    except kube_client.Conflict:
        return None  # another pod of that name by now
    except kube_client.Refused as exc:
        return _refusal(pod, budgets, exc)
    return None


def _refusal(pod, budgets, exc):
    """The Blocker for an eviction that the server refused: a budget, or an admission webhook."""
    covering = budgets.of(pod) if isinstance(exc, kube_client.TooManyRequests) else []
    if covering:
        budget = covering[0]
        why = _budget_blocker(pod, budget).why if budget.allowed <= 0 else None
        return Blocker(BUDGET, pod, why or "the PodDisruptionBudget %s: %s" % (budget.label, _said(exc)), budget)
    return Blocker(FAILING if isinstance(exc, kube_client.Failing) else REFUSED, pod, _said(exc))


def _said(exc):
    return "; ".join(getattr(exc, "causes", None) or [exc.message]).rstrip(".")


def _post(cluster, pod, **params):
    cluster.request(
        "post",
        "/api/v1/namespaces/%s/pods/%s/eviction" % (pod.namespace, pod.name),
        body={
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": {"preconditions": {"uid": pod.uid}},
        },
        **params,
    )


# --- acting ---


class Drain:
    """What happens to the pods of one node, in the order of the cycle. Every method may be repeated at any time.

    ``beat()`` is called at least every 5 s while something is waited for; ``say(sentence)`` when what is waited for
    changes.
    """

    def __init__(
        self,
        cluster,
        node,
        policy,
        beat=_nothing,
        say=_nothing,
        sleep=time.sleep,
        clock=time.monotonic,
        leave_stuck=False,
        namespace=NAMESPACE,
    ):
        """``node``: the node's name; ``namespace``: of our components; ``leave_stuck``: pods that were told to end and did not
        until the limit are left where they are. Their processes may hang in a driver that does not answer."""
        self._cluster, self._node, self._policy = cluster, node, policy
        self._beat, self._say_to, self._sleep, self._clock = beat, say, sleep, clock
        self._own_pod = own_pod_name()
        self._leave_stuck, self._namespace = leave_stuck, namespace
        self._said = None

    def simulate(self):
        """The Blockers there are now; nothing is changed."""
        return simulate(self._cluster, self._pods(), self._policy, own_pod=self._own_pod, beat=self._beat)

    def wait_for_jobs(self):
        """Let the pods of npu_upgrade_wait_for_jobs finish. Returns those that still run at the limit (Pod objects)."""
        if not self._policy.jobs:
            return []
        return self._wait_until_gone(
            lambda pod: pod.kind in (NPU, OTHER) and self._policy.jobs.matches(pod.labels),
            self._policy.jobs_timeout,
            "waits for the jobs %s",
        )

    def evict_npu_pods(self):
        """Evict what asks for a chip and wait until it is gone. Returns how many pods went. Raises Blocked."""
        return self._evict(NPU)

    def evict_others(self):
        """Evict the rest and wait until it is gone. Returns how many pods went. Raises Blocked."""
        return self._evict(OTHER)

    def evict_returned(self, rounds):
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
        why = "it tolerates the cordon and came back %d times; configure its controller to keep it off this node" % rounds
        self._give_up([Blocker(RETURNING, pod, why) for pod in pods])

    def wait_components_gone(self, timeout):
        """Wait for the pods of the paused components to leave. Raises Blocked after ``timeout`` seconds."""
        remaining = self._wait_until_gone(lambda pod: pod.kind == COMPONENT, timeout, "waits for the components %s to leave")
        if remaining and not self._are_left(remaining):
            self._give_up([_still_there(pod) for pod in remaining], timeout)

    def _pods(self):
        return pods_of_node(self._cluster, self._node, self._namespace)

    def _wait_until_gone(self, which, timeout, sentence):
        started = self._clock()
        while True:
            remaining = [pod for pod in self._pods() if which(pod)]
            if not remaining or self._is_over(started, timeout):
                return remaining
            self._say(sentence % _names(remaining))
            self._pause(started, timeout)

    def _evict(self, kind):
        policy, timeout = self._policy, self._policy.timeout(kind)
        started = self._clock()
        budgets, gone, attempts = Budgets.read(self._cluster), set(), {}
        while True:
            pods = [pod for pod in self._pods() if policy.goes(pod) and pod.kind == kind]
            gone.update(uid for uid in attempts if uid not in {pod.uid for pod in pods})
            if not pods:
                return len(gone)
            found = objections(pods, policy, budgets, self._own_pod)
            hopeless = [blocker for blocker in found if blocker.kind != BUDGET]
            if hopeless:
                self._give_up(hopeless)
            waiting = [pod for pod in pods if not pod.terminating]
            first_round = not attempts
            for pod in waiting:
                self._try(pod, attempts.setdefault(pod.uid, _Attempt(returned=not first_round)))
                if self._is_over(started, timeout):
                    break  # with a webhook that hangs each takes half a minute
            if self._is_over(started, timeout):
                if self._are_left(pods):
                    return len(gone)
                budgets = Budgets.read(self._cluster)
                self._give_up([_why_there(pod, attempts.get(pod.uid), budgets) for pod in pods], timeout)
            self._say("waits for the pods %s to leave" % _names(pods))
            self._pause(started, timeout)

    def _is_over(self, started, timeout):
        return timeout and self._clock() - started >= timeout

    def _are_left(self, pods):
        """Whether these go down with the host, all of them told to end and not able to."""
        if not self._leave_stuck or not all(pod.terminating for pod in pods):
            return False
        self._say("no longer waits for %s: terminating, but stuck" % _names(pods))
        return True

    def _try(self, pod, attempt):
        """One eviction, unless the server asked to wait longer."""
        if attempt.accepted or self._clock() < attempt.not_before:
            return
        self._beat()
        try:
            _post(self._cluster, pod)
        except (kube_client.NotFound, kube_client.Conflict):
            return  # gone, or another pod by that name: the next listing tells
        except kube_client.Refused as exc:
            attempt.refused(exc, self._clock())
            return
        attempt.accepted = True

    def _give_up(self, blockers, timeout=None):
        head = "%s is not drained" % self._node
        if timeout:
            head += " after %d s" % timeout
        raise Blocked("%s: %s" % (head, told(blockers)), blockers)

    def _say(self, sentence):
        if sentence != self._said:
            self._said = sentence
            self._say_to(sentence)

    def _pause(self, started, timeout):
        self._beat()
        waited = self._clock() - started
        pause = pause_after(waited, _LONGEST_PAUSE)
        self._sleep(max(0.0, min(pause, timeout - waited)) if timeout else pause)


class _Attempt:
    """The evictions tried on one pod."""

    def __init__(self, returned):
        self.returned = returned  # it came when others had been evicted already
        self.accepted = False
        self.not_before = 0.0
        self.last_refusal = None
        self._refusals = 0

    def refused(self, exc, now):
        self.last_refusal = exc
        self._refusals += 1
        asked = getattr(exc, "retry_after", None)
        own = min(_RETRY_SECONDS * self._refusals, _RETRY_MAX_SECONDS)
        self.not_before = now + (own if asked is None else asked)


def _why_there(pod, attempt, budgets):
    """The Blocker for a pod that is still there at the limit."""
    if attempt is not None and attempt.last_refusal is not None and not attempt.accepted:
        return _refusal(pod, budgets, attempt.last_refusal)
    if attempt is not None and attempt.returned:
        why = "it was started on the cordoned node while others were evicted: it tolerates the cordon"
        return Blocker(RETURNING, pod, why)
    return _still_there(pod)


def _still_there(pod):
    why = "it was to terminate by %s and still runs" % pod.terminating
    return Blocker(TERMINATING, pod, why if pod.terminating else "it still runs")


def _names(pods):
    names = [pod.label for pod in pods]
    return ", ".join(names[:3]) + (" and %d more" % (len(names) - 3) if len(names) > 3 else "")
