# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is written on a parked workload, to restore it to exactly what it was."""

from __future__ import annotations

import json
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import annotations as data_annotations
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._park import volcano_jobs, workload_kinds
from ansible_collections.npuops.ascend.plugins.plugin_utils._park.kind_table import Path
from ansible_collections.npuops.ascend.plugins.plugin_utils._park.workload_kinds import Workload
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record

# A label to find them by, and an annotation with the memory.
MARK = workload_kinds.PARKED
# What restores a workload that is stopped by a Command, in the place of a patch.
BY_COMMAND = {"command": volcano_jobs.RESUME}


class Mark:
    """What the annotation says. ``restore``: the merge patch that makes the workload what it was, as a person would write
    it: {"spec": {"replicas": 3}}; null stands for a field that was not there. Or BY_COMMAND."""

    def __init__(self, run: str, since: str, uid: str, restore: Any) -> None:
        self.run, self.since, self.uid, self.restore = run, since, uid, restore
        self.path, self.was = _flat(restore)
        if restore == BY_COMMAND:
            self.was = False  # as of what was not suspended

    @classmethod
    def of(cls, workload: Workload, run: str, now: float) -> Mark:
        if workload.kind.by_command:
            restore: Any = BY_COMMAND
        elif workload.kind.field is None:
            raise AssertionError("or it could not be stopped")
        else:
            restore = nested(workload.kind.field, workload.value())
        return cls(run, maintenance_record.rfc3339(now), workload.item["metadata"]["uid"], restore)

    @classmethod
    def read(cls, workload: Workload) -> Mark | None:
        """The Mark of a Workload, None without one. Raises Unreadable."""
        if not workload.marked:
            return None
        try:
            entry = data_annotations.mark(kube_client.annotations(workload.item).get(MARK), workload.kind.off)
            mark = cls(entry["run"], entry["since"], entry["uid"], entry["restore"])
            if not mark.fits(workload):
                raise ValueError("restore")
        except (ValueError, KeyError, TypeError, AttributeError):
            raise Unreadable("its annotation %s cannot be read: it was edited%s" % (MARK, _repair(workload)))
        if mark.uid == workload.item["metadata"]["uid"]:
            return mark
        if workload.controlled:
            return None  # controllers copy labels and annotations to what they own
        raise Unreadable(
            "its annotation %s was made for another object of that name, which this one may be a copy of%s"
            % (MARK, _repair(workload))
        )

    def fits(self, workload: Workload) -> bool:
        """Whether it restores what may have been changed to stop the workload, and nothing else."""
        if workload.kind.by_command or self.restore == BY_COMMAND:
            return workload.kind.by_command and self.restore == BY_COMMAND
        # Not isinstance: a bool is also an int.
        if self.was is not None and type(self.was) is not type(workload.kind.off):
            return False
        # A patch of spec itself would replace all of it. Which field scales a custom resource, its definition may have changed.
        elsewhere = len(self.path) >= 2 and self.path[0] == "spec" and not workload.kind.built_in
        return elsewhere or self.path == workload.kind.field

    def text(self) -> str:
        entry = {"run": self.run, "since": self.since, "uid": self.uid, "restore": self.restore}
        return json.dumps(entry, separators=(",", ":"))


class Unreadable(NpuError):
    """Marks that do not tell what a workload was."""


def _repair(workload: Workload) -> str:
    """What a person does about marks that cannot be read."""
    where = " -n " + workload.namespace if workload.namespace else ""
    field = ".".join(workload.kind.field) if workload.kind.field else "phase" if workload.kind.by_command else "number of replicas"
    name = "%s %s" % (workload.kind.resource, workload.name)
    commands = ["kubectl%s %s %s %s-" % (where, verb, name, MARK) for verb in ("label", "annotate")]
    return ". Set its %s to the intended value, then: %s" % (field, "; ".join(commands))


def patch(restore: Any, metadata: dict[str, Any]) -> dict[str, Any]:
    """The merge patch ``restore``, which may be of an annotation, together with one of ``metadata``."""
    both = dict(metadata, annotations={**restore.get("metadata", {}).get("annotations", {}), **metadata["annotations"]})
    return {**restore, "metadata": both}


def nested(path: Path, value: Any) -> Any:
    """``value`` at ``path``, as a merge patch."""
    for key in reversed(path):
        value = {key: value}
    return value


def _flat(restore: Any) -> tuple[Path, Any]:
    """The one path in ``restore``, and the value at it. Raises ValueError unless there is exactly one."""
    path: Path = ()
    while isinstance(restore, dict):
        ((key, restore),) = restore.items()
        path += (key,)
    return path, restore
