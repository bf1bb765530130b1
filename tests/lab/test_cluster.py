# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bad input on an installed fleet: install says what is wrong, and changes nothing before it does."""

from __future__ import annotations

import functools
import json
import re

import pytest
import yaml

from support.fleet.metrics import samples

NODES = ("npu-a", "npu-b", "npu-c", "cpu-a")
NAMESPACE = "npu-operator"
# Where it is about the cluster, one host is enough.
ONE = "--limit=npu-c"
PLUGIN = ("-n", NAMESPACE, "daemonset", "ascend-device-plugin310p-daemonset")


pytestmark = pytest.mark.usefixtures("installed")


@pytest.fixture
def overriding(lab, tmp_path):
    """Arguments that lay an inventory over the lab's: overriding({host: {variable: value}}, {variable: value})."""

    def arguments(hosts=None, variables=None):
        path = tmp_path / "zz-override.yml"
        group = {"hosts": hosts or {}, "vars": variables or {}}
        path.write_text(yaml.safe_dump({"npu_nodes": group}), encoding="utf-8")
        return ["-i", str(path)]

    return arguments


def state(lab):
    """What install changes in the cluster."""
    nodes = {name: lab.node(name)["metadata"] for name in NODES}
    daemonsets = lab.get("-n", NAMESPACE, "daemonsets")["items"]
    return {
        "labels": {name: metadata["labels"] for name, metadata in nodes.items()},
        "generations": {item["metadata"]["name"]: item["metadata"]["generation"] for item in daemonsets},
    }


def refusal(lab, *arguments, **variables):
    """Run install, which must fail; return its message, as one text with single spaces."""
    result = lab.playbook("install", *arguments, check=False, **variables)
    assert result.returncode != 0, result.stdout
    assert "Traceback" not in result.stdout + result.stderr
    changed = re.findall(r"^\S+ +: ok=\d+ +changed=(\d+)", result.stdout, re.MULTILINE)
    assert changed and set(changed) == {"0"}, result.stdout
    return " ".join((result.stdout + result.stderr).split())


@pytest.fixture
def refused(lab):
    """As refusal; and in the end nothing has changed."""
    before = state(lab)
    yield functools.partial(refusal, lab)
    assert state(lab) == before


def test_how_many_nodes_at_once(lab):
    def at_once() -> dict:
        return {
            item["metadata"]["name"]: item["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"]
            for item in lab.api.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets")["items"]
        }

    before = at_once()
    assert set(before.values()) == {1} and len(before) == 4
    assert 'npu_rollout_max_unavailable is "half": it must be a number' in refusal(lab, npu_rollout_max_unavailable="half")
    lab.playbook("install", npu_rollout_max_unavailable="50%")
    assert at_once() == dict.fromkeys(before, "50%")
    lab.playbook("install")
    assert at_once() == before


@pytest.mark.core
def test_second_run_and_check_mode_change_nothing(lab):
    for arguments in ((), ("--check", "--diff")):
        result = lab.playbook("install", *arguments)
        changed = re.findall(r"^(\S+) +: ok=\d+ +changed=(\d+)", result.stdout, re.MULTILINE)
        # A host without tasks of its own has no line.
        assert {name for name, _number in changed} <= set(NODES) and {number for _name, number in changed} == {"0"}, result.stdout


def test_check_mode_tells_what_would_change(lab):
    before = state(lab)
    image = "registry.example/exporter:next"
    result = lab.playbook("install", ONE, "--check", "--diff", npu_exporter_image=image)
    assert f"+ image: {image}" in " ".join(result.stdout.split())
    assert state(lab) == before


@pytest.mark.core
def test_api_that_cannot_be_reached(refused):
    message = refused(ONE, npu_kubernetes_auth={"host": "https://127.0.0.1:9", "api_key": "x"})
    assert "The Kubernetes API at 127.0.0.1:9 cannot be reached: " in message
    assert "Connection refused" in message


def test_no_kubeconfig(refused):
    message = refused(ONE, npu_kubernetes_auth={"kubeconfig": "/nonexistent/config"})
    assert "No usable credentials for the Kubernetes API" in message
    assert "npu_kubernetes_auth" in message


@pytest.fixture
def user(lab):
    """Authentication as a new service account: user(verb, resource, ...) grants it these and nothing more."""
    name = "powerless"
    lab.kubectl("create", "serviceaccount", name, "-n", "default")

    def auth(*rights):
        for number, (verbs, resources) in enumerate(rights):
            role = f"{name}-{number}"
            lab.kubectl("create", "clusterrole", role, f"--verb={verbs}", f"--resource={resources}")
            lab.kubectl("create", "clusterrolebinding", role, f"--clusterrole={role}", f"--serviceaccount=default:{name}")
        server = yaml.safe_load(lab.kubeconfig.read_text(encoding="utf-8"))["clusters"][0]["cluster"]["server"]
        token = lab.kubectl("create", "token", name, "-n", "default").strip()
        return {"host": server, "api_key": token, "validate_certs": False}

    yield auth
    for kind in ("clusterrolebinding", "clusterrole"):
        names = [item["metadata"]["name"] for item in lab.get(kind)["items"]]
        for role in (item for item in names if item.startswith(f"{name}-")):
            lab.kubectl("delete", kind, role)
    lab.kubectl("delete", "serviceaccount", name, "-n", "default")


