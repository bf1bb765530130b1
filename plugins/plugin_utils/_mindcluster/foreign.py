# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Device plugins and exporters for the same chips that this collection did not deploy, under any name and in any namespace.

Adoption moves nodes from them to ours. They are recognized by what they mount and run, because their names can be anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ansible_collections.npuops.ascend.plugins.plugin_utils._data import this_run
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.daemonsets import PLUGIN_SOCKETS
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Object, Objects
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import component_names
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import resources as npu_resources

# "true" on a Node: the components of others are to keep off it.
LABEL_ADOPTED = "npuops.ascend/adopted"
# On a Node while it moves, and on each DaemonSet that is adopted: what was before.
ANNOTATION_ADOPTION = "npuops.ascend/adoption"

# The node affinity of a DaemonSet that is set aside: no node has that.
ASIDE: Object = {"key": LABEL_ADOPTED, "operator": "In", "values": ["nowhere"]}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

_PLUGIN = re.compile(r"(ascend|npu)[-_.]?(k8s)?[-_.]?device[-_.]?plugin")
_EXPORTER = re.compile(r"npu[-_.]?exporter")
# Where programs in a container look for the driver's libraries.
_LIBRARIES = ("/usr/local/Ascend/", "/usr/local/dcmi/")


def adopt() -> str:
    """The command that moves nodes to our components, or goes on with that."""
    return this_run.again("adopt", {"npu_adopt": True, "npu_adopt_state": "adopted"})


def give_back() -> str:
    """The command that moves nodes back to the components of others, or goes on with that."""
    return this_run.again("adopt", {"npu_adopt": True, "npu_adopt_state": "returned"})


def device_plugins(daemonsets: Iterable[Object], namespace: str) -> Objects:
    """The device plugins for Ascend chips among the DaemonSets that are not ours. ``namespace``: of ours."""
    return [item for item in daemonsets if _is_device_plugin(item) and not _is_ours(item, namespace)]


def exporters(daemonsets: Iterable[Object], namespace: str) -> Objects:
    """The same for exporters."""
    return [item for item in daemonsets if _says(item, _EXPORTER) and _uses_chips(item) and not _is_ours(item, namespace)]


def our_device_plugins(daemonsets: Iterable[Object], namespace: str) -> Objects:
    """Those that install has deployed, or takes for its own."""
    return [item for item in daemonsets if _is_device_plugin(item) and _is_ours(item, namespace)]


def is_set_aside(daemonset: Object) -> bool:
    """Whether adoption has set it aside, and it runs nowhere. One that nodes still move away from may run nowhere, too: they may
    come back."""
    status = daemonset.get("status") or {}
    return (
        ANNOTATION_ADOPTION in kube_client.annotations(daemonset)
        and is_restricted(daemonset, ASIDE)
        and status.get("observedGeneration", 0) >= daemonset["metadata"].get("generation", 0)
        and not status.get("desiredNumberScheduled")
        and not status.get("currentNumberScheduled")
    )


def required_terms(daemonset: Object) -> Objects:
    """The terms of its required node affinity, of which a node must satisfy one."""
    affinity = daemonset["spec"]["template"]["spec"].get("affinity") or {}
    return ((affinity.get("nodeAffinity") or {}).get(_REQUIRED) or {}).get("nodeSelectorTerms") or []


def matches_nothing(term: Object) -> bool:
    """Whether no node satisfies the term, because it has no expression. With one of ours it would match."""
    return not term.get("matchExpressions") and not term.get("matchFields")


def is_restricted(daemonset: Object, expression: Object) -> bool:
    """Whether it runs only on nodes that satisfy ``expression``."""
    terms = [term for term in required_terms(daemonset) if not matches_nothing(term)]
    return bool(terms) and all(expression in (term.get("matchExpressions") or []) for term in terms)


def _is_ours(daemonset: Object, namespace: str) -> bool:
    metadata = daemonset["metadata"]
    return metadata["namespace"] == namespace and metadata["name"] in component_names.DAEMONSETS


def _is_device_plugin(daemonset: Object) -> bool:
    spec = daemonset["spec"]["template"]["spec"]
    paths = {(volume.get("hostPath") or {}).get("path") for volume in spec.get("volumes") or []}
    if not paths.intersection(PLUGIN_SOCKETS) and not {path + "/" for path in PLUGIN_SOCKETS}.intersection(paths):
        return False
    if _says(daemonset, _PLUGIN):
        return True
    # The node agent has the sockets and the tolerations of a device plugin.
    tolerates_npus = any(npu_resources.is_npu(entry.get("key")) for entry in spec.get("tolerations") or [])
    return tolerates_npus and daemonset["metadata"]["name"] != component_names.AGENT


def _uses_chips(daemonset: Object) -> bool:
    """Whether it can: in a name alone, tenants may say anything."""
    for container in daemonset["spec"]["template"]["spec"].get("containers") or []:
        mounts = [str(mount.get("mountPath")) + "/" for mount in container.get("volumeMounts") or []]
        if (container.get("securityContext") or {}).get("privileged") or any(path.startswith(_LIBRARIES) for path in mounts):
            return True
    return False


def _says(daemonset: Object, what: re.Pattern[str]) -> bool:
    """Whether its name begins with that, or the last part of an image's name does."""
    names = [daemonset["metadata"]["name"]]
    for container in daemonset["spec"]["template"]["spec"].get("containers") or []:
        names.append(str(container.get("image", "")).partition("@")[0].rpartition("/")[2].partition(":")[0])
    return any(what.match(name) for name in names)
