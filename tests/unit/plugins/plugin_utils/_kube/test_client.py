# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import time

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client

from support.kube.stub import FROZEN, NO_ANSWER, WEBHOOK_DOWN, ApiServer, node

NODES = "/api/v1/nodes"


def test_unreachable():
    with pytest.raises(NpuError, match=r"at 127.0.0.1:9 cannot be reached: .*Connection refused\. Check the server address"):
        kube_client.connect({"host": "https://127.0.0.1:9", "api_key": "token"})


def test_no_kubeconfig(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(NpuError, match=r"No usable credentials .*npu_kubernetes_auth"):
        kube_client.connect({"kubeconfig": str(tmp_path / "missing")})


def test_broken_kubeconfig(tmp_path):
    (tmp_path / "config").write_text("a: [", encoding="utf-8")
    with pytest.raises(NpuError, match="credentials cannot be read"):
        kube_client.connect({"kubeconfig": str(tmp_path / "config")})


def test_a_kubeconfig_decides_for_its_own_client_only(tmp_path, api):
    """As where the inventory is one cluster's nodes and a playbook works on another one."""
    with ApiServer() as other:
        other.put(NODES, node("other"))
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "x",
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
            "clusters": [{"name": "x", "cluster": {"server": other.address}}],
            "users": [{"name": "x", "user": {"token": "t"}}],
        }
        (tmp_path / "config").write_text(json.dumps(config), encoding="utf-8")
        assert list(kube_client.connect({"kubeconfig": str(tmp_path / "config")}).nodes()) == ["other"]
        api.put(NODES, node("a"))
        assert list(kube_client.connect({"host": api.address, "api_key": "token"}).nodes()) == ["a"]


def test_no_answer(monkeypatch, api):
    monkeypatch.setattr(kube_client, "_ANSWER_SECONDS", 1)
    monkeypatch.setattr(kube_client, "get_api_client", lambda **_options: __import__("time").sleep(20))
    with pytest.raises(NpuError, match="did not answer within 1 s"):
        kube_client.connect({"host": api.address, "api_key": "token"})


@pytest.mark.parametrize("method", ["get", "post"])
def test_a_server_that_is_frozen_is_asked_once(api, cluster, monkeypatch, method):
    """The client would ask four times, and two minutes would pass without a message."""
    monkeypatch.setattr(kube_client, "_ANSWER_SECONDS", 1)  # the oldest client overlooks fractions
    api.faults[(method.upper(), NODES)] = FROZEN
    with pytest.raises(kube_client.Unreachable, match="timed out"):
        cluster.request(method, NODES, body={})
    assert api.requests.count((method.upper(), NODES)) == 1


@pytest.mark.parametrize("status", [429, 503])
def test_a_server_that_wants_to_be_asked_in_an_hour_is_told_of(api, cluster, monkeypatch, status):
    """The client library would sleep for as long as it asks, without a word, and then call it unreachable."""
    slept = []
    monkeypatch.setattr(time, "sleep", slept.append)
    told = {"kind": "Status", "message": "too many requests", "details": {"retryAfterSeconds": 3600}}
    monkeypatch.setattr(api, "answer", lambda *_request: (status, told))
    expected = kube_client.TooManyRequests if status == 429 else kube_client.Unreachable
    with pytest.raises(expected, match="answered %d: too many requests" % status):
        cluster.list(NODES)
    assert slept == [5, 5, 5]


@pytest.mark.parametrize("text", ["<html>Sign in</html>", ""])
def test_an_answer_that_is_no_json_is_told_of(api, cluster, monkeypatch, text):
    """Of a proxy before the API server, most likely."""
    monkeypatch.setattr(api, "answer", lambda *_request: (200, text))
    with pytest.raises(kube_client.Unreachable, match="answered what is no JSON. Check the server address"):
        cluster.get(NODES + "/a")


def test_an_answer_that_is_nested_too_deeply_is_refused(api, cluster, monkeypatch):
    monkeypatch.setattr(api, "answer", lambda *_request: (200, '{"spec":' * 10**5 + "1" + "}" * 10**5))
    with pytest.raises(kube_client.Refused, match="nested too deeply"):
        cluster.get(NODES + "/a")


