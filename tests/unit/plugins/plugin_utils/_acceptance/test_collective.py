# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The two pods of a pair, against an API server: what they are told, and that none is left."""

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._acceptance import collective, collective_runs
from ansible_collections.npuops.ascend.plugins.plugin_utils._acceptance.collective_pairs import Pair
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import smoke_pod
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client

from support.fleet.fake_fleet import Clock
from support.kube.collective_stub import MANIFEST, PODS, CollectiveApi, node_of, variables

PAIR = Pair("npu-a", "npu-b")


@pytest.fixture(name="api")
def fixture_api():
    with CollectiveApi() as api:
        for name in PAIR:
            api.node(name)
        yield api


def run(api, timeout=60, clock=None, said=None):
    """Why the pair failed, None if it passed."""
    cluster, clock = kube_client.connect({"host": api.address, "api_key": "token"}), clock or Clock()
    manifest, tried = smoke_pod.read(MANIFEST), []
    say = print if said is None else said.append
    collective_runs.run([PAIR], lambda pair: collective.Collective(cluster, pair, manifest, timeout, say, clock), tried, clock)
    ((pair, why),) = tried
    assert pair == PAIR and api.pods == []
    return why


def test_each_is_told_its_rank_and_the_address_of_the_first(api):
    assert run(api) is None
    first, second = api.created
    assert [node_of(pod) for pod in api.created] == list(PAIR)
    shared = {"NNODES": "2", "MASTER_PORT": "29500", "MINE": "rank $(NODE_RANK)"}
    assert variables(first) == {**shared, "NODE_RANK": "0", "MASTER_ADDR": "status.podIP"}
    assert variables(second) == {**shared, "NODE_RANK": "1", "MASTER_ADDR": api.ip_of("npu-a")}
    for pod in api.created:
        own = [entry["name"] for entry in pod["spec"]["containers"][0]["env"]]
        assert len(own) == len(set(own)) and own.index("NODE_RANK") < own.index("MINE")
        assert {entry["name"] for entry in pod["spec"]["containers"][1]["env"]} == {
            "NNODES",
            "NODE_RANK",
            "MASTER_ADDR",
            "MASTER_PORT",
        }


def test_the_second_one_waits_for_that_address(api):
    api.statuses["npu-a"] = {"phase": "Pending"}
    clock = Clock()
    clock.at(20, lambda: api.statuses.clear() or [pod.update(status={}) for pod in api.pods])
    looks = []
    clock.at(19, lambda: looks.append(len(api.created)))
    assert run(api, clock=clock) is None and looks == [1] and len(api.created) == 2


@pytest.mark.parametrize("timeout, limit", [(30, 30), (0, 1800)])
def test_no_address_ever(api, timeout, limit):
    api.statuses["npu-a"] = {"phase": "Pending"}
    clock = Clock()
    began = clock.now()
    why = run(api, timeout, clock)
    assert "rank 0 on npu-a: the pod default/reduce-" in why and "got no IP address within %d s: it is Pending" % limit in why
    assert len(api.created) == 1 and limit <= clock.now() - began < limit + 70


@pytest.mark.parametrize("address", [
    "no address", "10.0.0.1; reboot", "fe80::1%$(reboot)", "0.0.0.0", "127.0.0.1", "::1", "224.0.0.1", 7, ["10.0.0.1"], "1" * 2**20,
], ids=lambda value: str(value)[:20])  # fmt: skip
def test_an_address_that_is_none_reaches_no_other_pod(api, address):
    api.statuses["npu-a"] = {"phase": "Running", "podIP": address}
    why = run(api)
    assert "as its IP address, by which no pod can find it" in why and len(why) < 400
    assert [node_of(pod) for pod in api.created] == ["npu-a"]


@pytest.mark.parametrize("address", ["10.0.0.1", "fd00::1"])
def test_addresses(api, address):
    api.statuses["npu-a"] = {"phase": "Running", "podIP": address}
    api.statuses["npu-b"] = {"phase": "Failed", "message": "x"}
    run(api)
    assert variables(api.created[1])["MASTER_ADDR"] == address


@pytest.mark.parametrize("bad, rank", [("npu-a", 0), ("npu-b", 1)])
def test_when_one_fails_the_other_is_not_waited_for(api, bad, rank):
    api.bad.add(bad)
    clock = Clock()
    began = clock.now()
    api.logs.update(
        {smoke_pod.for_node(smoke_pod.read(MANIFEST), bad)["metadata"]["name"]: "one\nEI0006 getting socket times out\n"}
    )
    why = run(api, 3600, clock)
    assert "rank %d on %s: the pod default/reduce-" % (rank, bad) in why
    assert why.endswith("failed: its container main ended with 1, its last line: EI0006 getting socket times out")
    assert clock.now() - began < 10


