# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What npu_status shows of a component that is being rolled out."""

from __future__ import annotations

import copy
import json

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.npuops.ascend.plugins.action.npu_status import ActionModule
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._components import daemonset_rollout as components_daemonset_rollout
from ansible_collections.npuops.ascend.plugins.plugin_utils._components import rollout_view
from ansible_collections.npuops.ascend.plugins.plugin_utils._components.rollout_pace import Pace
from ansible_collections.npuops.ascend.plugins.plugin_utils._components.rollout_progress import ANNOTATION
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import retry as kube_retry

from support.kube.daemonset_stub import NAMESPACE, REVISIONS, SETS, Clock, DaemonSetApi, definition

OLD, NEW = "registry.example/exporter:1", "registry.example/exporter:2"
NAME = "npu-exporter"
BEGUN = 1795428000.0  # 2026-11-23T10:00:00Z
FORBIDDEN = 'User "x" cannot list resource "%s" in API group "apps" in the namespace "npu-operator"'


@pytest.fixture
def api():
    with DaemonSetApi() as server:
        server.fleet("a", "b", "c")
        roll_out(server, OLD)
        server.settle()
        yield server


def connect(api):
    return kube_client.connect({"host": api.address, "api_key": "token"})


def roll_out(api, image, then=lambda _second: None):
    clock = Clock(api, then)
    retrying = kube_retry.RetryingCluster(connect(api), lambda _sentence: None, clock)
    wanted = copy.deepcopy(definition(image, NAME, plugin=False))
    components_daemonset_rollout.DaemonSetRollout(retrying, wanted, Pace("1", 60), lambda _line: None, clock, "r1").bring_about()


def watched(api, image):
    """What is shown after each second of a rollout, without what is the same twice."""
    found = []

    def look(_second):
        rollouts, lines = rollout_view.read(connect(api), NAMESPACE, BEGUN)
        if not found or found[-1] != (rollouts, lines):
            found.append((rollouts, lines))

    try:
        roll_out(api, image, look)
    except NpuError:
        pass
    look(None)
    return found


def revision_of(api, image):
    hashes = {
        item["data"]["spec"]["template"]["spec"]["containers"][0]["image"]: item["metadata"]["labels"]["controller-revision-hash"]
        for item in api.objects[REVISIONS].values()
    }
    return hashes[image]


def test_without_a_rollout_nothing_is_shown(api):
    assert rollout_view.read(connect(api), NAMESPACE, BEGUN) == ([], [])


def test_node_by_node(api):
    found = watched(api, NEW)
    old, new = revision_of(api, OLD), revision_of(api, NEW)
    text = (
        "DaemonSet npu-operator/npu-exporter to the image %s (revision %s): %%d of 3 nodes, now %%s; if it does not work, back to"
    )
    text = text % (NEW, new) + " revision %s. Run r1" % old
    lines = [line for _rollouts, told in found for line in told]
    assert [line for line in lines if line in {text % (done, node) for done, node in ((1, "a"), (2, "b"), (3, "c"))}], lines
    for done, node in ((1, "a"), (2, "b"), (3, "c")):
        assert text % (done, node) in lines
    (rollout,) = next(rollouts for rollouts, told in found if told == [text % (2, "b")])
    assert rollout == {
        "daemonset": "npu-operator/npu-exporter",
        "run": "r1",
        "direction": "forward",
        "image": NEW,
        "revision": new,
        "previous": old,
        "updated": 2,
        "nodes": 3,
        "replacing": ["b"],
        "heartbeat": None,
        "failure": None,
        "text": text % (2, "b"),
    }
    assert found[-1] == ([], [])


def test_the_way_back(api):
    api.images[NEW] = "ends"
    found = watched(api, NEW)
    back = [rollouts[0] for rollouts, _told in found if rollouts and rollouts[0]["direction"] == "back"]
    old = revision_of(api, OLD)
    assert {(one["image"], one["previous"]) for one in back} == {(OLD, old)} and back[-1]["revision"] == old
    assert back[-1]["failure"].startswith("with the image %s it does not work on a: " % NEW)
    assert " back to the image %s (revision %s): " % (OLD, old) in back[-1]["text"] and back[-1]["failure"] in back[-1]["text"]
    assert found[-1] == ([], [])


