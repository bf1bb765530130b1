# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
import re

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._chips.pci import FAMILIES
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry_errors import ImageNotFound, RegistryDenied
from ansible_collections.npuops.ascend.plugins.plugin_utils._fleet import preflight
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings.specs import known_variables

from support.kube.stub import node
from support.paths import CHECKOUT

DIGEST = "sha256:" + "ab" * 32
REPOSITORY = "registry.example/mlops/ascend-driver"
FAMILY = {"d802": 8, "d500": 4, "d806": 8}


def facts(device="d802", boot_id="boot-a", **changes):
    result = {
        "boot_id": boot_id,
        "kernel": "6.6.0-145.0.4.135.oe2403sp3.aarch64",
        "kernel_key": "6.6.0-145.0.4.135",
        "os_key": "oe2403sp3",
        "machine": "aarch64",
        "chip_count": FAMILY[device],
        "family": FAMILIES[device]._asdict(),
        "driver": {"loaded": False, "tree": None},
        "problems": [],
    }
    return dict(result, **changes)


def host(name="a", fact=None, variables=(), **config):
    config.setdefault("driver_repository", REPOSITORY)
    fact = facts(boot_id="boot-" + name) if fact is None else fact
    return {"name": name, "facts": fact, "error": None, "unreachable": False, "config": config, "variables": variables}


def cluster_nodes(*names, **kwargs):
    return {name: node(name, boot_id="boot-" + name, **kwargs) for name in names}


def judge(hosts, nodes=None, resolve=lambda reference, config: DIGEST, **kwargs):
    nodes = cluster_nodes(*[entry["name"] for entry in hosts]) if nodes is None else nodes
    return preflight.judge(hosts, nodes, resolve, **kwargs)


def only(hosts, **kwargs):
    """The verdict on a single host."""
    (verdict,) = judge([hosts], **kwargs)
    return verdict


def test_a_host_in_order():
    verdict = only(host())
    assert verdict.result() == {
        "status": "ready",
        "reasons": [],
        "notes": [],
        "node_name": "a",
        "family": "910B",
        "family_key": "910b",
        "accelerator": "huawei-Ascend910",
        "resource": "huawei.com/Ascend910",
        "chips": 8,
        "host_arch": "huawei-arm",
        "driver_source": "image",
        "driver_version": "25.5.0",
        "expected_version": "25.5.0",
        "driver_path": "/var/lib/Ascend/driver",
        "image": REPOSITORY + ":25.5.0-910b-6.6.0-145.0.4.135-oe2403sp3",
        "digest": DIGEST,
        "profile": "25.5.0-910b-6.6.0-145.0.4.135-oe2403sp3",
        "components": "enabled",
        "keep_release": None,
    }


def test_a_host_without_a_chip_is_left_alone_and_said_so():
    empty = host(fact={"boot_id": "other", "chip_count": 0, "family": None, "problems": ["no systemd"]})
    verdict = only(empty, nodes={})
    assert (verdict.status, verdict.reasons) == ("skipped", [])
    assert verdict.line() == "a: has no Ascend chip; skipped"


def test_everything_wrong_at_once():
    hosts = [
        host("a", variables=["npu_driver_verison", "npu_driver_version"]),
        host("b", fact=facts(boot_id="boot-b", problems=["/var is mounted noexec"]), driver_repository=None),
        dict(host("c"), facts=None, unreachable=True, error="ssh: connect to host c port 22:\n  timed out"),
        dict(host("d"), facts=None, error="python 3.6 is too old"),
        host("e"),
    ]
    text = preflight.report(judge(hosts), ['the Kubernetes user may not "patch" on "nodes"'])
    assert text.splitlines() == [
        "Nothing was changed: 4 of 5 hosts cannot be installed as they are.",
        '  cluster: the Kubernetes user may not "patch" on "nodes"',
        "  a: unknown variable npu_driver_verison: did you mean npu_driver_version?",
        "  b: /var is mounted noexec",
        "  b: npu_driver_repository is not set: the repository that holds the driver images, such as"
        " registry.example.com/mlops/ascend-driver (or npu_driver_image for a whole reference)",
        "  c: not reachable: ssh: connect to host c port 22: timed out",
        "  d: python 3.6 is too old",
        "To continue without a host, exclude it: --limit 'npu_nodes:!<host>'.",
    ]


