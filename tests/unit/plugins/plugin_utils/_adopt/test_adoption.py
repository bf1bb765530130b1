# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes move to our components and back, with Kubernetes' controller and kubelets behind the API; and runs that die at each write."""

from __future__ import annotations

import copy
import json

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._adopt import findings as adopt_findings
from ansible_collections.npuops.ascend.plugins.plugin_utils._adopt.adoption import Adoption
from ansible_collections.npuops.ascend.plugins.plugin_utils._adopt.adoption_plan import Plan
from ansible_collections.npuops.ascend.plugins.plugin_utils._components.rollout_pace import Pace
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import foreign as mindcluster_foreign

from support.kube.adoption_stub import (
    FLEET,
    OUR_EXPORTER,
    OUR_IMAGE,
    OURS,
    THEIR_EXPORTER,
    THEIR_IMAGE,
    THEIRS,
    AdoptionApi,
    their_plugin,
)
from support.kube.daemonset_stub import CHIPS, NAMESPACE, NODES, SETS, Clock

FACTS = {"chip_count": 8, "family": {"name": "910B", "resource": CHIPS, "accelerator": "huawei-Ascend910"}}
COMPONENTS = {name: [OURS, OUR_EXPORTER] for name in (*FLEET, "d", "e")}
SET_ASIDE = [f"set DaemonSet {NAMESPACE}/{name} aside" for name in (THEIRS, THEIR_EXPORTER)]


@pytest.fixture(name="api")
def fixture_api():
    with AdoptionApi() as server:
        server.fleet(*FLEET)
        server.deploy_all()
        assert set(server.running(THEIRS)) == set(FLEET) and server.running(OURS) == {}
        yield server


class Killed(BaseException):
    """The controller is gone."""


class DyingCluster:
    """Ends the run after its ``count``-th write; 0: never."""

    def __init__(self, cluster, count=0):
        self._cluster, self._count, self.writes = cluster, count, 0

    def __getattr__(self, name):
        return getattr(self._cluster, name)

    def merge_patch(self, path, body, **params):
        self.writes += 1
        answer = self._cluster.merge_patch(path, body, **params)
        if self.writes == self._count:
            raise Killed
        return answer


def adoption(api, back=False, hosts=FLEET, at_once="1", said=None, then=lambda _second: None, count=0):
    """(the adoption, its plan, the cluster that it writes to)."""
    cluster = DyingCluster(kube_client.connect({"host": api.address, "api_key": "token"}), count)
    survey = adopt_findings.look(cluster, NAMESPACE, {}, back)
    asked = [{"name": name, "facts": FACTS, "config": {}} for name in hosts]
    plan = Plan(survey, asked, cluster.nodes(), cluster.list("/api/v1/pods"), back)
    say = (said if said is not None else []).append
    return Adoption(cluster, survey, NAMESPACE, COMPONENTS, back, Pace(at_once, 60), say, Clock(api, then)), plan, cluster


def carry_out(api, **options):
    """What was done, or {} for a run that was killed."""
    one, plan, _cluster = adoption(api, **options)
    assert plan.conflicts == []
    try:
        return one.carry_out(plan.due)
    except Killed:
        return {}


def is_adopted(api, nodes=FLEET):
    return (
        set(api.running(OURS)) == set(nodes)
        and set(api.running(THEIRS)) == set(FLEET) - set(nodes)
        and all(api.labels(name)[mindcluster_foreign.LABEL_ADOPTED] == "true" for name in nodes)
        and not any(api.annotations(name) for name in FLEET)
    )


def add(api, name, **labels):
    """A new node. Its kubelet has not told yet that it has chips."""
    api.fleet(name)
    api.labels(name).update(labels)
    api.pass_time(10)
    api.objects[NODES][name]["status"]["allocatable"][CHIPS] = "0"


def offers(api):
    return {name: item["status"]["allocatable"][CHIPS] for name, item in api.objects[NODES].items()}


