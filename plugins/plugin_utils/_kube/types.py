# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names for the types of what comes from the API server and goes there."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, Protocol, TypedDict, Unpack

from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.stream import Stream

# A Kubernetes object, or a part of one, as the API server has it: decoded JSON.
Object = dict[str, Any]
Objects = list[Object]
# Labels or annotations of an object.
Labels = dict[str, str]
# What is to become of them: None removes one.
LabelChanges = dict[str, str | None]


class Selectors(TypedDict, total=False):
    """What limits a list. The client library ignores arguments that it does not know, so each name counts."""

    label_selector: str
    field_selector: str
    header_params: dict[str, str]


class Requests(Protocol):
    """What makes requests."""

    def request(self, method: str, path: str, **arguments: Any) -> Any:
        """One request; the decoded answer. Raises NpuError."""


class AnyCluster(Requests, Protocol):
    """A client.Cluster, or the retry.RetryingCluster of one."""

    @property
    def without_retries(self) -> AnyCluster:
        """The same without retries: an outage is told at once."""

    def get(self, path: str, **params: Any) -> Object | None:
        """The object, or None if there is none."""

    def list(self, path: str, **selectors: Unpack[Selectors]) -> Objects:
        """The objects of a collection, all at once."""

    def each(self, path: str, **selectors: Unpack[Selectors]) -> Iterator[Object]:
        """The objects of a collection, page by page."""

    def merge_patch(self, path: str, body: Object, **params: Any) -> Object:
        """The object after the patch."""

    def pieces(self, path: str, **params: Any) -> Generator[bytes, None, None]:
        """The answer as it arrives. Raises NpuError."""

    def stream(self, path: str, version: str, **selectors: Unpack[Selectors]) -> Stream | None:
        """A watch for changes after the resource version, or None where there can be none. Raises NpuError."""

    def may(self, verb: str, resource: str, group: str = "", namespace: str | None = None, name: str | None = None) -> bool:
        """Whether the user may do that."""


class AnyKindCluster(AnyCluster, Protocol):
    """One that knows the paths of all kinds."""

    def path(self, kind: str, api_version: str, namespace: str | None, name: str | None) -> str:
        """The path of an object, or of its collection without a name."""