def test_nothing_wrong():
    assert preflight.report(judge([host()]), []) is None


# --- variables ---


def test_unknown_variables():
    assert preflight.unknown_variables(["npu_driver_version", "npu_exporter_imgae", "npu_qqq"]) == [
        "unknown variable npu_exporter_imgae: did you mean npu_exporter_image?",
        "unknown variable npu_qqq",
    ]


# --- identity ---


def test_inventory_name_and_node_are_not_the_same_machine():
    nodes = cluster_nodes("a", "b")
    verdict = only(host("a", fact=facts(boot_id="boot-b")), nodes=nodes)
    assert verdict.reasons == [
        "the host is not the node a: the host's boot ID is boot-b, the node reports boot-a. This machine is the node b."
        " Correct ansible_host or npu_node_name; right after a reboot, wait until the kubelet has reported"
    ]


def test_no_such_node():
    verdict = only(host("npu-a", fact=facts(boot_id="boot-worker-1")), nodes=cluster_nodes("worker-1"))
    assert verdict.reasons == ["the cluster has no node npu-a: this machine is the node worker-1, set npu_node_name: worker-1"]


def test_no_such_node_but_one_with_a_similar_name():
    verdict = only(host("npu-a"), nodes=cluster_nodes("npu-a1"))
    assert verdict.reasons == ["the cluster has no node npu-a: did you mean npu-a1? See npu_node_name"]


def test_node_name():
    verdict = only(host("a", fact=facts(boot_id="boot-w"), node_name="w"), nodes=cluster_nodes("w"))
    assert (verdict.status, verdict.node_name) == ("ready", "w")


def test_two_hosts_for_one_node():
    first, second = judge([host("a"), host("b", fact=facts(boot_id="boot-a"), node_name="a")], cluster_nodes("a"))
    assert first.reasons == ["shares the node name a with b; see npu_node_name"]
    assert second.reasons == ["shares the node name a with a; see npu_node_name"]


def test_node_not_ready():
    verdict = only(host("a"), nodes=cluster_nodes("a", ready=False))
    assert verdict.reasons == ["the node a is not Ready: Kubelet stopped posting node status"]


@pytest.mark.parametrize(
    ("info", "reason"),
    [
        ({"kubeletVersion": "v1.22.3"}, "the kubelet is v1.22.3; at least 1.24 is needed"),
        ({"containerRuntimeVersion": "containerd://1.6.33"}, "containerd is 1.6.33; CDI needs 1.7 or newer"),
        (
            {"containerRuntimeVersion": "cri-o://1.34.0"},
            "the node runs cri-o; only containerd 1.7 or newer is supported",
        ),
    ],
)
def test_versions(info, reason):
    nodes = cluster_nodes("a")
    nodes["a"]["status"]["nodeInfo"].update(info)
    assert only(host("a"), nodes=nodes).reasons == [reason]


def test_a_newer_kubelet_is_only_noted():
    nodes = cluster_nodes("a")
    nodes["a"]["status"]["nodeInfo"]["kubeletVersion"] = "v1.36.0"
    verdict = only(host("a"), nodes=nodes)
    assert verdict.status == "ready"
    assert "newer than MindCluster v7.3 supports" in verdict.notes[0]


# --- driver ---


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("package", "npu_driver_source: package is not supported yet; use image or preinstalled"),
        ("Image", "npu_driver_source is 'Image'; it must be one of image, preinstalled, package"),
    ],
)
def test_source(source, reason):
    assert only(host(driver_source=source)).reasons == [reason]


def test_preinstalled_needs_no_registry():
    tree = {"loaded": True, "tree": "/usr/local/Ascend/driver", "loaded_version": "24.1.0"}
    verdict = only(
        host(fact=facts(boot_id="boot-a", driver=tree), driver_source="preinstalled", driver_repository=None),
        resolve=None,
    )
    assert (verdict.status, verdict.image, verdict.driver_path) == ("ready", None, "/usr/local/Ascend/driver")
    assert verdict.result()["expected_version"] is None


