# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import image_white_list

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
IMAGE = "registry.example/mlops/ascend-driver:25.5.2-910b-6.6.0-oe2403sp3"
OBJECTS = "/apis/app.example.io/v1/namespaces/cpaas-system/imagewhitelists"


def find(api):
    return image_white_list.WhiteList.find(kube_client.connect({"host": api.address, "api_key": "token"}))


def define(api):
    spec = {"group": "app.example.io", "scope": "Namespaced", "versions": [{"name": "v1", "served": True}]}
    api.put(DEFINITIONS, {"metadata": {"name": "imagewhitelists.app.example.io"}, "spec": spec})


def test_most_clusters_have_none(api):
    assert find(api) is None
    api.put(DEFINITIONS, {"metadata": {"name": "others.example.io"}, "spec": {}})
    assert find(api) is None


def test_without_the_object_nothing_is_allowed(api):
    define(api)
    assert "no object ascend-driver in cpaas-system" in find(api).why_not(IMAGE)


@pytest.mark.parametrize(
    "spec",
    [
        {"images": [IMAGE]},
        {"images": [{"name": "mlops/ascend-driver", "tags": ["25.5.2-910b-6.6.0-oe2403sp3"]}]},
    ],
)
def test_the_tag_is_looked_for_wherever_it_may_be(api, spec):
    define(api)
    api.put(OBJECTS, {"metadata": {"name": "ascend-driver"}, "spec": spec})
    white_list = find(api)
    assert white_list.why_not(IMAGE) is None
    why = white_list.why_not(IMAGE.replace("25.5.2", "25.7.0"))
    assert why == "the ImageWhiteList ascend-driver in cpaas-system does not contain 25.7.0-910b-6.6.0-oe2403sp3; add it there"


def test_its_own_name_and_labels_do_not_count(api):
    define(api)
    api.put(OBJECTS, {"metadata": {"name": "ascend-driver", "annotations": {"last": IMAGE}}, "spec": {}})
    assert find(api).why_not(IMAGE)