def test_user_without_any_right(refused, user):
    message = refused(ONE, npu_kubernetes_auth=user())
    assert 'the Kubernetes user may not "list" on "nodes"' in message
    assert 'the Kubernetes user may not "create" on "daemonsets.apps" in the namespace npu-operator' in message


@pytest.mark.core
def test_user_who_may_only_look(refused, user):
    kinds = "nodes,namespaces,pods,daemonsets.apps,deployments.apps,controllerrevisions.apps"
    may = ("get,list", kinds + ",customresourcedefinitions.apiextensions.k8s.io")
    message = refused(ONE, npu_kubernetes_auth=user(may))
    assert 'may not "list"' not in message
    assert 'the Kubernetes user may not "patch" on "nodes"' in message
    assert 'the Kubernetes user may not "create" on "clusterroles.rbac.authorization.k8s.io"' in message


@pytest.fixture(scope="module")
def told(lab, tmp_path_factory):
    """What one run says of a fleet in which everything is wrong, as one text with single spaces. It changes nothing."""
    hosts = yaml.safe_load(lab.inventory.read_text(encoding="utf-8"))["npu_nodes"]["hosts"]
    nowhere = {"ansible_host": "127.0.0.1", "ansible_port": 9}
    path = tmp_path_factory.mktemp("wrong") / "zz-override.yml"
    path.write_text(
        yaml.safe_dump(
            {
                "npu_nodes": {
                    "hosts": {
                        "npu-a": {"ansible_host": hosts["npu-b"]["ansible_host"]},
                        "npu-b": {"npu_node_name": "worker-7"},
                        "no-python": {**hosts["npu-b"], "ansible_python_interpreter": "/usr/bin/python3.6"},
                        "no-source": {**hosts["npu-b"], "npu_driver_source": "nowhere"},
                        "not-there": nowhere,
                    },
                    "vars": {"npu_driver_verison": "25.5.1", "npu_exporter_imgae": "x"},
                }
            }
        ),
        encoding="utf-8",
    )
    before = state(lab)
    message = refusal(lab, "-i", str(path))
    assert state(lab) == before
    return message


WRONG = {
    "inventory name of another machine": "npu-a: the host is not the node npu-a",
    "which one it is": "This machine is the node npu-b",
    "unknown node name": "npu-b: the cluster has no node worker-7: this machine is the node npu-b, set npu_node_name: npu-b",
    "host without Python": "no-python: no Python can be run there (",
    "a Python that is needed": "Python 3.8 or newer",
    "unknown source": "value of driver_source must be one of",
    "unreachable host": "not-there: not reachable: ",
    "how to continue without it": "--limit 'all:!<host>'",
    "another misspelt variable": "unknown variable npu_exporter_imgae: did you mean npu_exporter_image?",
}


@pytest.mark.core
@pytest.mark.parametrize("what", WRONG)
def test_everything_wrong_is_told_at_once(told, what):
    assert WRONG[what] in told


@pytest.mark.core
def test_misspelt_variable(refused, overriding):
    message = refused(*overriding(variables={"npu_driver_verison": "25.5.1"}))
    assert "npu-a, npu-b, npu-c, cpu-a: unknown variable npu_driver_verison: did you mean npu_driver_version?" in message


def test_a_share_count_of_one_host(refused, overriding):
    """All nodes of a family have one DaemonSet."""
    message = refused(*overriding({"npu-c": {"npu_device_plugin_share_count": 4}}))
    assert "npu-c: npu_device_plugin_share_count is 4 for this host and 1 for the first host of the run" in message


@pytest.mark.core
def test_image_missing_for_one_host(lab, refused, overriding):
    message = refused(*overriding({"npu-c": {"npu_driver_profile": "310p-1.2.3-oe1"}}))
    profile = f"{lab.variable('npu_driver_version')}-310p-1.2.3-oe1"
    reference = f"{lab.variable('npu_driver_repository')}:{profile}"
    assert f"npu-c: no driver image for the profile {profile}: {reference} does not exist" in message
    assert "1 of 4 hosts" in message


@pytest.mark.core
def test_wrong_password_is_never_printed(lab, refused, overriding):
    wrong = "wr0ng-s3cret-of-this-test"
    message = refused(*overriding(variables={"npu_registry_password": wrong}), "--limit=npu-a,npu-c", "-vvvv")
    assert "npu-a, npu-c: Registry" in message
    assert "npu_registry_username and npu_registry_password" in message
    assert wrong not in message


def test_right_password_is_never_printed(lab):
    result = lab.playbook("install", ONE, "-vvvv", "--diff")
    assert str(lab.variable("npu_registry_password")) not in result.stdout + result.stderr


