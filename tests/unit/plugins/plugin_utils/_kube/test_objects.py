# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import copy
import json

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import objects as kube_objects

from support.kube.stub import WEBHOOK_DOWN

MAPS = "/api/v1/namespaces/n/configmaps"
DEFINITIONS = """
# only a comment
---
apiVersion: v1
kind: Namespace
metadata: {name: n}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: n}
data: {a: "1"}
"""


def bring_about(cluster, text=DEFINITIONS, **kwargs):
    changes = kube_objects.bring_about(cluster, kube_objects.parse(text), **kwargs)
    return ["%(action)s %(label)s" % change for change in changes]


def writes(api):
    return [request for request in api.requests if request[0] != "GET"]


def test_created_in_order_then_left_alone(api, cluster):
    assert bring_about(cluster) == ["create Namespace n", "create ConfigMap n/c"]
    assert writes(api) == [("POST", "/api/v1/namespaces"), ("POST", MAPS)]
    assert bring_about(cluster) == []
    assert len(writes(api)) == 2


@pytest.mark.parametrize("there", [True, False])
def test_a_creation_whose_answer_was_lost_is_one(api, cluster, monkeypatch, there):
    """Repeated, it finds the object; another client may also have been faster, with something else in it."""
    original = api.answer

    def answer(method, path, query, body):
        if (method, path) == ("POST", MAPS):
            if there:
                original(method, path, query, dict(body, data={"other": "1"}))
            return 409, {"kind": "Status", "message": 'configmaps "c" already exists'}
        return original(method, path, query, body)

    monkeypatch.setattr(api, "answer", answer)
    if not there:
        with pytest.raises(NpuError, match="already exists"):
            bring_about(cluster)
        return
    assert bring_about(cluster) == ["create Namespace n", "create ConfigMap n/c"]
    monkeypatch.undo()
    assert api.objects[MAPS]["c"]["data"]["other"] == "1" and bring_about(cluster) == []


def test_check_mode_needs_no_namespace_and_writes_nothing(api, cluster):
    assert bring_about(cluster, check_mode=True) == ["create Namespace n", "create ConfigMap n/c"]
    assert writes(api) == []


def test_what_a_definition_does_not_name_stays(api, cluster):
    bring_about(cluster)
    api.objects[MAPS]["c"]["data"]["theirs"] = "2"
    assert bring_about(cluster, DEFINITIONS.replace('"1"', '"3"')) == ["change ConfigMap n/c"]
    assert api.objects[MAPS]["c"]["data"] == {"a": "3", "theirs": "2"}


def test_what_an_earlier_definition_named_goes(api, cluster):
    bring_about(cluster, DEFINITIONS.replace('{a: "1"}', '{a: "1", b: "2"}'))
    assert bring_about(cluster) == ["change ConfigMap n/c"]
    assert api.objects[MAPS]["c"]["data"] == {"a": "1"}


def test_a_namespace_keeps_what_its_other_owners_applied(api, cluster):
    """Pod Security and network policies depend on such labels. What a definition names of it is brought about."""
    applied = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "labels": {"level": "privileged"}}}
    labels = {"level": "privileged", "team": "x"}
    annotations = {kube_objects.LAST_APPLIED: json.dumps(applied), "note": "y"}
    api.put("/api/v1/namespaces", {"metadata": {"name": "n", "labels": dict(labels), "annotations": dict(annotations)}})
    assert bring_about(cluster) == ["create ConfigMap n/c"]
    metadata = api.objects["/api/v1/namespaces"]["n"]["metadata"]
    assert (metadata["labels"], metadata["annotations"]) == (labels, annotations)
    ours = DEFINITIONS.replace("metadata: {name: n}", "metadata: {name: n, labels: {level: baseline}}")
    assert bring_about(cluster, ours) == ["change Namespace n"]
    assert api.objects["/api/v1/namespaces"]["n"]["metadata"]["labels"] == {"level": "baseline", "team": "x"}


@pytest.mark.parametrize("text", ["garbage", "null", "5", '{"data": null}', '["x"]'])
def test_an_annotation_of_what_was_applied_that_cannot_be_read_is_replaced(api, cluster, text):
    bring_about(cluster)
    api.objects[MAPS]["c"]["metadata"]["annotations"][kube_objects.LAST_APPLIED] = text
    bring_about(cluster, DEFINITIONS.replace('"1"', '"3"'))
    stored = api.objects[MAPS]["c"]
    assert stored["data"] == {"a": "3"} and json.loads(stored["metadata"]["annotations"][kube_objects.LAST_APPLIED])["data"] == {
        "a": "3"
    }
    assert bring_about(cluster, DEFINITIONS.replace('"1"', '"3"')) == []


def test_a_drift_is_repaired(api, cluster):
    bring_about(cluster)
    api.objects[MAPS]["c"]["data"]["a"] = "changed by hand"
    assert bring_about(cluster, check_mode=True) == ["change ConfigMap n/c"]
    assert api.objects[MAPS]["c"]["data"]["a"] == "changed by hand"
    assert bring_about(cluster) == ["change ConfigMap n/c"]
    assert api.objects[MAPS]["c"]["data"]["a"] == "1"


