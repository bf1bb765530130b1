# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What real images of MindCluster 7.3 and 26.1 need of the DaemonSets: the rendered templates against upstream's contract."""

from __future__ import annotations

import http.server
import os
import pathlib
import re
import socket
import subprocess
import threading
import time

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import agent_conditions as kube_agent_conditions
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import daemonsets as kube_daemonsets
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import shared_chips
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import foreign, mindcluster
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import acceptance_gate
from ansible_collections.npuops.ascend.plugins.plugin_utils._withdrawal import taints_removal

from support.kube.manifests import AGENT, EXPORTER, NODED, PLUGIN, ROLES, plugin_of, render, render_all
from support.patience import PATIENCE


def mounts(daemonset):
    """{container path: (host path, type, read-only)} of a DaemonSet's only container beside the one that waits."""
    spec = daemonset["spec"]["template"]["spec"]
    paths = {volume["name"]: volume["hostPath"] for volume in spec["volumes"]}
    (container,) = spec["containers"]
    (wait,) = spec["initContainers"]
    assert set(paths) == {mount["name"] for mount in container["volumeMounts"] + wait["volumeMounts"]}
    return {
        mount["mountPath"]: (
            paths[mount["name"]]["path"],
            paths[mount["name"]].get("type") or None,
            mount.get("readOnly", False),
        )
        for mount in container["volumeMounts"]
    }


FAMILIES = ("huawei-Ascend910", "huawei-Ascend310P", "huawei-Ascend310")
FAMILIES_OF = {"7.3": FAMILIES, "26.1": FAMILIES + ("huawei-npu",)}


def policies_of(version_line):
    variables = dict(PLUGIN, __npu_version_line=mindcluster.version_line(version_line))
    return render_all("npu_device_plugin", "admission-policy.yaml.j2", variables)


@pytest.mark.parametrize(
    ("role", "template", "variables"),
    [
        ("npu_device_plugin", "device-plugin.yaml.j2", PLUGIN),
        ("npu_node_agent", "node-agent.yaml.j2", AGENT),
        ("npu_exporter", "npu-exporter.yaml.j2", EXPORTER),
        ("npu_noded", "noded.yaml.j2", NODED),
    ],
)
@pytest.mark.parametrize("version_line", FAMILIES_OF)
def test_every_daemonset_tolerates_the_taints_of_dedicated_nodes(role, template, variables, version_line):
    known = mindcluster.version_line(version_line)
    spec = render(role, template, {**variables, "__npu_version_line": known})["DaemonSet"]["spec"]["template"]["spec"]
    tolerated = spec["tolerations"]
    for family in known["device_plugin"]["families"].values():
        assert {"key": family["resource"], "operator": "Exists", "effect": "NoSchedule"} in tolerated
    assert {"key": "device-plugin", "operator": "Equal", "value": "v2", "effect": "NoSchedule"} in tolerated
    assert {"key": "CriticalAddonsOnly", "operator": "Exists"} in tolerated
    assert acceptance_gate.TOLERATION in tolerated
    assert tolerated[-1:] == variables["npu_tolerations"]
    unset = render(role, template, {**variables, "__npu_version_line": known, "npu_tolerations": None})["DaemonSet"]
    assert unset["spec"]["template"]["spec"]["tolerations"] == tolerated[:-1]


@pytest.mark.parametrize("node_agent", [True, False])
def test_of_our_daemonsets_only_the_device_plugin_is_taken_for_one(node_agent):
    plugin = plugin_of("huawei-Ascend910", dict(PLUGIN, npu_node_agent_enabled=node_agent))["DaemonSet"]
    others = [
        render("npu_node_agent", "node-agent.yaml.j2", AGENT)["DaemonSet"],
        render("npu_exporter", "npu-exporter.yaml.j2", EXPORTER)["DaemonSet"],
        render("npu_noded", "noded.yaml.j2", NODED)["DaemonSet"],
    ]
    namespace = plugin["metadata"]["namespace"]
    assert foreign.our_device_plugins([plugin, *others], namespace) == [plugin]
    assert foreign.device_plugins([plugin, *others], namespace) == []
    assert foreign.device_plugins([plugin, *others], "elsewhere") == [plugin]


