# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module with an API server and a registry behind it."""

from __future__ import annotations

import json

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.npuops.ascend.plugins.action import npu_plan
from ansible_collections.npuops.ascend.plugins.action.npu_plan import ActionModule
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import retry as kube_retry
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import query

from support.fleet.hosts import host
from support.host.registry_server import Registry
from support.kube.eviction_stub import BUDGETS, PODS, EvictionApi, budget, pod
from support.kube.stub import node
from support.kube.workload_stub import NPU, WorkloadApi, made, template

NODES = "/api/v1/nodes"
REPOSITORY = "mlops/ascend-driver"
PROFILE = "910b-6.6.0-145.0.4.135-oe2403sp3"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/npu-operator/leases"


@pytest.fixture
def api():
    with EvictionApi() as server:
        server.put(NODES, node("a", boot_id="boot-a"), node("b", boot_id="boot-b"))
        server.objects["/api/v1/services"] = {}
        yield server


@pytest.fixture
def registry():
    with Registry() as server:
        layer = {
            "mediaType": "application/vnd.oci.image.layer.v1.tar+gzip",
            "digest": "sha256:" + "ab" * 32,
            "size": 2**20,
        }
        server.put_manifest(REPOSITORY, "25.5.2-" + PROFILE, {"schemaVersion": 2, "layers": [layer]})
        yield server


def run(api, registry, hosts=None, **options):
    config = {"driver_repository": "%s/%s" % (registry.address, REPOSITORY), "registry_plain_http": True,
              "registry_password": "s3cret word"}  # fmt: skip
    hosts = hosts or [host("a"), host("b")]
    for entry in hosts:
        entry["config"].update(config)
    validator = ArgumentSpecValidator(dict(kube_client.AUTH_ARG_SPEC, **ActionModule.ARGUMENTS))
    settings = {"auto": "true", **{name: options.pop(name) for name in list(options) if name not in ("reason", "components")}}
    enforce = "on_blocked" in settings
    arguments = {"hosts": hosts, "host": api.address, "api_key": "token", "settings": settings, "enforce": enforce, **options}
    checked = validator.validate(arguments)
    assert not checked.error_messages
    return ActionModule.act(None, checked.validated_parameters)


def writes(api):
    """Requests that could change something; access reviews and dry runs do not."""
    return [
        request for request in api.requests
        if request[0] != "GET" and not request[1].endswith(("/selfsubjectaccessreviews", "/selfsubjectrulesreviews", "/eviction"))
    ]  # fmt: skip


def test_a_green_plan(api, registry):
    api.put(PODS, pod("web-1"))
    result = run(api, registry)
    assert (result["green"], result["order"], result["due_nodes"]) == (True, ["b", "a"], ["a", "b"])
    assert list(result["due_versions"]) == ["a", "b"]
    assert (result["problem"], result["refusal"]) == (None, None)
    assert result["hosts"]["a"]["to"]["image"].endswith("%s:25.5.2-%s" % (REPOSITORY, PROFILE))
    assert result["hosts"]["a"]["to"]["digest"].startswith("sha256:")
    assert api.dry_runs == ["web-1"] and not api.evicted
    assert writes(api) == []
    assert "s3cret" not in json.dumps(result)


def test_what_can_be_asked(api, registry):
    document = query.document("plan", run(api, registry))
    assert sorted(document) == list(query.KEYS["plan"])
    assert document["nodes"][0]["name"] == document["nodes"][0]["node"]


def test_every_option_may_be_a_string_and_an_empty_one_is_the_default(api, registry):
    result = run(api, registry, auto="", max_parallel="2", approval_max_age="", retry="false", clear_halt="no", on_blocked="",
                 wait_for_jobs="", pod_deletion={"timeout": "5"}, drain='{"enable": "false"}')  # fmt: skip
    assert result["counts"]["awaiting-approval"] == 2
    assert result["max_parallel"] == 2