def test_a_kept_connection_that_has_ended_is_no_outage(api, cluster):
    api.put(NODES, node("a"))
    assert list(cluster.nodes()) == ["a"]
    api.end_connections()
    assert list(cluster.nodes()) == ["a"]


def test_credentials_not_accepted(api):
    api.faults[("GET", "/version")] = (401, "Unauthorized")
    with pytest.raises(NpuError, match="does not accept the credentials"):
        kube_client.connect({"host": api.address, "api_key": "token"})


PLUGIN = """#!/bin/sh
number=$(($(cat "$COUNT" 2>/dev/null || echo 0) + 1))
echo $number >"$COUNT"
echo '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "token-'$number'"}}'
"""


@pytest.fixture
def plugged(api, tmp_path):
    """(a Cluster whose kubeconfig has a credential plugin that does not say how long its tokens are valid, the file with the number of
    its calls)."""
    plugin, calls = tmp_path / "plugin", tmp_path / "calls"
    plugin.write_text(PLUGIN, encoding="utf-8")
    plugin.chmod(0o755)
    user = {"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never", "command": str(plugin)}
    user["env"] = [{"name": "COUNT", "value": str(calls)}]
    config = {"apiVersion": "v1", "kind": "Config", "current-context": "x", "users": [{"name": "u", "user": {"exec": user}}],
              "clusters": [{"name": "c", "cluster": {"server": api.address}}],
              "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}]}  # fmt: skip
    (tmp_path / "config").write_text(json.dumps(config), encoding="utf-8")
    return kube_client.connect({"kubeconfig": str(tmp_path / "config")}), calls


def test_a_credential_plugin_is_asked_again_when_its_token_is_not_accepted_any_more(api, plugged):
    cluster, calls = plugged
    api.put(NODES, node("a"))
    for number in range(1, 4):
        api.tokens = {"token-%d" % number}
        assert list(cluster.nodes()) == ["a"]
        assert list(cluster.nodes()) == ["a"]
        assert calls.read_text(encoding="utf-8").split() == [str(number)]


def test_a_credential_plugin_is_asked_once_for_each_request_that_is_refused(api, plugged):
    cluster, calls = plugged
    api.tokens = set()
    for number in (2, 3):
        with pytest.raises(kube_client.Unauthorized, match="does not accept the credentials"):
            cluster.nodes()
        assert calls.read_text(encoding="utf-8").split() == [str(number)]


def test_a_kind_is_found_with_new_credentials(api, plugged):
    cluster, _calls = plugged
    api.tokens = {"token-2"}
    with pytest.raises(NpuError, match="The cluster has no Widget of example.com/v1"):
        cluster.path("Widget", "example.com/v1", None, "w")


def test_forbidden_names_verb_and_resource(api, cluster):
    api.faults[("GET", NODES)] = (
        403,
        'nodes is forbidden: User "bob" cannot list resource "nodes" in API group "" at the cluster scope',
    )
    with pytest.raises(NpuError, match='Allow "list" on "nodes" to this user') as caught:
        cluster.nodes()
    assert caught.value.details["missing"]["verb"] == "list"


def test_lists_come_in_pages(api, cluster, monkeypatch):
    monkeypatch.setattr(kube_client, "PAGE", 2)
    api.put(NODES, *[node("n%d" % number) for number in range(5)])
    assert sorted(cluster.nodes()) == ["n0", "n1", "n2", "n3", "n4"]
    assert api.requests.count(("GET", NODES)) == 3


def test_a_page_that_fails_ahead_is_requested_again(api, cluster, monkeypatch):
    monkeypatch.setattr(kube_client, "PAGE", 2)
    api.put(NODES, *[node("n%d" % number) for number in range(5)])
    answer, failed = api.answer, []

    def once(method, path, query, body):
        if query.get("continue") == "2" and not failed:
            failed.append(query)
            return 403, {"kind": "Status", "message": "not now"}
        return answer(method, path, query, body)

    monkeypatch.setattr(api, "answer", once)
    assert sorted(cluster.nodes()) == ["n0", "n1", "n2", "n3", "n4"] and failed


def wanted(name, labels, annotations=None):
    return {"name": name, "labels": labels, "annotations": annotations or {}}


def test_a_list_takes_no_selector_by_another_name(cluster):
    """The client library ignores it, and the whole cluster would be listed."""
    with pytest.raises(TypeError, match="a list has no fieldSelector"):
        cluster.list("/api/v1/pods", fieldSelector="spec.nodeName=a")


def test_a_list_whose_pages_expire(api, cluster, monkeypatch):
    """After an outage between two pages, say: the server has forgotten the list, and offers to go on with what there is now."""
    monkeypatch.setattr(kube_client, "PAGE", 2)
    api.put(NODES, *[node("n%d" % number) for number in range(5)])
    answer = api.answer

    def expire(method, path, query, body):
        if query.get("continue") == "2":
            gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "The provided continue parameter is too old"}
            return 410, dict(gone, metadata={"continue": "3"} if offers else {})
        return answer(method, path, query, body)

    monkeypatch.setattr(api, "answer", expire)
    offers = True
    assert [item["metadata"]["name"] for item in cluster.list(NODES)] == ["n0", "n1", "n3", "n4"]
    offers = False
    with pytest.raises(NpuError, match="410: The provided continue parameter is too old"):
        cluster.list(NODES)