@pytest.mark.parametrize("version_line", FAMILIES_OF)
def test_policies_are_about_every_plugin_and_each_of_its_writes(version_line):
    """RBAC lets a plugin write nodes, pods and ConfigMaps of the whole cluster: for each verb there is a policy."""
    policies = [item for item in policies_of(version_line) if "validations" in item["spec"]]
    accounts = set()
    for family in FAMILIES_OF[version_line]:
        objects = plugin_of(family, version_line=version_line)
        account = objects["ServiceAccount"]["metadata"]
        accounts.add("'system:serviceaccount:%s:%s'" % (account["namespace"], account["name"]))
        operations = {"create": "CREATE", "update": "UPDATE", "patch": "UPDATE", "delete": "DELETE"}
        writes = {
            (resource, operations[verb])
            for rule in objects["ClusterRole"]["rules"]
            for verb in rule["verbs"]
            for resource in rule["resources"]
            if verb in operations
        }
        held = {
            (resource, operation)
            for policy in policies
            for rule in policy["spec"]["matchConstraints"]["resourceRules"]
            for resource in rule["resources"]
            for operation in rule["operations"]
        }
        assert writes == held
    for policy in policies:
        (condition,) = policy["spec"]["matchConditions"]
        assert set(re.findall(r"'[^']+'", condition["expression"])) == accounts
        assert policy["spec"]["failurePolicy"] == "Fail"
    bindings = [item for item in policies_of(version_line) if "policyName" in item["spec"]]
    assert [item["spec"]["policyName"] for item in bindings] == [policy["metadata"]["name"] for policy in policies]
    assert all(item["spec"]["validationActions"] == ["Deny"] for item in bindings)


ALL_FAMILIES = pytest.mark.parametrize(
    ("version_line", "family"), [(version_line, family) for version_line in FAMILIES_OF for family in FAMILIES_OF[version_line]]
)


@ALL_FAMILIES
@pytest.mark.parametrize("apart, right", [(True, "nodes/pods"), (False, "nodes/proxy")])
def test_the_plugin_asks_the_kubelet_with_the_smallest_right_there_is(version_line, family, apart, right):
    """nodes/proxy is everything that a kubelet can do, commands in any pod among it."""
    variables = dict(PLUGIN, npu_device_plugin_kubelet_pods=apart)
    rules = plugin_of(family, variables, version_line)["ClusterRole"]["rules"]
    resources = [resource for rule in rules for resource in rule["resources"]]
    assert right in resources and not {"nodes/pods", "nodes/proxy"} - {right} & set(resources)


