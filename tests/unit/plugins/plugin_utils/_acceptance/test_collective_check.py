# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The check of a fleet, against an API server: who takes part, at the same time, and what is found of each."""

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._acceptance import collective_check
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import waiting_acceptances
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client

from support.fleet.fake_fleet import Clock
from support.kube.collective_stub import CHIPS, MANIFEST, NODES, PODS, CollectiveApi
from support.kube.eviction_stub import PODS as ALL_PODS
from support.kube.eviction_stub import pod

FORBIDDEN = 'pods is forbidden: User "u" cannot create resource "pods" in API group "" in the namespace "default"'
NOW = "2026-11-26T10:00:00Z"


@pytest.fixture(name="api")
def fixture_api():
    with CollectiveApi() as api:
        yield api


@pytest.fixture(name="manifest")
def fixture_manifest(tmp_path):
    path = tmp_path / "reduce.yml"
    path.write_text(MANIFEST, encoding="utf-8")
    return path


def waiting(name, manifest, verdict="PASS", **changes):
    """What npu_accept_node says of a node whose collective is to come."""
    document = {
        "schema": 1, "node": name, "level": 2, "verdict": verdict, "began": NOW, "ended": NOW, "driver": "25.5.0", "firmware": None,
        "chips": 8, "findings": [{"name": "chips", "level": 1, "verdict": verdict, "seen": "x", "advice": None, "ignored": False}],
    }  # fmt: skip
    request = {"pod": str(manifest), "timeout": 60, "dra_drivers": [], "ignored": False, "directory": None}
    return {"host": name, "boot_id": "boot-of-" + name, "document": document, "request": request, **changes}


def check(api, acceptances, clock=None, said=None):
    """{node: (verdict, what was seen)}."""
    cluster = kube_client.connect({"host": api.address, "api_key": "token"})
    say = print if said is None else said.append
    found = collective_check.findings(cluster, waiting_acceptances.read(acceptances), say, clock or Clock())
    assert api.pods == [] and {one["name"] for one in found.values()} <= {"collective"}
    return {name: (one["verdict"], one["seen"], one["advice"]) for name, one in found.items()}


def fleet(api, manifest, names):
    for name in names:
        api.node(name)
    return [waiting(name, manifest) for name in names]


def test_all_pass_and_an_odd_one_after_the_first(api, manifest):
    said = []
    found = check(api, fleet(api, manifest, "ecabd"), said=said)
    assert found == {name: ("PASS", "passed with " + others, None) for name, others in zip("abcde", ["b, e", "a", "d", "c", "a"])}
    assert api.pairs == [("a", "b"), ("c", "d"), ("a", "e")] and api.most == 4
    assert said == ["a and b: run the collective", "c and d: run the collective", "a and e: run the collective"]


def test_the_faulty_node_is_named(api, manifest):
    api.bad.add("d")
    found = check(api, fleet(api, manifest, "abcd"))
    assert {name: verdict for name, (verdict, *_rest) in found.items()} == {"a": "PASS", "b": "PASS", "c": "PASS", "d": "FAIL"}
    assert "the pair c and d failed: rank 1 on d: the pod default/reduce-" in found["c"][1]
    assert "passed with another node: b and d: rank 1 on d" in found["d"][1] and "c and d: rank 1 on d" in found["d"][1]
    assert "npuops.ascend.validate" in found["d"][2]


def test_two_nodes_and_no_other_to_compare_with(api, manifest):
    api.apart.append({"a", "b"})
    found = check(api, fleet(api, manifest, "ab"))
    for name in "ab":
        verdict, seen, _advice = found[name]
        assert verdict == "FAIL" and "not known which of the two nodes is faulty: a and b: rank" in seen
        assert "main ended with 1" in seen
    assert len(api.pairs) == 1


def test_a_cable_between_two_good_nodes(api, manifest):
    api.apart.append({"a", "b"})
    found = check(api, fleet(api, manifest, "abcd"))
    assert {verdict for verdict, *_rest in found.values()} == {"PASS"}
    assert all("the pair a and b failed" in found[name][1] for name in "ab") and len(api.pairs) == 4


def test_who_takes_part(api, manifest):
    for name in ("cordoned", "gated", "warm", "free", "small", "busy", "bad", "other-host"):
        api.node(name, chips=4 if name == "small" else 8, gate=2 if name == "gated" else None)
    api.objects[NODES]["free"]["spec"]["unschedulable"] = False
    api.put(ALL_PODS, pod("train", "busy", npus=1))
    names = ("cordoned", "gated", "free", "small", "busy", "missing")
    acceptances = [waiting(name, manifest) for name in names]
    acceptances += [waiting("bad", manifest, "FAIL"), waiting("warm", manifest, "WARNING")]
    acceptances += [waiting("other-host", manifest, boot_id="another")]
    found = check(api, acceptances)
    assert sorted(api.pairs) == [("cordoned", "gated"), ("cordoned", "warm")]
    assert {name for name, (verdict, *_rest) in found.items() if verdict == "PASS"} == {"cordoned", "gated", "warm"}
    assert found["free"][:2][0] == "UNKNOWN" and "kubectl drain free --ignore-daemonsets" in found["free"][1]
    assert "pods on the node use NPUs: train/train" in found["busy"][1]
    assert found["small"][1].endswith("does not offer what the pod asks for: huawei.com/Ascend910 (4 of 8)")
    assert "npuops.ascend.status" in found["small"][2]
    assert set(found) == {"cordoned", "gated", "warm", "free", "busy", "small"}