def test_all_nodes_move_one_after_the_other(api):
    before, moving = api.uids(THEIRS), []

    def look(_second):
        there = api.uids(THEIRS)
        moved = {name for name in FLEET if mindcluster_foreign.LABEL_ADOPTED in api.labels(name)}
        assert {name: uid for name, uid in before.items() if name not in moved}.items() <= there.items(), "nobody else is restarted"
        short = [name for name in FLEET if name in moved and name not in api.running(OURS)]
        moving.append(len(short))

    said = []
    done = carry_out(api, said=said, then=look)
    assert done == [
        "move a",
        "move b",
        "move c",
        *SET_ASIDE,
    ]
    assert is_adopted(api) and max(moving) == 1 and api.both == set()
    assert offers(api) == dict.fromkeys(FLEET, "8")
    api.pass_time(2)
    assert all(mindcluster_foreign.is_set_aside(api.objects[SETS][name]) for name in (THEIRS, THEIR_EXPORTER))
    assert said[0] == "a has the components of npuops.ascend; 1 of 1 pods that used its chips still run, none was restarted"
    # A node that comes later gets none of theirs.
    api.fleet("d")
    api.pass_time(5)
    assert api.running(THEIRS) == {}


def test_a_second_run_changes_nothing(api):
    carry_out(api)
    one, plan, cluster = adoption(api)
    assert (plan.due, one.todo(plan.due), one.carry_out(plan.due), cluster.writes) == ([], [], [], 0)


def test_the_way_back_leaves_the_daemonsets_as_they_were(api):
    before = {name: copy.deepcopy(api.objects[SETS][name]) for name in (THEIRS, THEIR_EXPORTER)}
    carry_out(api)
    api.settle()
    done = carry_out(api, back=True)
    assert done[:3] == ["move a", "move b", "move c"] and len(done) == 5
    api.settle()
    assert set(api.running(THEIRS)) == set(FLEET) and api.running(OURS) == {} and api.both == set()
    for name, was in before.items():
        item = api.objects[SETS][name]
        assert item["spec"] == was["spec"] and item["metadata"].get("annotations", {}) == {}
    for name in FLEET:
        assert mindcluster_foreign.LABEL_ADOPTED not in api.labels(name) and not api.annotations(name)
    assert offers(api) == dict.fromkeys(FLEET, "8")
    one, plan, cluster = adoption(api, back=True)
    assert (one.todo(plan.due), one.carry_out(plan.due), cluster.writes) == ([], [], 0)


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("count", range(1, 14))
def test_a_run_that_is_killed_is_run_again(api, count, back):
    """After each of its writes, which is before the next one. Never two plugins on a node, and no node is moved twice."""
    if back:
        carry_out(api)
        api.settle()
    one, plan, _cluster = adoption(api, back, count=count)
    with pytest.raises(Killed):
        one.carry_out(plan.due)
    api.pass_time(7)
    moved = _has_moved(api, plan.due, back)
    source, target = (OURS, THEIRS) if back else (THEIRS, OURS)
    there = {name: uid for name, uid in api.uids(target).items() if name in moved}
    said = []
    carry_out(api, back=back, said=said)
    assert not [line for line in said if line.partition(" ")[0] in moved], "nobody is moved twice"
    if not back:  # theirs are replaced again, when their template is restored
        assert there.items() <= api.uids(target).items()
    api.settle()
    assert set(api.running(target)) == set(FLEET) and api.running(source) == {} and api.both == set()
    assert back or is_adopted(api)
    assert not any(api.annotations(name) for name in FLEET)
    assert adoption(api, back)[0].todo([]) == [], "nothing that was begun is left on the DaemonSets of others"


def _has_moved(api, due, back):
    """The nodes that have moved for good."""
    done = [name for name in due if mindcluster_foreign.ANNOTATION_ADOPTION not in api.annotations(name)]
    return {name for name in done if (mindcluster_foreign.LABEL_ADOPTED in api.labels(name)) != back}


def test_a_node_on_which_ours_does_not_work_goes_back_and_the_run_stops(api):
    api.per_node["b", OUR_IMAGE] = "no chips"
    said = []
    with pytest.raises(NpuError) as caught:
        carry_out(api, said=said)
    message = caught.value.message
    assert "b: with the components of npuops.ascend, the node offers 0 instead of 8 of huawei.com/Ascend910" in message
    assert "b has the previous components again" in message
    assert "Nodes that moved before: a; not begun: c." in message
    assert is_adopted(api, ["a"]) and api.both == set() and offers(api) == dict.fromkeys(FLEET, "8")
    assert mindcluster_foreign.LABEL_ADOPTED not in api.labels("b")
    api.per_node.clear()
    carry_out(api)
    assert is_adopted(api)