def test_what_exists_is_kept_if_asked_to(api, cluster):
    bring_about(cluster)
    api.objects[MAPS]["c"]["data"] = {"a": "changed by hand"}
    more = DEFINITIONS + "---\n" + DEFINITIONS.split("---")[2].replace("name: c", "name: d")
    changed = []
    instead = {"ConfigMap": lambda definition: changed.append(definition["metadata"]["name"])}
    assert bring_about(cluster, more, keep=True, check_mode=True) == ["create ConfigMap n/d"]
    assert bring_about(cluster, more, keep=True) == ["create ConfigMap n/d"]
    assert bring_about(cluster, more, keep=True, instead=instead) == [] and changed == []
    assert bring_about(cluster, more, keep=True, present=False) == []
    assert api.objects[MAPS]["c"]["data"] == {"a": "changed by hand"}


def test_removed_in_reverse_order(api, cluster):
    bring_about(cluster)
    assert bring_about(cluster, present=False, check_mode=True) == ["remove ConfigMap n/c", "remove Namespace n"]
    assert bring_about(cluster, present=False) == ["remove ConfigMap n/c", "remove Namespace n"]
    assert bring_about(cluster, present=False) == []
    assert api.objects[MAPS] == {}


def test_one_that_cannot_be_removed_keeps_no_other_one(api, cluster):
    bring_about(cluster)
    api.faults["DELETE", MAPS + "/c"] = WEBHOOK_DOWN
    with pytest.raises(NpuError, match="ConfigMap n/c: .*guard.example.com") as caught:
        bring_about(cluster, present=False)
    assert api.objects["/api/v1/namespaces"] == {} and caught.value.details["changed"]


def test_diff_shows_the_value_and_no_noise(api, cluster):
    bring_about(cluster)
    objects = kube_objects.parse(DEFINITIONS.replace('"1"', '"3"'))
    (difference,) = kube_objects.diff(kube_objects.bring_about(cluster, objects, check_mode=True))
    assert difference["before_header"] == "ConfigMap n/c"
    before, after = difference["before"].splitlines(), difference["after"].splitlines()
    assert set(before) ^ set(after) == {"  a: '1'", "  a: '3'"}


def test_a_kind_the_cluster_does_not_know(cluster):
    text = "{apiVersion: monitoring.coreos.com/v1, kind: ServiceMonitor, metadata: {name: x, namespace: n}}"
    with pytest.raises(NpuError, match="has no ServiceMonitor of monitoring.coreos.com/v1. Is its operator installed"):
        bring_about(cluster, text)


def test_what_may_not_be_created_is_named(api, cluster):
    message = 'configmaps is forbidden: User "bob" cannot create resource "configmaps" in API group "" in the namespace "n"'
    api.faults[("POST", MAPS)] = (403, message)
    with pytest.raises(NpuError, match='Allow "create" on "configmaps" in the namespace n to this user'):
        bring_about(cluster)


@pytest.mark.parametrize("text", ["a: [", "{kind: ConfigMap, apiVersion: v1}", "- 1"])
def test_bad_definitions(text):
    with pytest.raises(NpuError):
        kube_objects.parse(text)


def test_defaults_of_the_server_within_lists_cost_no_request():
    """A patch names lists whole, with what the server has added to their members: it may change nothing."""
    (pod,) = kube_objects.parse("{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: main, image: i}]}}")
    actual = copy.deepcopy(pod)
    actual["metadata"]["annotations"] = {kube_objects.LAST_APPLIED: json.dumps(pod, separators=(",", ":"), sort_keys=True)}
    actual["spec"]["containers"][0]["imagePullPolicy"] = "IfNotPresent"
    assert kube_objects.patch_for(actual, pod) is None
    pod["spec"]["containers"][0]["image"] = "j"
    patch = kube_objects.patch_for(actual, pod)
    assert patch["spec"]["containers"] == [{"name": "main", "image": "j", "imagePullPolicy": "IfNotPresent"}]


@pytest.mark.parametrize(
    ("patch", "result"),
    [
        ({}, {"a": {"b": 1, "c": [1, 2]}, "d": "x"}),
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": [1, 2]}, "d": "x"}),
        ({"a": {"b": None, "e": None}}, {"a": {"c": [1, 2]}, "d": "x"}),
        ({"a": {"c": [2]}}, {"a": {"b": 1, "c": [2]}, "d": "x"}),
        ({"d": {"f": {"g": None}}}, {"a": {"b": 1, "c": [1, 2]}, "d": {"f": {}}}),
        ({"a": None, "d": None}, {}),
    ],
)
def test_merge_patches(patch, result):
    """RFC 7386."""
    before = {"a": {"b": 1, "c": [1, 2]}, "d": "x"}
    assert kube_objects.merged(before, patch) == result
    assert before == {"a": {"b": 1, "c": [1, 2]}, "d": "x"}


def test_characters_that_json_has_as_two():
    (item,) = kube_objects.parse('{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: "\\ud83d\\ude00"}}')
    assert item["data"]["a"].encode("utf-16", "surrogatepass").decode("utf-16") == "\U0001f600"
