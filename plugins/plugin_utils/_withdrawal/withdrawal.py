# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Taking nodes out of the cluster's NPU service: whether that may be done, and what of theirs goes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import this_run
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import AskedHost, Facts
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import agent_conditions as kube_agent_conditions
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.each import AllOf
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import Clock
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import component_names
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import foreign as mindcluster_foreign
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import stack as mindcluster_stack
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import acceptance_gate, node_name
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import identity as node_identity
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods import npu_users_by_node
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import node_conditions
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._withdrawal import taints_removal

_CLOCK = Clock()

# Labels and annotations whose names are ours, but for two that only people put.
_OURS = ("npuops.ascend/", "npu.openfuyao.com/")
_PEOPLES = ("npuops.ascend/skip", "npuops.ascend/keep-cordoned")

# What MindCluster's device plugin (7.3 to 26.1) writes on its Node and never removes: names that no other client writes, and names
# that people also use, as Huawei's guide tells them to (servertype=soc, accelerator-type).
_PLUGINS = (
    "node.kubernetes.io/npu.chip.name",
    "mind-cluster/npu-chip-memory",
    "infer-card-type",
    "huawei.com/Ascend910-Recover",
    "huawei.com/Ascend910-NetworkRecover",
    "huawei.com/npu-Recover",
    "huawei.com/npu-NetworkRecover",
    "huawei.com/driver.version",
    "huawei.com/topotree.superpodid",
    "huawei.com/topotree.rackid",
    "huawei.com/topotree.serverid",
    "baseDeviceInfos",
    "superPodID",
)
_PLUGINS_OR_PEOPLES = ("servertype", "accelerator-type", "serverIndex", "serverType", "ResetInfo", "cardType", "rackID")
# As the API server calls it: by the name of its program.
_PLUGIN_MANAGER = "device-plugin"

# It writes this, too. A scheduler would believe in chips that no node offers.
_DEVICE_INFO = "/api/v1/namespaces/kube-system/configmaps/mindx-dl-deviceinfo-%s"
# And noded this, from which clusterd believes in faults of the node.
_NODE_INFO = "/api/v1/namespaces/%s/configmaps/%s%%s" % (mindcluster_stack.DL_NAMESPACE, mindcluster_stack.NODE_INFO)


class Leaving:
    """One host that is to leave. ``host``: as the npu_hosts filter makes it; ``node``: its Node object or None;
    ``by_boot_id``: names of the nodes; ``pods``: those on it that use NPUs; ``unknown``: those that may, each with the reason;
    ``adopted_from``: labels of the DaemonSets of others that keep off it.
    """

    def __init__(
        self,
        host: AskedHost,
        nodes: Mapping[str, Object],
        by_boot_id: Mapping[str, str],
        pods: Mapping[str | None, list[str]],
        unknown: Mapping[str | None, list[str]],
        adopted_from: Mapping[str, list[str]],
    ) -> None:
        self.name: str = host["name"]
        self.node_name = node_name.of_host(host)
        self.node = nodes.get(self.node_name)
        self.pods = pods.get(self.node_name, [])
        self.unknown = unknown.get(self.node_name, [])
        self.adopted_from = adopted_from.get(self.node_name, [])
        self.facts: Facts = host.get("facts") or Facts()
        self.same_machine = by_boot_id.get(self.facts.get("boot_id") or "")
        self.error = host.get("error")
        self.unreachable = host.get("unreachable")

    def reasons(self, force: bool) -> list[str]:
        """Why it must not be touched, as sentences; ``force``: pods, a maintenance and an adoption do not count."""
        if self.error:
            return ["%s%s" % ("not reachable: " if self.unreachable else "", " ".join(str(self.error).split()))]
        there = None if self.node is None else kube_client.boot_id(self.node)
        if self.same_machine not in (None, self.node_name) and self.facts.get("boot_id") != there:
            # Whatever becomes of its own node: the pods of that one would lose their driver.
            return [
                "this machine is the node %s, not %s. Correct ansible_host, or set npu_node_name: %s"
                % (self.same_machine, self.node_name, self.same_machine)
            ]
        if self.node is None:
            return [] if force or not (self.facts.get("runtime") or {}).get("kubelet") else [self._no_node()]
        reasons = []
        if kube_client.node_ready(self.node)[0] and self.facts.get("boot_id") not in (None, there):
            reasons.append(
                "the host is not the node %s: its boot ID is %s, the node reports %s. %s"
                % (self.node_name, self.facts["boot_id"], there, node_identity.ADVICE)
            )
        if force:
            return reasons
        if self.in_maintenance:
            reasons.append("the node %s is in maintenance; wait until that ends" % self.node_name)
        if self.adopted_from:
            reasons.append(
                "the node %s was adopted from %s. Delete the DaemonSet if you will not go back to it; npu_uninstall_force: true"
                " continues anyway, and leaves the DaemonSet unchanged. Or give it back first: %s"
                % (self.node_name, " and ".join(self.adopted_from), mindcluster_foreign.give_back())
            )
        if self.pods:
            reasons.append(
                "pods use its NPUs: %s. Delete them or drain the node; npu_uninstall_force: true continues anyway, and "
                "leaves what they have mounted" % ", ".join(self.pods)
            )
        if self.unknown:
            reasons.append(
                "pods may use its NPUs: %s. Delete them, drain the node, or allow what is missing; npu_uninstall_force: true"
                " continues anyway, and leaves what they have mounted" % ", ".join(self.unknown)
            )
        return reasons

    def _no_node(self) -> str:
        """Why the host of a kubelet without a Node must not be touched: pods of another cluster may use its NPUs."""
        return (
            "a kubelet runs on it, but this cluster has no node %s. If the host belongs to another cluster, set"
            " npu_kubernetes_auth to that one; if its Node has another name, set npu_node_name; if its Node was deleted, stop the"
            " kubelet. npu_uninstall_force: true continues anyway" % self.node_name
        )

    @property
    def in_maintenance(self) -> bool:
        return self.node is not None and kube_client.ANNOTATION_MAINTENANCE in kube_client.annotations(self.node)

    def patch(self) -> Object | None:
        """The merge patch that takes what is ours from the Node's metadata, or None."""
        if self.node is None:
            return None
        annotations = [key for key in kube_client.annotations(self.node) if key.startswith(_OURS)]
        return _removal(self.node, our_labels(self.node), annotations)

    def opening(self) -> Object | None:
        """The merge patch that takes our gate and our cordon away, or None."""
        if self.node is None:
            return None
        spec = dict(acceptance_gate.opening(self.node))
        if maintenance_record.cordon_is_ours(self.node):
            spec["unschedulable"] = None
        return _removal(self.node, (), (), spec)

    def plugins_patch(self) -> Object | None:
        """The same with what the device plugin wrote."""
        if self.node is None:
            return None
        return _removal(self.node, _plugins(self.node, "labels"), _plugins(self.node, "annotations"))