def test_labels_only_where_they_differ(api, cluster):
    api.put(NODES, node("a", labels={"x": "1", "keep": "me"}), node("b", labels={"x": "2"}))
    changes = kube_client.apply_metadata(cluster, [wanted("a", {"x": "2", "old": None}), wanted("b", {"x": "2"})])
    assert changes == [
        {
            "name": "a",
            "before": {"labels": {"x": "1"}, "annotations": {}},
            "after": {"labels": {"x": "2"}, "annotations": {}},
        }
    ]
    assert api.objects[NODES]["a"]["metadata"]["labels"] == {"x": "2", "keep": "me"}
    assert [request for request in api.requests if request[0] == "PATCH"] == [("PATCH", NODES + "/a")]


def test_labels_are_removed(api, cluster):
    api.put(NODES, node("a", labels={"x": "1"}, annotations={"y": "1"}))
    kube_client.apply_metadata(cluster, [wanted("a", {"x": None}, {"y": None})])
    assert api.objects[NODES]["a"]["metadata"]["labels"] == {}
    assert api.objects[NODES]["a"]["metadata"]["annotations"] == {}


def test_check_mode_writes_nothing(api, cluster):
    api.put(NODES, node("a"))
    assert kube_client.apply_metadata(cluster, [wanted("a", {"x": "1"})], check_mode=True)
    assert not [request for request in api.requests if request[0] == "PATCH"]


def test_what_changes_between_reading_and_writing_is_judged_again(api, cluster):
    """A user pauses the node in that moment: the write that would undo it is refused, and not tried again."""
    api.put(NODES, node("a"))
    paused = {"npuops.ascend/components": "paused"}

    def interfere():
        api.on_patch = lambda: None
        api.put(NODES, node("a", labels=paused))

    api.on_patch = interfere
    kube_client.apply_metadata(cluster, [wanted("a", {"npuops.ascend/components": "enabled", "ours": "1"})])
    assert api.objects[NODES]["a"]["metadata"]["labels"] == dict(paused, ours="1")


def test_what_was_found_out_in_another_boot_is_not_written(api, cluster):
    """Another run upgrades a driver while an install is between its facts and its labels."""
    api.put(NODES, node("a", boot_id="second"), node("b", boot_id="first"))
    entries = [dict(wanted(name, {"x": "1"}), boot_id="first") for name in "ab"]
    with pytest.raises(
        NpuError, match=r"a: The labels were not written: .* rebooted .* \(boot ID first, the node reports second\)"
    ):
        kube_client.apply_metadata(cluster, entries)
    assert [api.objects[NODES][name]["metadata"]["labels"].get("x") for name in "ab"] == [None, "1"]


