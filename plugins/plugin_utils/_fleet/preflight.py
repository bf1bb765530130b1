# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdict on every host before anything is changed on any of them.

Pure decisions on what the hosts, the cluster and the registry said.
"""

from __future__ import annotations

import difflib
import json
import posixpath
import re

from ansible_collections.npuops.ascend.plugins.module_utils._driver.profile import image_profile, profile_tag
from ansible_collections.npuops.ascend.plugins.module_utils._driver.releases import Layout
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, one_line
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry_errors import ImageNotFound
from ansible_collections.npuops.ascend.plugins.plugin_utils._fleet import components as fleet_components
from ansible_collections.npuops.ascend.plugins.plugin_utils._fleet import identity
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.daemonsets import PLUGIN_SOCKETS
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings.specs import known_variables

READY, SKIPPED, BLOCKED, UNREACHABLE = "ready", "skipped", "blocked", "unreachable"

SOURCES = ("image", "preinstalled")
LATER_SOURCES = ("package",)

# As the API takes it: a 32 bit number, or up to 100%.
_AT_ONCE = re.compile(r"([1-9][0-9]{0,8}|([1-9][0-9]?|100)%)\Z")

# What a host's configuration is when its variables do not say otherwise; the keys are the variables without "npu_".
CONFIG_DEFAULTS = {
    "node_name": None,
    "driver_source": "image",
    "driver_version": "25.5.0",
    "driver_repository": None,
    "driver_image": None,
    "driver_image_path": None,
    "driver_profile": None,
    "driver_digest": None,
    "driver_signature_policy": "off",
    "driver_signature_keys": None,
    "driver_root": "/var/lib/Ascend",
    "registry_username": None,
    "registry_password": None,
    "registry_plain_http": False,
    "registry_ca_file": None,
}

# What the registry's answer depends on, besides the reference.
_OF_IMAGES = ("registry_", "driver_digest", "driver_signature_")

# Accelerator label values that the device plugin of MindCluster v7.3 has a DaemonSet for.
PLUGIN_ACCELERATORS = ("huawei-Ascend910", "huawei-Ascend310P", "huawei-Ascend310")

_KUBELET_MIN, _KUBELET_TESTED = (1, 24), (1, 34)
# KubeletFineGrainedAuthz: there from 1.32 on, in effect by default from 1.33 on.
_KUBELET_PODS = (1, 33)
_CONTAINERD_MIN = (1, 7)
_HOST_ARCH = {"aarch64": "huawei-arm", "x86_64": "huawei-x86"}


class CheckedHost:
    """What install will do with one host, and why not."""

    def __init__(self, host):
        self.host = host
        self.name = host["name"]
        self.config = dict(CONFIG_DEFAULTS, **{key: val for key, val in host["config"].items() if val is not None})
        self.facts = host.get("facts") or {}
        self.node_name = self.config["node_name"] or self.name
        self.reasons, self.notes = [], []
        self.image = self.digest = self.profile = None
        self.wants_image = False
        self.components = "enabled"
        # A release that is on the host and stays in effect: the one that is wanted, or another one that runs.
        self.keep_release, self.runs_another = None, False

    @property
    def family(self):
        return self.facts.get("family") or {}

    @property
    def has_chips(self):
        return bool(self.facts.get("chip_count"))

    @property
    def status(self):
        if self.host.get("unreachable"):
            return UNREACHABLE
        if self.reasons:
            return BLOCKED
        return READY if self.has_chips else SKIPPED

    @property
    def driver_path(self):
        """The driver tree on the host, as the components mount it."""
        if self.config["driver_source"] == "preinstalled":
            return (self.facts.get("driver") or {}).get("tree")
        return posixpath.join(self.config["driver_root"], "driver")

    def result(self):
        return {
            "status": self.status,
            "reasons": self.reasons,
            "notes": self.notes,
            "node_name": self.node_name,
            "family": self.family.get("name"),
            "accelerator": self.family.get("accelerator"),
            "resource": self.family.get("resource"),
            "chips": self.facts.get("chip_count", 0),
            "host_arch": _HOST_ARCH.get(self.facts.get("machine")),
            "driver_source": self.config["driver_source"],
            "driver_version": self.config["driver_version"],
            "driver_path": self.driver_path,
            "image": self.image,
            "digest": self.digest,
            "profile": self.profile,
            "components": self.components,
            "keep_release": self.keep_release,
            "expected_version": (self.config["driver_version"] if self.wants_image and not self.runs_another else None),
            "family_key": self.family.get("key"),
        }

    def line(self):
        """The plan for this host, for people."""
        if self.status == SKIPPED:
            return "%s: %s" % (self.name, "; ".join(self.notes))
        source = "the driver in %s" % self.driver_path if not self.image else "driver image %s" % self.image
        text = "%s: %d x %s, %s" % (self.name, self.facts["chip_count"], self.family["name"], source)
        return "; ".join([text] + self.notes)


def judge(hosts, nodes, resolve, daemonsets=(), plugin_enabled=True):
    """What install makes of the hosts: a list of CheckedHost, one per host, in their order.

    ``hosts``: list of {name, facts, error, unreachable, config, variables}; ``nodes``: Node objects by name;
    ``resolve``: called with (reference text, config), returns the digest, raises NpuError; ``daemonsets``: our
    device plugin's that are there already.
    """
    verdicts = inspect(hosts, nodes, resolve, plugin_enabled)
    candidates = [verdict for verdict in verdicts if verdict.has_chips]
    _check_deployed(candidates, nodes, daemonsets)
    for verdict in candidates:
        _check_loaded(verdict)
    return verdicts


def inspect(hosts, nodes, resolve, plugin_enabled=True, explicit=False):
    """What holds for an upgrade as well: the host, whether it is its node, the driver image. See ``judge``.

    Without ``resolve`` (None) no image is looked for. ``explicit``: whether each host must say which version it is to have.
    """
    verdicts = [CheckedHost(host) for host in hosts]
    for verdict in verdicts:
        _check_host(verdict, plugin_enabled)
    candidates = [verdict for verdict in verdicts if verdict.has_chips]
    _check_nodes(candidates, nodes)
    _check_roots(candidates)
    if resolve is not None:
        _resolve_images(candidates, resolve, explicit)
    return verdicts


def unknown_variables(names):
    """A sentence for each of the variables ``names`` that this collection does not know."""
    sentences = []
    for name in sorted(set(names) - known_variables()):
        near = difflib.get_close_matches(name, known_variables(), 1, 0.75)
        sentences.append("unknown variable %s%s" % (name, ": did you mean %s?" % near[0] if near else ""))
    return sentences


def report(verdicts, cluster_reasons):
    """Everything wrong at once as readable text, or None when nothing is.

    Reasons that several hosts share are told once, with their names.
    """
    shared = {}
    for verdict in verdicts:
        for reason in verdict.reasons:
            shared.setdefault(reason, []).append(verdict.name)
    if not shared and not cluster_reasons:
        return None
    stopped = [verdict.name for verdict in verdicts if verdict.reasons]
    lines = []
    if stopped:
        lines.append("Nothing was changed: %d of %d hosts cannot be installed as they are." % (len(stopped), len(verdicts)))
    else:
        lines.append("Nothing was changed: the cluster does not allow what install needs.")
    lines.extend("  cluster: %s" % reason for reason in cluster_reasons)
    lines.extend("  %s: %s" % (", ".join(names), reason) for reason, names in shared.items())
    if any(verdict.status == UNREACHABLE for verdict in verdicts):
        lines.append("To continue without a host, exclude it: --limit 'npu_nodes:!<host>'.")
    return "\n".join(lines)


# --- one host ---


def _check_host(verdict, plugin_enabled):
    verdict.reasons.extend(unknown_variables(verdict.host.get("variables") or []))
    if verdict.host.get("unreachable"):
        verdict.reasons.append("not reachable: %s" % one_line(verdict.host.get("error")))
        return
    if verdict.host.get("error"):
        verdict.reasons.append(one_line(verdict.host["error"]))
        return
    if verdict.host.get("pending"):
        verdict.notes.append(verdict.host["pending"])
        return
    if not verdict.has_chips:
        verdict.notes.append("has no Ascend chip; skipped")
        return
    verdict.reasons.extend(verdict.facts.get("problems") or [])
    _check_source(verdict)
    accelerator = verdict.family.get("accelerator")
    if plugin_enabled and accelerator and accelerator not in PLUGIN_ACCELERATORS:
        verdict.reasons.append("MindCluster v7.3 has no device plugin for the %s (%s)" % (verdict.family["name"], accelerator))


def _check_source(verdict):
    source = verdict.config["driver_source"]
    if source in LATER_SOURCES:
        verdict.reasons.append("npu_driver_source: %s is not supported yet; use image or preinstalled" % source)
    elif source not in SOURCES:
        verdict.reasons.append("npu_driver_source is %r; it must be one of %s" % (source, ", ".join(SOURCES + LATER_SOURCES)))
    verdict.wants_image = source == "image"


def _check_loaded(verdict):
    """Install never replaces a driver that runs."""
    driver = verdict.facts.get("driver") or {}
    if not verdict.wants_image or not driver.get("loaded") or not verdict.digest:
        return
    wanted = Layout.release_name(verdict.config["driver_version"], verdict.facts["kernel"], verdict.digest)
    if driver.get("loaded_release") in (None, wanted):
        if driver.get("release") == wanted and driver.get("complete"):
            verdict.keep_release = wanted
        return
    if not driver.get("managed"):
        verdict.reasons.append(
            "the driver %s is still loaded after its removal, configured is %s. Reboot the host, then run again"
            % (driver["loaded_release"], wanted)
        )
        return
    verdict.keep_release, verdict.runs_another = driver["loaded_release"], True
    verdict.notes.append(
        "runs driver %s, configured is %s; install does not replace a loaded driver, npuops.ascend.upgrade does"
        % (driver["loaded_release"], wanted)
    )


# --- hosts and nodes ---


def _check_nodes(candidates, nodes):
    by_node = {}
    for verdict in candidates:
        by_node.setdefault(verdict.node_name, []).append(verdict)
    by_boot_id = {kube_client.boot_id(node): name for name, node in nodes.items()}
    twins = identity.twins(nodes)
    same = identity.same_host({verdict.name: verdict.facts.get("boot_id") for verdict in candidates})
    for node_name, verdicts in by_node.items():
        for verdict in verdicts:
            told = (twins.get(node_name), same.get(verdict.name) if len(verdicts) == 1 else None)
            verdict.reasons.extend(reason for reason in told if reason)
            if len(verdicts) > 1:
                others = ", ".join(other.name for other in verdicts if other is not verdict)
                verdict.reasons.append("shares the node name %s with %s; see npu_node_name" % (node_name, others))
            _check_node(verdict, nodes, by_boot_id)


def _check_node(verdict, nodes, by_boot_id):
    boot_id = verdict.facts.get("boot_id")
    same_machine = by_boot_id.get(boot_id)
    node = nodes.get(verdict.node_name)
    if node is None:
        near = same_machine or next(iter(difflib.get_close_matches(verdict.node_name, nodes, 1)), None)
        hint = ""
        if same_machine:
            hint = ": this machine is the node %s, set npu_node_name: %s" % (same_machine, same_machine)
        elif near:
            hint = ": did you mean %s? See npu_node_name" % near
        verdict.reasons.append("the cluster has no node %s%s" % (verdict.node_name, hint))
        return
    if kube_client.boot_id(node) != boot_id:
        verdict.reasons.append(
            "the host is not the node %s: the host's boot ID is %s, the node reports %s%s. Correct ansible_host or"
            " npu_node_name; right after a reboot, wait until the kubelet has reported"
            % (
                verdict.node_name,
                boot_id,
                kube_client.boot_id(node),
                ". This machine is the node %s" % same_machine if same_machine else "",
            )
        )
        return
    ready, why = kube_client.node_ready(node)
    if not ready:
        verdict.reasons.append("the node %s is not Ready: %s" % (verdict.node_name, one_line(why)))
    _check_versions(verdict, kube_client.node_info(node))
    paused = kube_client.labels(node).get(kube_client.LABEL_COMPONENTS) == "paused"
    if paused or kube_client.ANNOTATION_MAINTENANCE in kube_client.annotations(node):
        verdict.components = "paused"
        verdict.notes.append("is %s; its components are not changed" % ("paused" if paused else "under maintenance"))


def _check_versions(verdict, info):
    kubelet = _numbers(info.get("kubeletVersion"))
    if kubelet and kubelet < _KUBELET_MIN:
        verdict.reasons.append("the kubelet is %s; at least 1.24 is needed" % info["kubeletVersion"])
    elif kubelet and kubelet > _KUBELET_TESTED:
        verdict.notes.append("runs kubelet %s, newer than MindCluster v7.3 supports (1.34)" % info["kubeletVersion"])
    name, _separator, version = (info.get("containerRuntimeVersion") or "").partition("://")
    told = " ".join(verdict.facts.get("problems") or [])
    if name == "containerd":
        if _numbers(version) and _numbers(version) < _CONTAINERD_MIN and "containerd" not in told:
            verdict.reasons.append("containerd is %s; CDI needs 1.7 or newer" % version)
    elif name and name not in told:
        verdict.reasons.append("the node runs %s; only containerd 1.7 or newer is supported" % name)


def _check_roots(candidates):
    """Components mount one driver path per family, and the exporter one for the fleet."""
    paths = {}
    for verdict in candidates:
        if verdict.driver_path:
            paths.setdefault(verdict.driver_path, []).append(verdict)
    if len(paths) < 2:
        return
    told = "; ".join("%s on %s" % (path, ", ".join(v.name for v in paths[path])) for path in sorted(paths))
    for verdicts in paths.values():
        for verdict in verdicts:
            verdict.reasons.append(
                "one cluster needs one driver path, because the device plugin's and the exporter's DaemonSets mount"
                " it from every host; found: %s. Set the same npu_driver_root" % told
            )


def _check_deployed(candidates, nodes, daemonsets):
    """A run limited to some hosts must not change the driver path under the others."""
    mine = {verdict.node_name for verdict in candidates}
    for daemonset in daemonsets:
        spec = daemonset["spec"]["template"]["spec"]
        accelerator = (spec.get("nodeSelector") or {}).get("accelerator")
        path = _driver_volume(spec)
        others = sorted(
            name
            for name, node in nodes.items()
            if name not in mine
            and kube_client.labels(node).get("accelerator") == accelerator
            and kube_client.labels(node).get(kube_client.LABEL_COMPONENTS)
        )
        if not accelerator or not path or not others:
            continue
        for verdict in candidates:
            if verdict.family.get("accelerator") == accelerator and verdict.driver_path not in (None, path):
                verdict.reasons.append(
                    "its driver is at %s, but %s (not in this run) already use the device plugin with %s; one family"
                    " needs one driver path. Set the same npu_driver_root" % (verdict.driver_path, ", ".join(others), path)
                )


def device_plugins(daemonsets, namespace):
    """(ours, reasons): the device plugin DaemonSets in ``namespace``, and a sentence for each one elsewhere."""
    plugins = [
        daemonset
        for daemonset in daemonsets
        if daemonset["metadata"]["name"].startswith("ascend-device-plugin")
        and any(
            (volume.get("hostPath") or {}).get("path") in PLUGIN_SOCKETS
            for volume in daemonset["spec"]["template"]["spec"].get("volumes") or []
        )
    ]
    reasons = [
        "another device plugin is deployed, DaemonSet %s in the namespace %s; two of them on one node break each other."
        " Delete it, or set npu_namespace: %s to take it over"
        % (daemonset["metadata"]["name"], daemonset["metadata"]["namespace"], daemonset["metadata"]["namespace"])
        for daemonset in plugins
        if daemonset["metadata"]["namespace"] != namespace
    ]
    return [daemonset for daemonset in plugins if daemonset["metadata"]["namespace"] == namespace], reasons


def _driver_volume(pod_spec):
    for volume in pod_spec.get("volumes") or []:
        if volume["name"] == "hiai-driver":
            return (volume.get("hostPath") or {}).get("path")
    return None


# --- images ---


def image_reference(config, facts):
    """(reference text, profile or None) of the driver image for a host. Raises NpuError when it cannot be told."""
    if config["driver_image"]:
        return config["driver_image"], config["driver_profile"]
    if not config["driver_repository"]:
        raise NpuError(
            "npu_driver_repository is not set: the repository that holds the driver images, such as"
            " registry.example.com/mlops/ascend-driver (or npu_driver_image for a whole reference)"
        )
    if config["driver_profile"]:
        tag = profile_tag(config["driver_version"], config["driver_profile"])
    else:
        family = facts.get("family") or {}
        tag = image_profile(config["driver_version"], family.get("key"), facts.get("kernel_key"), facts.get("os_key"))
    return "%s:%s" % (config["driver_repository"], tag), tag


def _resolve_images(candidates, resolve, explicit=False):
    """Each distinct reference is looked up once, however many hosts want it."""
    answers = {}
    for verdict in candidates:
        if not verdict.wants_image:
            continue
        if explicit and not verdict.host["config"].get("driver_version"):
            # What install begins with is no answer to the question what a fleet that runs shall be moved to.
            verdict.reasons.append("npu_driver_version is not set: set the version to upgrade to, in the inventory or with -e")
            continue
        try:
            reference, profile = image_reference(verdict.config, verdict.facts)
        except NpuError as exc:
            verdict.reasons.append(one_line(exc.message))
            continue
        verdict.image, verdict.profile = reference, profile
        key = (reference,) + tuple(str(verdict.config[name]) for name in sorted(CONFIG_DEFAULTS) if name.startswith(_OF_IMAGES))
        if key not in answers:
            try:
                answers[key] = (resolve(reference, verdict.config), None)
            except ImageNotFound as exc:
                told = " for the profile %s" % profile if profile else ""
                answers[key] = (None, "no driver image%s: %s" % (told, one_line(exc.message)))
            except NpuError as exc:
                # The registry's trouble, not this image's: one line for all hosts.
                answers[key] = (None, one_line(exc.message))
        verdict.digest, problem = answers[key]
        if problem:
            verdict.reasons.append(problem)


def _numbers(version):
    match = re.match(r"v?(\d+)\.(\d+)", version or "")
    return (int(match.group(1)), int(match.group(2))) if match else None


# --- what the verdicts ask of the cluster ---

# What install creates in our namespace: (resource, group).
_DAEMONSET = ("daemonsets", "apps")
_SERVICE_ACCOUNT = ("serviceaccounts", "")
_NETWORK_POLICY = ("networkpolicies", "networking.k8s.io")
# And elsewhere, where rights may be limited to names: (resource, names).
_RBAC, _ADMISSION = "rbac.authorization.k8s.io", "admissionregistration.k8s.io"
_PLUGIN_RIGHTS = [
    ("clusterroles", ["pods-node-ascend-device-plugin-role-" + end for end in ("910", "310p", "310")]),
    ("clusterrolebindings", ["pods-node-ascend-device-plugin-rolebinding-" + end for end in ("910", "310p", "310")]),
]
_AGENT_RIGHTS = [("clusterroles", ["npuops-node-agent"]), ("clusterrolebindings", ["npuops-node-agent"])]
_AGENT_EVENTS = [("roles", ["npuops-node-agent"]), ("rolebindings", ["npuops-node-agent"])]
ADMISSION_POLICIES = ("validatingadmissionpolicies", "validatingadmissionpolicybindings")
_AGENT_POLICIES = ["npuops-node-agent-nodes", "npuops-node-agent-events"]
_PLUGIN_POLICIES = ["npuops-device-plugin-" + what for what in ("nodes", "pods", "configmaps", "events")]


def permissions(namespace, device_plugin, exporter, node_agent=False, admission_policies=False, namespace_exists=True):
    """What the Kubernetes user must be allowed to: list of (verb, resource, group, namespace or None, name or None).

    What has the verb list, preflight itself cannot do without.
    """
    needed = [("list", "nodes", "", None, None), ("list", "daemonsets", "apps", None, None), ("patch", "nodes", "", None, None)]
    components = device_plugin or exporter or node_agent
    if components:
        needed += [(verb, "namespaces", "", None, namespace) for verb in ("get", "patch")]
        if not namespace_exists:
            needed.append(("create", "namespaces", "", None, None))
    for kind, wanted in (
        (_DAEMONSET, components),
        (_SERVICE_ACCOUNT, device_plugin or node_agent),
        (_NETWORK_POLICY, exporter or node_agent),
    ):
        if wanted:
            needed += [(verb,) + kind + (namespace, None) for verb in ("get", "create", "patch")]
    policies = []
    if device_plugin:
        needed += _of_named(_RBAC, _PLUGIN_RIGHTS)
        policies += _PLUGIN_POLICIES
    if node_agent:
        needed += _of_named(_RBAC, _AGENT_RIGHTS) + _of_named(_RBAC, _AGENT_EVENTS, "default")
        policies += _AGENT_POLICIES
    if admission_policies and policies:
        needed += _of_named(_ADMISSION, [(resource, policies) for resource in ADMISSION_POLICIES])
    return list(dict.fromkeys(needed))


def _of_named(group, objects, namespace=None):
    """What applying ``objects`` needs; that creates something cannot be limited to a name."""
    needed = []
    for resource, names in objects:
        needed.append(("create", resource, group, namespace, None))
        needed += [(verb, resource, group, namespace, name) for name in names for verb in ("get", "patch")]
    return needed


def kubelets_tell_pods_apart(nodes):
    """Whether every kubelet knows a right to its list of pods beside that to everything it can do (KubeletFineGrainedAuthz)."""
    versions = [_numbers(kube_client.node_info(node).get("kubeletVersion")) for node in nodes]
    return bool(versions) and all(version and version >= _KUBELET_PODS for version in versions)


def agent_reasons(enabled, image, interval=60, timeout=30):
    """Why the node agent cannot be deployed, as sentences. ``interval``, ``timeout``: of its probes, in seconds."""
    reasons = []
    if enabled and not image:
        reasons.append(
            "npu_node_agent_image is not set: the image of the node agent, built from images/node-agent of this collection and"
            " pushed to your registry; or set npu_node_agent_enabled: false"
        )
    if enabled and not 0 < timeout < interval:
        reasons.append(
            "npu_node_agent_probe_timeout is %d and npu_node_agent_probe_interval %d: a probe must end before the next one starts"
            % (timeout, interval)
        )
    return reasons


def rollout_reasons(max_unavailable):
    """Why no DaemonSet can be replaced on ``max_unavailable`` nodes at once (a text, ``1`` or ``10%``), as sentences."""
    # A variable without a value is None.
    if _AT_ONCE.match(max_unavailable or ""):
        return []
    return [
        "npu_daemonset_max_unavailable is %s: it must be a number of nodes, 1 or more, or a percentage of them, such as 10%%"
        % json.dumps(max_unavailable)
    ]


def targets(verdicts, done, versions, namespace, device_plugin=True, exporter=True, node_agent=True):
    """What the cluster play needs, from results of CheckedHost.result() by host.

    ``done``: hosts that came through installation and validation; ``versions``: driver version that validated, by
    host. Returns {labels, accelerators, driver_path, daemonsets, nodes}: the nodes argument of npu_node, the role
    variables, and both arguments of npu_wait. Nodes whose components are paused are not waited for.
    """
    hosts = [(name, verdicts[name]) for name in done if verdicts[name]["status"] == READY]
    active = [verdict for _name, verdict in hosts if verdict["components"] == "enabled"]
    ready = [verdict for verdict in verdicts.values() if verdict["status"] == READY]
    accelerators = sorted({verdict["accelerator"] for verdict in ready})
    result = {
        "labels": [{"name": verdict["node_name"], "labels": _labels(verdict, versions.get(name))} for name, verdict in hosts],
        "accelerators": accelerators,
        "driver_path": next((verdict["driver_path"] for verdict in ready), None),
        "daemonsets": [],
        "nodes": [],
    }
    if device_plugin:
        result["daemonsets"] = [
            {
                "namespace": namespace,
                "name": fleet_components.DEVICE_PLUGINS[accelerator],
                "nodes": [verdict["node_name"] for verdict in active if verdict["accelerator"] == accelerator],
            }
            for accelerator in accelerators
        ]
        result["nodes"] = [
            {"name": verdict["node_name"], "resource": verdict["resource"], "count": verdict["chips"]} for verdict in active
        ]
    nodes = [verdict["node_name"] for verdict in active]
    others = [(exporter, fleet_components.EXPORTER), (node_agent, fleet_components.AGENT)]
    result["daemonsets"] += [{"namespace": namespace, "name": name, "nodes": nodes} for deployed, name in others if deployed]
    return result


def _labels(verdict, version):
    wanted = {
        kube_client.LABEL_PRESENT: "",
        kube_client.LABEL_CHIP: verdict["family"],
        kube_client.LABEL_DRIVER_VERSION: version or verdict["driver_version"],
        kube_client.LABEL_COMPONENTS: "enabled",
        "accelerator": verdict["accelerator"],
        "workerselector": "dls-worker-node",
        "node-role.kubernetes.io/worker": "worker",
        "host-arch": verdict["host_arch"],
    }
    return {key: value for key, value in wanted.items() if value is not None}