def _removal(node: Object, labels: Collection[str], annotations: Collection[str], spec: Object | None = None) -> Object | None:
    metadata: Object = {}
    if labels:
        metadata["labels"] = dict.fromkeys(sorted(labels))
    if annotations:
        metadata["annotations"] = dict.fromkeys(sorted(annotations))
    if not metadata and not spec:
        return None
    metadata["resourceVersion"] = node["metadata"]["resourceVersion"]
    return {"metadata": metadata, "spec": spec} if spec else {"metadata": metadata}


def _plugins(node: Object, part: str) -> set[str]:
    """Names of the labels, or of the annotations, that the device plugin wrote."""
    names = set(_PLUGINS) | _set_by(node, part, _PLUGIN_MANAGER).intersection(_PLUGINS_OR_PEOPLES)
    return names.intersection(node["metadata"].get(part) or {})


def _set_by(node: Object, part: str, manager: str, of_status: bool = True) -> set[str]:
    """Names of the labels, or of the annotations, whose value the API server knows that ``manager`` set last."""
    found: set[str] = set()
    for entry, owned in kube_client.owned_keys(node, part):
        if entry.get("manager") == manager and (of_status or not entry.get("subresource")):
            found |= owned
    return found


def our_labels(node: Object) -> set[str]:
    """Names of the labels that are ours: by their name, or because the API server remembers that we set them."""
    mine = {key for key in kube_client.labels(node) if key.startswith(_OURS) and key not in _PEOPLES}
    mine.update(_set_by(node, "labels", kube_client.FIELD_MANAGER, of_status=False))
    mine.add(kube_client.LABEL_PRESENT)
    return {key for key in mine if key in kube_client.labels(node)}


def kept_labels(departures: Iterable[Leaving]) -> dict[str, dict[str, str]]:
    """{node: the labels that stay on it}."""
    nodes = [one.node for one in departures if one.node is not None]
    return {
        node["metadata"]["name"]: {key: value for key, value in kube_client.labels(node).items() if key not in our_labels(node)}
        for node in nodes
    }


