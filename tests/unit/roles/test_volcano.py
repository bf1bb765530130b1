# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What real images of Volcano with ascend-for-volcano 7.3 and 26.1 need of their objects: the rendered templates, and what is less."""

from __future__ import annotations

import subprocess

import pytest
import yaml
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import mindcluster
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import stack as mindcluster_stack

from support.kube.manifests import ROLES, VOLCANO, render_all

ROLE = "npu_volcano"
(COMPONENT,) = [component for component in mindcluster_stack.COMPONENTS if component.role == ROLE]
VERSION_LINES = pytest.mark.parametrize("version_line", mindcluster.names())
SCHEDULER, CONTROLLERS = COMPONENT.names
BOTH = pytest.mark.parametrize("name", COMPONENT.names)
# What upstream's ClusterRoles grant, and none of ours does.
LEFT_OUT = {
    SCHEDULER: {
        ("pods", "create"), ("pods", "update"), ("pods", "bind"), ("bindings", "create"), ("nodes", "update"), ("nodes", "patch"),
        ("customresourcedefinitions", "create"), ("customresourcedefinitions", "delete"), ("queues", "delete"),
        ("configmaps", "create"), ("configmaps", "delete"), ("deployments", "get"), ("resourceclaims", "create"),
        ("numatopologies", "delete"), ("jobs", "update"), ("jobs", "delete"), ("leases", "create"),
    },
    CONTROLLERS: {
        ("customresourcedefinitions", "create"), ("customresourcedefinitions", "delete"), ("secrets", "get"), ("secrets", "create"),
        ("hypernodes", "create"), ("queues", "create"), ("queues", "delete"), ("priorityclasses", "create"),
        ("priorityclasses", "delete"), ("configmaps", "list"), ("configmaps", "watch"), ("nodes", "list"), ("leases", "create"),
    },
}  # fmt: skip


def rendered(template, version_line="26.1", settings=None, **variables):
    known = mindcluster.component(version_line, ROLE, settings or {})
    return render_all(ROLE, template, {**VOLCANO, "__npu_version_line": known, **variables})