def test_an_image_that_does_not_exist_is_not_waited_for(api):
    api.images[OUR_IMAGE] = "no image"
    began = api.now
    with pytest.raises(NpuError, match="a: the components of npuops.ascend do not work there: .* not found"):
        carry_out(api)
    assert api.now - began < 60 and is_adopted(api, [])


def test_a_node_that_can_go_neither_way_says_so_and_remembers_what_it_offered(api):
    api.images[OUR_IMAGE] = "no chips"
    api.per_node["a", THEIR_IMAGE] = "ends"
    with pytest.raises(NpuError, match="Its way back does not work either: .*exit code 127"):
        carry_out(api)
    assert json.loads(api.annotations("a")[mindcluster_foreign.ANNOTATION_ADOPTION]) == {CHIPS: 8}
    api.images.clear()
    api.per_node.clear()
    carry_out(api)
    assert is_adopted(api)


def test_more_at_once_after_the_first(api):
    most = []

    def look(_second):
        most.append(sum(mindcluster_foreign.ANNOTATION_ADOPTION in api.annotations(name) for name in FLEET))

    carry_out(api, at_once="100%", then=look)
    assert is_adopted(api) and max(most) == 2


def test_nodes_that_are_not_of_the_run_keep_theirs(api):
    said = []
    assert carry_out(api, hosts=("a",), said=said) == ["move a"]
    assert is_adopted(api, ["a"])
    assert (
        f"DaemonSet {NAMESPACE}/{THEIRS} still runs on nodes that are not of this run, 2 of them. Run this again for them" in said
    )
    one, plan, _cluster = adoption(api, hosts=("a",))
    assert one.todo(plan.due) == []
    # And back, while others have moved.
    carry_out(api, hosts=("b",))
    assert carry_out(api, hosts=("a",), back=True, said=said) == ["move a"]
    assert is_adopted(api, ["b"]) and said[-1].endswith("is kept off nodes that are not of this run: b. Run this again for them")


def test_a_maintenance_that_begins_meanwhile_stops_it(api):
    def look(_second):
        api.annotations("b")["npuops.ascend/maintenance"] = "{}"

    with pytest.raises(NpuError, match="A maintenance of the node b began in the meantime"):
        carry_out(api, then=look)
    assert is_adopted(api, ["a"]) or mindcluster_foreign.LABEL_ADOPTED not in api.labels("b")


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("gone", [False, True])
def test_a_node_that_cannot_be_written_keeps_no_other_one_without_components(api, begun, gone):
    """Of a batch, before its first write or after that: the others have left the previous components already."""

    def look(_second):
        begins = mindcluster_foreign.ANNOTATION_ADOPTION in api.annotations("c") if "c" in api.objects[NODES] else False
        if begins if begun else mindcluster_foreign.LABEL_ADOPTED in api.labels("a"):
            if gone:
                api.objects[NODES].pop("c", None)
            else:
                api.annotations("c")["npuops.ascend/maintenance"] = "{}"

    with pytest.raises(NpuError) as caught:
        carry_out(api, at_once="100%", then=look)
    message = caught.value.message
    assert message.startswith("c: ") and "Nodes that moved before: a, b; not begun: none." in message
    assert ("not found" if gone else "A maintenance of the node c began in the meantime") in message
    assert {"a", "b"} <= set(api.running(OURS)) and offers(api)["b"] == "8"


@pytest.mark.parametrize("failed", [[], ["b"]])
def test_a_node_that_works_but_cannot_be_written_stays_and_keeps_no_other_one_from_going_back(api, failed):
    """Its last write is refused."""
    api.per_node.update({(name, OUR_IMAGE): "no chips" for name in failed})

    def look(_second):
        if api.labels("c").get(kube_client.LABEL_COMPONENTS):
            api.annotations("c")[kube_client.ANNOTATION_MAINTENANCE] = "{}"

    with pytest.raises(NpuError) as caught:
        carry_out(api, at_once="100%", then=look)
    message = caught.value.message
    assert "c: A maintenance of the node c began in the meantime." in message and "\nc has the components of npuops" in message
    assert caught.value.details["failed"] == [*failed, "c"]
    assert ("b has the previous components again" in message) == bool(failed)
    api.pass_time(10)
    assert set(api.running(THEIRS)) == set(failed) and offers(api) == dict.fromkeys(FLEET, "8")
    del api.annotations("c")[kube_client.ANNOTATION_MAINTENANCE]
    api.per_node.clear()
    carry_out(api)
    assert is_adopted(api)


