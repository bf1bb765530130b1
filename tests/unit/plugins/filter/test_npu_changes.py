# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.filter.npu_changes import npu_changes

DEFINITIONS = """
# a comment is no object
---
kind: Namespace
metadata: {name: n}
---
kind: DaemonSet
metadata: {name: d, namespace: n}
"""


def changes(*results):
    return npu_changes({"result": {"results": list(results)}}, DEFINITIONS)


def test_what_is_created():
    created = {"changed": True, "diff": {"before": {}, "after": {"kind": "Namespace", "metadata": {"name": "n"}}}}
    missing_namespace = {"changed": False, "result": {}, "error": {"msg": 'namespaces "n" not found'}}
    assert changes(created, missing_namespace) == ["create Namespace n", "create DaemonSet n/d"]


def test_what_differs():
    applied = {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}, "generation": 3}
    diff = {
        "before": {"spec": {"containers": [{"image": "a:1"}]}, "metadata": {"generation": 2}},
        "after": {"spec": {"containers": [{"image": "a:2"}], "paused": True}, "metadata": applied},
    }
    assert changes({"changed": False}, {"changed": True, "diff": diff}) == [
        "change DaemonSet n/d",
        "  spec.containers.0.image: a:1 -> a:2",
        "  spec.paused: (none) -> True",
    ]


def test_what_is_removed():
    assert changes({"changed": True, "method": "delete"}, {"changed": False}) == ["remove Namespace n"]


def test_without_diff_mode():
    assert changes({"changed": False}, {"changed": True}) == ["change DaemonSet n/d"]


def test_a_single_object_has_no_list():
    assert npu_changes({"changed": True, "method": "delete"}, "{kind: Secret, metadata: {name: s}}") == [
        "remove Secret s"
    ]
