# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import permissions as kube_permissions

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
EVICT = ("create", "pods/eviction", "", None, None)
LEASE = ("patch", "leases", "coordination.k8s.io", "npu-operator", "npuops-slots")
NODES = ("patch", "nodes", "", None, None)


def rule(verbs, groups, resources, names=None):
    return {"verbs": verbs, "apiGroups": groups, "resources": resources, **({"resourceNames": names} if names else {})}


@pytest.mark.parametrize(
    ("found", "permission", "granted"),
    [
        (rule(["*"], ["*"], ["*"]), EVICT, True),
        (rule(["create"], [""], ["pods/eviction"]), EVICT, True),
        (rule(["create"], [""], ["*/eviction"]), EVICT, True),
        (rule(["create"], [""], ["pods"]), EVICT, False),
        (rule(["create"], [""], ["*/status"]), EVICT, False),
        (rule(["create"], ["policy"], ["pods/eviction"]), EVICT, False),
        (rule(["get", "list"], [""], ["pods/eviction"]), EVICT, False),
        (rule(["patch"], [""], ["nodes"]), NODES, True),
        (rule(["patch"], [""], ["nodes"], ["npu-a"]), NODES, False),
        (rule(["patch"], [""], ["*/status"]), NODES, False),
        (rule(["patch"], ["coordination.k8s.io"], ["leases"], ["npuops-slots"]), LEASE, True),
        (rule(["patch"], ["coordination.k8s.io"], ["leases"], ["another"]), LEASE, False),
        ({"verbs": ["patch"], "apiGroups": [""]}, NODES, False),
        ({"verbs": "patch", "apiGroups": [""], "resources": ["nodes"]}, NODES, False),
        (
            {"verbs": [["patch"], {}, "patch"], "apiGroups": [None, ""], "resources": ["nodes"], "resourceNames": "npu-a"},
            NODES,
            False,
        ),
    ],
)
def test_a_rule_is_read_as_rbac_reads_it(found, permission, granted):
    assert kube_permissions.granted([found], permission) is granted


def asked(api):
    return [path.rpartition("/")[2] for _method, path, *_more in api.requests if "authorization.k8s.io/v1/" in path]


def test_one_answer_for_each_namespace_tells_all(api, cluster):
    everywhere, here = rule(["patch"], [""], ["nodes"]), rule(["patch"], ["coordination.k8s.io"], ["leases"])
    api.rules = lambda namespace: {"resourceRules": [everywhere] + ([here] if namespace == "npu-operator" else [])}
    assert kube_permissions.missing(cluster, [NODES, LEASE, LEASE]) == []
    assert asked(api) == ["selfsubjectrulesreviews"] * 2


def test_a_role_in_one_namespace_holds_in_no_other(api, cluster):
    api.denied = {("patch", "leases")}
    api.rules = lambda namespace: {"resourceRules": [rule(["*"], ["*"], ["*"])] if namespace == "npu-operator" else []}
    elsewhere, everywhere = (*LEASE[:3], "default", None), (*LEASE[:3], None, None)
    assert kube_permissions.missing(cluster, [LEASE, elsewhere, everywhere]) == [elsewhere, everywhere]


def test_what_no_rule_grants_is_asked_for(api, cluster):
    api.denied = {("create", "pods")}  # how the stub knows it
    api.rules = lambda _namespace: {"resourceRules": []}
    assert kube_permissions.missing(cluster, [NODES, EVICT]) == [EVICT]
    assert asked(api) == ["selfsubjectrulesreviews", "selfsubjectaccessreviews", "selfsubjectaccessreviews"]


@pytest.mark.parametrize(
    "status",
    [
        # A webhook may deny what RBAC grants, and cannot list what.
        {"incomplete": True, "resourceRules": [rule(["*"], ["*"], ["*"])]},
        None,
        [],
        {"resourceRules": {"verbs": ["*"]}},
        {"resourceRules": ["*", None, 3]},
        {"resourceRules": 3},
    ],
)
def test_rules_that_do_not_tell_all_decide_nothing(api, cluster, status):
    api.denied = {("patch", "nodes")}
    api.rules = lambda _namespace: status
    assert kube_permissions.missing(cluster, [NODES, EVICT]) == [NODES]


@pytest.mark.parametrize("code", [403, 404, 405, 422])
def test_a_server_that_does_not_list_rules_is_asked_for_each(api, cluster, code):
    api.faults["POST", REVIEWS] = (code, "no")
    api.denied = {("patch", "nodes")}
    assert kube_permissions.missing(cluster, [NODES, EVICT]) == [NODES]


@pytest.mark.parametrize(("code", "error"), [(401, kube_client.Unauthorized), (500, kube_client.Unreachable)])
def test_a_server_that_does_not_answer_is_not_asked_again(api, cluster, code, error):
    api.faults["POST", REVIEWS] = (code, "no")
    with pytest.raises(error):
        kube_permissions.missing(cluster, [NODES, EVICT])
    assert "selfsubjectaccessreviews" not in asked(api)