def test_image_missing_names_host_profile_and_reference():
    def resolve(reference, _config):
        raise ImageNotFound("%s does not exist" % reference)

    verdict = only(host(), resolve=resolve)
    tag = "25.5.0-910b-6.6.0-145.0.4.135-oe2403sp3"
    assert verdict.reasons == ["no driver image for the profile %s: %s:%s does not exist" % (tag, REPOSITORY, tag)]


def test_each_reference_is_looked_up_once():
    asked = []

    def resolve(reference, _config):
        asked.append(reference)
        raise RegistryDenied("Registry registry.example does not let user 'x' read it")

    verdicts = judge([host("a"), host("b"), host("c", fact=facts("d500", "boot-c"))], resolve=resolve)
    assert len(asked) == 2
    assert preflight.report(verdicts, []).splitlines()[1:] == ["  a, b, c: Registry registry.example does not let user 'x' read it"]


def test_profile_and_image_can_be_given():
    assert only(host(driver_profile="910b-mine")).image == REPOSITORY + ":25.5.0-910b-mine"
    assert only(host(driver_image="other.example/x@" + DIGEST)).image == "other.example/x@" + DIGEST


RELEASE = "25.5.0-6.6.0-145.0.4.135.oe2403sp3.aarch64-" + "ab" * 6


@pytest.mark.parametrize(
    ("loaded", "pending"),
    [
        (RELEASE, False),
        ("25.5.0-6.6.0-145.0.4.135.oe2403sp3.aarch64-" + "cd" * 6, True),
        ("25.3.0-6.6.0-145.0.4.135.oe2403sp3.aarch64-" + "ab" * 6, True),
    ],
)
def test_a_loaded_driver_is_not_replaced(loaded, pending):
    driver = {"loaded": True, "managed": True, "loaded_release": loaded}
    verdict = only(host(fact=facts(boot_id="boot-a", driver=driver)))
    assert verdict.status == "ready"
    assert verdict.keep_release == (loaded if pending else None)
    assert verdict.result()["expected_version"] == (None if pending else "25.5.0")
    assert ("npuops.ascend.upgrade" in " ".join(verdict.notes)) is pending


@pytest.mark.parametrize("complete", [True, False])
def test_what_is_there_already_is_not_staged_again(complete):
    driver = {"loaded": True, "managed": True, "loaded_release": RELEASE, "release": RELEASE, "complete": complete}
    verdict = only(host(fact=facts(boot_id="boot-a", driver=driver)))
    assert verdict.keep_release == (RELEASE if complete else None)
    assert verdict.notes == [] and verdict.result()["expected_version"] == "25.5.0"


def test_no_device_plugin_for_the_950():
    assert only(host(fact=facts("d806", "boot-a"))).reasons == ["MindCluster v7.3 has no device plugin for the 950 (huawei-npu)"]
    assert only(host(fact=facts("d806", "boot-a")), plugin_enabled=False).status == "ready"


# --- one driver path ---


def test_mixed_driver_paths_are_refused():
    tree = {"loaded": True, "tree": "/usr/local/Ascend/driver"}
    verdicts = judge([host("a"), host("b", fact=facts(boot_id="boot-b", driver=tree), driver_source="preinstalled"), host("c")])
    assert all("/usr/local/Ascend/driver on b; /var/lib/Ascend/driver on a, c" in v.reasons[0] for v in verdicts)


def plugin_daemonset(path, namespace="npu-operator", sockets="/var/lib/kubelet/device-plugins"):
    volumes = [
        {"name": "hiai-driver", "hostPath": {"path": path}},
        {"name": "device-plugin", "hostPath": {"path": sockets}},
    ]
    spec = {"nodeSelector": {"accelerator": "huawei-Ascend910"}, "volumes": volumes}
    return {
        "metadata": {"name": "ascend-device-plugin-daemonset", "namespace": namespace},
        "spec": {"template": {"spec": spec}},
    }