def assert_waits(spec):
    """A container before the component's waits for the driver; it has no driver tree, no devices, no privileges."""
    (wait,) = spec["initContainers"]
    (container,) = spec["containers"]
    assert (wait["name"], wait["image"], wait["imagePullPolicy"]) == (
        kube_daemonsets.DRIVER_WAIT,
        container["image"],
        container["imagePullPolicy"],
    )
    assert "privileged" not in wait["securityContext"] and wait["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    paths = {volume["name"]: volume["hostPath"]["path"] for volume in spec["volumes"]}
    assert {mount["mountPath"]: paths[mount["name"]] for mount in wait["volumeMounts"] if mount["readOnly"]} == {
        "/run/npuops": "/run/npuops",
        "/host/boot_id": "/proc/sys/kernel/random/boot_id",
    }


COMMON_MOUNTS = {
    "/var/lib/kubelet/device-plugins": ("/var/lib/kubelet/device-plugins", None, False),
    "/var/lib/kubelet/pod-resources": ("/var/lib/kubelet/pod-resources", None, False),
    "/usr/local/Ascend/driver": ("/var/lib/Ascend/driver", "Directory", True),
    "/var/log/mindx-dl/devicePlugin": ("/var/log/mindx-dl/devicePlugin", "Directory", False),
    "/tmp": ("/tmp", None, False),
    "/etc/localtime": ("/etc/localtime", "File", True),
    "/run/npuops": ("/run/npuops", "DirectoryOrCreate", True),
}
MOUNTS_910 = {
    "/var/log/lingqu": ("/var/log/lingqu", "DirectoryOrCreate", False),
    "/user/cluster-info/datatrace-config": ("/user/cluster-info/datatrace-config", "DirectoryOrCreate", False),
}


@pytest.mark.parametrize(
    ("accelerator", "name", "suffix", "extra_mounts"),
    [
        ("huawei-Ascend910", "ascend-device-plugin-daemonset", "910", MOUNTS_910),
        ("huawei-Ascend310P", "ascend-device-plugin310p-daemonset", "310p", {}),
        ("huawei-Ascend310", "ascend-device-plugin2-daemonset", "310", {}),
    ],
)
def test_device_plugin(accelerator, name, suffix, extra_mounts):
    objects = plugin_of(accelerator)
    assert sorted(objects) == ["ClusterRole", "ClusterRoleBinding", "DaemonSet", "ServiceAccount"]
    daemonset = objects["DaemonSet"]
    assert daemonset["metadata"] == {"name": name, "namespace": "npu-operator"}
    assert mounts(daemonset) == dict(COMMON_MOUNTS, **extra_mounts)
    spec = daemonset["spec"]["template"]["spec"]
    assert spec["nodeSelector"] == {"accelerator": accelerator, "npuops.ascend/components": "enabled"}
    assert spec["priorityClassName"] == "system-node-critical"
    assert spec["imagePullSecrets"] == [{"name": "one"}, {"name": "two"}]
    (container,) = spec["containers"]
    assert container["command"] == ["/bin/bash", "-c", "--"]
    (script,) = container["args"]
    wait, start = script.split("; exec ")
    assert_waits(spec)
    assert start == "device-plugin -useAscendDocker=true -logFile=/var/log/mindx-dl/devicePlugin/devicePlugin.log -logLevel=0"
    assert wait.startswith("trap exit TERM; ") and wait.endswith("; done")
    assert [variable["name"] for variable in container["env"]] == ["NODE_NAME", "HOST_IP"]
    assert container["securityContext"]["privileged"] is True
    assert container["image"] == "registry.example/plugin:v7.3.0"
    assert daemonset["spec"]["selector"]["matchLabels"] == daemonset["spec"]["template"]["metadata"]["labels"]
    # The ServiceAccount is the one that is bound, and the pod's.
    account = objects["ServiceAccount"]["metadata"]
    assert account == {"name": "ascend-device-plugin-sa-" + suffix, "namespace": "npu-operator"}
    assert objects["ClusterRoleBinding"]["subjects"] == [dict(account, kind="ServiceAccount")]
    assert objects["ClusterRoleBinding"]["roleRef"]["name"] == objects["ClusterRole"]["metadata"]["name"]
    assert spec["serviceAccountName"] == account["name"]


@pytest.mark.parametrize(
    ("family", "name", "suffix"),
    [
        ("huawei-Ascend910", "ascend-device-plugin-daemonset", "910"),
        ("huawei-Ascend310P", "ascend-device-plugin310p-daemonset", "310p"),
        ("huawei-Ascend310", "ascend-device-plugin2-daemonset", "310"),
        ("huawei-npu", "ascend-device-plugin-daemonset-npu", "npu"),
    ],
)
def test_device_plugin_of_26_1(family, name, suffix):
    """What differs from 7.3. The names do not: another version line replaces the pods of a DaemonSet node by node."""
    objects = plugin_of(family, version_line="26.1")
    before = plugin_of("huawei-Ascend910")
    spec = objects["DaemonSet"]["spec"]["template"]["spec"]
    (container,), (old,) = spec["containers"], before["DaemonSet"]["spec"]["template"]["spec"]["containers"]
    assert objects["DaemonSet"]["metadata"]["name"] == name
    assert objects["ServiceAccount"]["metadata"]["name"] == spec["serviceAccountName"] == "ascend-device-plugin-sa-" + suffix
    assert objects["ClusterRole"]["rules"] == before["ClusterRole"]["rules"]
    assert mounts(objects["DaemonSet"]) == dict(
        COMMON_MOUNTS, **MOUNTS_910, **{"/run/containerd": ("/run/containerd", "DirectoryOrCreate", True)}
    )
    assert spec["hostPID"] is True
    assert spec["nodeSelector"] == {
        "accelerator": family,
        "npuops.ascend/components": "enabled",
        "workerselector": "dls-worker-node",
    }
    (term,) = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [{"key": "servertype", "operator": "NotIn", "values": ["soc"]}]
    assert container["securityContext"] == {"privileged": True, "readOnlyRootFilesystem": True}
    assert container["args"][0].split("; exec ")[1] == (
        "device-plugin -logFile=/var/log/mindx-dl/devicePlugin/devicePlugin.log -logLevel=0"
        " --enable-healthz=true --healthz-address=11251"
    )
    for one in (container, old):
        one.pop("volumeMounts"), one.pop("args")
    assert container.pop("livenessProbe")["initialDelaySeconds"] == 30
    assert container == old
    assert_waits(spec)


@pytest.mark.parametrize("version_line", FAMILIES_OF)
def test_volcano_mounts_more_and_says_so(version_line):
    volcano = mindcluster.component(version_line, "npu_device_plugin", {"volcano": True})
    variables = dict(PLUGIN, __npu_version_line=volcano)
    objects = render("npu_device_plugin", "device-plugin.yaml.j2", variables)
    before, after = mounts(plugin_of("huawei-Ascend910", version_line=version_line)["DaemonSet"]), mounts(objects["DaemonSet"])
    assert {path: after[path] for path in set(after) - set(before)} == {
        "/etc/vnpu.cfg": ("/etc/vnpu.cfg", "File", False),
        "/run/vnpu_cfg_lock": ("/run/vnpu_cfg_lock", "DirectoryOrCreate", False),
        "/user/restore/reset": ("/user/restore/reset", "DirectoryOrCreate", False),
    }
    (container,) = objects["DaemonSet"]["spec"]["template"]["spec"]["containers"]
    assert container["args"][0].endswith(" -volcanoType=true -presetVirtualDevice=true")


@pytest.mark.parametrize("version_line", FAMILIES_OF)
def test_the_plugins_of_chips_that_can_be_shared_share_them(version_line):
    shared = mindcluster.component(version_line, "npu_device_plugin", {"share_count": 4})
    for accelerator, expected in (("huawei-Ascend310P", 4), ("huawei-Ascend910", 1)):
        variables = dict(PLUGIN, __npu_device_plugin_families=[accelerator], __npu_version_line=shared)
        template = render("npu_device_plugin", "device-plugin.yaml.j2", variables)["DaemonSet"]["spec"]["template"]
        before = plugin_of(accelerator, version_line=version_line)["DaemonSet"]["spec"]["template"]
        assert shared_chips.devices_per_chip([template]) == expected
        assert (template == before) is (expected == 1), "other nodes are left alone"


@pytest.mark.parametrize("version_line", ["7.3", "26.1"])
def test_sockets_of_another_distribution(version_line):
    """Where they are on the host; in the containers everything stays where upstream looks for it."""
    variables = dict(PLUGIN, npu_device_plugin_kubelet_dir="/var/lib/k0s/kubelet", npu_device_plugin_containerd_dir="/run/k0s")
    found = mounts(plugin_of("huawei-Ascend910", variables, version_line)["DaemonSet"])
    assert found["/var/lib/kubelet/pod-resources"] == ("/var/lib/k0s/kubelet/pod-resources", None, False)
    assert found["/var/lib/kubelet/device-plugins"] == ("/var/lib/kubelet/device-plugins", None, False), "whatever its directory is"
    if version_line == "26.1":
        assert found["/run/containerd"] == ("/run/k0s", "DirectoryOrCreate", True)
    variables = dict(EXPORTER, npu_exporter_containerd_dir="/run/k0s", __npu_version_line=mindcluster.version_line(version_line))
    found = mounts(render("npu_exporter", "npu-exporter.yaml.j2", variables)["DaemonSet"])
    assert found["/run/containerd"] == ("/run/k0s", None, True)


def test_policies_of_26_1_allow_what_it_writes_on_its_node_and_no_more():
    def names(version_line):
        (nodes,) = [item for item in policies_of(version_line) if item["metadata"]["name"] == "npuops-device-plugin-nodes"][:1]
        return {
            rule["message"].split()[6]: re.findall(r"'([^']+)'", rule["expression"].partition(".all(")[2].partition("||")[0])
            for rule in nodes["spec"]["validations"]
            if "key in" in rule["expression"]
        }

    old, new = names("7.3"), names("26.1")
    assert set(old) == {"labels", "annotations"} and old["labels"] and old["annotations"]
    assert {part: set(new[part]) - set(old[part]) for part in new} == {
        "labels": set(),
        "annotations": {"cardType", "rackID"},
    }
    assert all(set(old[part]) <= set(new[part]) for part in old)


COMPONENTS = {
    "device-plugin": ("npu_device_plugin", "device-plugin.yaml.j2", PLUGIN),
    "npu-exporter": ("npu_exporter", "npu-exporter.yaml.j2", EXPORTER),
}


@pytest.fixture
def start(tmp_path):
    """Start a component as its container does, or the container before it: start() is the running shell. Its host has
    tmp_path/driver-ready, tmp_path/boot_id and tmp_path/kubelet.sock, if any, and each sleep is a letter in tmp_path/noted and takes
    no time."""
    for name, does in (("device-plugin", 'echo "$@"'), ("npu-exporter", 'echo "$@"'), ("sleep", "printf z >> %s/noted" % tmp_path)):
        program = tmp_path / name
        program.write_text("#!/bin/sh\n%s\n" % does, encoding="utf-8")
        program.chmod(0o755)
    environment = dict(os.environ, PATH="%s:%s" % (tmp_path, os.environ["PATH"]))
    started = []

    def start(component="device-plugin", containers="containers"):
        spec = render(*COMPONENTS[component])["DaemonSet"]["spec"]["template"]["spec"]
        (container,) = spec[containers]
        (script,) = container["args"]
        for path in ("/run/npuops/driver-ready", "/host/boot_id", "/var/lib/kubelet/device-plugins/kubelet.sock"):
            script = script.replace(path, str(tmp_path / os.path.basename(path)))
        (tmp_path / "noted").write_text("", encoding="utf-8")
        process = subprocess.Popen(container["command"] + [script], env=environment, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_the_device_plugin_starts_when_there_is_a_socket_or_after_a_while(start, tmp_path):
    (tmp_path / "driver-ready").touch()

    def sleeps():
        output = start().communicate(timeout=PATIENCE)[0]
        assert output.startswith("-useAscendDocker=true ")
        return len((tmp_path / "noted").read_text(encoding="utf-8"))

    assert sleeps() == 50
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "kubelet.sock"))
        assert sleeps() == 0


