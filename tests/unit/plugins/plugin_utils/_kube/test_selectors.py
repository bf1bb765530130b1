# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import selectors as kube_selectors


@pytest.mark.parametrize(
    ("text", "labels", "matches"),
    [
        ("app=train", {"app": "train"}, True),
        ("app == train", {"app": "serve"}, False),
        ("app!=train", {}, True),
        ("app!=train", {"app": "train"}, False),
        ("app", {"app": ""}, True),
        ("!app", {"app": ""}, False),
        ("! app", {"other": "1"}, True),
        ("tier in (a, b)", {"tier": "b"}, True),
        ("tier in (a,b)", {"tier": "c"}, False),
        ("tier notin (a,b)", {}, True),
        ("tier notin (a,b)", {"tier": "a"}, False),
        ("app=train,tier in (a,b),!debug", {"app": "train", "tier": "a"}, True),
        ("app=train,tier in (a,b),!debug", {"app": "train", "tier": "a", "debug": "1"}, False),
        ("training.kubeflow.org/job-name", {"training.kubeflow.org/job-name": "x"}, True),
        ("inner=1", {"inner": "1"}, True),
        ("", {"app": "train"}, False),
        ("  ", {}, False),
    ],
)
def test_what_kubectl_takes(text, labels, matches):
    assert kube_selectors.parse(text, "x").matches(labels) is matches


@pytest.mark.parametrize("text", ["app=train tier=a", "tier in a,b", "=x", "app>3", "app=train,,x"])
def test_what_cannot_be_read_is_named(text):
    with pytest.raises(NpuError, match=r"npu_upgrade_drain\.skip_selector is not a label selector"):
        kube_selectors.parse(text, "npu_upgrade_drain.skip_selector")


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "web", "x": "1"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "db"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}, False),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, False),
    ],
)
def test_selectors_of_objects(selector, matches):
    assert kube_selectors.matches_object(selector, {"app": "web"}) is matches
