# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kinds of workloads that users declare, ``npu_upgrade_workload_kinds``: the setting, and the memory of those that are parked.

Who restores may be another run, with other settings. So the declarations of what is parked stand on the Lease of all runs, from
before the first of them is stopped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import schema
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster
from ansible_collections.npuops.ascend.plugins.plugin_utils._park.kind_table import Key, Stop
from ansible_collections.npuops.ascend.plugins.plugin_utils._park.workload_kinds import Workload
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.slots import LEASE

VARIABLE = "npu_upgrade_workload_kinds"
_ANNOTATION = "npuops.ascend/parked-kinds"
_LEASE = "/apis/coordination.k8s.io/v1/namespaces/%%s/leases/%s" % LEASE

_MOST = 50
_MOST_TEXT = 64 * 1024
_BUILT_IN = ("", "apps", "batch")
_GROUP = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+")
_KIND = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")
_FIELD = re.compile(r"spec(\.[A-Za-z][A-Za-z0-9_-]{0,62}){1,6}")
_ANNOTATION_KEY = re.compile(
    r"(?=.{1,317}\Z)([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)  # fmt: skip
_VALUE_LENGTH = 256
_STRING = "a string of 1 to %d characters" % _VALUE_LENGTH


def parse(entries: Sequence[Mapping[str, Any]]) -> dict[Key, Stop]:
    """The declarations as the setting gives them: group, kind, field or annotation, value. Raises NpuError."""
    if len(entries) > _MOST:
        raise NpuError("%s has %d entries, which is more than %d" % (VARIABLE, len(entries), _MOST))
    declared: dict[Key, Stop] = {}
    for number, entry in enumerate(entries):
        where = "%s[%d]" % (VARIABLE, number)
        group = _text(entry, "group", where, _GROUP, "the API group of a custom resource, such as example.com")
        kind = _text(entry, "kind", where, _KIND, "the kind of a custom resource, such as TrainingJob")
        key = (group, kind)
        if key in declared:
            raise NpuError("%s: %s.%s is listed twice" % (where, kind, group))
        declared[key] = _stop(entry, where)
    return declared


def _stop(entry: Mapping[str, Any], where: str) -> Stop:
    if bool(entry.get("field")) == bool(entry.get("annotation")):
        raise NpuError("%s must have either field or annotation" % where)
    value: Any = entry.get("value")
    if entry.get("annotation"):
        key = _text(entry, "annotation", where, _ANNOTATION_KEY, "the key of an annotation, such as example.com/stop")
        if key.startswith("npuops.ascend/"):
            raise NpuError("%s.annotation is %r, which belongs to npuops.ascend" % (where, key))
        # YAML's true is what people mean by "true".
        text = str(value).lower() if isinstance(value, bool) else value
        if not _is_short(text):
            raise NpuError("%s.value is %r; of an annotation it must be %s" % (where, value, _STRING))
        return Stop(("metadata", "annotations", key), text)
    field = _text(entry, "field", where, _FIELD, "the path of a field in spec, such as spec.suspend")
    if not (isinstance(value, bool) or _is_short(value) or (isinstance(value, int) and 0 <= value < 2**31)):
        raise NpuError("%s.value is %r; it must be true, false, a whole number or %s" % (where, value, _STRING))
    return Stop(tuple(field.split(".")), value)


def _is_short(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _VALUE_LENGTH


def _text(entry: Mapping[str, Any], name: str, where: str, pattern: re.Pattern[str], what: str) -> str:
    value = entry.get(name)
    if name == "group" and value in _BUILT_IN:
        raise NpuError("%s.group is %r: how Kubernetes' own kinds are stopped cannot be changed" % (where, value))
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise NpuError("%s.%s is %r; it must be %s" % (where, name, value, what))
    return value


def _entry(key: Key, stop: Stop) -> dict[str, Any]:
    path = stop.field or ()
    where = {"annotation": path[-1]} if path[:1] == ("metadata",) else {"field": ".".join(path)}
    return {"group": key[0], "kind": key[1], **where, "value": stop.off}


def remember(cluster: AnyCluster, namespace: str, declared: Mapping[Key, Stop], workloads: Iterable[Workload]) -> None:
    """Add to the Lease, if there is one, those of ``declared`` by which the ``workloads`` are to be parked.

    Raises NpuError if one of them is parked by another declaration: it could not be restored any more.
    """
    kinds = [((workload.kind.group, workload.kind.name), workload) for workload in workloads]
    wanted = {key: declared[key] for key, _workload in kinds if key in declared}
    if not wanted:
        return
    for _attempt in range(10):
        lease = cluster.get(_LEASE % namespace)
        if lease is None:
            return  # without our namespace there is no other run
        known = _read(kube_client.annotations(lease).get(_ANNOTATION))
        for key, workload in kinds:
            if workload.marked and key in known and known[key] != wanted.get(key, known[key]):
                raise NpuError(
                    "No workload was parked: %s is parked by another annotation or field than %s names now. Restore it first:"
                    " run npuops.ascend.upgrade with npu_upgrade_workloads: leave" % (workload.label, VARIABLE)
                )
        if known.items() >= wanted.items():
            return
        both = {**known, **wanted}
        if len(both) > _MOST or len(_text_of(both)) > _MOST_TEXT:
            raise NpuError(
                "No workload was parked: with the kinds that earlier runs have parked and those of %s, the Lease %s/%s would have"
                " more than a run can read (%d kinds, %d characters). Restore what is parked first: run npuops.ascend.upgrade with"
                " npu_upgrade_workloads: leave" % (VARIABLE, namespace, LEASE, _MOST, _MOST_TEXT)
            )
        try:
            _write(cluster, namespace, lease["metadata"]["resourceVersion"], both)
            return
        except kube_client.Conflict:
            continue  # other runs also write to it
    raise NpuError("The Lease %s/%s is changed all the time by others; run it again" % (namespace, LEASE))


def remembered(cluster: AnyCluster, namespace: str) -> dict[Key, Stop]:
    """The declarations of what may be parked. Raises NpuError when they cannot be read."""
    lease = cluster.get(_LEASE % namespace)
    return _read(kube_client.annotations(lease).get(_ANNOTATION)) if lease is not None else {}


def forget(cluster: AnyCluster, namespace: str) -> None:
    """When nothing is parked any more."""
    lease = cluster.get(_LEASE % namespace)
    if lease is not None and _ANNOTATION in kube_client.annotations(lease):
        try:
            _write(cluster, namespace, lease["metadata"]["resourceVersion"], {})
        except kube_client.Conflict:
            pass  # to read what is not there costs a request, no more


def _write(cluster: AnyCluster, namespace: str, version: str, declared: Mapping[Key, Stop]) -> None:
    text = _text_of(declared) if declared else None
    cluster.merge_patch(_LEASE % namespace, {"metadata": {"resourceVersion": version, "annotations": {_ANNOTATION: text}}})


def _text_of(declared: Mapping[Key, Stop]) -> str:
    return json.dumps([_entry(key, declared[key]) for key in sorted(declared)], separators=(",", ":"))


def _read(text: str | None) -> dict[Key, Stop]:
    if text is None:
        return {}
    try:
        entries = schema.load(text, _MOST_TEXT)
        schema.listing(schema.table(schema.anything), _MOST)(entries, "it")
        return parse(entries)
    except (NpuError, schema.Misfit) as exc:
        raise NpuError(
            "the annotation %s of the Lease %s cannot be read: it was edited (%s). Restore what is parked manually,"
            " and remove the annotation" % (_ANNOTATION, LEASE, exc)
        )