def test_a_limited_run_does_not_move_the_others_driver():
    nodes = dict(
        cluster_nodes("a"),
        **cluster_nodes("b", labels={"accelerator": "huawei-Ascend910", "npuops.ascend/components": "enabled"}),
    )
    moved = only(host("a"), nodes=nodes, daemonsets=[plugin_daemonset("/opt/Ascend/driver")])
    assert "but b (not in this run) already use the device plugin with /opt/Ascend/driver" in moved.reasons[0]
    assert only(host("a"), nodes=nodes, daemonsets=[plugin_daemonset("/var/lib/Ascend/driver")]).status == "ready"
    assert only(host("a"), daemonsets=[plugin_daemonset("/opt/Ascend/driver")]).status == "ready"


def test_a_device_plugin_behind_the_node_agent_is_one_too():
    daemonset = plugin_daemonset("/x", "kube-system", "/var/lib/npuops/device-plugins")
    assert len(preflight.device_plugins([daemonset], "npu-operator")[1]) == 1


def test_the_node_agent_needs_an_image():
    assert "npu_node_agent_image is not set" in preflight.agent_reasons(True, "")[0]
    assert preflight.agent_reasons(True, "registry.example/agent:1") == preflight.agent_reasons(False, None) == []


def test_a_probe_of_the_node_agent_ends_before_the_next_one():
    assert "timeout is 30 and npu_node_agent_probe_interval 6:" in preflight.agent_reasons(True, "registry.example/agent:1", 6)[0]
    assert preflight.agent_reasons(True, "registry.example/agent:1", 6, 5) == preflight.agent_reasons(False, "", 6) == []


@pytest.mark.parametrize("value", ["1", "25", "1%", "100%"])
def test_nodes_at_once(value):
    assert preflight.rollout_reasons(value) == []


@pytest.mark.parametrize("value", [None, "", "0", "-1", "1.5", "0%", "101%", "10 %", "10%%", "%", "ten", "\u0661"])
def test_nodes_at_once_that_cannot_be(value):
    (reason,) = preflight.rollout_reasons(value)
    assert reason.startswith("npu_daemonset_max_unavailable is %s: " % json.dumps(value)) and "such as 10%" in reason


@pytest.mark.parametrize(
    "versions, apart",
    [
        (["v1.33.0", "v1.34.4"], True),
        (["v1.34.4", "v1.32.9"], False),
        (["v1.33.1+k3s1"], True),
        (["v1.34.4", None], False),
        ([], False),
    ],
)
def test_kubelets_that_tell_pods_apart(versions, apart):
    """One that does not would refuse the plugin: its right counts for all nodes."""
    nodes = [{"status": {"nodeInfo": {"kubeletVersion": version}}} for version in versions]
    assert preflight.kubelets_tell_pods_apart(nodes) is apart


def test_permissions():
    plain = preflight.permissions("ours", True, False)
    assert ("create", "daemonsets", "apps", "ours", None) in plain
    assert not [entry for entry in plain if entry[1] in ("roles", "networkpolicies")]
    policy = ("patch", "validatingadmissionpolicies", "admissionregistration.k8s.io", None, "npuops-device-plugin-nodes")
    assert policy not in plain and policy in preflight.permissions("ours", True, False, False, True)
    agent = preflight.permissions("ours", False, False, True, True)
    assert ("create", "networkpolicies", "networking.k8s.io", "ours", None) in agent
    assert ("create", "roles", "rbac.authorization.k8s.io", "default", None) in agent
    assert ("create", "clusterroles", "rbac.authorization.k8s.io", None, None) in agent
    assert ("patch", "clusterroles", "rbac.authorization.k8s.io", None, "npuops-node-agent") in agent
    policies = "validatingadmissionpolicybindings", "admissionregistration.k8s.io"
    assert ("patch", *policies, None, "npuops-node-agent-events") in agent
    # The API has none: nobody has to be allowed to make them.
    assert not [e for e in preflight.permissions("ours", True, True, True, False) if "validating" in e[1]]


