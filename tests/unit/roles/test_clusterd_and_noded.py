# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What real images of clusterd and noded 7.3 and 26.1 need of their objects: the rendered templates against upstream's contract."""

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import mindcluster
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import stack as mindcluster_stack

from support.kube.manifests import CLUSTERD, NODED, render, render_all

VERSION_LINES = pytest.mark.parametrize("version_line", mindcluster.names())
BOTH = pytest.mark.parametrize("part", ["clusterd", "noded"])
VARIABLES = {"clusterd": CLUSTERD, "noded": NODED}
COMPONENTS = {component.part: component for component in mindcluster_stack.COMPONENTS}
PROFILING, POLICY = "/user/cluster-info/profiling", "ValidatingAdmissionPolicy"
# What noded reports in the namespaces of jobs: the beginnings of names, and the key.
REPORTS = {
    "slow-node-algo-result": "NodeSlowNodeAlgoResult",
    "data-profiling-result": "NodeDataProfilingResult",
    "node-restart-info": "nodeIp",
}
# By version line, (group, resource): verbs of upstream's ClusterRoles.
OF_CLUSTERD = {
    ("", "pods"): {"get", "list", "update", "watch", "patch"},
    ("", "configmaps"): {"get", "create", "update", "list", "watch", "delete", "patch"},
    ("", "nodes"): {"get", "list", "patch", "watch"},
    ("", "events"): {"list"},
    ("batch.volcano.sh", "jobs"): {"get", "list", "watch", "update", "delete"},
    ("scheduling.volcano.sh", "podgroups"): {"list", "watch", "update", "get", "patch"},
    ("mindxdl.gitee.com", "ascendjobs"): {"list", "watch", "get", "update"},
}
OF_NODED = {("", "configmaps"): {"get", "create", "update", "list", "watch", "delete"}, ("", "nodes"): {"patch"}}
UPSTREAMS = {
    ("clusterd", "7.3"): OF_CLUSTERD,
    ("clusterd", "26.1"): OF_CLUSTERD,
    ("noded", "7.3"): OF_NODED,
    ("noded", "26.1"): {
        **OF_NODED,
        ("", "nodes"): {"get", "list", "patch"},
        ("", "pods"): {"get", "list", "watch", "patch"},
    },
}


def rendered(part, template, version_line="26.1", common=None, **variables):
    known = mindcluster.component(version_line, "npu_" + part, {}, common)
    return render("npu_" + part, template, {**VARIABLES[part], "__npu_version_line": known, **variables})


