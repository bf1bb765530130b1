# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Images of components that no node could pull, against a real registry, and pull secrets."""

from __future__ import annotations

import types

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.npuops.ascend.plugins.action import npu_preflight
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight import component_images
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import host_config

from support.host import registry_server, stored_images

SECRETS = "/api/v1/namespaces/npu-operator/secrets"


@pytest.fixture
def registry():
    with registry_server.Registry(auth="basic") as server:
        stored_images.put_image(server, "npuops/node-agent", "0.1.0", b"layer")
        yield server


@pytest.fixture
def config(registry):
    """Of a host whose drivers are in that registry."""
    given = {"driver_repository": registry.address + "/mlops/driver", "registry_plain_http": True}
    return host_config.complete({**given, "registry_username": registry.username, "registry_password": registry.password})


def of_agent(name):
    return {name: ["node agent"]}


def test_what_is_there_is_fine(registry, config):
    assert component_images.look(of_agent(registry.address + "/npuops/node-agent:0.1.0"), config) == ([], [])


def test_a_tag_that_does_not_exist(registry, config):
    (reason,), notes = component_images.look(of_agent(registry.address + "/npuops/node-agent:0.2.0"), config)
    assert (
        reason.startswith("the image of the node agent: %s/npuops/node-agent:0.2.0 does not exist" % registry.address) and not notes
    )


def test_its_name_in_the_mirror_counts(registry, config):
    mirror = dict(config, driver_repository="upstream.test/mlops/driver", registry_mirror=registry.address)
    assert component_images.look(of_agent("other.test/npuops/node-agent:0.1.0"), mirror) == ([], [])
    (reason,), _notes = component_images.look(of_agent("other.test/npuops/node-agent:0.2.0"), mirror)
    assert "%s/npuops/node-agent:0.2.0 does not exist" % registry.address in reason


@pytest.mark.parametrize("registry_name", ["registry.example.com", "example.org:5000"])
def test_a_placeholder(config, registry_name):
    """As in the inventory that comes with the collection."""
    (reason,), _notes = component_images.look(of_agent(registry_name + "/npuops/node-agent:0.1.0"), config)
    assert (
        reason
        == "the image of the node agent is a placeholder, %s/npuops/node-agent:0.1.0: name it as it is in your registry"
        % registry_name
    )


def test_registries_of_others_are_not_asked(registry, config):
    """The nodes may have other ways and other accounts."""
    with registry_server.Registry() as other:
        assert component_images.look(of_agent(other.address + "/ascendhub/noded:9"), config) == ([], [])
        assert other.requests == []


def test_a_registry_that_does_not_answer_is_a_note_and_asked_once(registry, config):
    registry.faults = [("HEAD", "manifests", 503), ("GET", "manifests", 503)]
    images = {"%s/npuops/%s:1" % (registry.address, name): [name] for name in ("one", "two")}
    reasons, (note,) = component_images.look(images, config)
    assert not reasons and note.startswith("the image of the one was not checked: ") and "answered 503" in note
    assert len(registry.requests) <= 2


def test_pull_secrets_that_do_not_exist(api, cluster):
    api.put(SECRETS, {"metadata": {"name": "there"}})
    (reason,), notes = component_images.look_at_secrets(cluster, "npu-operator", ["there", "missing"])
    assert reason.startswith(
        "npu_image_pull_secrets names missing, which does not exist in the namespace npu-operator: kubectl create"
    )
    assert notes == []


def test_pull_secrets_that_may_not_be_seen(api, cluster):
    text = 'secrets "x" is forbidden: User "u" cannot get resource "secrets" in API group "" in the namespace "npu-operator"'
    api.faults["GET", SECRETS + "/x"] = (403, text)
    reasons, (note,) = component_images.look_at_secrets(cluster, "npu-operator", ["x"])
    assert not reasons and 'the Kubernetes user may not "get" on "secrets" in the namespace npu-operator' in note


@pytest.mark.parametrize(
    "agent, policies, refused",
    [
        ({"device_taints": "true"}, True, True),
        ({"device_taints": "true"}, False, False),
        ({"device_taints": "true", "enabled": False}, True, False),
        ({"device_taints": "false"}, True, False),
        ({}, True, False),
    ],
)
def test_preflight_names_the_rights_for_the_taints_of_chips(api, agent, policies, refused):
    api.put("/api/v1/nodes")
    api.objects["/api/v1/pods"] = api.objects["/apis/apps/v1/daemonsets"] = {}
    if policies:
        kinds = [{"name": "validatingadmissionpolicies"}]
        api.put("/apis/admissionregistration.k8s.io", {"metadata": {"name": "v1"}, "resources": kinds})
    # Something is always missing, so that it always refuses.
    api.denied = {("create", "devicetaintrules"), ("patch", "namespaces")}
    components = {"node_agent": {"image": "registry.example.com/agent:1", **agent}}
    action = npu_preflight.ActionModule.__new__(npu_preflight.ActionModule)
    options = {"hosts": [], "host": api.address, "api_key": "token", "components": components}
    checked = ArgumentSpecValidator(dict(kube_client.AUTH_ARG_SPEC, **npu_preflight.ActionModule.ARGUMENTS)).validate(options)
    with pytest.raises(NpuError) as caught:
        action.act(checked.validated_parameters)
    assert ('"create" on "devicetaintrules.resource.k8s.io"' in caught.value.message) is refused


def test_preflight_tells_all_of_them_at_once(api, registry, config):
    api.put("/api/v1/nodes")
    api.objects["/api/v1/pods"] = {}
    api.objects["/apis/apps/v1/daemonsets"] = {}
    action = npu_preflight.ActionModule.__new__(npu_preflight.ActionModule)
    action._task = types.SimpleNamespace(check_mode=False, diff=False)
    options = {
        "hosts": [{"name": "a", "config": {name: value for name, value in config.items() if value}}],
        "host": api.address,
        "api_key": "token",
        "components": {
            "node_agent": {"image": registry.address + "/npuops/node-agent:0.2.0"},
            "exporter": {"image": "registry.example.com/mindcluster/npu-exporter:v26.1.0"},
        },
        "image_pull_secrets": ["missing"],
    }
    checked = ArgumentSpecValidator(dict(kube_client.AUTH_ARG_SPEC, **npu_preflight.ActionModule.ARGUMENTS)).validate(options)
    assert not checked.error_messages, checked.error_messages
    with pytest.raises(NpuError) as caught:
        action.act(checked.validated_parameters)
    for text in ("node-agent:0.2.0 does not exist", "npu-exporter is a placeholder", "npu_image_pull_secrets names missing"):
        assert text.replace("npu-exporter is", "exporter is") in caught.value.message or text in caught.value.message
