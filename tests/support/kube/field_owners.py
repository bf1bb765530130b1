# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""metadata.managedFields as the API server keeps them, for spec.unschedulable and annotations of a Node."""

from __future__ import annotations

import time


def note_cordon(before, after, manager, now=None):
    """``after`` is written by ``manager``: the manager that changes the value owns it, and an absent value has no owner."""
    had, has = (bool((item or {}).get("spec", {}).get("unschedulable")) for item in (before, after))
    if had == has:
        return
    entries = after["metadata"].setdefault("managedFields", [])
    entries[:] = [entry for entry in entries if "f:unschedulable" not in entry.get("fieldsV1", {}).get("f:spec", {})]
    if has:
        entries.append(cordon_of(manager, now))


def cordon_of(manager, now=None):
    """The entry of the manager that cordoned the Node."""
    return _entry(manager, {"f:spec": {"f:unschedulable": {}}}, now)


def note_annotation(before, after, name, manager, now=None):
    """The same for one annotation."""
    had, has = (((item or {}).get("metadata", {}).get("annotations") or {}).get(name) for item in (before, after))
    if had == has:
        return
    entries = after["metadata"].setdefault("managedFields", [])
    owned = annotation_of(manager, name)["fieldsV1"]
    entries[:] = [entry for entry in entries if entry.get("fieldsV1") != owned]
    if has is not None:
        entries.append(annotation_of(manager, name, now))


def annotation_of(manager, name, now=None):
    """The entry of the manager that set the annotation."""
    return _entry(manager, {"f:metadata": {"f:annotations": {"f:" + name: {}}}}, now)


def _entry(manager, fields, now):
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    return {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": when,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
