# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which components an upgrade may change, with an API server behind the module."""

from __future__ import annotations

import json

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.npuops.ascend.plugins.action.npu_components import ActionModule
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import stack as mindcluster_stack

from support.fleet.hosts import host, unreachable
from support.kube.stub import ApiServer, node

NODES = "/api/v1/nodes"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/npu-operator/leases"
SETS = "/apis/apps/v1/namespaces/npu-operator/daemonsets"
ALL = ("ascend-device-plugin-daemonset", "npu-exporter", "npu-node-agent", "something-else")
LABELS = {"openfuyao.com/npu.present": "", "npuops.ascend/chip": "910B", "npuops.ascend/driver-version": "26.0.0"}
EVERYTHING = {"device_plugin": True, "exporter": True, "node_agent": True} | dict.fromkeys(mindcluster_stack.PARTS, False)
NOTHING = dict.fromkeys(EVERYTHING, False)


@pytest.fixture(name="api")
def fixture_api():
    with ApiServer() as server:
        server.put(NODES, *(node(name, boot_id="boot-" + name, labels=dict(LABELS)) for name in ("a", "b")), node("cpu"))
        server.put(SETS, *({"metadata": {"name": name}} for name in ALL))
        yield server


def run(api, hosts=None, components=None, **options):
    components = {"node_agent": {"image": "registry.example/agent:1"}} | (components or {})
    validator = ArgumentSpecValidator(dict(kube_client.AUTH_ARG_SPEC, **ActionModule.ARGUMENTS))
    hosts = [host("a"), host("b"), host("cpu", chip_count=0)] if hosts is None else hosts
    checked = validator.validate({"hosts": hosts, "host": api.address, "api_key": "token", "components": components, **options})
    assert not checked.error_messages
    result = ActionModule.act(None, checked.validated_parameters)
    assert not [request for request in api.requests if request[0] != "GET" and "/selfsubject" not in request[1]]
    return result


def test_what_is_there_and_enabled(api):
    result = run(api)
    assert result["deploy"] == EVERYTHING and result["left_alone"] is None
    assert result["accelerators"] == ["huawei-Ascend910"] and result["version_line"] == "26.1"
    assert result["driver_path"] == "/var/lib/Ascend/driver" and result["kubelet_dir"] == "/var/lib/kubelet"
    without = run(api, components={"exporter": {"enabled": False}}, mindcluster_version_line="7.3")
    assert without["deploy"] == dict(EVERYTHING, exporter=False)


@pytest.mark.parametrize("component", mindcluster_stack.COMPONENTS, ids=lambda component: component.part)
def test_an_optional_component_is_one_of_them_if_it_is_there(api, component):
    """It is disabled by default."""
    enabled = {component.part: {"enabled": True}}
    assert run(api, components=enabled)["deploy"] == EVERYTHING
    labels = {"app.kubernetes.io/managed-by": "npuops.ascend"}
    metadata = {"name": component.names[0], "namespace": component.home("npu-operator"), "labels": labels}
    api.put("/apis/apps/v1/" + component.resource, {"metadata": metadata})
    assert run(api)["deploy"] == EVERYTHING
    result = run(api, components=enabled)
    assert result["deploy"] == dict(EVERYTHING, **{component.part: True})
    assert result["stack"][component.part]["crds"] == [crd.name for crd in component.crds]
    no_agent = {"node_agent": {"enabled": "false"}}
    resource = {"clusterd": "services", "noded": "roles"}.get(component.part, "customresourcedefinitions")
    api.denied.add(("patch", resource))
    assert '"patch" on "%s' % resource in run(api, components={**enabled, **no_agent})["left_alone"]
    assert run(api, components=no_agent)["left_alone"] is None


def test_settings_that_a_component_would_refuse(api):
    """All of them at once, and those of components that are not deployed do not matter."""
    wrong = {
        "node_agent": {"scrapers": "all"},
        "component": {"log_max_age": 1, "npu_image_pull_policy": "often"},
        "noded": {"resources": 3},
    }
    with pytest.raises(NpuError) as caught:
        run(api, components=wrong)
    assert "npu_node_agent_image is not set: the image of the node agent" in caught.value.message
    assert "npu_node_agent_scrapers is 'all'; it must be a list of mappings" in caught.value.message
    assert caught.value.message.count("npu_image_pull_policy is 'often'; it must be Always or IfNotPresent or Never") == 1
    assert caught.value.message.count("npu_component_log_max_age is 1;") == 1 and "noded" not in caught.value.message


def test_what_is_not_there_is_not_added(api):
    del api.objects[SETS]["npu-exporter"]
    assert run(api)["deploy"] == dict(EVERYTHING, exporter=False)
    api.objects[SETS].clear()
    result = run(api)
    assert (result["deploy"], result["left_alone"], result["version_line"]) == (NOTHING, None, None)


def test_who_has_a_driver_that_the_version_line_does_not_support(api):
    assert run(api)["unfit"] == []
    assert run(api, mindcluster_version_line="7.3")["unfit"] == ["MindCluster 7.3 does not support driver 26.0.0 (a, b)"]


def test_a_run_that_leaves_nodes_out(api):
    result = run(api, [host("a")])
    assert result["deploy"] == NOTHING
    assert result["left_alone"] == "this run leaves out b, and components change on all nodes or on none"


def test_hosts_that_do_not_answer(api):
    assert run(api, [host("a"), unreachable("b")])["deploy"] == EVERYTHING, "the definitions need one host"
    result = run(api, [unreachable("a"), unreachable("b")])
    assert result["deploy"] == NOTHING and result["left_alone"] == "no NPU host answered"


def test_a_user_who_may_only_look(api):
    api.denied = {("patch", "daemonsets")}
    result = run(api)
    assert result["deploy"] == NOTHING
    assert result["left_alone"] == 'the Kubernetes user may not "patch" on "daemonsets.apps" in the namespace npu-operator'


def test_a_halt_meanwhile(api):
    """After the drivers: a node failed, and the rollout is halted until an administrator looks."""
    halted = {"who": "r1", "why": "b burns.", "when": "2026-11-21T12:00:00Z", "reason": "upgrade"}
    lease = {"name": "npu-maintenance", "annotations": {"npuops.ascend/slots": json.dumps({"halted": halted})}}
    api.put(LEASES, {"metadata": lease})
    assert run(api)["deploy"] == EVERYTHING, "before, the plan judges a halt, which this run may clear"
    result = run(api, heed_halt=True)
    assert (result["deploy"], result["left_alone"]) == (NOTHING, "the rollout is halted")
    api.objects[LEASES].clear()
    assert run(api, heed_halt=True)["deploy"] == EVERYTHING


def preinstalled(name, tree):
    return host(name, config={"driver_source": "preinstalled"}, driver={"loaded": True, "tree": tree})


def test_hosts_with_several_driver_paths(api):
    """The definitions mount one path on all nodes, and one host does not decide for the others which."""
    result = run(api, [preinstalled("a", "/"), host("b")])
    assert result["deploy"] == NOTHING
    assert result["left_alone"] == "the hosts have different driver paths, / on a; /var/lib/Ascend/driver on b"


def test_a_host_without_a_driver(api):
    result = run(api, [preinstalled("a", None), host("b")])
    assert (result["deploy"], result["driver_path"]) == (EVERYTHING, "/var/lib/Ascend/driver")
    result = run(api, [preinstalled("a", None), preinstalled("b", None)])
    assert (result["deploy"], result["left_alone"]) == (NOTHING, "no NPU host has a driver")