def test_both_are_asked_to_go_before_one_of_them_has_gone(api):
    """A container that does not end keeps its pod for half a minute, and the other pod has the chips of its node meanwhile."""
    api.bad.add("npu-a")
    clock, original = Clock(), api.answer
    asked = {}

    def answer(method, path, query, body):
        if method == "DELETE":
            asked.setdefault(path, clock.now())
            if clock.now() < asked[path] + 30:
                clock.at(30, lambda: original(method, path, query, body))
                return 200, {}
        return original(method, path, query, body)

    api.answer = answer
    assert run(api, clock=clock) and len(asked) == 2 and len(set(asked.values())) == 1


def test_the_limit_is_that_of_both_together(api):
    api.statuses["npu-b"] = {"phase": "Running"}
    clock = Clock()
    began = clock.now()
    why = run(api, 30, clock)
    assert "did not succeed within 30 s: it is Running" in why and clock.now() - began < 40


def test_a_first_one_that_waits_for_no_other(api):
    api.alone.add("npu-a")
    api.statuses["npu-a"] = {"phase": "Succeeded", "podIP": "10.0.0.1"}
    why = run(api)
    assert "succeeded before rank 1 was created" in why and "Its program must use NNODES, NODE_RANK, MASTER_ADDR" in why
    assert len(api.created) == 1


def test_megabytes_of_message(api):
    waiting = {"reason": "Crash\x1b[2J", "message": "\x1b]0;x\x07" + "y" * 2**21}
    status = {"name": "main", "image": "i", "state": {"waiting": waiting}}
    api.statuses["npu-b"] = {"phase": "Failed", "message": "z\x1b" * 2**20, "containerStatuses": [status]}
    why = run(api)
    assert len(why) < 700 and why.isprintable() and "rank 1 on npu-b" in why


def test_what_a_dead_run_left_is_removed_first(api):
    for name in PAIR:
        left = smoke_pod.for_node(smoke_pod.read(MANIFEST), name)
        left["status"] = {"phase": "Succeeded", "podIP": "10.9.9.9"}
        api.put(PODS, left)
    assert run(api) is None
    assert variables(api.created[1])["MASTER_ADDR"] == api.ip_of("npu-a")
    assert [method for method, path in api.requests if method in ("POST", "DELETE")] == [
        "DELETE",
        "POST",
        "DELETE",
        "POST",
        "DELETE",
        "DELETE",
    ]


class Interrupts(Clock):
    """It raises in the pause number ``at``."""

    def __init__(self, at, error):
        super().__init__()
        self._left, self._error = at, error

    def sleep(self, seconds):
        super().sleep(seconds)
        self._left -= 1
        if not self._left:
            raise self._error


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), SystemExit(130), NpuError("the API server is down"), ZeroDivisionError()], ids=repr
)
@pytest.mark.parametrize("at", [1, 2, 3])
def test_whatever_ends_the_run_leaves_no_pod(api, error, at):
    for name in PAIR:
        api.statuses[name] = {"phase": "Running", "podIP": "10.0.0.1"}
    if at == 1:
        api.statuses["npu-a"] = {"phase": "Pending"}
    with pytest.raises(type(error)):
        run(api, clock=Interrupts(at, error))
    assert len(api.created) == (1 if at == 1 else 2) and api.pods == []


def test_a_pod_that_cannot_be_removed_then_is_named(api):
    api.statuses["npu-a"] = {"phase": "Pending"}
    path = "%s/%s" % (PODS, smoke_pod.for_node(smoke_pod.read(MANIFEST), "npu-a")["metadata"]["name"])
    api.faults["DELETE", path] = (403, 'pods "x" is forbidden: User "u" cannot delete resource "pods" in API group ""')
    said = []
    with pytest.raises(KeyboardInterrupt):
        run(api, clock=Interrupts(1, KeyboardInterrupt()), said=said)
    assert "rank 0 on npu-a: the pod default/reduce-" in said[0] and 'Allow "delete" on "pods"' in said[0]


def test_refused(api):
    api.faults["POST", PODS] = (422, "spec.containers[0].image: Required value")
    assert "cannot be created: " in run(api)


def test_what_is_no_manifest(tmp_path):
    with pytest.raises(NpuError, match="npu_accept_collective_pod cannot be read"):
        collective.load(str(tmp_path / "missing.yml"))
    (tmp_path / "pod.yml").write_text("kind: Deployment\napiVersion: apps/v1\nmetadata: {name: x}", encoding="utf-8")
    with pytest.raises(NpuError, match="npu_accept_collective_pod must be the manifest of one Pod; it contains Deployment"):
        collective.load(str(tmp_path / "pod.yml"))