def test_another_device_plugin(lab, refused):
    daemonset = lab.get(*PLUGIN)
    for key in ("uid", "resourceVersion", "generation", "annotations", "creationTimestamp"):
        daemonset["metadata"].pop(key, None)
    daemonset["metadata"]["namespace"] = "kube-system"
    daemonset["spec"]["template"]["spec"]["nodeSelector"] = {"never": "here"}
    del daemonset["status"]
    lab.kubectl("apply", "-f", "-", stdin=json.dumps(daemonset))
    try:
        message = refused(ONE)
    finally:
        lab.kubectl("-n", "kube-system", "delete", "daemonset", PLUGIN[-1])
    assert f"another device plugin is deployed, DaemonSet {PLUGIN[-1]} in the namespace kube-system" in message


def test_wrong_plugin_image_is_the_reason(lab):
    """Before anything is changed: preflight asks the registry of the fleet."""
    image = f"{lab.variable('npu_driver_repository').split('/')[0]}/mindcluster/ascend-k8sdeviceplugin:v0"
    result = lab.playbook("install", ONE, check=False, npu_device_plugin_image=image)
    message = " ".join(result.stdout.split())
    assert result.returncode != 0 and "Nothing was changed" in message and f"{image} does not exist" in message
    assert lab.get(*PLUGIN)["spec"]["template"]["spec"]["containers"][0]["image"] != image


def test_plugin_that_keeps_ending_is_the_reason(lab):
    """The test image has no device plugin: the container ends, and its last words are told."""
    image = f"{lab.variable('npu_driver_repository').split('/')[0]}/lab/test:lab"
    result = lab.playbook("install", ONE, check=False, npu_device_plugin_image=image)
    message = " ".join(result.stdout.split())
    assert result.returncode != 0
    assert re.search(r"it does not work on npu-c: its pod [^.]*exit code 127[^.]*CrashLoopBackOff", message), message


def test_components_can_be_removed_and_come_back(lab):
    lab.playbook("install", npu_device_plugin_enabled=False, npu_exporter_enabled=False, npu_node_agent_enabled=False)
    assert lab.get("-n", NAMESPACE, "daemonsets")["items"] == []
    lab.wait_for(lambda: lab.node("npu-c")["status"]["allocatable"].get("huawei.com/Ascend310P") == "0", 60, "no chips offered")
    lab.playbook("install")
    assert lab.node("npu-c")["status"]["allocatable"]["huawei.com/Ascend310P"] == "4"


def test_paused_components_stay_paused(lab):
    label = "npuops.ascend/components"
    lab.kubectl("label", "node", "npu-c", f"{label}=paused", "--overwrite")
    try:
        result = lab.playbook("install", ONE)
        assert lab.node("npu-c")["metadata"]["labels"][label] == "paused"
        assert "npu-c: maintenance its components are paused" in " ".join(result.stdout.split())
        result = lab.playbook("validate", ONE, check=False, npu_validate_timeout=1)
        assert result.returncode != 0
        assert "npu-c: maintenance: its components are paused" in result.stdout
    finally:
        lab.kubectl("label", "node", "npu-c", f"{label}=enabled", "--overwrite")
    lab.playbook("validate", ONE)


@pytest.mark.core
def test_status_writes_what_it_shows(lab, tmp_path, overriding):
    """Also with a host that is down, and a node that no host stands for."""
    path = tmp_path / "fleet.json"
    result = lab.playbook(
        "status",
        *overriding({"npu-b": {"ansible_host": "127.0.0.1", "ansible_port": 9}}),
        "--limit=npu-a,npu-b,cpu-a",
        npu_status_file=str(path),
        npu_status_metrics_file=str(tmp_path / "fleet.prom"),
    )
    rows = {row["node"]: row for row in json.loads(path.read_text(encoding="utf-8"))["hosts"]}
    assert {name: row["state"] for name, row in rows.items()} == {
        "npu-a": "ready",
        "npu-b": "unreachable",
        "npu-c": "unknown",
        "cpu-a": "no chip",
    }
    assert (rows["npu-a"]["allocatable"], rows["npu-a"]["driver_loaded"], rows["npu-a"]["cdi"]) == (8, "25.5.0", "on")
    assert "the node is Ready" in rows["npu-b"]["reason"]
    found = samples((tmp_path / "fleet.prom").read_text(encoding="utf-8"))
    assert {key[1:]: value for key, value in found.items() if key[0] == "npuops_fleet_node_healthy"} == {
        (("node", "npu-a"),): 1,
        (("node", "npu-b"),): 0,
        (("node", "cpu-a"),): 1,
    }
    assert found["npuops_fleet_node_devices_expected", ("node", "npu-a"), ("resource", "huawei.com/Ascend910")] == 8
    for name in NODES:
        assert re.search(rf"^\s*{name} ", result.stdout, re.MULTILINE), result.stdout
