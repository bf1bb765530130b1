# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The DaemonSet that a run rolls out. Every write says what it was read as, so none undoes what another run or a person did."""

from __future__ import annotations

from collections.abc import Callable

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._components import revisions as components_revisions
from ansible_collections.npuops.ascend.plugins.plugin_utils._components import rollout_failure
from ansible_collections.npuops.ascend.plugins.plugin_utils._components.rollout_progress import ANNOTATION, Progress, progress_of
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import objects as kube_objects
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.daemonsets import ON_DELETE, strategy_of
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object

# Every status that Kubernetes writes into the DaemonSet is a conflict.
ATTEMPTS = 20
_STRATEGIC = "application/strategic-merge-patch+json"


class LookAgain(Exception):
    """The DaemonSet is no longer as it was read."""


class HeldDaemonSet:
    """``label``: what people call it; ``run``: the name of this run."""

    def __init__(self, cluster: AnyCluster, namespace: str, name: str, label: str, run: str) -> None:
        self._cluster, self._label, self._run = cluster, label, run
        self.path = "/apis/apps/v1/namespaces/%s/daemonsets/%s" % (namespace, name)

    def get(self) -> Object:
        actual = self._cluster.get(self.path)
        if actual is None:
            raise NpuError("%s was deleted while it was rolled out. Run this again to create it." % self._label)
        return actual

    def check(self, actual: Object, progress: Progress, holder: str | None = None) -> None:
        """Raise NpuError if the DaemonSet is not as the progress says. ``holder``: the dead run that has the rollout so far."""
        present = progress_of(actual)
        if present is not None and present.run not in (self._run, holder):
            if holder:
                raise LookAgain
            raise NpuError("%s: the run %s has taken over its rollout. This run stops here." % (self._label, present.run))
        if present is None or not is_as_left(actual, progress):
            if present is not None or strategy_of(actual).get("type") == "OnDelete":
                self.hand_over(actual, progress)
            raise NpuError(
                "Another client changed %s (%s) while it was rolled out. It is left unchanged, with the image %s, and"
                " Kubernetes replaces its pods, %s at a time. To roll out what is configured, run this again."
                % (
                    self._label,
                    _last_manager(actual),
                    components_revisions.images(actual["spec"]["template"]),
                    (progress.strategy.get("rollingUpdate") or {}).get("maxUnavailable", 1),
                )
            )

    def hand_over(self, actual: Object, progress: Progress) -> None:
        """Keep what another client has changed, and leave the DaemonSet to Kubernetes again. Raises Conflict."""
        body = back_to_kubernetes(progress.strategy)
        body["metadata"]["resourceVersion"] = actual["metadata"]["resourceVersion"]
        self._cluster.merge_patch(self.path, body, field_manager=kube_client.FIELD_MANAGER)

    def put(self, actual: Object, progress: Progress, template: Object) -> Object:
        """The template and what is to be remembered of it, in one request. Raises Conflict."""
        body = {
            "metadata": {
                "resourceVersion": actual["metadata"]["resourceVersion"],
                "annotations": {ANNOTATION: progress.text()},
            },
            "spec": {
                "template": dict(template, **{"$patch": "replace"}),
                "updateStrategy": ON_DELETE,
            },
        }
        return self._cluster.request(
            "patch", self.path, body=body, content_type=_STRATEGIC, field_manager=kube_client.FIELD_MANAGER
        )

    def turn(self, progress: Progress, template: Object) -> Progress:
        """Another template in the middle of a rollout."""
        for _attempt in range(ATTEMPTS):
            actual = self.get()
            present = progress_of(actual)
            if present == progress:
                return progress  # an answer that was lost
            self.check(actual, present or progress)
            try:
                self.put(actual, progress, template)
                return progress
            except kube_client.Conflict:
                continue
        raise LookAgain

    def write(self, progress: Progress, holder: str | None = None) -> Progress:
        """Remember the progress. ``holder``: the run that has the rollout so far, if not this one."""
        self._patch(progress, lambda _actual: {"metadata": {"annotations": {ANNOTATION: progress.text()}}}, holder)
        return progress

    def end(self, progress: Progress, patch: Callable[[Object], Object]) -> Object:
        """The last request, with which the DaemonSet is Kubernetes' again."""

        def has_ended(actual: Object) -> bool:  # and the answer was lost
            return progress_of(actual) is None and fingerprint_of(actual) == progress.template and not is_as_left(actual, progress)

        return self._patch(progress, patch, has_ended=has_ended)

    def _patch(
        self,
        progress: Progress,
        patch: Callable[[Object], Object],
        holder: str | None = None,
        has_ended: Callable[[Object], bool] | None = None,
    ) -> Object:
        for _attempt in range(ATTEMPTS):
            actual = self.get()
            if has_ended and has_ended(actual):
                return actual
            self.check(actual, progress, holder)
            body = patch(actual)
            body.setdefault("metadata", {})["resourceVersion"] = actual["metadata"]["resourceVersion"]
            try:
                return self._cluster.merge_patch(self.path, body, field_manager=kube_client.FIELD_MANAGER)
            except kube_client.Conflict:
                continue
        raise LookAgain

    def as_stored(self, actual: Object, patch: Object | None, template: Object | None = None) -> Object:
        """The template as the API server would have it after the merge patch."""
        change = ((patch or {}).get("spec") or {}).get("template") or {}
        merged = kube_objects.merged(template or actual["spec"]["template"], change)
        body = {"spec": {"template": dict(merged, **{"$patch": "replace"})}}
        stored = self._cluster.request("patch", self.path, body=body, content_type=_STRATEGIC, dry_run="All")
        return stored["spec"]["template"]


def is_as_left(daemonset: Object, progress: Progress) -> bool:
    """Whether it still is as the run has made it whose progress that is."""
    return fingerprint_of(daemonset) == progress.template and strategy_of(daemonset).get("type") == "OnDelete"


def back_to_kubernetes(strategy: Object) -> Object:
    return {"metadata": {"annotations": {ANNOTATION: None}}, "spec": {"updateStrategy": strategy}}


def fingerprint_of(daemonset: Object) -> str:
    return components_revisions.fingerprint(daemonset["spec"]["template"])


def _last_manager(daemonset: Object) -> str:
    entries = [entry for entry in daemonset["metadata"].get("managedFields") or [] if entry.get("subresource") != "status"]
    last: Object = max(entries, key=lambda entry: entry.get("time") or "", default={})
    return rollout_failure.printable(last.get("manager") or "unknown", 64)