def pod_of(part, version_line="26.1", common=None, **variables):
    workload = rendered(part, part + ".yaml.j2", version_line, common, **variables)[COMPONENTS[part].kind]
    spec = workload["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    return workload, spec, container


@BOTH
@VERSION_LINES
def test_it_is_what_the_table_says(part, version_line):
    component = COMPONENTS[part]
    metadata = pod_of(part, version_line)[0]["metadata"]
    assert (metadata["namespace"], metadata["name"]) == (component.home("npu-operator"), component.names[0])
    assert metadata["labels"] == {mindcluster_stack.MANAGED_BY: mindcluster_stack.OURS}
    access = rendered(part, "access.yaml.j2", version_line)
    assert access["ClusterRole"]["metadata"]["name"] == component.cluster_roles[0]
    assert access["ClusterRoleBinding"]["metadata"]["name"] == component.cluster_role_bindings[0]
    assert access["ClusterRoleBinding"]["subjects"][0]["namespace"] == component.home("npu-operator")


@VERSION_LINES
def test_clusterd_is_confined(version_line):
    _workload, spec, container = pod_of("clusterd", version_line)
    assert spec["securityContext"] == {
        "runAsNonRoot": True, "runAsUser": 9000, "runAsGroup": 9000, "seccompProfile": {"type": "RuntimeDefault"},
    }  # fmt: skip
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    assert not {"hostNetwork", "hostPID", "hostIPC", "initContainers"} & set(spec)
    assert [volume for volume in spec["volumes"] if "emptyDir" not in volume] == []


@VERSION_LINES
def test_noded_has_no_more_of_the_host_than_it_needs(version_line):
    """It is privileged, as upstream's: for the chips and for IPMI."""
    _workload, spec, container = pod_of("noded", version_line)
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
    paths = {volume["hostPath"]["path"]: volume["hostPath"]["type"] for volume in spec["volumes"] if "hostPath" in volume}
    assert paths == {
        "/var/lib/Ascend/driver": "Directory", "/dev": "Directory", "/etc/localtime": "File",
        "/run/npuops": "DirectoryOrCreate", "/proc/sys/kernel/random/boot_id": "File",
    }  # fmt: skip
    read_only = {mount["mountPath"] for mount in container["volumeMounts"] if mount.get("readOnly")}
    assert read_only == {"/usr/local/Ascend/driver", "/etc/localtime", "/run/npuops"}


@pytest.mark.parametrize(
    ("part", "variable", "inside", "kind"),
    [
        ("clusterd", "config_dir", "/user1/mindx-dl/clusterd", "Directory"),
        ("clusterd", "slow_node_dir", "/user/slownode-cluster", "Directory"),
        ("noded", "pingmesh_dir", "/user/mind-cluster/pingmesh", "DirectoryOrCreate"),
        ("noded", "profiling_dir", PROFILING, "DirectoryOrCreate"),
    ],
)
def test_a_directory_of_the_host_is_one_that_is_set(part, variable, inside, kind):
    _workload, spec, container = pod_of(part, **{"npu_%s_%s" % (part, variable): "/mnt/it"})
    (volume,) = [volume for volume in spec["volumes"] if (volume.get("hostPath") or {}).get("path") == "/mnt/it"]
    assert volume["hostPath"]["type"] == kind
    assert {"name": volume["name"], "mountPath": inside} in container["volumeMounts"]


def test_noded_leaves_a_node_that_is_paused():
    """It uses the driver, and would be in the way of a reboot."""
    workload, spec, _container = pod_of("noded")
    assert spec["nodeSelector"]["npuops.ascend/components"] == "enabled"
    assert workload["spec"]["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}}


@BOTH
@VERSION_LINES
def test_flags(part, version_line):
    """Go's flags take the last of two."""
    (command,) = pod_of(part, version_line)[2]["args"]
    assert "exec %s -logFile=/var/log/mindx-dl/%s/%s.log -logLevel=0" % (part, part, part) in command
    (command,) = pod_of(part, version_line, {"log_levels": {part: -1}, "log_max_backups": 7, "log_max_age": 14})[2]["args"]
    assert command.endswith(" -maxAge=14 -maxBackups=7") and " -logLevel=-1" in command


@VERSION_LINES
def test_clusterd_knows_where_to_listen(version_line):
    objects = rendered("clusterd", "clusterd.yaml.j2", version_line)
    (container,) = objects["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}} in container["env"]
    assert "mkdir -p /var/log/mindx-dl/clusterd;" in container["args"][0], "the log's directory must belong to its user"
    service = objects["Service"]
    assert (service["metadata"]["namespace"], service["metadata"]["name"]) == ("mindx-dl", "clusterd-grpc-svc")
    assert service["spec"]["selector"] == objects["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["ports"][0]["port"] == 8899


@BOTH
@VERSION_LINES
def test_the_probe_is_what_the_version_line_answers(part, version_line):
    _workload, _spec, container = pod_of(part, version_line)
    (command,) = container["args"]
    probe = container.get("livenessProbe")
    assert bool(probe) == ("--enable-healthz=true" in command) == (version_line != "7.3")
    if probe:
        port = probe["httpGet"]["port"] if part == "clusterd" else probe["exec"]["command"][-1]
        assert "--healthz-address=%s" % port in command


def test_the_old_clusterd_goes_last():
    spec = pod_of("clusterd")[0]["spec"]
    assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
    assert spec["minReadySeconds"] > 0


@VERSION_LINES
@pytest.mark.parametrize(
    ("part", "variables"), [("clusterd", {}), ("noded", {}), ("noded", {"npu_noded_profiling_dir": PROFILING})]
)
def test_its_permissions_are_upstreams_or_fewer(part, version_line, variables):
    objects = rendered(part, "access.yaml.j2", version_line, **variables)
    for role in (objects["ClusterRole"], objects.get("Role", {"rules": []})):
        for rule in role["rules"]:
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    assert set(rule["verbs"]) <= UPSTREAMS[part, version_line][group, resource], (group, resource)


def test_noded_writes_in_one_namespace_unless_it_looks_for_slow_nodes():
    for profiling, writes in (("", False), (PROFILING, True)):
        objects = rendered("noded", "access.yaml.j2", npu_noded_profiling_dir=profiling)
        verbs = {verb for rule in objects["ClusterRole"]["rules"] if "configmaps" in rule["resources"] for verb in rule["verbs"]}
        assert bool(verbs & {"create", "update", "delete"}) == writes
        assert objects["Role"]["metadata"]["namespace"] == "mindx-dl"


def configmap_policy(profiling):
    objects = render_all("npu_noded", "admission-policy.yaml.j2", dict(NODED, npu_noded_profiling_dir=profiling))
    (policy,) = [item for item in objects if (item["kind"], item["metadata"]["name"]) == (POLICY, "npuops-noded-configmaps")]
    return policy["spec"]


def test_noded_writes_reports_of_slow_nodes_and_nothing_else():
    """With upstream's names and keys (constants.go of its ascend-faultdiag-online); tests/lab has an API server judge it."""
    policy = configmap_policy(PROFILING)
    variables = {entry["name"]: entry["expression"] for entry in policy["variables"]}
    for prefix, key in REPORTS.items():
        assert f"'{prefix}-': '{key}'" in variables["reports"]
    report = variables["isReport"]
    for namespace in ("kube-system", "mindx-dl", "cluster-system", "npu-operator"):
        assert f"'{namespace}'" in report.partition("&&")[0]
    # Of the new object, and of the old one: no ConfigMap of an application becomes a report.
    assert report.count("== {'fd-ol-slow-node': 'true'}") == 2 and "oldObject.metadata.labels" in report
    assert "object.data.all(key, key == variables.reports[prefix])" in report and "!has(object.binaryData)" in report
    (validation,) = policy["validations"]
    assert validation["expression"].endswith("|| variables.isReport")
    # Whatever is a way past the node's own ConfigMap is that of reports.
    assert validation["expression"].count("||") == 1
    without = str(configmap_policy(""))
    assert "isReport" not in without and "||" not in without and "slow" not in without


@BOTH
@pytest.mark.parametrize("ours", ["npu-operator", "mindx-dl"])
def test_no_role_takes_the_label_that_another_gives_a_namespace(part, ours):
    """Our own namespace allows privileged pods, whichever role was last."""
    names = {}
    for item in render_all("npu_" + part, "namespaces.yaml.j2", dict(VARIABLES[part], npu_namespace=ours)):
        assert item["metadata"]["name"] not in names
        names[item["metadata"]["name"]] = item["metadata"].get("labels")
    privileged = {"pod-security.kubernetes.io/enforce": "privileged"}
    assert set(COMPONENTS[part].namespaces) <= set(names)
    assert all(labels == (privileged if name == ours else None) for name, labels in names.items())


@BOTH
def test_what_it_has_written_goes_with_it(part):
    (configmap,) = render_all(
        "npu_component", "leftovers.yaml.j2", {"__npu_component_leftovers": VARIABLES[part]["npu_%s_leftovers" % part]}
    )
    assert configmap["metadata"] == VARIABLES[part]["npu_%s_leftovers" % part][0]
