# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kubernetes objects as they are defined: what kubernetes.core calls apply, for a list of them, with each one's diff."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.each import AllOf
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyKindCluster, Object, Objects

try:
    import yaml
    from ansible_collections.kubernetes.core.plugins.module_utils.apply import annotate, apply_patch, dict_merge

    # Ten times as fast, where PyYAML has libyaml.
    _LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
except ImportError:  # connect() tells what is missing, before anything here is called
    pass

# What ``bring_about`` tells of an object: {label, action, before, after}.
Change = dict[str, Any]

# What every write changes, or the server adds by itself.
_NOISE = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid")
# The definition that was applied last: what a new one does not name any more is removed.
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_NOISY_ANNOTATIONS = (LAST_APPLIED, "deprecated.daemonset.template.generation")


def parse(text: str) -> Objects:
    """The objects of a YAML text. Raises NpuError when it cannot be read or an object has no kind or name."""
    try:
        objects = _load(text)
    except yaml.YAMLError as exc:
        raise NpuError("The definitions are not valid YAML: %s" % exc)
    for item in objects:
        if not isinstance(item, dict) or not all((item.get("kind"), item.get("apiVersion"), _name(item)[1])):
            raise NpuError("This definition lacks apiVersion, kind or metadata.name: %r" % item)
    return objects


def _load(text: str) -> Objects:
    try:
        # Not the text itself: Ansible marks strings by classes of its own, which libyaml does not take.
        return [item for item in yaml.load_all(io.StringIO(text), _LOADER) if item]
    except (yaml.YAMLError, UnicodeError):
        # It refuses more than PyYAML does, such as a pair of surrogates, which JSON has for some characters.
        return [item for item in yaml.safe_load_all(text) if item]


def bring_about(
    cluster: AnyKindCluster,
    objects: Objects,
    present: bool = True,
    check_mode: bool = False,
    instead: Mapping[str, Callable[[Object], Change | None]] | None = None,
    keep: bool = False,
) -> list[Change]:
    """Create or change the objects as defined, or remove them (in reverse order). What is defined may depend on what stands
    before it, so the first that fails ends it; a removal goes on.

    Fields that a definition does not name are left unchanged, unless an earlier definition named them. Returns a list of
    {label, action, before, after} for those that changed, or would: action is create, change or remove; before and
    after are objects without what the server adds. ``instead``: by kind, what brings a definition about in place of ``apply``.
    ``keep``: objects that exist are neither changed nor removed. Raises NpuError.
    """
    if present:
        by_kind = instead or {}
        changes = [
            by_kind[definition["kind"]](definition) if definition["kind"] in by_kind else apply(cluster, definition, check_mode)
            for definition in objects
            if not (keep and _actual(cluster, definition))
        ]
        return [entry for entry in changes if entry]
    if keep:
        return []
    each = AllOf()
    for definition in reversed(objects):
        each.do(label(definition), _remove, cluster, definition, check_mode)
    each.check()
    return each.results


def label(item: Object) -> str:
    """``DaemonSet npu-operator/npu-exporter``."""
    return "%s %s" % (item["kind"], "/".join(filter(None, _name(item))))


def _name(item: Object) -> tuple[Any, Any]:
    metadata = item.get("metadata") or {}
    return metadata.get("namespace"), metadata.get("name")


def apply(cluster: AnyKindCluster, definition: Object, check_mode: bool) -> Change | None:
    """Create or change one object. Returns what changed, or None."""
    namespace, name = _name(definition)
    path = cluster.path(definition["kind"], definition["apiVersion"], namespace, name)
    actual = cluster.get(path)
    if actual is None:
        if not check_mode:
            _create(cluster, path, definition)
        return {"action": "create", "label": label(definition), "before": {}, "after": definition}
    patch = patch_for(actual, definition)
    if patch is None:
        return None
    dry_run = {"dry_run": "All"} if check_mode else {}
    return change("change", definition, actual, cluster.merge_patch(path, patch, **dry_run))


def _create(cluster: AnyKindCluster, path: str, definition: Object) -> None:
    try:
        cluster.request("post", path.rpartition("/")[0], body=dict_merge(definition, annotate(definition)))
    except kube_client.Conflict:
        # The answer to it was lost, and the request was repeated; or another client was faster.
        actual = cluster.get(path)
        if actual is None:
            raise
        patch = patch_for(actual, definition)
        if patch is not None:
            cluster.merge_patch(path, patch)


def patch_for(actual: Object, definition: Object) -> Object | None:
    """The merge patch that brings the definition about, or None when all is so already.

    Most patches of kubernetes.core name what the object has already. A request that changes nothing costs as much as any other.
    """
    patch = _additions(definition) if definition["kind"] == "Namespace" else _applied(actual, definition)
    return None if patch == actual or merged(actual, patch) == actual else patch


def _additions(definition: Object) -> Object:
    """What the definition names. A namespace has other owners, and what one of them applied is not for us to take away."""
    return {
        "metadata": {part: definition["metadata"][part] for part in ("labels", "annotations") if definition["metadata"].get(part)}
    }


def _applied(actual: Object, definition: Object) -> Object:
    try:
        _actual, patch = apply_patch(actual, definition)
    except (ValueError, TypeError, AttributeError):
        # The annotation was edited. Without it, nothing that an earlier definition named is removed.
        patch = dict_merge(definition, annotate(definition))
    return patch


def merged(actual: Any, patch: Any) -> Any:
    """``actual`` with a merge patch (RFC 7386), as the API server merges it."""
    if not isinstance(patch, dict):
        return patch
    result = dict(actual) if isinstance(actual, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def _actual(cluster: AnyKindCluster, definition: Object) -> Object | None:
    return cluster.get(cluster.path(definition["kind"], definition["apiVersion"], *_name(definition)))


def _remove(cluster: AnyKindCluster, definition: Object, check_mode: bool) -> Change | None:
    namespace, name = _name(definition)
    path = cluster.path(definition["kind"], definition["apiVersion"], namespace, name)
    actual = cluster.get(path)
    if actual is None:
        return None
    if not check_mode:
        cluster.request("delete", path)
    return change("remove", definition, actual, {})


def change(action: str, definition: Object, before: Object, after: Object) -> Change | None:
    """What became of the object, or None if nothing did."""
    shown = [cleaned(item) if item else {} for item in (before, after)]
    return None if shown[0] == shown[1] else {"action": action, "label": label(definition), "before": shown[0], "after": shown[1]}


def cleaned(item: Object) -> Object:
    """The object without status and what the server adds."""
    metadata = {key: value for key, value in item["metadata"].items() if key not in _NOISE}
    kept = {key: val for key, val in (metadata.get("annotations") or {}).items() if key not in _NOISY_ANNOTATIONS}
    metadata["annotations"] = kept
    return dict({key: value for key, value in item.items() if key != "status"}, metadata=metadata)


def diff(changes: list[Change]) -> list[dict[str, str]]:
    """The changes as Ansible's diff of YAML texts."""
    return [
        {
            "before_header": change["label"],
            "after_header": change["label"],
            "before": _text(change["before"]),
            "after": _text(change["after"]),
        }
        for change in changes
    ]


def _text(item: Object) -> str:
    return yaml.safe_dump(item, default_flow_style=False) if item else ""
