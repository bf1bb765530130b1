# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import image_white_list
from ansible_collections.npuops.ascend.plugins.plugin_utils._park import workload_search

DEEP = 10**5


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
