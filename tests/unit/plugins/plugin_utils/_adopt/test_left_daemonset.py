# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What adoption changes in a DaemonSet of another installation, and that all of it can be undone."""

from __future__ import annotations

import copy
import json

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._adopt import left_daemonset
from ansible_collections.npuops.ascend.plugins.plugin_utils._adopt.left_daemonset import ASIDE, MOVING
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster.foreign import ANNOTATION_ADOPTION

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NOT_SOC = {"key": "servertype", "operator": "NotIn", "values": ["soc"]}
ROLLING = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}


def daemonset(affinity=None, strategy=None):
    spec = {"containers": []} if affinity is None else {"containers": [], "affinity": affinity}
    return {
        "metadata": {"name": "x", "namespace": "kube-system", "resourceVersion": "1", "uid": "u"},
        "spec": {"updateStrategy": strategy or dict(ROLLING), "template": {"spec": spec}},
    }


def patched(item, patch):
    def merge(target, change):
        if not isinstance(change, dict):
            return change
        merged = dict(target) if isinstance(target, dict) else {}
        for key, value in change.items():
            if value is None:
                merged.pop(key, None)
            else:
                merged[key] = merge(merged.get(key), value)
        return merged

    return merge(copy.deepcopy(item), patch)


def required(*terms):
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}


AFFINITIES = [
    None,
    required({"matchExpressions": [NOT_SOC]}),
    required({"matchExpressions": [NOT_SOC]}, {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}),
    required({}, {"matchExpressions": [NOT_SOC]}),
    dict(required({"matchExpressions": [NOT_SOC]}), podAntiAffinity={}),
    {"podAntiAffinity": {REQUIRED: []}},
    {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
]


@pytest.mark.parametrize(
    "strategy", [ROLLING, {"type": "OnDelete"}, {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}}]
)
@pytest.mark.parametrize("affinity", AFFINITIES)
def test_all_of_it_is_taken_back(affinity, strategy):
    item = daemonset(affinity, strategy)
    moving = patched(item, left_daemonset.holding(item, MOVING))
    assert left_daemonset.is_held(moving, MOVING) and not left_daemonset.is_held(moving, ASIDE)
    aside = patched(moving, left_daemonset.holding(moving, ASIDE))
    assert left_daemonset.is_held(aside, ASIDE) and not left_daemonset.is_held(aside, MOVING)
    assert json.loads(aside["metadata"]["annotations"][ANNOTATION_ADOPTION]) == strategy
    back = patched(aside, left_daemonset.restoring(aside))
    assert back["spec"] == item["spec"] and back["metadata"]["annotations"] == {}


def test_every_term_is_restricted_but_one_that_matches_nothing():
    """Terms are alternatives. One without expressions matches no node, and must not begin to."""
    item = daemonset(required({}, {"matchExpressions": [NOT_SOC]}, {"matchFields": [{"key": "metadata.name"}]}))
    terms = patched(item, left_daemonset.holding(item, MOVING))["spec"]["template"]["spec"]["affinity"]["nodeAffinity"][REQUIRED]
    assert [MOVING in term.get("matchExpressions", []) for term in terms["nodeSelectorTerms"]] == [False, True, True]


def test_pods_are_not_replaced_although_the_template_changes():
    item = daemonset()
    assert patched(item, left_daemonset.holding(item, MOVING))["spec"]["updateStrategy"] == {"type": "OnDelete"}


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "x",
        "[]",
        "{}",
        '{"type": "Never"}',
        '{"type": "OnDelete", "rollingUpdate": 1}',
        "[" * 5000,
        '"' + "x" * 5000 + '"',
    ],
)
def test_an_annotation_that_says_nothing_is_told(text):
    item = daemonset()
    item["metadata"]["annotations"] = {} if text is None else {ANNOTATION_ADOPTION: text}
    with pytest.raises(NpuError, match="does not tell the update strategy that it had"):
        left_daemonset.restoring(item)


@pytest.mark.parametrize(
    "affinity, labels, selected",
    [
        (None, {}, True),
        (required({"matchExpressions": [NOT_SOC]}), {}, True),
        (required({"matchExpressions": [NOT_SOC]}), {"servertype": "soc"}, False),
        (required({"matchExpressions": [NOT_SOC, MOVING]}), {"npuops.ascend/adopted": "true"}, True),
        (required({"matchExpressions": [ASIDE]}), {}, True),
        (required({}), {}, False),
    ],
)
def test_where_it_would_run_without_adoption(affinity, labels, selected):
    assert left_daemonset.selects(daemonset(affinity), labels) is selected
    item = daemonset(affinity)
    item["spec"]["template"]["spec"]["nodeSelector"] = {"accelerator": "huawei-Ascend910"}
    assert left_daemonset.selects(item, labels) is False
    assert left_daemonset.selects(item, dict(labels, accelerator="huawei-Ascend910")) is selected