def goes_on_waiting(process, tmp_path):
    """It has looked again, and is still there."""
    (tmp_path / "noted").write_text("", encoding="utf-8")
    end = time.monotonic() + PATIENCE
    while len((tmp_path / "noted").read_text(encoding="utf-8")) < 3:
        assert process.poll() is None and time.monotonic() < end


@pytest.mark.parametrize("component", COMPONENTS)
def test_nothing_starts_before_the_driver_of_this_boot(start, tmp_path, component):
    """The container of the component is made after that, with the device nodes; nothing ends, and the kubelet does not pause."""
    (tmp_path / "boot_id").write_text("boot-2\n", encoding="utf-8")
    process = start(component, "initContainers")
    assert process.stdout.readline().startswith("Waiting for the driver of this host: ")
    goes_on_waiting(process, tmp_path)
    marker = tmp_path / "driver-ready"
    for text in ('{"boot_id": "boot-1"}', ""):
        marker.write_text(text, encoding="utf-8")
        goes_on_waiting(process, tmp_path)
    marker.write_text('{"boot_id": "boot-2", "version": "25.5.0"}', encoding="utf-8")
    assert process.communicate(timeout=PATIENCE)[0] == "" and process.returncode == 0
    assert start(component, "initContainers").communicate(timeout=PATIENCE)[0] == ""


