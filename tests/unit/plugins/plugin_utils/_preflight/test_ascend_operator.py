# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of the ascend-operator is in a cluster, what it lacks there, and what uninstall may take away."""

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight import ascend_operator as preflight_operator

from support.kube.stub import ApiServer

OURS = "npu-operator"
DEPLOYMENTS = "/apis/apps/v1/deployments"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
JOBS = "/apis/mindxdl.gitee.com/v1/ascendjobs"
LABELS = {"app.kubernetes.io/managed-by": "npuops.ascend"}
VOLCANO = {
    "/apis/batch.volcano.sh/v1alpha1": ["jobs"],
    "/apis/scheduling.volcano.sh/v1beta1": ["podgroups", "queues"],
}


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
        yield server


def connect(api):
    return kube_client.connect({"host": api.address, "api_key": "token"})


def operator_in(namespace):
    return {"metadata": {"name": "ascend-operator-manager", "namespace": namespace}}


def crd(labels=None):
    return {"metadata": {"name": preflight_operator.CRD, "labels": labels or {}}}


def ascend_job(name):
    return {"metadata": {"name": name, "namespace": "team"}}


def reasons(api, **settings):
    return preflight_operator.reasons(connect(api), preflight_operator.look(connect(api), OURS), settings)


def test_an_empty_cluster(api):
    found = preflight_operator.look(connect(api), OURS)
    assert found == preflight_operator.Found(False, (), True)
    assert found.result(False) == {"act": False, "crd": True} and found.result(True)["act"]


def test_an_operator_that_is_disabled_is_there_to_be_removed(api):
    api.put(DEPLOYMENTS, operator_in(OURS))
    assert preflight_operator.look(connect(api), OURS).result(False)["act"]


def test_a_kind_of_somebody_else_is_left_alone(api):
    api.put(CRDS, crd())
    assert not preflight_operator.look(connect(api), OURS).crd
    api.put(CRDS, crd(LABELS))
    assert preflight_operator.look(connect(api), OURS).crd


@pytest.mark.parametrize(
    ("missing", "gang", "told"),
    [
        ("jobs", False, "kind Job of batch.volcano.sh/v1alpha1: the operator ends without it"),
        ("podgroups", True, "npu_ascend_operator_gang_scheduling is true, and the cluster does not have the kind PodGroup"),
        ("queues", "yes", "kind Queue of scheduling.volcano.sh/v1beta1"),
        ("podgroups", "false", None),
        (None, True, None),
    ],
)
def test_what_is_missing_of_volcano(api, missing, gang, told):
    api.kinds = {group: [name for name in names if name != missing] for group, names in VOLCANO.items()}
    found = reasons(api, gang_scheduling=gang)
    assert [told in sentence for sentence in found] == ([True] if told else [])


def test_another_operator(api):
    api.kinds = VOLCANO
    api.put(DEPLOYMENTS, operator_in("mindx-dl"))
    (sentence,) = reasons(api)
    assert "another ascend-operator is deployed, Deployment ascend-operator-manager in the namespace mindx-dl" in sentence


def test_uninstall_keeps_the_kind_while_there_are_jobs(api):
    api.put(CRDS, crd(LABELS))
    api.put(DEPLOYMENTS, operator_in(OURS))
    api.put(JOBS, *(ascend_job("j%d" % number) for number in range(5)))
    doing, kept = preflight_operator.removal(connect(api), OURS)
    assert doing == {"act": True, "crd": False}
    assert kept == [
        "the CustomResourceDefinition ascendjobs.mindxdl.gitee.com stays, because AscendJobs exist: team/j0, team/j1, team/j2 and 2 more"
    ]
    api.objects[JOBS].clear()
    assert preflight_operator.removal(connect(api), OURS) == ({"act": True, "crd": True}, [])


def test_uninstall_keeps_what_is_not_ours(api):
    api.put(CRDS, crd())
    assert preflight_operator.removal(connect(api), OURS) == ({"act": False, "crd": False}, [])


def test_uninstall_takes_the_kind_that_a_disabled_operator_left(api):
    api.put(CRDS, crd(LABELS))
    api.objects[JOBS] = {}
    assert preflight_operator.removal(connect(api), OURS) == ({"act": True, "crd": True}, [])
