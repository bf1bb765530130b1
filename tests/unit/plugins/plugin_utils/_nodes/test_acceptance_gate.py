# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import functools
import json

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import acceptance_gate
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes.acceptance_gate import ANNOTATION, TAINT

from support.kube.stub import node

NODES = "/api/v1/nodes"
OTHERS = {"key": "mine", "value": "x", "effect": "NoExecute"}


def tainted(*taints, **kwargs):
    made = node("a", **kwargs)
    made["spec"]["taints"] = list(taints)
    return made


def gate(value, effect="NoSchedule"):
    return {"key": TAINT, "value": value, "effect": effect}


@pytest.mark.parametrize(
    "taints, level",
    [
        ([], None),
        ([OTHERS], None),
        ([OTHERS, gate("2")], 2),
        ([gate("1"), gate("3", "NoExecute")], 3),
        ([gate("7")], 1),
        ([{"key": TAINT, "effect": "NoSchedule"}], 1),
    ],
)
def test_level(taints, level):
    assert acceptance_gate.level(tainted(*taints)) == level


def test_a_new_node_waits():
    assert acceptance_gate.closing(tainted(OTHERS, labels={"zone": "a"}), 2) == {"taints": [OTHERS, gate("2")]}
    assert acceptance_gate.closing(tainted(), 0) == {}
    assert acceptance_gate.closing(tainted(gate("1")), 2) == {}, "its kubelet said so"
    assert acceptance_gate.closing(tainted(labels={"npuops.ascend/chip": "910B"}), 2) == {}


def test_only_the_gate_is_opened():
    assert acceptance_gate.opening(tainted(OTHERS, gate("2"), gate("2", "NoExecute"))) == {"taints": [OTHERS]}
    assert acceptance_gate.opening(tainted(OTHERS)) == {}


def test_a_node_gets_its_labels_and_the_gate_at_once_or_none_of_them(api, cluster):
    """Between the two, the device plugin would start, and pods with it."""
    api.put(NODES, tainted(OTHERS))
    wanted = {"name": "a", "labels": {"npuops.ascend/components": "enabled"}, "annotations": {}}
    wanted["spec"] = functools.partial(acceptance_gate.closing, wanted=1)
    (change,) = kube_client.apply_metadata(cluster, [wanted], check_mode=True)
    assert change["before"]["spec"] == {"taints": [OTHERS]} and change["after"]["spec"] == {"taints": [OTHERS, gate("1")]}
    assert api.objects[NODES]["a"]["spec"]["taints"] == [OTHERS]
    kube_client.apply_metadata(cluster, [wanted])
    (request,) = [request for request in api.requests if request[0] == "PATCH"]
    assert api.objects[NODES]["a"]["spec"]["taints"] == [OTHERS, gate("1")]
    assert api.objects[NODES]["a"]["metadata"]["labels"]["npuops.ascend/components"] == "enabled"
    assert kube_client.apply_metadata(cluster, [wanted]) == []


def annotated(value):
    return node("a", annotations={ANNOTATION: value})


VERDICT = {"verdict": "FAIL", "level": 2, "ended": "2026-11-26T10:00:05Z"}


def test_the_last_verdict():
    assert acceptance_gate.last(annotated(json.dumps({**VERDICT, "more": 1}))) == VERDICT
    assert acceptance_gate.last(node("a")) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "7",
        json.dumps({**VERDICT, "verdict": "FINE"}),
        json.dumps({**VERDICT, "verdict": ["FAIL"]}),
        json.dumps({**VERDICT, "level": True}),
        json.dumps({**VERDICT, "level": 9}),
        json.dumps({**VERDICT, "ended": "{{ 7 }}"}),
        json.dumps({**VERDICT, "ended": None}),
        json.dumps({**VERDICT, "more": "x" * 2000}),
        "[" * 900,
    ],
)
def test_an_annotation_that_is_no_verdict(text):
    """Who may write annotations of Nodes may write anything there."""
    assert acceptance_gate.last(annotated(text)) is None