def test_who_may_not_create_namespaces_needs_one_that_is_there():
    create = ("create", "namespaces", "", None, None)
    assert create not in preflight.permissions("ours", True, True)
    assert create in preflight.permissions("ours", True, True, namespace_exists=False)
    assert ("patch", "namespaces", "", None, "ours") in preflight.permissions("ours", True, True)


def test_another_device_plugin():
    ours, reasons = preflight.device_plugins([plugin_daemonset("/x"), plugin_daemonset("/x", "kube-system")], "npu-operator")
    assert [daemonset["metadata"]["namespace"] for daemonset in ours] == ["npu-operator"]
    assert len(reasons) == 1
    assert "set npu_namespace: kube-system to take it over" in reasons[0]


# --- what the cluster play needs ---


def targets(verdicts, done, **kwargs):
    results = {verdict.name: verdict.result() for verdict in verdicts}
    return preflight.targets(results, done, {"a": "25.5.0"}, "npu-operator", **kwargs)


def fleet():
    empty = host("cpu", fact={"chip_count": 0, "family": None})
    return [host("a"), host("b"), host("c", fact=facts("d500", "boot-c")), empty]


def test_targets():
    assert targets(judge(fleet()), ["a", "c", "cpu"]) == {
        "labels": [
            {
                "name": "a",
                "labels": {
                    "openfuyao.com/npu.present": "",
                    "npuops.ascend/chip": "910B",
                    "npuops.ascend/driver-version": "25.5.0",
                    "npuops.ascend/components": "enabled",
                    "accelerator": "huawei-Ascend910",
                    "workerselector": "dls-worker-node",
                    "node-role.kubernetes.io/worker": "worker",
                    "host-arch": "huawei-arm",
                },
            },
            {
                "name": "c",
                "labels": {
                    "openfuyao.com/npu.present": "",
                    "npuops.ascend/chip": "310P",
                    "npuops.ascend/driver-version": "25.5.0",
                    "npuops.ascend/components": "enabled",
                    "accelerator": "huawei-Ascend310P",
                    "workerselector": "dls-worker-node",
                    "node-role.kubernetes.io/worker": "worker",
                    "host-arch": "huawei-arm",
                },
            },
        ],
        # b failed on the way; its family is deployed all the same.
        "accelerators": ["huawei-Ascend310P", "huawei-Ascend910"],
        "driver_path": "/var/lib/Ascend/driver",
        "daemonsets": [
            {"namespace": "npu-operator", "name": "ascend-device-plugin310p-daemonset", "nodes": ["c"]},
            {"namespace": "npu-operator", "name": "ascend-device-plugin-daemonset", "nodes": ["a"]},
            {"namespace": "npu-operator", "name": "npu-exporter", "nodes": ["a", "c"]},
            {"namespace": "npu-operator", "name": "npu-node-agent", "nodes": ["a", "c"]},
        ],
        "nodes": [
            {"name": "a", "resource": "huawei.com/Ascend910", "count": 8},
            {"name": "c", "resource": "huawei.com/Ascend310P", "count": 4},
        ],
    }


def test_paused_nodes_are_labelled_but_not_waited_for():
    nodes = cluster_nodes("b", "c", "cpu")
    nodes.update(cluster_nodes("a", labels={"npuops.ascend/components": "paused"}))
    result = targets(judge(fleet(), nodes), ["a", "b"])
    assert [entry["name"] for entry in result["labels"]] == ["a", "b"]
    assert [entry["name"] for entry in result["nodes"]] == ["b"]


def test_components_that_are_off_are_not_waited_for():
    result = targets(judge(fleet()), ["a"], device_plugin=False, exporter=False, node_agent=False)
    assert (result["daemonsets"], result["nodes"]) == ([], [])


def test_the_example_inventory_names_real_variables():
    names = set()
    for path in ("inventory/hosts.yml", "inventory/group_vars/npu_nodes.yml"):
        with open(os.path.join(CHECKOUT, path), encoding="utf-8") as stream:
            names |= set(re.findall(r"^(?:# | *)(npu_[a-z_]+):", stream.read(), re.M))
    groups = {"npu_nodes", "npu_inference"}
    assert names - groups - known_variables() == set()
    assert len(names) > 30
