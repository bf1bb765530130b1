# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kind ImageWhiteList of some platforms: images that it does not name may not run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._image.reference import parse_reference
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import white_list_entries
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object

KIND, NAMESPACE, NAME = "ImageWhiteList", "cpaas-system", "ascend-driver"
_PLURAL = "imagewhitelists"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
# Names only: the definitions themselves are megabytes.
_NAMES_ONLY = {"Accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}


class WhiteList:
    """The object that must name the driver images; ``item`` is None when it is missing, ``path`` is where it is."""

    def __init__(self, item: Object | None, path: str) -> None:
        self._item, self._path = item, path
        self._texts = list(_strings({key: value for key, value in (item or {}).items() if key != "metadata"}))
        self._exists = item is not None

    @classmethod
    def find(cls, cluster: AnyCluster) -> WhiteList | None:
        """The WhiteList, or None in a cluster that does not know the kind. Raises NpuError."""
        definition = _definition(cluster)
        if definition is None:
            return None
        spec = definition["spec"]
        version = next(entry["name"] for entry in spec["versions"] if entry.get("served"))
        namespace = "namespaces/%s/" % NAMESPACE if spec.get("scope") == "Namespaced" else ""
        path = "/apis/%s/%s/%s%s/%s" % (spec["group"], version, namespace, _PLURAL, NAME)
        return cls(cluster.get(path), path)

    def why_not(self, image: str) -> str | None:
        """Why the image (a reference) may not run, as a clause, or None."""
        if not self._exists:
            return "the cluster has the kind %s, but no object %s in %s: no driver image is allowed" % (KIND, NAME, NAMESPACE)
        reference = parse_reference(image)
        wanted = reference.digest or reference.tag
        if any(wanted in text for text in self._texts):
            return None
        return "the %s %s in %s does not contain %s; add it there" % (KIND, NAME, NAMESPACE, wanted)

    def allow(self, cluster: AnyCluster, images: Iterable[str], check_mode: bool) -> list[str]:
        """Add those of ``images`` that may not run; returns the new entries. Raises NpuError."""
        missing = [image for image in images if self.why_not(image)]
        if not missing:
            return []
        if self._item is None:
            raise NpuError("There is no %s %s in %s. Create it with the first image: %s" % (KIND, NAME, NAMESPACE, missing[0]))
        try:
            change, entries = white_list_entries.added(self._item, missing)
        except NpuError as exc:
            raise NpuError("The %s %s in %s cannot be extended. %s" % (KIND, NAME, NAMESPACE, exc.message))
        if entries and not check_mode:
            # Refused if another client has changed it since it was read.
            version = {"resourceVersion": self._item["metadata"].get("resourceVersion")}
            cluster.merge_patch(self._path, dict(change, metadata=version))
        return entries


def _definition(cluster: AnyCluster) -> Object | None:
    try:
        for item in cluster.each(_DEFINITIONS, header_params=dict(_NAMES_ONLY)):
            if item["metadata"]["name"].startswith(_PLURAL + "."):
                return cluster.get("%s/%s" % (_DEFINITIONS, item["metadata"]["name"]))
    except kube_client.NotFound:
        pass
    return None


def _strings(value: Any) -> Iterator[str]:
    waiting = [value]  # not by recursion: an object may be nested as deeply as its author wants
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
        elif isinstance(one, str):
            yield one