@pytest.mark.parametrize("asks", [True, False])
def test_kinds_are_not_mixed(api, manifest, tmp_path, asks):
    """By what a pod asks for, or by what the nodes offer if it asks for nothing."""
    manifest.write_text(MANIFEST if asks else MANIFEST.replace("resources: {limits: {%s: 8}}" % CHIPS, ""), encoding="utf-8")
    other = tmp_path / "other.yml"
    other.write_text(manifest.read_text(encoding="utf-8").replace("Ascend910", "Ascend310P"), encoding="utf-8")
    for name in "abc":
        api.node(name)
    for name in "def":
        api.node(name, resource="huawei.com/Ascend310P")
    paths = dict.fromkeys("abc", manifest) | dict.fromkeys("def", other if asks else manifest)
    found = check(api, [waiting(name, paths[name]) for name in "fdbeac"])
    assert sorted(api.pairs) == [("a", "b"), ("a", "c"), ("d", "e"), ("d", "f")]
    assert {verdict for verdict, *_rest in found.values()} == {"PASS"}


def test_a_node_alone(api, manifest):
    found = check(api, fleet(api, manifest, "a"))
    assert found["a"][0] == "UNKNOWN" and "Run accept with a second node of the same kind" in found["a"][2]
    assert api.created == []


def test_a_host_that_is_listed_twice_is_no_pair(api, manifest):
    found = check(api, fleet(api, manifest, "a") + [waiting("a", manifest, host="again")])
    assert found["a"][0] == "UNKNOWN" and api.created == []


def test_most_pairs_at_once(api, manifest):
    names = ["n%02d" % number for number in range(38)]
    found = check(api, fleet(api, manifest, names))
    assert {verdict for verdict, *_rest in found.values()} == {"PASS"} and len(api.pairs) == 19 and api.most == 32


def test_an_api_server_that_refuses(api, manifest):
    api.faults["POST", PODS] = (403, FORBIDDEN)
    found = check(api, fleet(api, manifest, "abc"))
    for verdict, seen, advice in found.values():
        assert verdict == "UNKNOWN" and 'Allow "create" on "pods"' in seen and "again when that is mended" in advice


def test_an_api_server_that_does_not_tell_who_may_be_loaded(api, manifest):
    acceptances = fleet(api, manifest, "ab")
    api.faults["GET", NODES + "/b"] = (403, "nodes is forbidden")
    found = check(api, acceptances)
    assert {verdict for verdict, *_rest in found.values()} == {"UNKNOWN"} and set(found) == {"a", "b"} and api.created == []


def test_what_had_ended_before_the_api_server_refused_counts(api, manifest):
    acceptances = fleet(api, manifest, "abc")
    original = api.answer

    def answer(method, path, query, body):
        if method == "POST" and len(api.created) == 2:
            return 403, {"message": FORBIDDEN}
        return original(method, path, query, body)

    api.answer = answer
    found = check(api, acceptances)
    assert {name: verdict for name, (verdict, *_rest) in found.items()} == {"a": "PASS", "b": "PASS", "c": "UNKNOWN"}


def test_a_manifest_that_has_gone(api, manifest):
    acceptances = fleet(api, manifest, "ab")
    manifest.unlink()
    assert "npu_accept_collective_pod cannot be read" in check(api, acceptances)["a"][1]


@pytest.mark.parametrize("busy", ["a", "e"])
def test_pods_that_come_before_the_turn_of_a_pair(api, manifest, busy):
    acceptances = fleet(api, manifest, "abcde")
    original = api.answer

    def answer(method, path, query, body):
        if method == "POST" and path == PODS:
            api.put(ALL_PODS, pod("train", busy, npus=1))
        return original(method, path, query, body)

    api.answer = answer
    found = check(api, acceptances)
    assert api.pairs == [("a", "b"), ("c", "d")]
    assert {name: verdict for name, (verdict, *_rest) in found.items()} == {**dict.fromkeys("abcd", "PASS"), "e": "UNKNOWN"}
    if busy == "e":
        assert found["e"][1].startswith("not run, because pods on the node use NPUs: train/train")
    else:
        assert found["e"][1] == "not run, because its partner must not be loaded any more"