def test_a_node_that_went_back_but_cannot_be_written_is_told(api):
    api.per_node["a", OUR_IMAGE] = "no chips"

    def look(_second):
        begun = mindcluster_foreign.ANNOTATION_ADOPTION in api.annotations("a")
        if begun and mindcluster_foreign.LABEL_ADOPTED not in api.labels("a"):
            api.annotations("a")[kube_client.ANNOTATION_MAINTENANCE] = "{}"

    with pytest.raises(NpuError) as caught:
        carry_out(api, then=look)
    _why, told, where, *_more = caught.value.message.splitlines()
    assert told.startswith("A maintenance of the node a began") and where == "a has the previous components again"
    assert set(api.running(THEIRS)) == set(FLEET)


def test_a_later_run_leaves_nodes_that_install_has_added_meanwhile_alone(api):
    """Theirs were set aside, and are to come back on no node that ours serve."""
    carry_out(api)
    add(api, "d", **{kube_client.LABEL_COMPONENTS: "enabled"})
    add(api, "e")
    one, plan, _cluster = adoption(api, hosts=("e",))
    todo = one.todo(plan.due)
    assert one.carry_out(plan.due) == todo == ["move e", *SET_ASIDE]
    api.pass_time(10)
    assert api.both == set() and api.running(THEIRS) == {} and set(api.running(OURS)) == {*FLEET, "d", "e"}
    assert api.labels("d")[mindcluster_foreign.LABEL_ADOPTED] == "true"
    # Install goes on, and a node that comes later gets none of theirs.
    assert all(mindcluster_foreign.is_set_aside(api.objects[SETS][name]) for name in (THEIRS, THEIR_EXPORTER))
    add(api, "f")
    assert api.running(THEIRS) == {}


def test_a_later_run_leaves_a_node_to_another_device_plugin_of_theirs(api):
    carry_out(api)
    other = their_plugin(nodeSelector={"rack": "r2"})
    other["metadata"]["name"] = "other"
    api.deploy(other)
    add(api, "d", rack="r2", **{kube_client.LABEL_COMPONENTS: "paused"})
    add(api, "e")
    carry_out(api, hosts=("e",))
    api.pass_time(10)
    assert mindcluster_foreign.LABEL_ADOPTED not in api.labels("d") and set(api.running("other")) == {"d"}


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("gone", [False, True])
def test_a_node_that_is_written_meanwhile_is_labelled(api, back, gone):
    """By its kubelet, between the list of all nodes and the patch of this one; or it is deleted."""

    def on_patch():
        api.on_patch = lambda: None
        api.put(NODES, *api.objects[NODES].values())

    carry_out(api)
    add(api, "d", **{kube_client.LABEL_COMPONENTS: "enabled"})
    add(api, "e")
    api.on_patch = on_patch
    if gone:
        api.faults["PATCH", NODES + "/d"] = (404, "nodes d not found")
    done = carry_out(api, hosts=("a" if back else "e",), back=back)
    assert done[0] == ("move a" if back else "move e")
    assert gone or api.labels("d")[mindcluster_foreign.LABEL_ADOPTED] == "true"


def test_a_pod_that_restarts_meanwhile_is_told(api):
    def look(_second):
        api.objects["/api/v1/pods"]["train-a"]["status"]["containerStatuses"] = [{"restartCount": 1}]

    said = []
    carry_out(api, hosts=("a",), said=said, then=look)
    assert said[0].endswith("1 of 1 pods that used its chips still run; restarted meanwhile: team/train-a")


def test_a_daemonset_that_was_replaced_is_not_touched(api):
    one, plan, _cluster = adoption(api)
    api.objects[SETS][THEIRS]["metadata"]["uid"] = "another"
    with pytest.raises(NpuError, match="was deleted, or replaced by another one"):
        one.carry_out(plan.due)