@pytest.mark.parametrize("component", COMPONENTS)
def test_one_that_starts_while_the_driver_is_suspended_waits_without_ending(start, tmp_path, component):
    """The kubelet restarts it without the init container, and pauses longer each time that it ends."""
    (tmp_path / "kubelet.sock").touch()
    process = start(component)
    assert process.stdout.readline().startswith("Waiting for the driver of this host: ")
    goes_on_waiting(process, tmp_path)
    (tmp_path / "driver-ready").touch()
    assert process.communicate(timeout=PATIENCE)[0].startswith("-")
    assert process.returncode == 0


@pytest.mark.parametrize("containers", ["containers", "initContainers"])
@pytest.mark.parametrize("component", COMPONENTS)
def test_one_that_waits_ends_when_told(start, component, containers):
    process = start(component, containers)
    assert process.stdout.readline().startswith("Waiting")
    process.terminate()
    assert process.wait(PATIENCE) is not None


@pytest.mark.parametrize(
    ("accelerator", "configmaps"),
    [
        ("huawei-Ascend910", ["get", "create", "update", "list", "watch"]),
        ("huawei-Ascend310P", ["get", "create", "update"]),
        ("huawei-Ascend310", ["get", "create", "update"]),
    ],
)
def test_device_plugin_may_do_what_upstream_needs_and_no_more(accelerator, configmaps):
    rules = plugin_of(accelerator)["ClusterRole"]["rules"]
    assert {rule["resources"][0]: rule["verbs"] for rule in rules} == {
        "pods": ["get", "list", "update", "watch", "patch"],
        "nodes": ["get", "patch"],
        "nodes/proxy": ["get"],
        "nodes/status": ["get", "patch", "update"],
        "configmaps": configmaps,
        "events": ["create"],
    }
    assert all(len(rule["resources"]) == 1 and rule["apiGroups"] == [""] for rule in rules)


@pytest.mark.parametrize("accelerator", ["huawei-Ascend910", "huawei-Ascend310P", "huawei-Ascend310"])
def test_device_plugin_behind_the_node_agent(accelerator):
    """Only the directory of its sockets is another."""
    direct = plugin_of(accelerator)
    behind = plugin_of(accelerator, dict(PLUGIN, npu_node_agent_enabled=True))
    sockets = mounts(behind["DaemonSet"]).pop("/var/lib/kubelet/device-plugins")
    assert sockets == ("/var/lib/npuops/device-plugins", "DirectoryOrCreate", False)
    for objects in (direct, behind):
        volumes = objects["DaemonSet"]["spec"]["template"]["spec"]["volumes"]
        assert [volume.pop("hostPath") for volume in volumes if volume["name"] == "device-plugin"]
    assert direct == behind


def test_not_on_the_soc_variant_of_the_310p():
    spec = plugin_of("huawei-Ascend310P")["DaemonSet"]["spec"]["template"]["spec"]
    (term,) = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [{"key": "servertype", "operator": "NotIn", "values": ["soc"]}]


def test_exporter():
    objects = render("npu_exporter", "npu-exporter.yaml.j2", EXPORTER)
    assert sorted(objects) == ["DaemonSet", "NetworkPolicy"]
    daemonset = objects["DaemonSet"]
    assert daemonset["metadata"] == {"name": "npu-exporter", "namespace": "npu-operator"}
    spec = daemonset["spec"]["template"]["spec"]
    assert spec["nodeSelector"] == {"workerselector": "dls-worker-node", "npuops.ascend/components": "enabled"}
    assert spec["automountServiceAccountToken"] is False
    (container,) = spec["containers"]
    assert_waits(spec)
    (script,) = container["args"]
    wait, start = script.split("; umask 027; exec ")
    assert start == (
        "npu-exporter -port=8082 -ip=0.0.0.0 -updateTime=5"
        " -logFile=/var/log/mindx-dl/npu-exporter/npu-exporter.log -logLevel=0 -containerMode=containerd"
    )
    assert wait.startswith("trap exit TERM; ") and wait.endswith("; done")
    # Neither docker nor isulad nor /usr/local/dcmi: what is missing on the host would be created there.
    assert mounts(daemonset) == {
        "/var/log/mindx-dl/npu-exporter": ("/var/log/mindx-dl/npu-exporter", "Directory", False),
        "/etc/localtime": ("/etc/localtime", "File", True),
        "/usr/local/Ascend/driver": ("/usr/local/Ascend/driver", "Directory", True),
        "/run/containerd": ("/run/containerd", None, True),
        "/tmp": ("/tmp", None, False),
        "/run/npuops": ("/run/npuops", "DirectoryOrCreate", True),
    }
    policy = objects["NetworkPolicy"]["spec"]
    assert policy["podSelector"]["matchLabels"] == daemonset["spec"]["template"]["metadata"]["labels"]
    assert policy["ingress"] == [{"from": EXPORTER["npu_exporter_scrapers"]}]


