# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything that preflight found wrong, as readable text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ansible_collections.npuops.ascend.plugins.plugin_utils._data import this_run
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight.checked_host import CheckedHost
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.verdict import UNREACHABLE


def problems(verdicts: Iterable[CheckedHost]) -> list[str]:
    """A line for each reason, with the names of the hosts that share it."""
    shared: dict[str, list[str]] = {}
    for verdict in verdicts:
        for reason in verdict.reasons:
            shared.setdefault(reason, []).append(verdict.name)
    return ["%s: %s" % (", ".join(names), reason) for reason, names in shared.items()]


def report(verdicts: Sequence[CheckedHost], cluster_reasons: Sequence[str]) -> str | None:
    """Everything wrong at once as readable text, or None when nothing is.

    Reasons that several hosts share are told once, with their names.
    """
    found = problems(verdicts)
    if not found and not cluster_reasons:
        return None
    stopped = [verdict.name for verdict in verdicts if verdict.reasons]
    lines = []
    if stopped:
        lines.append("Nothing was changed: %d of %d hosts cannot be installed as they are." % (len(stopped), len(verdicts)))
    else:
        lines.append("Nothing was changed: install lacks what it needs in the cluster.")
    lines.extend("  cluster: %s" % reason for reason in cluster_reasons)
    lines.extend("  " + problem for problem in found)
    if any(verdict.status == UNREACHABLE for verdict in verdicts):
        lines.append("To continue without a host, exclude it: %s." % this_run.limit_without("<host>"))
    return "\n".join(lines)
