# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who moves nodes: one run at a time, until it ends or is dead; with an API server behind it."""

from __future__ import annotations

import json

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._adopt.turn import ANNOTATION, Turn
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import retry as kube_retry
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.slots import new_lease

from support.kube.stub import ApiServer, node

NAMESPACE = "npu-operator"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
NODE = "/api/v1/nodes/a"
SLOTS = {"npuops.ascend/slots": "{}"}


class Clock:
    """``then``: what happens during each sleep."""

    def __init__(self, then=lambda: None):
        self.time, self.then = 1000.0, then

    def monotonic(self):
        return self.time

    def sleep(self, seconds):
        self.time += seconds
        self.then()


@pytest.fixture(name="api")
def fixture_api():
    with ApiServer() as server:
        server.put("/api/v1/nodes", node("a"))
        server.put("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        server.put(LEASES, new_lease(NAMESPACE, dict(SLOTS)))
        yield server


def turn(api, run="one", state="adopted", clock=None, said=None):
    cluster = kube_client.connect({"host": api.address, "api_key": "token"})
    return Turn(cluster, NAMESPACE, state, (said if said is not None else []).append, clock or Clock(), run)


def annotations(api):
    return api.objects[LEASES]["npu-maintenance"]["metadata"]["annotations"]


def told(run, beat, state="returned"):
    return json.dumps({"run": run, "state": state, "beat": beat})


def labels(api):
    return {key for key in api.objects["/api/v1/nodes"]["a"]["metadata"]["labels"] if key in ("mine", "theirs")}


def write(cluster, label="mine"):
    cluster.merge_patch(NODE, {"metadata": {"labels": {label: "true"}}})


@pytest.mark.parametrize("lease", [True, False])
def test_it_is_given_back(api, lease):
    if not lease:
        api.objects[LEASES].clear()
    with turn(api).taken() as cluster:
        assert json.loads(annotations(api)[ANNOTATION]) == {"run": "one", "state": "adopted", "beat": 1}
        write(cluster)
    assert annotations(api) == (SLOTS if lease else {}) and labels(api) == {"mine"}
    with pytest.raises(NpuError, match="what went wrong"), turn(api).taken():
        raise NpuError("what went wrong")
    assert ANNOTATION not in annotations(api)


def test_a_run_that_lives_is_left_alone(api):
    annotations(api)[ANNOTATION] = told("other", 7)
    said, clock = [], Clock(lambda: annotations(api).update({ANNOTATION: told("other", 7 + int(clock.time >= 1010))}))
    with pytest.raises(NpuError) as caught, turn(api, clock=clock, said=said).taken():
        raise AssertionError
    assert caught.value.message == (
        "Nothing was changed: the run other with npu_adopt_state: returned moves nodes. Wait until it ends, then run this again"
    )
    assert clock.time < 1015 and annotations(api)[ANNOTATION] == told("other", 8)
    assert said == ["waits up to 30 s: the run other with npu_adopt_state: returned moves nodes, or was killed"]


def test_it_is_waited_for_the_end_of_one_that_is_about_to_end(api):
    annotations(api)[ANNOTATION] = told("other", 7)
    clock = Clock(lambda: annotations(api).pop(ANNOTATION, None))
    with turn(api, clock=clock).taken() as cluster:
        write(cluster)
    assert labels(api) == {"mine"} and clock.time < 1005


@pytest.mark.parametrize("text", [told("other", 7), "damaged", "x" * 5000])
def test_a_dead_run_and_what_nobody_can_read_is_replaced(api, text):
    annotations(api)[ANNOTATION] = text
    clock = Clock()
    with turn(api, clock=clock).taken() as cluster:
        write(cluster)
    assert 1030 <= clock.time < 1035 and labels(api) == {"mine"} and annotations(api) == SLOTS


def test_while_the_api_server_is_away_no_run_can_show_that_it_lives(api):
    """The run that has its turn sees a little later than the one that waits that the server is back."""
    annotations(api)[ANNOTATION] = told("other", 7)
    clock = Clock(lambda: annotations(api).update({ANNOTATION: told("other", 7 + int(clock.time >= 1080))}))
    cluster = kube_client.connect({"host": api.address, "api_key": "token"})
    usual = cluster.request

    def request(*arguments, **more):
        if 1008 <= clock.time < 1070:
            raise kube_client.Unreachable("away")
        return usual(*arguments, **more)

    cluster.request = request
    retrying = kube_retry.RetryingCluster(cluster, lambda _sentence: None, clock, retry_seconds=120)
    with pytest.raises(NpuError, match="the run other .* moves nodes"), Turn(retrying, NAMESPACE, "adopted", print, clock).taken():
        raise AssertionError


def test_a_run_that_stalled_writes_nothing_more(api):
    """And does not end the turn of who has replaced it."""
    with pytest.raises(NpuError, match="This run stops here: the run two with npu_adopt_state: returned moves nodes now"):
        with turn(api).taken() as cluster:
            write(cluster)
            with turn(api, "two", "returned").taken() as others:
                write(others, "theirs")
                before = annotations(api)[ANNOTATION]
                try:
                    cluster.merge_patch(NODE, {"metadata": {"labels": {"theirs": None}}})
                finally:
                    assert labels(api) == {"mine", "theirs"} and annotations(api)[ANNOTATION] == before
    assert ANNOTATION not in annotations(api)


def test_who_only_reads_for_a_while_shows_that_it_lives(api):
    clock = Clock()
    with turn(api, clock=clock).taken() as cluster:
        for _second in range(12):
            clock.sleep(1)
            list(cluster.each("/api/v1/nodes"))
        assert json.loads(annotations(api)[ANNOTATION])["beat"] == 3
        annotations(api).pop(ANNOTATION)
        clock.sleep(10)
        with pytest.raises(
            NpuError, match="This run stops here: the annotation .* of the Lease npu-operator/npu-maintenance was removed"
        ):
            cluster.get(NODE)


def test_others_write_to_the_lease_as_well(api):
    changes = []

    def on_patch():
        if len(changes) < 2:
            changes.append("slots")
            api.put(LEASES, api.objects[LEASES]["npu-maintenance"])

    api.on_patch = on_patch
    with turn(api).taken() as cluster:
        write(cluster)
    assert annotations(api) == SLOTS and labels(api) == {"mine"}


def test_two_that_begin_at_once(api):
    """The second one sees what the first one has written meanwhile."""
    clock = Clock(lambda: annotations(api).update({ANNOTATION: told("other", int(clock.time))}))

    def on_patch():
        api.on_patch = lambda: None
        annotations(api)[ANNOTATION] = told("other", 1)
        api.put(LEASES, api.objects[LEASES]["npu-maintenance"])

    api.on_patch = on_patch
    with pytest.raises(NpuError, match="Nothing was changed: the run other"), turn(api, clock=clock).taken():
        raise AssertionError
    assert labels(api) == set()


def test_without_the_namespace(api):
    api.objects[LEASES].clear()
    api.objects["/api/v1/namespaces"].clear()
    api.faults["POST", LEASES] = (404, 'namespaces "npu-operator" not found')
    with pytest.raises(NpuError, match="The cluster has no namespace npu-operator"), turn(api).taken():
        raise AssertionError