@pytest.mark.parametrize(
    ("role", "template", "variables"),
    [("npu_exporter", "npu-exporter.yaml.j2", EXPORTER), ("npu_node_agent", "node-agent.yaml.j2", AGENT)],
)
def test_without_scrapers_no_pod_may_read_the_metrics(role, template, variables):
    """An empty list of peers in a rule stands for all of them."""
    policy = render(role, template, {**variables, role + "_scrapers": []})["NetworkPolicy"]["spec"]
    assert [policy.get(kind.lower()) for kind in policy["policyTypes"]] == [[]] * len(policy["policyTypes"])


def test_exporter_of_26_1():
    """Only the flags and the probe are others."""
    new = render("npu_exporter", "npu-exporter.yaml.j2", dict(EXPORTER, __npu_version_line=mindcluster.version_line("26.1")))
    old = render("npu_exporter", "npu-exporter.yaml.j2", EXPORTER)
    (container,), (before,) = (objects["DaemonSet"]["spec"]["template"]["spec"]["containers"] for objects in (new, old))
    assert container["args"][0].split("; umask 027; exec ")[1] == (
        "npu-exporter -port=8082 -ip=0.0.0.0 -logFile=/var/log/mindx-dl/npu-exporter/npu-exporter.log -logLevel=0"
        " -containerMode=containerd --enable-healthz=true --healthz-address=11256"
    )
    assert container.pop("livenessProbe")["initialDelaySeconds"] == 20
    container["args"] = before["args"]
    assert new == old


class Healthz(http.server.BaseHTTPRequestHandler):
    """Answers every request with the server's status."""

    def do_GET(self):
        self.send_response(self.server.status if self.path == "/" else 404)
        self.end_headers()

    def log_message(self, *_args):
        pass


@pytest.fixture
def healthz():
    with http.server.HTTPServer(("127.0.0.1", 0), Healthz) as server:
        server.status = 200
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("component", ["device-plugin", "npu-exporter"])
def test_a_component_that_answers_or_waits_is_alive(component, tmp_path, healthz):
    """Upstream's probe would end one that waits for the driver, and the kubelet would pause longer each time."""
    role, template, variables = COMPONENTS[component]
    version_line = {"__npu_version_line": mindcluster.version_line("26.1")}
    (container,) = render(role, template, dict(variables, **version_line))["DaemonSet"]["spec"]["template"]["spec"]["containers"]
    *command, port = container["livenessProbe"]["exec"]["command"]
    assert "--healthz-address=" + port in container["args"][0].split()
    command = [part.replace("/run/npuops/driver-ready", str(tmp_path / "driver-ready")) for part in command]

    def is_alive(port=healthz.server_port):
        return subprocess.run([*command, str(port)], stderr=subprocess.DEVNULL, timeout=PATIENCE, check=False).returncode == 0

    with socket.create_server(("127.0.0.1", 0)) as nobody:
        free = nobody.getsockname()[1]
    assert is_alive(free), "it waits for the driver"
    (tmp_path / "driver-ready").touch()
    assert is_alive() and not is_alive(free)
    for status, alive in ((503, False), (429, True), (404, False)):
        healthz.status = status
        assert is_alive() is alive


def test_service_monitor_finds_the_exporter():
    objects = render("npu_exporter", "service-monitor.yaml.j2", EXPORTER)
    exporter = render("npu_exporter", "npu-exporter.yaml.j2", EXPORTER)["DaemonSet"]["spec"]["template"]
    service, monitor = objects["Service"], objects["ServiceMonitor"]
    assert service["spec"]["selector"] == exporter["metadata"]["labels"]
    assert monitor["spec"]["selector"]["matchLabels"] == service["metadata"]["labels"]
    assert monitor["spec"]["endpoints"][0]["port"] == service["spec"]["ports"][0]["name"]
    assert monitor["metadata"]["labels"] == {"release": "prometheus"}


