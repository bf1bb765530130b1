# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
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


NEW = "registry.example/mlops/ascend-driver:25.7.0-910b-6.6.0-oe2403sp3"
TAG, NEW_TAG = IMAGE.rpartition(":")[2], NEW.rpartition(":")[2]


@pytest.mark.parametrize(
    ("spec", "entry"),
    [
        ({"images": [IMAGE]}, NEW),
        ({"images": ["other/tool:1", "mlops/ascend-driver:" + TAG]}, "mlops/ascend-driver:" + NEW_TAG),
        ({"images": [{"name": "mlops/ascend-driver", "tags": [TAG]}], "names": ["nobody's"]}, NEW_TAG),
    ],
)
def test_an_image_is_added_as_the_others_are_written(api, spec, entry):
    define(api)
    api.put(OBJECTS, {"metadata": {"name": "ascend-driver"}, "spec": spec})
    cluster = kube_client.connect({"host": api.address, "api_key": "token"})
    assert find(api).allow(cluster, [IMAGE, NEW], True) == [entry]
    assert find(api).why_not(NEW), "check mode has changed it"
    assert find(api).allow(cluster, [IMAGE, NEW], False) == [entry]
    assert find(api).why_not(NEW) is None and find(api).why_not(IMAGE) is None
    assert find(api).allow(cluster, [IMAGE, NEW], False) == []


@pytest.mark.parametrize("spec", [{}, {"images": []}, {"images": ["other/tool:1"]}, {"images": [IMAGE], "more": [IMAGE]}])
def test_where_no_entry_shows_how_nothing_is_added(api, spec):
    define(api)
    item = {"metadata": {"name": "ascend-driver"}, "spec": spec}
    api.put(OBJECTS, item)
    with pytest.raises(NpuError, match=r"cannot be extended\. It has .* in which driver images are named.* by hand: .*25\.7\.0"):
        find(api).allow(kube_client.connect({"host": api.address, "api_key": "token"}), [NEW], False)
    assert find(api).why_not(NEW)


def test_what_somebody_changes_meanwhile_stays(api):
    define(api)
    api.put(OBJECTS, {"metadata": {"name": "ascend-driver"}, "spec": {"images": [IMAGE]}})
    white_list = find(api)
    api.put(OBJECTS, {"metadata": {"name": "ascend-driver"}, "spec": {"images": [IMAGE, "theirs:1"]}})
    with pytest.raises(kube_client.Conflict):
        white_list.allow(kube_client.connect({"host": api.address, "api_key": "token"}), [NEW], False)
