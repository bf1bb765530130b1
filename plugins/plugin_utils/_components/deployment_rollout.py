# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A component that is one pod for the cluster: its Deployment as defined, and back, by itself, where the new pod does not work.

Kubernetes keeps the old pod until the new one is available (maxUnavailable 0). So here is only waited, judged, and, if need be, the
template put back.
"""

from __future__ import annotations

from collections.abc import Callable

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._components import revisions as components_revisions
from ansible_collections.npuops.ascend.plugins.plugin_utils._components import rollout_failure
from ansible_collections.npuops.ascend.plugins.plugin_utils._components.held_daemonset import ATTEMPTS
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import daemonsets as kube_daemonsets
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import objects as kube_objects
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import Clock
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyKindCluster, Object, Objects

_POLL_SECONDS = 2.0
_REVISION = "deployment.kubernetes.io/revision"
_STRATEGIC = "application/strategic-merge-patch+json"


class DeploymentRollout:
    """Brings one Deployment about as defined. ``timeout``: seconds that the new pod has; ``say(sentence)``: progress for people."""

    def __init__(
        self, cluster: AnyKindCluster, definition: Object, timeout: float, say: Callable[[str], None], clock: Clock
    ) -> None:
        self._cluster, self._definition, self._timeout, self._clock = cluster, definition, timeout, clock
        self._label = kube_objects.label(definition)
        self._say = lambda sentence: say("%s: %s" % (self._label, sentence))
        metadata = definition["metadata"]
        self._namespace = metadata["namespace"]
        self._path = "/apis/apps/v1/namespaces/%s/deployments/%s" % (self._namespace, metadata["name"])

    def bring_about(self, check_mode: bool = False) -> kube_objects.Change | None:
        """As _kube.objects.apply. Raises NpuError if its pod does not work; a template that worked before is back then.

        Also waits for a Deployment that is as defined already: a run that was killed may have left it on its way.
        """
        before = self._cluster.get(self._path)
        change = kube_objects.apply(self._cluster, self._definition, check_mode)
        if check_mode:
            return change
        applied = self._get()
        why = self._wait(fingerprint_of(applied))
        if why is None:
            return change
        images = components_revisions.images(applied["spec"]["template"])
        told = "%s: with the image %s it does not work: %s" % (self._label, images, why)
        if before is None or fingerprint_of(before) == fingerprint_of(applied):
            raise NpuError(told)
        raise NpuError("%s\n%s" % (told, self._restore(before, fingerprint_of(applied))))

    def _wait(self, template: str) -> str | None:
        """None once its pod works, or why it does not. ``template``: the fingerprint of the one that was applied."""
        pulls = kube_daemonsets.Pulls(self._clock.monotonic)
        deadline = self._clock.monotonic() + self._timeout
        said = False
        while True:
            actual = self._get()
            if fingerprint_of(actual) != template:
                raise NpuError(
                    "Another client changed %s while this run waited for its new pod. It is left unchanged, with the image %s. To"
                    " deploy what is configured, run this again."
                    % (self._label, components_revisions.images(actual["spec"]["template"]))
                )
            if works(actual):
                return None
            pods = self._new_pods(actual)
            hopeless = _is_paused(actual) or pulls.in_vain(pods) or any(map(rollout_failure.keeps_ending, pods))
            if hopeless or self._clock.monotonic() >= deadline:
                return self._why(actual, pods)
            if not said:
                self._say("waiting for its pod, for %d s at most" % self._timeout)
                said = True
            self._clock.sleep(_POLL_SECONDS)

    def _restore(self, before: Object, ours: str) -> str:
        """Put the template of ``before`` back; what became of it, as a sentence. ``ours``: the fingerprint to replace.

        What was applied last is put back with it: from that, the next definition knows what to remove.
        """
        template, name = before["spec"]["template"], kube_objects.LAST_APPLIED
        last = (before["metadata"].get("annotations") or {}).get(name)
        for _attempt in range(ATTEMPTS):
            actual = self._get()
            if fingerprint_of(actual) != ours:
                return "Another client has changed it in the meantime: it is left unchanged."
            body = {
                "metadata": {"resourceVersion": actual["metadata"]["resourceVersion"], "annotations": {name: last}},
                "spec": {"template": dict(template, **{"$patch": "replace"})},
            }
            try:
                self._cluster.request(
                    "patch", self._path, body=body, content_type=_STRATEGIC, field_manager=kube_client.FIELD_MANAGER
                )
            except kube_client.Conflict:
                continue
            kept = (actual.get("status") or {}).get("availableReplicas", 0) > 0
            return "The previous definition, with the image %s, is restored%s." % (
                components_revisions.images(template),
                "; its pod was kept and works" if kept else "",
            )
        return "It could not be restored, because another client keeps changing it. Run this again later."

    def _get(self) -> Object:
        actual = self._cluster.get(self._path)
        if actual is None:
            raise NpuError("%s was deleted while its pod was waited for. Run this again to create it." % self._label)
        return actual

    def _new_pods(self, actual: Object) -> Objects:
        """The pods of the present template; none before the controller manager has seen it."""
        if not _observed(actual):
            return []
        revision = (actual["metadata"].get("annotations") or {}).get(_REVISION)
        selector = components_revisions.selector_of(actual)
        sets = self._cluster.list("/apis/apps/v1/namespaces/%s/replicasets" % self._namespace, **selector)
        newest = {
            item["metadata"]["uid"]
            for item in sets
            if components_revisions.is_owned(item, actual["metadata"]["uid"])
            and (item["metadata"].get("annotations") or {}).get(_REVISION) == revision
        }
        pods = self._cluster.list("/api/v1/namespaces/%s/pods" % self._namespace, **selector)
        return [
            pod
            for pod in pods
            if not pod["metadata"].get("deletionTimestamp") and any(components_revisions.is_owned(pod, uid) for uid in newest)
        ]

    def _why(self, actual: Object, pods: Objects) -> str:
        if _is_paused(actual):
            name = actual["metadata"]["name"]
            return "it is paused, so it gets no pod: kubectl rollout resume -n %s deployment/%s" % (self._namespace, name)
        if not _observed(actual):
            return "the controller manager has not seen the change yet: is it running?"
        for pod in pods:
            if not kube_daemonsets.pod_ready(pod):
                return rollout_failure.why_not_ready(self._cluster, pod)
        conditions = (actual.get("status") or {}).get("conditions") or []
        for condition in conditions:
            if condition.get("type") == "ReplicaFailure" and condition.get("status") == "True":
                return "it has no pod: %s" % rollout_failure.printable(condition.get("message", ""))
        return "its pod is Ready, but not for long enough" if pods else "it has no pod yet"


def fingerprint_of(deployment: Object) -> str:
    """Of its pod template."""
    return components_revisions.fingerprint(deployment["spec"]["template"])


def works(deployment: Object) -> bool:
    """Whether all its pods are of the present template and available, and no other is left."""
    wanted, status = deployment["spec"].get("replicas", 1), deployment.get("status") or {}
    return _observed(deployment) and all(
        status.get(count, 0) == wanted for count in ("replicas", "updatedReplicas", "availableReplicas")
    )


def _is_paused(deployment: Object) -> bool:
    return bool(deployment["spec"].get("paused"))


def _observed(deployment: Object) -> bool:
    return (deployment.get("status") or {}).get("observedGeneration", 0) >= deployment["metadata"].get("generation", 0)