@pytest.mark.parametrize(("forks", "told"), [(1, True), (2, False)])
def test_too_few_forks_are_a_note(api, registry, monkeypatch, forks, told):
    monkeypatch.setattr(npu_plan.context, "CLIARGS", {"forks": forks})
    assert any("add --forks 2" in note for note in run(api, registry, max_parallel=2)["cluster_notes"]) is told


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_parallel": "many"}, "npu_upgrade_max_parallel is 'many'; it must be a whole number, 0 or more"),
        ({"max_parallel": "150%"}, "npu_upgrade_max_parallel is '150%'; it must be .* or a percentage, 1% to 100%"),
        ({"auto": "perhaps"}, "npu_upgrade_auto is 'perhaps'"),
        ({"workloads": "stop"}, "npu_upgrade_workloads is 'stop'; it must be leave or park"),
        ({"on_blocked": "ignore"}, "npu_upgrade_on_blocked is 'ignore'; it must be refuse or defer"),
        ({"drain": "no mapping"}, "npu_upgrade_drain is 'no mapping'; it must be a mapping with enable, "),
    ],
)
def test_a_wrong_option_is_named_before_anything_is_asked(api, registry, options, message):
    with pytest.raises(NpuError, match=message):
        run(api, registry, **options)
    assert api.requests == []


def test_a_smoke_pod_that_cannot_be_created_is_no_green_plan(api, registry, tmp_path):
    """Otherwise, the first node would be rebooted, and go back to its old driver for it."""
    path = tmp_path / "smoke.yml"
    path.write_text(
        "{apiVersion: v1, kind: Pod, metadata: {name: smoke, namespace: lab}, spec: {containers: [{name: a}]}}", encoding="utf-8"
    )
    pods = "/api/v1/namespaces/lab/pods"
    assert run(api, registry, smoke_pod=str(path))["green"] and writes(api) == [("POST", pods)] and pods not in api.objects
    api.faults["POST", pods] = (404, 'namespaces "lab" not found')
    result = run(api, registry, smoke_pod=str(path))
    assert not result["green"] and 'namespaces "lab" not found' in result["problem"]


@pytest.mark.parametrize(("on_blocked", "refused"), [(None, False), ("refuse", True), ("defer", False)])
def test_blocked_by_pods(api, registry, on_blocked, refused):
    api.put(PODS, pod("web-1"))
    api.put(BUDGETS, budget())
    result = run(api, registry, **({"on_blocked": on_blocked} if on_blocked else {}))
    assert (result["green"], result["deferred"], result["order"]) == (False, ["a"], ["b"])
    assert "the PodDisruptionBudget train/web allows no disruption" in result["problem"]
    assert bool(result["refusal"]) is refused


@pytest.mark.parametrize("clear_halt", [False, True])
def test_a_halt_stops_whoever_does_not_clear_it(api, registry, clear_halt):
    slots = {"max": 1, "halted": {"who": "run r1", "why": "b failed.", "when": "2026-11-21T10:00:00Z"}, "holders": {}}
    api.put(LEASES, {"metadata": {"name": "npu-maintenance", "annotations": {"npuops.ascend/slots": json.dumps(slots)}}})
    result = run(api, registry, on_blocked="defer", clear_halt=clear_halt)
    assert bool(result["refusal"]) is not clear_halt
    if not clear_halt:
        assert "npu_upgrade_clear_halt=true" in result["refusal"]


def test_missing_rights_stop_everything(api, registry):
    api.denied = {("patch", "nodes")}
    result = run(api, registry, on_blocked="defer")
    assert 'the Kubernetes user may not "patch" on "nodes"' in result["refusal"]


def test_without_the_right_to_evict_nothing_is_tried(api, registry):
    api.denied = {("create", "pods")}
    api.put(PODS, pod("web-1"))
    result = run(api, registry)
    assert 'the Kubernetes user may not "create" on "pods/eviction"' in result["problem"]
    assert api.dry_runs == []


def test_a_missing_image(api, registry):
    hosts = [host("a"), host("b", config={"driver_version": "25.7.0"})]
    result = run(api, registry, hosts, on_blocked="refuse")
    assert result["hosts"]["b"]["verdict"] == "blocked"
    assert "no driver image for the profile 25.7.0-" in result["refusal"]
    assert (result["order"], result["deferred"]) == (["a"], [])


def test_the_api_may_be_away_for_a_while(api, registry, monkeypatch):
    pauses = []
    path = "/api/v1/nodes"

    def sleep(seconds):
        pauses.append(seconds)
        if len(pauses) == 3:
            del api.faults[("GET", path)]

    monkeypatch.setattr(kube_retry.Clock, "sleep", staticmethod(sleep))
    api.faults[("GET", path)] = (429, "too many requests")
    assert run(api, registry)["green"]
    assert len(pauses) == 3


# --- parking ---


