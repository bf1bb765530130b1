# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ControllerRevisions: the pod templates of a DaemonSet that Kubernetes keeps, and that a rollout can go back to."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object, Selectors

# The label of revisions and pods. Its value says which pod was made from which template.
HASH = "controller-revision-hash"
# Characters of JSON. Templates of the components have some thousands.
_MOST = 512 * 1024


class Revisions:
    """The revisions that belong to one DaemonSet object: others may have the same labels, or an earlier one the same name."""

    def __init__(self, cluster: AnyCluster, daemonset: Object) -> None:
        metadata = daemonset["metadata"]
        self._name = "%s/%s" % (metadata["namespace"], metadata["name"])
        path = "/apis/apps/v1/namespaces/%s/controllerrevisions" % metadata["namespace"]
        found = cluster.list(path, **selector_of(daemonset))
        self._all = {_hash(item): item for item in found if _hash(item) and is_owned(item, metadata["uid"])}

    @property
    def newest(self) -> str | None:
        """The hash of the revision of the present template, once the controller has seen it."""
        return max(self._all, key=lambda name: _number(self._all[name]), default=None)

    def template(self, name: str) -> Object:
        """The pod template of the revision with that hash. Raises NpuError if it is not there, or is no pod template."""
        if name not in self._all:
            raise NpuError("DaemonSet %s has no ControllerRevision with the hash %s (any more)." % (self._name, name[:64]))
        template = _inner(_inner(self._all[name].get("data"), "spec"), "template")
        if not _inner(template, "spec").get("containers") or len(json.dumps(template)) > _MOST:
            raise NpuError(
                "The ControllerRevision %s of DaemonSet %s contains no usable pod template."
                % (self._all[name]["metadata"].get("name"), self._name)
            )
        return {key: value for key, value in template.items() if key != "$patch"}


def selector_of(daemonset: Object) -> Selectors:
    """What narrows a list to the pods and revisions of the DaemonSet; whose they are tells ``is_owned``."""
    selector: Object = daemonset["spec"].get("selector") or {}
    labels: dict[str, str] = selector.get("matchLabels") or {}
    return {"label_selector": ",".join("%s=%s" % item for item in sorted(labels.items()))} if labels else {}


def is_owned(item: Object, uid: str) -> bool:
    return any(owner.get("controller") and owner.get("uid") == uid for owner in item["metadata"].get("ownerReferences") or [])


def hash_of(pod: Object) -> str | None:
    """Of the template that the pod was made from."""
    return _hash(pod)


def fingerprint(template: Object) -> str:
    """The same for the same template, however the API server writes what is not set."""
    return hashlib.sha256(json.dumps(_without_nulls(template), sort_keys=True).encode()).hexdigest()[:32]


def images(template: Object) -> str:
    """The images of a pod template, for people."""
    containers = [item for item in template["spec"].get("containers") or [] if isinstance(item, dict)]
    return ", ".join(str(container.get("image"))[:300] for container in containers)[:1000]


def _inner(value: Any, name: str) -> Object:
    """The dictionary with that name in a dictionary; an empty one if there is none."""
    inner = value.get(name) if isinstance(value, dict) else None
    return inner if isinstance(inner, dict) else {}


def _hash(item: Object) -> Any:
    return (item["metadata"].get("labels") or {}).get(HASH)


def _number(revision: Object) -> int:
    number = revision.get("revision")
    return number if isinstance(number, int) else 0


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [_without_nulls(inner) for inner in value] if isinstance(value, list) else value