def leaving(
    hosts: Iterable[AskedHost],
    nodes: Mapping[str, Object],
    pods: Iterable[Object],
    by_claim: Collection[str] = (),
    unknown: Mapping[str, str] | None = None,
    adopted_from: Mapping[str, list[str]] | None = None,
) -> list[Leaving]:
    """A list of Leaving. ``nodes``: by name; ``pods``: Pod objects of the whole cluster; ``by_claim``: namespace/name of those that
    hold NPUs by a ResourceClaim; ``unknown``: of those that may, and why that is unknown; ``adopted_from``: by node, as
    _adopt.way_back tells them."""
    users, maybe = npu_users_by_node.by_node(pods, by_claim, unknown)
    by_boot_id = node_identity.by_boot_id(nodes)
    return [Leaving(host, nodes, by_boot_id, users, maybe, adopted_from or {}) for host in hosts]


def refusal(departures: Sequence[Leaving], force: bool) -> str | None:
    """Everything that stands in the way, as one text, or None."""
    lines = ["  %s: %s" % (one.name, reason) for one in departures for reason in one.reasons(force)]
    if not lines:
        return None
    lines.insert(0, "Nothing was removed:")
    if any(one.unreachable for one in departures):
        lines.append("To continue without a host, exclude it: %s." % this_run.limit_without("<host>"))
    return "\n".join(lines)


def others(departures: Iterable[Leaving], nodes: Mapping[str, Object]) -> list[str]:
    """Names of the nodes that stay in service."""
    gone = {one.node_name for one in departures}
    return sorted(
        name
        for name, node in nodes.items()
        if name not in gone and {kube_client.LABEL_PRESENT, kube_client.LABEL_COMPONENTS} & set(kube_client.labels(node))
    )


def left(departures: Iterable[Leaving]) -> dict[str, list[str]]:
    """Host name -> a list of one sentence on what the device plugin wrote; of the hosts whose Node has such."""
    told = {}
    for one in departures:
        patch = one.plugins_patch()
        if patch is not None:
            told[one.name] = [
                "node %s keeps what the device plugin wrote on it, %s; npu_uninstall_device_plugin_labels: true removes that"
                % (one.node_name, ", ".join(_keys(patch)))
            ]
    return told


def take_back(
    cluster: AnyCluster,
    namespace: str,
    departures: Sequence[Leaving],
    timeout: float,
    check_mode: bool = False,
    device_plugin_labels: bool = False,
    force: bool = False,
    clock: Clock = _CLOCK,
    noded: bool = False,
    served: Collection[str] = (),
    dra_drivers: Collection[str] = (),
) -> list[str]:
    """Take labels, annotations, conditions, taints, our cordons and ConfigMaps away; returns phrases of what was (or would be)
    done. ``device_plugin_labels``: what the device plugin wrote on the nodes goes, too. ``force``: a maintenance that has begun and
    pods that got NPUs meanwhile do not count. ``noded``: it is in the cluster. ``served``: nodes with the device plugin of another
    client, whose ConfigMap stays. ``dra_drivers``: those whose ResourceClaims are NPUs.

    A node that cannot be written, or whose pods stay, does not stop the others. Raises NpuError with all that failed when
    everything else is done.
    """
    each = AllOf()
    for one in departures:
        each.do("the node %s" % one.node_name, withdraw, cluster, one, check_mode, force, clock.now())
    gone = [one for one in departures if "the node %s" % one.node_name not in each.failed]
    names = [one.node_name for one in gone if one.node is not None]
    waited = check_mode or each.do("the pods", wait_until_gone, cluster, namespace, names, timeout, 1.0, clock)
    why = each.failed.get("the pods")
    stay = set(why.nodes) if isinstance(why, StillThere) else set()
    if waited or stay:
        # Not sooner: device plugin and node agent would write it again, and a pod that waits would get a chip.
        if not check_mode and not force:
            for name in [name for name in names if name not in stay]:
                if not each.do("the node %s" % name, _check_unused, cluster, name, dra_drivers):
                    stay.add(name)
        each.do("the taints of chips", taints_removal.remove, cluster, [name for name in names if name not in stay], check_mode)
        for one in gone:
            if one.node_name in stay:
                continue
            each.do("the node %s" % one.node_name, reopen, cluster, one, check_mode)
            each.do("the conditions of %s" % one.node_name, kube_agent_conditions.remove, cluster, one.node_name, check_mode)
            if one.node_name not in served:
                each.do("the ConfigMap of %s" % one.node_name, _forget, cluster, _DEVICE_INFO % one.node_name, check_mode)
            if noded:
                each.do("noded's report on %s" % one.node_name, _forget, cluster, _NODE_INFO % one.node_name, check_mode)
            if device_plugin_labels:
                each.do("what the device plugin wrote on %s" % one.node_name, _withdraw_plugins, cluster, one, check_mode)
    each.check()
    return each.results