def interrupted(api):
    """The DaemonSet of a rollout whose run was killed."""

    class Killed(BaseException):
        pass

    def kill(_second):
        raise Killed

    with pytest.raises(Killed):
        roll_out(api, NEW, kill)
    return api.objects[SETS][NAME]


def test_when_the_run_wrote_last(api):
    metadata = interrupted(api)["metadata"]
    owned = {"f:metadata": {"f:annotations": {"f:" + ANNOTATION: {}}}}
    metadata["managedFields"] = [
        {"manager": "npuops.ascend", "time": "2026-11-23T09:58:00Z", "fieldsV1": owned},
        {"manager": "kube-controller-manager", "time": "2026-11-23T09:59:59Z", "fieldsV1": {"f:status": {}}},
    ]
    (rollout,), (line,) = rollout_view.read(connect(api), NAMESPACE, BEGUN)
    assert rollout["heartbeat"] == "2026-11-23T09:58:00Z" and line.endswith(". Run r1, last heartbeat 2 min ago")


def test_what_a_person_changed_meanwhile(api):
    interrupted(api)["spec"]["template"]["spec"]["containers"][0]["image"] = "registry.example/exporter:3"
    _rollouts, (line,) = rollout_view.read(connect(api), NAMESPACE, BEGUN)
    assert "to the image registry.example/exporter:3" in line and "; it was changed since. Run r1" in line


def test_what_the_controller_manager_has_not_seen(api):
    interrupted(api)["metadata"]["generation"] += 1
    (rollout,), (line,) = rollout_view.read(connect(api), NAMESPACE, BEGUN)
    assert rollout["updated"] is None and rollout["revision"] is None and ": ? of 3 nodes" in line


def test_what_may_not_be_read(api):
    interrupted(api)
    api.faults["GET", REVISIONS] = (403, FORBIDDEN % "controllerrevisions")
    (rollout,), _lines = rollout_view.read(connect(api), NAMESPACE, BEGUN)
    assert rollout["revision"] is None and rollout["image"] == NEW
    api.faults["GET", SETS] = (403, FORBIDDEN % "daemonsets")
    told = 'not known: the Kubernetes user may not "list" on "daemonsets.apps" in the namespace npu-operator'
    assert rollout_view.read(connect(api), NAMESPACE, BEGUN) == (None, [told])


@pytest.mark.parametrize("text", ["", "{}", "[" * 10**5, "null", json.dumps({"format": 1, "run": "x\ny"}), "\x1b[2J" * 100])
def test_an_annotation_that_nobody_of_us_wrote(api, text):
    api.objects[SETS][NAME]["metadata"]["annotations"][ANNOTATION] = text
    (rollout,), (line,) = rollout_view.read(connect(api), NAMESPACE, BEGUN)
    assert line.startswith("The annotation npuops.ascend/rollout of DaemonSet npu-operator/npu-exporter cannot be read: ")
    assert line.isprintable() and len(line) < 1100 and rollout["text"] == line and rollout["run"] is None


def test_what_is_in_the_annotation_is_cut(api):
    item = interrupted(api)
    told = json.loads(item["metadata"]["annotations"][ANNOTATION])
    nodes = {"n%05d\x1b[2J" % number: {} for number in range(5000)}
    told.update(direction="back", failure="\x1b]0;" + "x" * 10**4, nodes=nodes)
    item["metadata"]["annotations"][ANNOTATION] = json.dumps(told)
    (rollout,), (line,) = rollout_view.read(connect(api), NAMESPACE, BEGUN)
    assert line.isprintable() and len(line) < 2000 and ", now n00000 [2J, n00001 [2J, n00002 [2J and 497 more" in line
    assert len(rollout["replacing"]) == 500


def test_the_module_shows_it(api):
    interrupted(api)
    validator = ArgumentSpecValidator(dict(kube_client.AUTH_ARG_SPEC, **ActionModule.ARGUMENTS))
    checked = validator.validate({"hosts": [], "host": api.address, "api_key": "token"})
    result = ActionModule.__new__(ActionModule).act(checked.validated_parameters)
    assert result["table"][-3:-1] == ["", "Component rollouts:"]
    assert result["table"][-1] == "  " + result["rollouts"][0]["text"] and result["rollouts"][0]["image"] == NEW
