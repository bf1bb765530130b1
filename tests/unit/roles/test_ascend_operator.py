# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What real images of the ascend-operator 7.3 and 26.1 need of the Deployment: the rendered templates against upstream's contract."""

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import mindcluster
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import stack as mindcluster_stack

from support.kube.manifests import OPERATOR, render

ROLE = "npu_ascend_operator"
(COMPONENT,) = [component for component in mindcluster_stack.COMPONENTS if component.role == ROLE]
VERSION_LINES = pytest.mark.parametrize("version_line", mindcluster.names())
# (group, resource): verbs of upstream's ClusterRole, beside those that it grants of what is not used.
UPSTREAMS = {
    ("", "events"): {"create", "patch", "list", "watch", "delete"},
    ("", "services"): {"create", "list", "watch", "delete", "get"},
    ("", "configmaps"): {"create", "list", "watch", "delete", "get", "update"},
    ("scheduling.volcano.sh", "podgroups"): {"create", "list", "watch", "delete", "get", "update"},
    ("scheduling.volcano.sh", "queues"): {"get", "list", "watch"},
    ("mindxdl.gitee.com", "ascendjobs"): {"create", "list", "watch", "delete", "get", "patch", "update"},
    ("mindxdl.gitee.com", "ascendjobs/finalizers"): {"update"},
    ("mindxdl.gitee.com", "ascendjobs/status"): {"get", "patch", "update"},
    ("batch.volcano.sh", "jobs"): {"get", "watch", "list"},
    ("apps", "deployments"): {"get", "watch", "list"},
    ("apps", "statefulsets"): {"get", "watch", "list"},
}
PODS = {"create", "list", "watch", "delete", "get", "update"}


def rendered(template, version_line="26.1", settings=None, common=None, **variables):
    known = mindcluster.component(version_line, ROLE, settings or {}, common)
    return render(ROLE, template, dict(OPERATOR, __npu_version_line=known, **variables))


def pod_of(version_line="26.1", settings=None, common=None, **variables):
    deployment = rendered("ascend-operator.yaml.j2", version_line, settings, common, **variables)["Deployment"]
    spec = deployment["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    return deployment, spec, container


@VERSION_LINES
def test_the_operator_is_confined(version_line):
    deployment, spec, container = pod_of(version_line)
    assert (deployment["metadata"]["namespace"], deployment["metadata"]["name"]) == ("npu-operator", COMPONENT.names[0])
    assert spec["securityContext"] == {
        "runAsNonRoot": True, "runAsUser": 9000, "runAsGroup": 9000, "seccompProfile": {"type": "RuntimeDefault"},
    }  # fmt: skip
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    assert not {"hostNetwork", "hostPID", "hostIPC", "initContainers"} & set(spec)
    assert [volume for volume in spec["volumes"] if "emptyDir" not in volume] == []


def test_rank_tables_in_files_need_a_directory():
    _deployment, spec, container = pod_of(npu_ascend_operator_ranktable_dir="/mnt/shared/ranktable")
    (volume,) = [volume for volume in spec["volumes"] if "hostPath" in volume]
    assert volume["hostPath"] == {"path": "/mnt/shared/ranktable", "type": "Directory"}
    assert {"name": volume["name"], "mountPath": "/user/mindx-dl/ranktable"} in container["volumeMounts"]


@VERSION_LINES
def test_flags(version_line):
    """Go's flags take the last of two."""
    (command,) = pod_of(version_line)[2]["args"]
    assert "exec ascend-operator " in command and command.endswith(" -enableGangScheduling=true")
    assert "mkdir -p /var/log/mindx-dl/ascend-operator;" in command, "the log's directory must belong to its user"
    common = {"log_levels": {"ascend_operator": -1}, "log_max_backups": 7, "log_max_age": 14}
    (command,) = pod_of(version_line, {"gang_scheduling": False}, common)[2]["args"]
    assert command.endswith(" -maxAge=14 -maxBackups=7 -enableGangScheduling=false") and " -logLevel=-1 " in command


@VERSION_LINES
def test_the_probe_is_what_the_version_line_answers(version_line):
    _deployment, _spec, container = pod_of(version_line)
    (command,) = container["args"]
    probe = container.get("livenessProbe")
    assert bool(probe) == ("--enable-healthz=true" in command) == (version_line != "7.3")
    if probe:
        assert "--healthz-address=%d" % probe["httpGet"]["port"] in command


def test_the_old_pod_goes_last():
    spec = pod_of()[0]["spec"]
    assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
    assert spec["minReadySeconds"] > 0


@VERSION_LINES
@pytest.mark.parametrize("gang", [True, False])
def test_its_permissions_are_upstreams_or_fewer(version_line, gang):
    rules = rendered("access.yaml.j2", version_line, npu_ascend_operator_gang_scheduling=gang)["ClusterRole"]["rules"]
    upstreams = dict(UPSTREAMS)
    upstreams["", "pods"] = PODS if version_line == "7.3" else PODS | {"patch"}
    for rule in rules:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                assert set(rule["verbs"]) <= upstreams[group, resource], (group, resource)
    queues = [rule for rule in rules if "queues" in rule["resources"]]
    assert bool(queues) == gang


def test_the_kind_is_ours_by_its_label():
    crd = rendered("ascendjob-crd.yaml.j2")["CustomResourceDefinition"]
    assert crd["metadata"]["name"] == COMPONENT.crds[0].name
    assert crd["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "npuops.ascend"}
    (version,) = crd["spec"]["versions"]
    assert (version["name"], version["subresources"]) == ("v1", {"status": {}})