def test_missing_nodes_stop_before_the_first_write(api, cluster):
    api.put(NODES, node("a"))
    with pytest.raises(NpuError, match="No such node in the cluster: b, c"):
        kube_client.apply_metadata(cluster, [wanted("a", {"x": "1"}), wanted("b", {}), wanted("c", {})])
    assert api.objects[NODES]["a"]["metadata"]["labels"] == {}


@pytest.mark.parametrize(
    "present",
    [
        {"labels": {"npuops.ascend/components": "paused"}},
        {"annotations": {"npuops.ascend/maintenance": "{}"}},
    ],
)
def test_paused_components_stay_as_they_are(api, cluster, present):
    api.put(NODES, node("a", **present))
    before = dict(api.objects[NODES]["a"]["metadata"]["labels"])
    kube_client.apply_metadata(cluster, [wanted("a", {"npuops.ascend/components": "enabled", "x": "1"})])
    assert api.objects[NODES]["a"]["metadata"]["labels"] == dict(before, x="1")


@pytest.mark.parametrize(("maintenance", "label"), [({}, "enabled"), ({"npuops.ascend/maintenance": "{}"}, "paused")])
def test_what_was_paused_for_virtual_npus_is_given_back_with_its_annotation(api, cluster, maintenance, label):
    change, paused = {"npuops.ascend/vnpu-change": "now"}, {"npuops.ascend/components": "paused"}
    api.put(NODES, node("a", labels=paused, annotations={**change, **maintenance}))
    entry = wanted("a", {"npuops.ascend/components": "enabled"})
    kube_client.apply_metadata(cluster, [entry])
    assert api.objects[NODES]["a"]["metadata"]["labels"] == paused
    kube_client.apply_metadata(cluster, [dict(entry, annotations={"npuops.ascend/vnpu-change": None})])
    assert api.objects[NODES]["a"]["metadata"]["labels"] == {"npuops.ascend/components": label}
    assert "npuops.ascend/vnpu-change" not in api.objects[NODES]["a"]["metadata"]["annotations"]


def test_node_ready():
    assert kube_client.node_ready(node("a")) == (True, None)
    assert kube_client.node_ready(node("a", ready=False)) == (False, "Kubelet stopped posting node status.")
    assert kube_client.node_ready({"metadata": {}}) == (False, "the kubelet never reported")


def test_access_review(api, cluster):
    api.denied = {("patch", "nodes")}
    assert not cluster.may("patch", "nodes")
    assert cluster.may("create", "daemonsets", "apps", "npu-operator")


# --- one that fails ---


def test_a_node_that_cannot_be_written_keeps_no_other_one(api, cluster):
    api.put(NODES, node("a"), node("b"), node("c"), node("d"))
    api.faults["PATCH", NODES + "/a"] = WEBHOOK_DOWN
    api.faults["PATCH", NODES + "/c"] = WEBHOOK_DOWN
    with pytest.raises(NpuError, match=r"a, c: .*guard.example.com") as caught:
        kube_client.apply_metadata(cluster, [wanted(name, {"x": "1"}) for name in "abcd"])
    assert [api.objects[NODES][name]["metadata"]["labels"].get("x") for name in "abcd"] == [None, "1", None, "1"]
    assert caught.value.details == {"changed": True, "done": ["b", "d"]}


def test_without_a_server_the_rest_is_not_tried(api, cluster):
    api.put(NODES, node("a"), node("b"), node("c"))
    api.faults.update({("PATCH", "%s/%s" % (NODES, name)): NO_ANSWER for name in "abc"})
    with pytest.raises(NpuError, match="(?s)a: .*b, c: not tried any more"):
        kube_client.apply_metadata(cluster, [wanted(name, {"x": "1"}) for name in "abc"])
    assert {path for method, path in api.requests if method == "PATCH"} == {NODES + "/a"}
