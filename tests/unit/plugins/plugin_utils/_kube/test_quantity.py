# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Numbers of NPUs, as the API server keeps them."""

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import quantity as kube_quantity
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods.pod_view import Pod

from support.kube.stub import node

RESOURCE = "huawei.com/Ascend910"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (8, 8),
        ("8", 8),
        ("0", 0),
        ("1k", 1000),
        ("2M", 2000000),
        ("1Ki", 1024),
        ("1E", 10**18),
        ("1e3", 1000),
        ("5E2", 500),
        ("-1", -1),
    ],
)
def test_whole_numbers(text, number):
    assert kube_quantity.whole(text) == number


@pytest.mark.parametrize("text", ["", "k", "1.5", "1ki", "1m", "²", "٣", "9" * 5000, None, True])
def test_what_is_no_whole_number(text):
    assert kube_quantity.whole(text) is None


def test_a_node_and_a_pod_with_a_thousand():
    """What a kubelet offers as 1000 reads 1k."""
    assert kube_client.allocatable(node("a", allocatable={RESOURCE: "1k"}), RESOURCE) == 1000
    assert Pod({"metadata": {"name": "p"}, "spec": {"containers": [{"resources": {"limits": {RESOURCE: "1Ki"}}}]}}).requests == {
        RESOURCE: 1024
    }
