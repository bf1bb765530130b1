# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The annotation of a DaemonSet that says how far a rollout of it has come, so that a run that was killed can be continued.

It is written together with the new template, in one request: a DaemonSet with a new template and without it cannot be.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import schema
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.schema import Misfit, fields, number, one_of, optional, table
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Object

ANNOTATION = "npuops.ascend/rollout"
FORWARD, BACK = "forward", "back"

_MOST = 128 * 1024
_word = schema.text(253, r"[A-Za-z0-9][A-Za-z0-9._-]*", "a name")
_told = schema.text(16 * 1024)
_form = fields(
    ["format", "run", "beat", "direction", "good", "template", "strategy", "nodes"],
    format=one_of(1),
    run=_word,
    beat=number(),
    direction=one_of(FORWARD, BACK),
    good=schema.text(63, r"[A-Za-z0-9]+", "the hash of a revision"),
    template=schema.text(64),
    strategy=fields(["type"], type=schema.text(64)),
    nodes=table(table(number(0, 10**6), 20), 10**4),
    failed=optional(schema.text(64)),
    failure=optional(_told),
)


@dataclasses.dataclass(frozen=True)
class Progress:
    """``run``: who does it; ``beat``: changes as long as it lives. ``good``: hash of the revision that works. ``template``:
    fingerprint of what the run has put into the DaemonSet; anything else there is another client's. ``strategy``: the
    updateStrategy before. ``nodes``: those whose pod is being replaced, with the chips that each offered before.

    On the way back: ``failed``: fingerprint of the template that did not work, ``failure``: why.
    """

    run: str
    good: str
    template: str
    strategy: Object
    direction: str = FORWARD
    beat: int = 0
    nodes: dict[str, dict[str, int]] = dataclasses.field(default_factory=dict)
    failed: str | None = None
    failure: str | None = None

    def but(self, **changes: Any) -> Progress:
        """The same, with these fields changed."""
        return dataclasses.replace(self, **changes)

    def text(self) -> str:
        return json.dumps(dict(dataclasses.asdict(self), format=1), sort_keys=True)


def progress_of(daemonset: Object) -> Progress | None:
    """What the annotation says; None without one. Raises NpuError if it is not in the form that this collection writes."""
    metadata = daemonset["metadata"]
    text = (metadata.get("annotations") or {}).get(ANNOTATION)
    if text is None:
        return None
    try:
        told = schema.load(text, _MOST)
        _form(told, "")
    except Misfit as exc:
        name = "-n %s daemonset %s" % (metadata["namespace"], metadata["name"])
        raise NpuError(
            "The annotation %s of DaemonSet %s/%s cannot be read: %s. Check which pods work: kubectl get pods -n %s -o wide. Then"
            " remove the annotation, kubectl annotate %s %s-, and run this again."
            % (ANNOTATION, metadata["namespace"], metadata["name"], exc, metadata["namespace"], name, ANNOTATION)
        )
    return Progress(**{field.name: told[field.name] for field in dataclasses.fields(Progress) if field.name in told})
