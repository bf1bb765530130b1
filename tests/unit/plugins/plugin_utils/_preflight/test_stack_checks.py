# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of MindCluster's optional components is in a cluster, what each lacks there, and what uninstall may take away."""

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import stack as mindcluster_stack
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight import stack_checks

from support.kube.stub import ApiServer

OURS = "npu-operator"
NAMESPACES = "/api/v1/namespaces"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
JOBS = "/apis/mindxdl.gitee.com/v1/ascendjobs"
LABELS = {"app.kubernetes.io/managed-by": "npuops.ascend"}
VOLCANO = {
    "/apis/batch.volcano.sh/v1alpha1": ["jobs"],
    "/apis/scheduling.volcano.sh/v1beta1": ["podgroups", "queues"],
}
BY_PART = {component.part: component for component in mindcluster_stack.COMPONENTS}
EACH = pytest.mark.parametrize("part", mindcluster_stack.PARTS)


class Api(ApiServer):
    """``kinds``: group and version -> resources."""

    def __init__(self):
        super().__init__()
        self.kinds = {}

    def answer(self, method, path, query, body):
        if path in self.kinds:
            return 200, {"kind": "APIResourceList", "resources": [{"name": name} for name in self.kinds[path]]}
        return super().answer(method, path, query, body)


@pytest.fixture(name="api")
def fixture_api():
    with Api() as server:
        for namespace in ("mindx-dl", "cluster-system", "volcano-system"):
            server.objects["/api/v1/namespaces/%s/configmaps" % namespace] = {}
        yield server


def connect(api):
    return kube_client.connect({"host": api.address, "api_key": "token"})


def put(api, part, namespace=None, labels=None):
    """A component's first workload: ours, where it must be, unless told otherwise."""
    component = BY_PART[part]
    metadata = {
        "name": component.names[0],
        "namespace": namespace or component.home(OURS),
        "labels": LABELS if labels is None else labels,
    }
    api.put("/apis/apps/v1/" + component.resource, {"metadata": metadata})


def crd(labels=None, name="ascendjobs.mindxdl.gitee.com"):
    return {"metadata": {"name": name, "labels": labels or {}}}


def ascend_job(name):
    return {"metadata": {"name": name, "namespace": "team"}}


def configmaps(api, namespace, *names):
    api.put(
        "/api/v1/namespaces/%s/configmaps" % namespace, *({"metadata": {"name": name, "namespace": namespace}} for name in names)
    )


def look(api):
    return stack_checks.look(connect(api), OURS)


def result(api, *enabled):
    return stack_checks.result(connect(api), look(api), lambda part: part in enabled)


def reasons(api, part, enabled=(), **settings):
    """``enabled``: which others are."""
    found = look(api)
    brought = stack_checks.brought(found, lambda other: other in enabled)
    return stack_checks.reasons(connect(api), found[part], settings, brought)


def removal(api):
    return stack_checks.removal(connect(api), look(api))


@EACH
def test_an_empty_cluster(api, part):
    found = look(api)[part]
    kinds = [crd.name for crd in BY_PART[part].crds]
    assert (found.installed, found.elsewhere, found.crds) == (False, (), tuple(kinds))
    assert result(api)[part] == {"act": False, "crds": kinds, "leftovers": []}
    assert result(api, part)[part]["act"]


@EACH
def test_a_component_that_is_disabled_is_there_to_be_removed(api, part):
    put(api, part)
    assert {name for name, told in result(api).items() if told["act"]} == {part}


def test_a_kind_of_somebody_else_is_left_alone(api):
    api.put(CRDS, crd())
    assert not look(api)["ascend_operator"].crds
    api.put(CRDS, crd(LABELS))
    assert look(api)["ascend_operator"].crds == ("ascendjobs.mindxdl.gitee.com",)


@pytest.mark.parametrize(
    ("part", "missing", "settings", "told"),
    [
        (
            "ascend_operator",
            "jobs",
            {"gang_scheduling": False},
            "kind Job of batch.volcano.sh/v1alpha1: ascend-operator ends without",
        ),
        (
            "ascend_operator",
            "podgroups",
            {},
            "npu_ascend_operator_gang_scheduling is true, and the cluster does not have the kind PodG",
        ),
        ("ascend_operator", "queues", {"gang_scheduling": "yes"}, "kind Queue of scheduling.volcano.sh/v1beta1"),
        ("ascend_operator", "podgroups", {"gang_scheduling": "false"}, None),
        ("ascend_operator", None, {}, None),
        ("clusterd", "podgroups", {}, "npu_clusterd_enabled is true, and the cluster does not have the kind PodGroup"),
        ("clusterd", "queues", {}, None),
        ("noded", "podgroups", {}, None),
    ],
)
def test_what_is_missing_of_volcano(api, part, missing, settings, told):
    api.kinds = {group: [name for name in names if name != missing] for group, names in VOLCANO.items()}
    found = reasons(api, part, **settings)
    assert [told in sentence for sentence in found] == ([True] if told else [])


