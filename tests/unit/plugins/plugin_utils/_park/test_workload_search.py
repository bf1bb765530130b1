# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import image_white_list
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.selectors import parse
from ansible_collections.npuops.ascend.plugins.plugin_utils._park import workload_kinds, workload_search

DEEP = 10**5
CUSTOM = workload_kinds.Kind("x.example", "v1", "things", "Thing", field=("spec", "size"), off=True)


def test_templates_are_found_however_deep_an_object_is_nested():
    """A tenant decides how deep: it must not end the run for all others."""
    pod = {"containers": [{"name": "main"}]}
    node = {"roles": [{"template": {"metadata": {}, "spec": pod}}, pod]}
    for _level in range(DEEP):
        node = {"inner": [node]}
    found = list(workload_search._templates(node))
    assert {"spec": pod} in found and {"metadata": {}, "spec": pod} in found and len(found) == 2


def test_images_are_found_however_deep_an_object_is_nested():
    node = {"images": ["a:1"]}
    for _level in range(DEEP):
        node = {"inner": [node, "b:2"]}
    assert set(image_white_list._strings(node)) == {"a:1", "b:2"}


@pytest.mark.parametrize(
    "template",
    [
        {"metadata": "x", "spec": {"containers": []}},
        {"metadata": {"labels": ["x"]}, "spec": {"containers": [5]}},
        {"spec": {"containers": [{"resources": "x"}]}},
        {"spec": {"containers": [{"resources": {"limits": ["huawei.com/Ascend910"]}}]}},
        {"spec": {"containers": [{}], "initContainers": {"a": 1}}},
    ],
)
def test_a_template_of_any_type_ends_no_run(template):
    """The schema of a custom resource may allow a tenant anything."""
    search = workload_search._Search(None, {}, {"huawei.com/Ascend910"}, "npu-operator", parse("a=b", "x"))
    assert search._asked(workload_search._templates({"tasks": [{"template": template}]})) == set()


@pytest.mark.parametrize(
    "status", ["x", ["x"], {"conditions": "x", "observedGeneration": "7"}, {"conditions": [5, {"type": ["x"]}]}]
)
def test_a_status_of_any_type_says_nothing(status):
    item = {"metadata": {"name": "w", "namespace": "n", "generation": 3}, "spec": {"size": 1}, "status": status}
    workload = workload_kinds.Workload(CUSTOM, item)
    assert (workload.over, workload.still_running()) == (False, 0)