def withdraw(cluster: AnyCluster, one: Leaving, check_mode: bool = False, force: bool = False, now: float = 0.0) -> str | None:
    """Take conditions, labels and annotations from one node; a phrase of what was (or would be) done, or None. ``now``: seconds
    since 1970.

    Raises NpuError when a maintenance has begun there since the node was read, unless ``force``.
    """

    def patch() -> Object | None:
        if one.in_maintenance and not force:
            raise NpuError("A maintenance of the node began in the meantime. Wait until it finishes, then run this again")
        return one.patch()

    if one.node is not None and not check_mode and (force or not one.in_maintenance):
        one.node = node_conditions.write(cluster, one.node, now, ended=True) or one.node
    return _take(cluster, one, patch, check_mode)


def _check_unused(cluster: AnyCluster, name: str, dra_drivers: Collection[str]) -> None:
    """Raise NpuError if a pod got NPUs of the node after it was looked at, which it has for good."""
    pods = npu_users_by_node.on_nodes(cluster, [name], dra_drivers).get(name)
    if pods:
        raise NpuError("pods have started to use its NPUs: %s. Delete them or drain the node, then run again" % ", ".join(pods))


def reopen(cluster: AnyCluster, one: Leaving, check_mode: bool = False) -> str | None:
    """Take our gate and our cordon from a node that offers no chip any more; a phrase of what was (or would be) done, or None."""
    if not check_mode and one.opening() is not None:
        one.node = cluster.get("/api/v1/nodes/" + one.node_name)  # its labels have gone since
    return _take(cluster, one, one.opening, check_mode)


def _withdraw_plugins(cluster: AnyCluster, one: Leaving, check_mode: bool) -> str | None:
    one.node = cluster.get("/api/v1/nodes/" + one.node_name)  # it has changed since, and the plugin may have written
    return _take(cluster, one, one.plugins_patch, check_mode)


def _keys(patch: Object) -> list[str]:
    return [key for part in ("labels", "annotations") for key in patch["metadata"].get(part, ())]


def _take(
    cluster: AnyCluster, one: Leaving, make_patch: Callable[[], Object | None], check_mode: bool, attempts: int = 5
) -> str | None:
    for attempt in range(attempts):
        patch = make_patch()
        if patch is None:
            return None
        try:
            if not check_mode:
                cluster.merge_patch("/api/v1/nodes/" + one.node_name, patch)
        except kube_client.Conflict:
            if attempt == attempts - 1:
                raise
            one.node = cluster.request("get", "/api/v1/nodes/" + one.node_name)
            continue
        told = ["remove %s from node %s" % (", ".join(_keys(patch)), one.node_name)] if _keys(patch) else []
        spec = patch.get("spec") or {}
        told += ["remove the taint %s from node %s" % (acceptance_gate.TAINT, one.node_name)] if "taints" in spec else []
        return "; ".join(told + (["uncordon node %s" % one.node_name] if "unschedulable" in spec else []))
    return None


def _forget(cluster: AnyCluster, path: str, check_mode: bool) -> str | None:
    """Delete a ConfigMap about the node; a phrase as above."""
    if cluster.get(path) is None:
        return None
    if not check_mode:
        cluster.request("delete", path)
    _start, namespace, _kind, name = path.rsplit("/", 3)
    return "delete ConfigMap %s/%s" % (namespace, name)


class StillThere(NpuError):
    """Pods of our components did not end. ``nodes``: names of those they are on."""

    def __init__(self, message: str, nodes: Collection[str]) -> None:
        super().__init__(message)
        self.nodes = nodes


def wait_until_gone(
    cluster: AnyCluster, namespace: str, names: Collection[str], timeout: float, interval: float = 1.0, clock: Clock = _CLOCK
) -> None:
    """Wait until no pod of our components is on the nodes ``names``; StillThere, naming the pods, after ``timeout`` seconds."""
    deadline = clock.monotonic() + timeout
    while True:
        pods = [pod for pod in cluster.list("/api/v1/namespaces/%s/pods" % namespace) if _is_component(pod, namespace, names)]
        if not pods:
            return
        if clock.monotonic() >= deadline:
            told = ", ".join("%s on %s" % (pod["metadata"]["name"], pod["spec"].get("nodeName")) for pod in pods)
            raise StillThere(
                "These pods did not end within %d s: %s. See kubectl -n %s describe pod, then run again. Those of a kubelet that"
                " does not run any more never end: kubectl -n %s delete pod --force --grace-period=0 <pod>"
                % (timeout, told, namespace, namespace),
                {pod["spec"]["nodeName"] for pod in pods},
            )
        clock.sleep(interval)


def _is_component(pod: Object, namespace: str, nodes: Collection[str]) -> bool:
    mine = component_names.daemonset_of(pod["metadata"], namespace) is not None
    return mine and (pod.get("spec") or {}).get("nodeName") in nodes