@EACH
@pytest.mark.parametrize("placed", [{"labels": {}}, {"namespace": "elsewhere"}])
def test_another_one(api, part, placed):
    """One of another installation, or in a namespace where it does not belong."""
    api.kinds = VOLCANO
    component = BY_PART[part]
    put(api, part, **placed)
    assert not look(api)[part].installed and not result(api)[part]["act"]
    (sentence,) = reasons(api, part)
    namespace = placed.get("namespace", component.home(OURS))
    assert (
        "another %s is deployed, %s %s in the namespace %s;" % (component.title, component.kind, component.names[0], namespace)
        in sentence
    )
    assert sentence.endswith("or set npu_%s_enabled: false" % part)


def test_which_namespaces_are_missing(api):
    api.put(NAMESPACES, {"metadata": {"name": "mindx-dl"}})
    found = look(api)["clusterd"]
    assert found.missing == ("cluster-system",)
    create = ("create", "namespaces", "", None, None)
    assert create in stack_checks.permissions(OURS, True, found)
    api.put(NAMESPACES, {"metadata": {"name": "cluster-system"}})
    assert create not in stack_checks.permissions(OURS, True, look(api)["clusterd"])


def test_what_a_component_has_written_goes_with_it(api):
    configmaps(api, "mindx-dl", "cluster-info-device-0", "kube-root-ca.crt", "mindx-dl-nodeinfo-a", "mindx-dl-node-fault-config")
    configmaps(api, "cluster-system", "pingmesh-config", "statistic-fault-info", "clusterd-config-cm")
    assert result(api)["clusterd"]["leftovers"] == [], "it is not there: nobody knows who wrote that"
    put(api, "clusterd")
    put(api, "noded")
    wanted = {
        "clusterd": [
            {"namespace": "mindx-dl", "name": "cluster-info-device-0"},
            {"namespace": "cluster-system", "name": "statistic-fault-info"},
        ],
        "noded": [{"namespace": "mindx-dl", "name": "mindx-dl-nodeinfo-a"}],
    }
    for told in (result(api), removal(api)[0]):
        assert {part: told[part]["leftovers"] for part in wanted} == wanted
    assert result(api, "clusterd", "noded")["noded"]["leftovers"] == []


def test_uninstall_keeps_the_kind_while_there_are_jobs(api):
    api.put(CRDS, crd(LABELS))
    put(api, "ascend_operator")
    api.put(JOBS, *(ascend_job("j%d" % number) for number in range(5)))
    doing, kept = removal(api)
    assert doing["ascend_operator"] == {"act": True, "crds": [], "leftovers": []}
    assert kept == [
        "the CustomResourceDefinition ascendjobs.mindxdl.gitee.com stays, because AscendJobs exist: team/j0, team/j1, team/j2 and 2 more"
    ]
    api.objects[JOBS].clear()
    doing, kept = removal(api)
    assert (doing["ascend_operator"], kept) == ({"act": True, "crds": ["ascendjobs.mindxdl.gitee.com"], "leftovers": []}, [])


def test_uninstall_keeps_what_is_not_ours(api):
    api.put(CRDS, crd())
    for part in mindcluster_stack.PARTS:
        put(api, part, labels={})
    assert removal(api) == (stack_checks.nothing(), [])


def test_uninstall_takes_the_kind_that_a_disabled_operator_left(api):
    api.put(CRDS, crd(LABELS))
    api.objects[JOBS] = {}
    doing, kept = removal(api)
    assert (doing["ascend_operator"], kept) == ({"act": True, "crds": ["ascendjobs.mindxdl.gitee.com"], "leftovers": []}, [])


def test_volcano_brings_the_kinds_that_the_others_need(api):
    for part in ("clusterd", "ascend_operator"):
        (first, *_others) = reasons(api, part)
        assert "Install Volcano, which npu_volcano_enabled: true does, or set npu_" in first
        assert reasons(api, part, enabled=("volcano",)) == []


def test_another_volcano_may_go_on(api):
    put(api, "volcano", labels={})
    (sentence,) = reasons(api, "volcano")
    assert "To go on with that one, set npu_volcano_enabled: false and npu_device_plugin_volcano: true. Delete it with" in sentence


def test_either_of_two_workloads_is_the_component(api):
    for name in BY_PART["volcano"].names:
        api.objects["/apis/apps/v1/deployments"] = {}
        api.put("/apis/apps/v1/deployments", {"metadata": {"name": name, "namespace": "volcano-system", "labels": LABELS}})
        assert look(api)["volcano"].installed, name


def test_kinds_of_somebody_else_are_left_out_one_by_one(api):
    api.put(CRDS, crd(name="queues.scheduling.volcano.sh"), crd(LABELS, "jobs.batch.volcano.sh"))
    kinds = result(api, "volcano")["volcano"]["crds"]
    assert "queues.scheduling.volcano.sh" not in kinds and "jobs.batch.volcano.sh" in kinds and len(kinds) == 7


def test_the_queues_that_volcano_makes_keep_no_kind(api):
    queues, path = "queues.scheduling.volcano.sh", "/apis/scheduling.volcano.sh/v1beta1/queues"
    api.put(CRDS, crd(LABELS, queues))
    put(api, "volcano")
    api.put(path, {"metadata": {"name": "default"}}, {"metadata": {"name": "root"}})
    assert removal(api)[0]["volcano"]["crds"] == [queues]
    api.put(path, {"metadata": {"name": "team"}})
    doing, kept = removal(api)
    assert doing["volcano"]["crds"] == [] and kept == [
        "the CustomResourceDefinition queues.scheduling.volcano.sh stays, because Queues exist: team"
    ]
