# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever a setting says, it is a text in a manifest: it changes no structure, and is in no script that a container runs."""

from __future__ import annotations

import copy

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import mindcluster

from support.kube import manifests

PLAIN = "x7plain"
HOSTILE = "x7plain\", 'a': {b: [c}, # $(id) `id` ; exit\n---\n- evil: &x *x"
VARIABLES = {
    "npu_device_plugin": manifests.PLUGIN,
    "npu_exporter": manifests.EXPORTER,
    "npu_node_agent": manifests.AGENT,
    "npu_ascend_operator": manifests.OPERATOR,
    "npu_volcano": manifests.VOLCANO,
    "npu_clusterd": manifests.CLUSTERD,
    "npu_noded": manifests.NODED,
}
# Images are references, which Ansible's filter has parsed. Paths are joined to others, and stand for themselves.
REFERENCES = ("_image",)
# CEL, in which the namespace is a part of user names. Kubernetes refuses a namespace that is no DNS label, and the roles create it first.
CEL = "admission-policy.yaml.j2"
TEMPLATES = [
    (role, path.name)
    for role in VARIABLES
    for path in sorted((manifests.ROLES / role / "templates").glob("*.j2"))
    if path.name != CEL
]


def replaced(value, old, new):
    """``value`` with ``new`` in place of ``old`` in all texts."""
    if isinstance(value, dict):
        return {replaced(key, old, new): replaced(one, old, new) for key, one in value.items()}
    if isinstance(value, list):
        return [replaced(one, old, new) for one in value]
    return value.replace(old, new) if isinstance(value, str) else value


def settings_with(role, text):
    """The variables of a role, each text of a user replaced by ``text``; where it is a path, at its end."""
    found = copy.deepcopy(VARIABLES[role])
    for name, value in found.items():
        if not name.startswith("npu_") or name.endswith(REFERENCES) or value == "":
            continue
        if isinstance(value, str):
            found[name] = value + "/" + text if value.startswith("/") else text
        elif isinstance(value, list) and all(isinstance(one, str) for one in value) and not name.endswith("_crds"):
            found[name] = [text]
    return found


def scripts(value):
    """The text after -c of all commands in a manifest."""
    if isinstance(value, list):
        return [script for one in value for script in scripts(one)]
    if not isinstance(value, dict):
        return []
    found = [script for one in value.values() for script in scripts(one)]
    words = [*(value.get("command") or []), *(value.get("args") or [])] if isinstance(value.get("command"), list) else []
    if "-c" in words[:2]:
        found.append(next(word for word in words[2:] if word != "--"))
    return found


@pytest.mark.parametrize(("role", "template"), TEMPLATES)
def test_a_setting_changes_no_structure(role, template):
    plain, hostile = (manifests.render_all(role, template, settings_with(role, text)) for text in (PLAIN, HOSTILE))
    assert replaced(hostile, HOSTILE, PLAIN) == plain


@pytest.mark.parametrize(("role", "template"), TEMPLATES)
def test_no_setting_is_in_a_script(role, template):
    variables = settings_with(role, PLAIN)
    if role == "npu_volcano":
        given = {"version": "26.1.0-" + PLAIN, "arguments": {PLAIN: PLAIN}}
        variables["__npu_version_line"] = mindcluster.component("26.1", role, given)
    found = scripts(manifests.render_all(role, template, variables))
    assert [script for script in found if PLAIN in script] == []
    # Not because it finds none.
    assert found or "command:" not in (manifests.ROLES / role / "templates" / template).read_text(encoding="utf-8")


@pytest.mark.parametrize("more", ["; id", "$(id)", '"', "\n", " ", "/../x", "`id`", "'", "\u00e9"], ids=str)
def test_a_release_is_a_tag(more):
    """It becomes part of image references, of the name of Volcano's plugin, and of what a container reads."""
    for role in sorted(set(VARIABLES) - {"npu_node_agent"}):
        (reason,) = mindcluster.mismatches("26.1", role, "26.1.0" + more, None)
        assert reason.startswith(role + "_version is 26.1.0") and "names no release of MindCluster" in reason
        assert mindcluster.mismatches("26.1", role, "26.1.0-alpine", None) == []
