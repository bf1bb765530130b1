# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the node agent says of a driver that no longer answers: the annotation npuops.ascend/wedged."""

from __future__ import annotations

import dataclasses

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import one_line
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import annotations as data_annotations
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record

# Characters of a reason that are shown.
_REASON = 1000


@dataclasses.dataclass(frozen=True)
class Wedge:
    """``since``: as RFC 3339 by the clock of the host, or of the API server if a person wrote it, None when neither is known;
    ``began``: the same if the host says so, None otherwise; ``boot_id``: of the boot it was seen in, None
    likewise; ``told_at``: seconds since 1970 when the annotation was set, by the clock of the API server, None if managedFields do
    not tell."""

    since: str | None
    reason: str
    boot_id: str | None = None
    told_at: int | None = None
    began: str | None = None

    @property
    def text(self) -> str:
        return "since %s: %s" % (self.since, self.reason) if self.since else self.reason

    def is_of(self, boot_id: str | None) -> bool:
        """Whether it was seen in that boot, as far as it says. A reboot may have cured it; the agent will tell."""
        return self.boot_id in (None, boot_id)


def of(node: Object) -> Wedge | None:
    """The Wedge of a Node, or None. One that a user wrote by hand also counts."""
    text = kube_client.annotations(node).get(kube_client.ANNOTATION_WEDGED)
    if text is None:
        return None
    try:
        told = data_annotations.wedge(text)
        reason, since, boot_id = told["reason"], told["since"], told.get("boot_id")
    except data_annotations.Misfit:
        reason, since, boot_id = text, None, None
    reason = one_line(reason)
    reason = reason if len(reason) <= _REASON else reason[:_REASON] + "..."
    told_at = maintenance_record.annotated_at(node, kube_client.ANNOTATION_WEDGED)[1]
    began = since if maintenance_record.seconds_of(since) is not None else None
    return Wedge(began or told_at, reason, boot_id, maintenance_record.seconds_of(told_at), began)
