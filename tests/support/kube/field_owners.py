# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""metadata.managedFields as the API server keeps them, for spec.unschedulable of a Node."""

from __future__ import annotations

import time


def note_cordon(before, after, manager, now=None):
    """``after`` is written by ``manager``: who changes the value owns it, and nobody owns what is not there."""
    had, has = (bool((item or {}).get("spec", {}).get("unschedulable")) for item in (before, after))
    if had == has:
        return
    entries = after["metadata"].setdefault("managedFields", [])
    entries[:] = [entry for entry in entries if "f:unschedulable" not in entry.get("fieldsV1", {}).get("f:spec", {})]
    if has:
        entries.append(cordon_of(manager, now))


def cordon_of(manager, now=None):
    """The entry of whoever cordoned the Node."""
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    fields = {"f:spec": {"f:unschedulable": {}}}
    return {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": when,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
