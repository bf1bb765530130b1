# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the step of accept sends to a host that uses a ToolBox image, and what it asks the cluster while that is pulled."""

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.action import npu_accept_node
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client

from support.kube.collective_stub import NODES, CollectiveApi
from support.kube.eviction_stub import PODS, pod

IMAGE = "tools.example.com/mlops/toolbox:26.1.0"
SECRETS = {"registry_username": "alice", "registry_password": "s3cret", "registry_plain_http": True, "registry_ca_file": "/ca.pem"}
RESULT = {"findings": [], "chips": 8}
MANIFEST = {"metadata": {"name": "smoke", "namespace": "default"}, "spec": {"containers": [{"name": "main"}]}}


def sent(**changes):
    """The arguments of npu_accept for an image."""
    params = {"level": 2, "toolbox_image": IMAGE, "credentials_of": None, "registry_mirror": None, **SECRETS, **changes}
    return npu_accept_node.ActionModule._image(params)


def test_credentials_go_to_the_registry_that_they_are_for():
    whole = {"toolbox_image": IMAGE, "registry_mirror": None, **SECRETS}
    assert sent() == sent(credentials_of="tools.example.com/mlops/ascend-driver") == whole
    assert sent(credentials_of="registry.example.com/mlops/ascend-driver:x") == {"toolbox_image": IMAGE, "registry_mirror": None}


def test_a_mirror_is_one_registry():
    mirror = "site.example.com/npuops"
    assert sent(credentials_of="registry.example.com/mlops/ascend-driver", registry_mirror=mirror)["registry_password"] == "s3cret"
    some = {"registry.example.com": mirror}
    assert "registry_password" not in sent(credentials_of="registry.example.com/mlops/ascend-driver", registry_mirror=some)


@pytest.mark.parametrize("changes", [{"level": 1}, {"toolbox_image": None}, {"toolbox_image": ""}])
def test_a_host_that_uses_no_image_gets_nothing(changes):
    assert sent(**changes) == {}


def test_what_is_no_image():
    with pytest.raises(NpuError, match="is not a valid image reference"):
        sent(toolbox_image="--help", credentials_of="registry.example.com/x")


def test_the_cluster_is_asked_again_while_the_image_is_pulled(monkeypatch):
    """Pods may come onto the node in an hour; ascend-dmi would load their chips."""
    calls, states = [], iter(["pulling", "pulling", "running", "done"])

    class Host:
        def __init__(self, *_arguments):
            pass

        def accepted(self, arguments):
            calls.append((arguments.get("blocked"), arguments.get("began")))
            state = next(states)
            return {"state": state, "boot_id": "b-1", "began": "T", "result": RESULT if state == "done" else None}

    obstacles = iter([None, "pods on the node use NPUs"])
    action = npu_accept_node.ActionModule.__new__(npu_accept_node.ActionModule)
    monkeypatch.setattr(npu_accept_node, "HostPort", Host)
    monkeypatch.setattr(action, "_obstacle", lambda params: next(obstacles))
    params = {
        "node": "a", "level": 2, "driver_root": "/x", "driver_source": "image", "library_path": "hook", "network": "off",
        "toolbox": "/t", "ignore": [], "toolbox_image": IMAGE, "credentials_of": None, "registry_mirror": None, **SECRETS,
    }  # fmt: skip
    assert action._answer(params, None) == {"result": RESULT, "boot_id": "b-1"}
    assert calls == [(None, None), (None, "T"), ("pods on the node use NPUs", "T"), ("pods on the node use NPUs", "T")]


@pytest.mark.parametrize("came", [None, "maintenance", "uncordon", "job"])
def test_smoke_pods_do_not_run_beside_what_came_during_the_diagnosis(monkeypatch, came):
    ran = []
    action = npu_accept_node.ActionModule.__new__(npu_accept_node.ActionModule)
    monkeypatch.setattr(npu_accept_node.screen, "show", lambda text: None)
    monkeypatch.setattr(npu_accept_node.smoke_pods, "check", lambda *arguments: ran.append(arguments) or {"name": "smoke pods"})
    with CollectiveApi() as api:
        node = api.node("a")
        if came == "maintenance":
            node["metadata"].setdefault("annotations", {})[kube_client.ANNOTATION_MAINTENANCE] = "{}"
        elif came == "uncordon":
            node["spec"]["unschedulable"] = False
        elif came == "job":
            api.put(PODS, pod("train", "a", npus=1))
        api.put(NODES, node)
        action._cluster = kube_client.connect({"host": api.address, "api_key": "token"})
        result = {"findings": [{"name": "chips", "verdict": "PASS"}], "chips": 8}
        (found,) = action._smoke_pods({"node": "a", "level": 2, "ignore": [], "settings": {}}, MANIFEST, result)
    assert len(ran) == (0 if came else 1) and found["name"] == "smoke pods"
    assert came is None or (found["level"], found["verdict"]) == (2, "UNKNOWN") and found["seen"].startswith("not run, because ")