def pod_of(name, version_line="26.1", settings=None, **variables):
    (workload,) = [
        one for one in rendered("volcano.yaml.j2", version_line, settings, **variables) if one["metadata"]["name"] == name
    ]
    spec = workload["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    return workload, spec, container


def configuration(version_line="26.1", **settings):
    template = pod_of(SCHEDULER, version_line, settings)[0]["spec"]["template"]
    return yaml.safe_load(template["metadata"]["annotations"]["npuops.ascend/scheduler-conf"])


@VERSION_LINES
def test_it_is_what_the_table_says(version_line):
    for workload in rendered("volcano.yaml.j2", version_line):
        assert workload["metadata"]["namespace"] == COMPONENT.home("npu-operator") == "volcano-system"
        assert workload["metadata"]["labels"] == {mindcluster_stack.MANAGED_BY: mindcluster_stack.OURS}
    access = rendered("access.yaml.j2", version_line)
    named = {
        kind: tuple(one["metadata"]["name"] for one in access if one["kind"] == kind)
        for kind in ("ClusterRole", "ClusterRoleBinding")
    }
    assert named == {"ClusterRole": COMPONENT.cluster_roles, "ClusterRoleBinding": COMPONENT.cluster_role_bindings}
    for kind in ("Role", "RoleBinding"):
        places = {(one["metadata"]["namespace"], one["metadata"]["name"]) for one in access if one["kind"] == kind}
        assert places == set(COMPONENT.roles)
    assert {one["metadata"]["name"] for one in rendered("namespaces.yaml.j2")} == set(COMPONENT.namespaces)


@BOTH
@VERSION_LINES
def test_it_is_confined(name, version_line):
    _workload, spec, container = pod_of(name, version_line)
    assert spec["securityContext"] == {
        "runAsNonRoot": True, "runAsUser": 9000, "runAsGroup": 9000, "fsGroup": 9000, "seccompProfile": {"type": "RuntimeDefault"},
    }  # fmt: skip
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    assert not {"hostNetwork", "hostPID", "hostIPC", "initContainers"} & set(spec)
    assert [volume for volume in spec["volumes"] if "hostPath" in volume or "secret" in volume] == []


@BOTH
@VERSION_LINES
def test_upgrades_leave_no_gap_and_no_two_that_work(name, version_line):
    workload, _spec, container = pod_of(name, version_line)
    assert workload["spec"]["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
    assert workload["spec"]["minReadySeconds"] > 0
    command = container["args"][0]
    assert "--leader-elect=true" in command and "--leader-elect=false" not in command
    assert "--enable-healthz=true --healthz-address=:11251" in command
    assert {container[probe]["httpGet"]["port"] for probe in ("livenessProbe", "readinessProbe")} == {11251}


@VERSION_LINES
def test_the_configuration_fits_the_image(version_line, tmp_path):
    release = mindcluster.version_line(version_line)["version"]
    plugin = "volcano-npu_" + release
    names = [one["name"] for tier in configuration(version_line)["tiers"] for one in tier["plugins"]]
    assert names.count(plugin) == 1 and {"gang", "predicates", "proportion", "nodeorder"} <= set(names)
    workload, spec, container = pod_of(SCHEDULER, version_line)
    for place, status in ((tmp_path / "plugins" / (plugin + ".so"), 127), (tmp_path / "plugins" / "other.so", 1)):
        place.parent.mkdir(exist_ok=True)
        place.touch()
        done = subprocess.run(
            [*container["command"], *container["args"]], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        place.unlink()
        # There is no scheduler here.
        assert done.returncode == status, "it would go on without"
    assert done.stderr.startswith("the image has no plugins/%s.so: npu_volcano_version must" % plugin)
    (item,) = [item for volume in spec["volumes"] for item in volume.get("downwardAPI", {}).get("items", [])]
    assert item["path"] == "volcano-scheduler.conf" and "npuops.ascend/scheduler-conf" in item["fieldRef"]["fieldPath"]
    assert "--scheduler-conf=/volcano.scheduler/volcano-scheduler.conf" in container["args"][0]
    assert plugin.replace(release, "v26.1.7") in str(configuration("26.1", version="v26.1.7"))


def arguments(version_line="26.1", **settings):
    (one,) = configuration(version_line, **settings)["configurations"]
    assert one["name"] == "init-params"
    return one["arguments"]


def test_arguments_of_the_plugin():
    assert ("prefer-previous-node" in arguments("7.3"), "prefer-previous-node" in arguments("26.1")) == (False, True)
    assert arguments()["useClusterInfoManager"] == "false"
    assert arguments(use_clusterd=True)["useClusterInfoManager"] == "true"
    given = arguments(arguments={"super-pod-size": 32, "forceEnqueue": False, "new": "x"})
    assert (given["super-pod-size"], given["forceEnqueue"], given["new"], given["reserve-nodes"]) == ("32", "false", "x", "2")
    with pytest.raises(
        NpuError, match="npu_volcano_arguments has super-pod-size: .*; it must be a dictionary of texts and numbers"
    ):
        arguments(arguments={"super-pod-size": [1]})
    with pytest.raises(NpuError, match="npu_volcano_arguments is 'x'; it must be a mapping"):
        arguments(arguments="x")


def test_the_log_level():
    for name in COMPONENT.names:
        assert pod_of(name, settings={"log_level": 5})[2]["args"][0].endswith(" -v=5")
    with pytest.raises(NpuError, match="npu_volcano_log_level is 9; it must be a whole number, 0 to 5"):
        pod_of(SCHEDULER, settings={"log_level": 9})


def granted(name, version_line, **variables):
    """(resource, verb) of a program's ClusterRole."""
    (role,) = [
        one
        for one in rendered("access.yaml.j2", version_line, **variables)
        if (one["kind"], one["metadata"]["name"]) == ("ClusterRole", name)
    ]
    assert not any("*" in rule["apiGroups"] + rule["resources"] + rule["verbs"] for rule in role["rules"])
    return {(resource, verb) for rule in role["rules"] for resource in rule["resources"] for verb in rule["verbs"]}


@BOTH
@VERSION_LINES
def test_what_upstream_grants_and_it_does_not_use(name, version_line):
    rules = {entry for entry in granted(name, version_line) if entry[0] != "jobs" or name == SCHEDULER}
    assert rules & LEFT_OUT[name] == set()


@VERSION_LINES
def test_what_the_real_programs_were_seen_to_do(version_line):
    """Each was found missing, or used, where upstream's programs ran with these rights."""
    assert granted(SCHEDULER, version_line) >= {
        ("replicasets", "get"), ("pods/binding", "create"), ("podgroups", "update"), ("queues", "create"), ("queues", "update"),
        ("queues/status", "patch"), ("configmaps", "update"), ("events", "create"), ("events", "patch"),
    }  # fmt: skip
    assert granted(CONTROLLERS, version_line) >= {
        ("configmaps", "create"), ("configmaps", "delete"), ("jobs", "delete"), ("jobs/status", "update"), ("pods", "create"),
        ("pods", "patch"), ("networkpolicies", "create"), ("networkpolicies", "delete"), ("services", "create"),
        ("services", "delete"), ("podgroups", "create"), ("podgroups", "delete"), ("queues", "patch"), ("queues/status", "patch"),
    }  # fmt: skip


def test_secrets_are_for_a_plugin_that_is_asked_for():
    assert not any(resource == "secrets" for resource, _verb in granted(CONTROLLERS, "26.1"))
    assert ("secrets", "create") in granted(CONTROLLERS, "26.1", npu_volcano_ssh_plugin=True)


def test_job_flows_only_where_they_cannot_be_switched_off():
    for version_line, switched_off in (("7.3", False), ("26.1", True)):
        assert ("--controllers=" in pod_of(CONTROLLERS, version_line)[2]["args"][0]) == switched_off
        assert any(resource == "jobflows" for resource, _verb in granted(CONTROLLERS, version_line)) != switched_off


def kinds(*names):
    return {one["metadata"]["name"]: one["spec"] for one in rendered("crds.yaml.j2", npu_volcano_crds=list(names))}


def test_kinds():
    everything = kinds(*(crd.name for crd in COMPONENT.crds))
    assert set(everything) == {crd.name for crd in COMPONENT.crds}
    for crd in COMPONENT.crds:
        spec = everything[crd.name]
        (version,) = spec["versions"]
        assert crd.path == "/apis/%s/%s/%s" % (spec["group"], version["name"], spec["names"]["plural"])
    assert list(kinds("queues.scheduling.volcano.sh")) == ["queues.scheduling.volcano.sh"]


def test_the_scheduler_writes_the_status_of_a_pod_group_with_the_rest():
    (version,) = kinds("podgroups.scheduling.volcano.sh")["podgroups.scheduling.volcano.sh"]["versions"]
    assert "subresources" not in version, "the API server would ignore the status"


def test_never_an_empty_text():
    """Ansible makes None of it."""
    for role, template in ((ROLE, "crds.yaml.j2"), ("npu_component", "leftovers.yaml.j2")):
        text = (ROLES / role / "templates" / template).read_text(encoding="utf-8")
        assert text.partition("#}\n")[2].startswith("# ")


def test_what_it_has_written_goes_with_it():
    (configmap,) = rendered("leftovers.yaml.j2", __npu_component_leftovers=VOLCANO["npu_volcano_leftovers"])
    assert configmap["metadata"] == VOLCANO["npu_volcano_leftovers"][0]