class ParkingApi(EvictionApi, WorkloadApi):
    """Both."""


@pytest.fixture
def parking():
    """A StatefulSet whose pods fill both nodes; its budget allows no disruption."""
    with ParkingApi() as api:
        nodes = [node(name, boot_id="boot-" + name, allocatable={NPU: "8"}) for name in ("a", "b")]
        api.put(NODES, *nodes)
        api.objects["/api/v1/services"] = {}
        api.put(PODS, *(pod("x-" + name, name, owner=("StatefulSet", "x"), npus=8) for name in ("a", "b")))
        api.put(BUDGETS, budget())
        api.add(made("StatefulSet", replicas=2))
        yield api


def test_what_will_be_parked_is_in_nobodys_way(parking, registry):
    result = run(parking, registry, workloads="park")
    assert result["green"] and result["park"] == [NPU]
    assert result["cluster_notes"] == ["1 workload will be parked, and restored at the end: StatefulSet train/x"]
    entry = result["hosts"]["a"]
    assert entry["evictions"]["npu"] == 0 and not any("fit on no other node" in note for note in entry["notes"])
    assert parking.dry_runs == [] and writes(parking) == []


def test_what_has_virtual_npus_is_parked_as_well(parking, registry):
    hosts = [host("a", vnpus=[{"chip": 0, "id": 100, "template": "vir10_3c_32g"}]), host("b")]
    parking.add(made("Deployment", "v", replicas=1, pods=template(resource=NPU + "-10c.3cpu.32g")))
    result = run(parking, registry, hosts, workloads="park")
    assert result["park"] == [NPU, NPU + "-10c.3cpu.32g"]
    assert "Deployment train/v" in result["cluster_notes"][0] and "StatefulSet train/x" in result["cluster_notes"][0]


@pytest.mark.parametrize("workloads", ["leave", ""])
def test_what_is_not_parked_is(parking, registry, workloads):
    result = run(parking, registry, workloads=workloads)
    assert result["counts"]["blocked"] == 2 and result["park"] == [] and result["cluster_notes"] == []
    assert any("fit on no other node" in note for note in result["hosts"]["a"]["notes"])
    assert not [path for _method, path in parking.requests if "apps" in path]


def test_other_pods_of_a_node_are_still_in_the_way(parking, registry):
    parking.put(PODS, pod("web-1", owner=("ReplicaSet", "web")))
    result = run(parking, registry, workloads="park")
    assert (result["hosts"]["a"]["verdict"], result["hosts"]["b"]["verdict"]) == ("blocked", "ready")


@pytest.mark.parametrize("approved", [True, False])
def test_nothing_is_parked_before_a_node_is_approved(parking, registry, approved):
    if approved:
        parking.objects[NODES]["a"]["metadata"]["annotations"]["npu.openfuyao.com/approve-reboot"] = "true"
    result = run(parking, registry, workloads="park", auto="false")
    assert result["counts"]["awaiting-approval"] == (1 if approved else 2)
    assert result["park"] == ([NPU] if approved else [])
    assert len(result["cluster_notes"]) == approved


def test_jobs_that_are_waited_for_are_not_parked(parking, registry):
    result = run(parking, registry, workloads="park", wait_for_jobs={"selector": "app=x"})
    assert result["cluster_notes"] == [] and result["counts"]["blocked"] == 2


def test_missing_rights_to_park(parking, registry):
    parking.denied = {("patch", "statefulsets")}
    result = run(parking, registry, workloads="park", on_blocked="refuse")
    assert 'the Kubernetes user may not "patch" on "statefulsets.apps"' in result["refusal"]


def test_hot_reset_of_chips_that_are_divided(api, registry):
    there = [{"chip": 0, "id": 100, "template": "vir06_1c_16g"}]

    def plan(**settings):
        hosts = [host("a", vnpus=there), host("b")]
        return run(api, registry, hosts, reason="upgrade", components={"version_line": "26.1", "device_plugin_settings": settings})

    assert plan()["cluster_reasons"] == plan(hot_reset="disabled", share_count="")["cluster_reasons"] == []
    assert plan(hot_reset="inference", enabled="false")["cluster_reasons"] == []
    (told,) = plan(hot_reset="inference", share_count="")["cluster_reasons"]
    assert told.startswith("a: its chips are divided into virtual NPUs, and npu_device_plugin_hot_reset is inference")
