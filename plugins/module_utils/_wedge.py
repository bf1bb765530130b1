# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the node agent says of a driver that no longer answers: the annotation npuops.ascend/wedged.

Runs on the controller. Private to npuops.ascend: no API, may change without notice.
"""

from __future__ import annotations

import dataclasses

from ansible_collections.npuops.ascend.plugins.module_utils import _cluster, _maintenance, _record
from ansible_collections.npuops.ascend.plugins.module_utils._errors import one_line

# Characters of a reason that are shown.
_REASON = 1000


@dataclasses.dataclass(frozen=True)
class Wedge:
    """``since``: as RFC 3339, None when it does not say; ``boot_id``: of the boot it was seen in, None likewise."""

    since: str | None
    reason: str
    boot_id: str | None = None

    @property
    def seconds(self):
        """``since`` in seconds since 1970, or None."""
        return _maintenance.seconds_of(self.since)

    @property
    def text(self):
        return "since %s: %s" % (self.since, self.reason) if self.since else self.reason

    def is_of(self, boot_id):
        """Whether it was seen in that boot, as far as it says. A reboot may have cured it; the agent will tell."""
        return self.boot_id in (None, boot_id)


def of(node):
    """The Wedge of a Node, or None. One that somebody made by hand counts as well."""
    text = _cluster.annotations(node).get(_cluster.ANNOTATION_WEDGED)
    if text is None:
        return None
    try:
        told = _record.wedge(text)
        reason, since, boot_id = told["reason"], told["since"], told.get("boot_id")
    except _record.Misfit:
        reason, since, boot_id = text, None, None
    reason = one_line(reason)
    reason = reason if len(reason) <= _REASON else reason[:_REASON] + "..."
    if _maintenance.seconds_of(since) is None:
        since = _maintenance.annotated_at(node, _cluster.ANNOTATION_WEDGED)[1]
    return Wedge(since, reason, boot_id)
