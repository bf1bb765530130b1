# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import joined
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes.acceptance_gate import ANNOTATION, TAINT

from support.kube.stub import node

SET_UP = {"npuops.ascend/chip": "910b"}


def gated(level, labels=None, last=None):
    made = node("a", labels=SET_UP if labels is None else labels, annotations={ANNOTATION: last} if last else {})
    made["spec"]["taints"] = [{"key": TAINT, "value": str(level), "effect": "NoSchedule"}]
    return made


def verdict(level, word="FAIL"):
    return json.dumps({"verdict": word, "level": level, "ended": "2026-11-26T10:00:00Z"})


def being_deleted():
    made = node("a")
    made["metadata"]["deletionTimestamp"] = "2026-11-26T10:00:00Z"
    return made


@pytest.mark.parametrize(
    "found, install, accept, waiting",
    [
        (None, False, None, ""),
        (being_deleted(), False, None, ""),
        (node("a", labels=SET_UP), False, None, ""),
        (node("a", labels=SET_UP, ready=False), False, None, ""),
        (node("a", labels={"openfuyao.com/npu.present": "", "zone": "a"}), True, None, ""),
        (node("a", ready=False), False, None, "a: is not Ready: Kubelet stopped posting node status"),
        (node("a", unschedulable=True), False, None, "a: is cordoned; it is set up when it is uncordoned"),
        (gated(2, labels={}), True, None, ""),
        (gated(1), False, 1, ""),
        (gated(1, last=verdict(1)), False, 1, ""),
        (gated(2), False, 2, ""),
        (gated(2, last=verdict(1, "PASS")), False, 2, ""),
        (gated(3, last=verdict(2)), False, 3, ""),
        (gated(2, last=verdict(2, "PASS")), False, 2, ""),
        (
            gated(2, last=verdict(3)),
            False,
            None,
            "a: was not accepted at level 3: FAIL. Run npuops.ascend.accept when it is repaired",
        ),
        (gated(2, last="{"), False, 2, ""),
    ],
)
def test_a_node(found, install, accept, waiting):
    nodes = {} if found is None else {"a": found}
    assert joined.of([("host-a", "a")], nodes) == (
        ["host-a"] if install else [],
        {"host-a": accept} if accept else {},
        [waiting] if waiting else [],
    )


def test_only_hosts_of_the_inventory():
    found = joined.of([("c", "c"), ("b", "b")], {name: node(name) for name in "abc"})
    assert found.install == ["c", "b"]
