# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a pod uses NPUs, and which: by resource, or by a name of this collection's CDI spec."""

from __future__ import annotations

import collections

from ansible_collections.npuops.ascend.plugins.module_utils._containerd import cdi_spec
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import quantity as kube_quantity
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import resources as npu_resources

_CDI_ANNOTATION = "cdi.k8s.io/"

_CDI_KIND = cdi_spec.KIND + "="


def uses_npus(item: Object) -> bool:
    """Whether a pod that has not ended asked for a chip, by resource or by CDI name."""
    if item.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return False
    return has_cdi_name(item["metadata"]) or bool(requests(item.get("spec") or {}))


def has_cdi_name(metadata: Object) -> bool:
    """Whether the annotations of a pod ask for devices of this collection's CDI spec."""
    annotations = metadata.get("annotations") or {}
    return any(key.startswith(_CDI_ANNOTATION) and _CDI_KIND in str(value) for key, value in annotations.items())


def requests(spec: Object) -> dict[str, int]:
    """As the scheduler counts: an init container runs before the others, one that is restarted always (a sidecar) beside them."""
    first = [(container.get("restartPolicy") == "Always", _asked(container)) for container in spec.get("initContainers") or []]
    others = [_asked(container) for container in spec.get("containers") or []]
    if not any(others) and not any(asked for _sidecar, asked in first):
        return {}
    beside: collections.Counter[str] = collections.Counter()
    most: collections.Counter[str] = collections.Counter()
    for sidecar, asked in first:
        if sidecar:
            beside.update(asked)
        most |= beside if sidecar else beside + collections.Counter(asked)
    for asked in others:
        beside.update(asked)
    return dict(beside | most)


def _asked(container: Object) -> dict[str, int]:
    """{resource: count} of the NPUs that one container asks for."""
    counts: dict[str, int] = {}
    resources = container.get("resources") or {}
    # A request that is not written is the limit.
    for name, count in dict(resources.get("limits") or {}, **(resources.get("requests") or {})).items():
        if npu_resources.is_npu(name) and str(count) not in ("0", ""):
            number = kube_quantity.whole(count)
            # Whatever it asks for, it asks for something.
            counts[name] = 1 if number is None else number
    return {name: number for name, number in counts.items() if number}