def test_node_agent():
    objects = render("npu_node_agent", "node-agent.yaml.j2", AGENT)
    daemonset = objects["DaemonSet"]["spec"]["template"]
    spec = daemonset["spec"]
    (container,) = spec["containers"]
    assert "hostNetwork" not in spec and "hostPID" not in spec
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    seen = {
        mount["mountPath"]: ((volumes[mount["name"]].get("hostPath") or {}).get("path"), mount.get("readOnly", False))
        for mount in container["volumeMounts"]
    }
    assert seen == {
        "/var/lib/kubelet/device-plugins": ("/var/lib/kubelet/device-plugins", False),
        "/var/lib/npuops/device-plugins": ("/var/lib/npuops/device-plugins", False),
        "/run/npuops": ("/run/npuops", False),
        "/etc/cdi": ("/etc/cdi", True),
        # The whole root: driver is a link in it.
        "/var/lib/Ascend": ("/var/lib/Ascend", True),
        "/dev": ("/dev", False),
        "/sys/bus/pci/devices": ("/sys/bus/pci/devices", True),
        "/host/boot_id": ("/proc/sys/kernel/random/boot_id", True),
        "/host/usr/local": ("/usr/local", True),
        "/tmp": (None, False),
    }
    # Its own file system may come after the agent: a mount over a hostPath is seen only where it is passed on.
    (driver,) = [mount for mount in container["volumeMounts"] if mount["mountPath"] == "/var/lib/Ascend"]
    assert driver["mountPropagation"] == "HostToContainer"
    # Every variable is a setting of the program.
    with open(os.path.join(ROLES, "..", "images/node-agent/npu_node_agent/config.py"), encoding="utf-8") as stream:
        settings = set(re.findall(r'^ +\(?"([a-z-]+)",', stream.read(), re.M))
    for variable in container["env"]:
        assert variable["name"].replace("NPU_AGENT_", "").lower().replace("_", "-") in settings
    # Strangers do not reach its port; it reaches the API server.
    policy = objects["NetworkPolicy"]["spec"]
    assert policy["podSelector"]["matchLabels"] == daemonset["metadata"]["labels"] and policy["policyTypes"] == ["Ingress"]
    (allowed,) = policy["ingress"]
    assert allowed["from"] == AGENT["npu_node_agent_scrapers"]
    assert [port["port"] for port in allowed["ports"]] == [port["name"] for port in container["ports"]]
    rules = {kind: objects[kind]["rules"] for kind in ("ClusterRole", "Role")}
    assert rules == {
        "ClusterRole": [
            {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "patch"]},
            {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]},
        ],
        "Role": [{"apiGroups": [""], "resources": ["events"], "verbs": ["get", "create", "patch", "delete"]}],
    }


TAINTING = dict(AGENT, npu_node_agent_device_taints=True)


def test_an_agent_that_taints_chips():
    objects, before = (render("npu_node_agent", "node-agent.yaml.j2", variables) for variables in (TAINTING, AGENT))
    assert objects["ClusterRole"]["rules"] == before["ClusterRole"]["rules"] + [
        {"apiGroups": ["resource.k8s.io"], "resources": ["resourceslices"], "verbs": ["list"]},
        {"apiGroups": ["resource.k8s.io"], "resources": ["devicetaintrules"], "verbs": ["list", "create", "patch", "delete"]},
    ]
    (container,), (other,) = (one["DaemonSet"]["spec"]["template"]["spec"]["containers"] for one in (objects, before))
    assert [one for one in container["env"] if one not in other["env"]] == [{"name": "NPU_AGENT_DEVICE_TAINTS", "value": "true"}]
    container["env"] = other["env"]
    objects["ClusterRole"] = before["ClusterRole"]
    assert objects == before


def test_the_agent_writes_no_status_without_a_policy():
    """Who may write the status of every node can send the API server to another kubelet; who may taint every device, evict pods."""
    objects = render("npu_node_agent", "node-agent.yaml.j2", dict(TAINTING, npu_node_agent_admission_policy=False))
    assert objects["ClusterRole"]["rules"] == [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "patch"]}]
    assert "NPU_AGENT_DEVICE_TAINTS" not in str(objects["DaemonSet"])


def test_policies_are_about_each_write_of_the_agent():
    objects = render("npu_node_agent", "node-agent.yaml.j2", TAINTING)
    policies = [item for item in render_all("npu_node_agent", "admission-policy.yaml.j2", AGENT) if "validations" in item["spec"]]
    operations = {"create": "CREATE", "patch": "UPDATE", "delete": "DELETE"}
    writes = {
        (resource, operations[verb])
        for kind in ("ClusterRole", "Role")
        for rule in objects[kind]["rules"]
        for verb in rule["verbs"]
        for resource in rule["resources"]
        if verb in operations
    }
    held = {
        (resource, operation)
        for policy in policies
        for rule in policy["spec"]["matchConstraints"]["resourceRules"]
        for resource in rule["resources"]
        for operation in rule["operations"]
    }
    assert writes == held
    assert all(policy["spec"]["failurePolicy"] == "Fail" for policy in policies)
    # Whatever the setting: a token may be older than it.
    every = render_all("npu_node_agent", "admission-policy.yaml.j2", AGENT)
    assert every == render_all("npu_node_agent", "admission-policy.yaml.j2", TAINTING)
    bindings = [item for item in every if "policyName" in item["spec"]]
    assert [item["spec"]["policyName"] for item in bindings] == [policy["metadata"]["name"] for policy in policies]
    assert all(item["spec"]["validationActions"] == ["Deny"] for item in bindings)


def test_rules_of_policies_name_their_scope():
    """The API server adds it to a rule without one, and each comparison with such a definition takes a dry run."""
    for path in pathlib.Path(ROLES).glob("*/templates/admission-policy.yaml.j2"):
        rules = re.findall(r"^ +resources: \[.*\]\n( +scope: \"\*\"\n)?", path.read_text(encoding="utf-8"), re.M)
        assert rules and all(rules), path


def test_one_name_of_all_that_makes_a_device_taint():
    """The agent writes it, the policy allows it, the controller removes it. Versions of the API do not count: RBAC does not know them."""
    source = "".join(
        pathlib.Path(ROLES, "..", "images/node-agent/npu_node_agent", name).read_text(encoding="utf-8")
        for name in ("dra_devices.py", "taint_rule.py", "device_taints.py")
    )
    agent = dict(re.findall(r'^([A-Z_]+) = "(.+)"$', source, re.M))
    assert (agent["LABEL"], agent["NO_EFFECT"]) == (taints_removal.LABEL, taints_removal.NO_EFFECT)
    assert agent["RULES"] == taints_removal.RULES
    policy = render_all("npu_node_agent", "admission-policy.yaml.j2", AGENT)[4]["spec"]
    assert policy["matchConstraints"]["resourceRules"][0]["apiVersions"] == ["*"]
    allowed = {text for one in policy["validations"] for text in re.findall(r"== '([^']+)'", one["expression"])}
    assert allowed == {agent["KEY"], agent["NO_EFFECT"], agent["DRIVER"], "Node", "DELETE"}
    name = "rule.metadata.name == variables.node + '.' + rule.spec.deviceSelector.device + '.npuops'"
    assert '"%s.%s.npuops" % (node, device)' in source and name in policy["validations"][0]["expression"]


def test_the_agents_policies_come_before_the_permissions_that_they_restrict():
    """And go after them: a removal is in reverse order."""
    text = pathlib.Path(ROLES, "npu_node_agent", "tasks", "main.yml").read_text(encoding="utf-8")
    assert 0 < text.index("__npu_node_agent_admission_templates") < text.index("node-agent.yaml.j2")


def test_one_name_of_each_condition():
    """The agent writes it, the policy allows it, the controller removes it."""
    agents = []
    for path in sorted(pathlib.Path(ROLES, "..", "images/node-agent/npu_node_agent").glob("*_condition.py")):
        agents += re.findall(r'^TYPE = "(.+)"$', path.read_text(encoding="utf-8"), re.M)
    policies = render_all("npu_node_agent", "admission-policy.yaml.j2", AGENT)
    (allowed,) = [one["expression"] for one in policies[0]["spec"]["variables"] if one["name"] == "types"]
    assert sorted(agents) == sorted(kube_agent_conditions.TYPES) == sorted(re.findall(r"'([^']+)'", allowed))
    told = " and ".join([", ".join(kube_agent_conditions.TYPES[:-1]), kube_agent_conditions.TYPES[-1]])
    assert told in str(policies[0]["spec"]["validations"])


def test_service_monitor_finds_the_node_agent():
    objects = render("npu_node_agent", "monitoring.yaml.j2", AGENT)
    agent = render("npu_node_agent", "node-agent.yaml.j2", AGENT)["DaemonSet"]["spec"]["template"]
    service, monitor = objects["Service"], objects["ServiceMonitor"]
    assert service["spec"]["selector"] == agent["metadata"]["labels"]
    assert monitor["spec"]["selector"]["matchLabels"] == service["metadata"]["labels"]
    (port,) = service["spec"]["ports"]
    assert monitor["spec"]["endpoints"][0]["port"] == port["name"] == agent["spec"]["containers"][0]["ports"][0]["name"]
    assert objects["PrometheusRule"]["spec"] == AGENT["__npu_node_agent_alerts"]
    assert objects["PrometheusRule"]["metadata"]["labels"] == {"release": "prometheus"}


ALL = pytest.mark.parametrize(
    ("role", "variables"), [("npu_device_plugin", PLUGIN), ("npu_exporter", EXPORTER), ("npu_node_agent", AGENT)]
)


@ALL
@pytest.mark.parametrize(("given", "wanted"), [("10%", "10%"), ("1", 1)])
def test_how_many_nodes_at_once(role, variables, given, wanted):
    """Given as text, and the API tells a number from a percentage by its type."""
    kinds = [
        render(role, template, dict(variables, npu_rollout_max_unavailable=given))
        for template in os.listdir(os.path.join(ROLES, role, "templates"))
    ]
    strategies = [objects["DaemonSet"]["spec"]["updateStrategy"] for objects in kinds if "DaemonSet" in objects]
    assert strategies == [{"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": wanted}}] * len(strategies)
    assert strategies


@ALL
def test_every_template_begins_a_document(role, variables):
    """The roles apply several of them as one text."""
    for template in os.listdir(os.path.join(ROLES, role, "templates")):
        with open(os.path.join(ROLES, role, "templates", template), encoding="utf-8") as stream:
            lines = [line for line in stream.read().partition("#}\n")[2].splitlines() if not line.startswith("#")]
        assert lines[0] == "---", template
        assert render(role, template, variables)
