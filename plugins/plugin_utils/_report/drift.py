# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the fleet differs from what it should be, for unattended runs: what is wrong, where, and what to do."""

from __future__ import annotations

from collections.abc import Sequence

from ansible_collections.npuops.ascend.plugins.plugin_utils._record import halt as maintenance_halt
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.halt import Halt
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import status as report_status
from ansible_collections.npuops.ascend.plugins.plugin_utils._report.node_state import Row


def lines(rows: Sequence[Row], storm: str | None, halted: Halt | None, halt_unknown: str | None) -> list[str]:
    """A summary, then a line for each node that is not healthy, and for what concerns all of them; [] if nothing is wrong.

    ``halt_unknown``: why it is not known whether rollouts are halted. Nodes that are not in the inventory do not count.
    """
    hosts = [row for row in rows if row["host"]]
    wrong = [row for row in hosts if not report_status.healthy(row)]
    problems = ["%d of %d hosts %s not healthy" % (len(wrong), len(hosts), "is" if len(wrong) == 1 else "are")] if wrong else []
    told = [report_status.line(row) for row in wrong]
    if halted:
        problems.append("rollouts are %s" % maintenance_halt.word(halted))
        told.append(maintenance_halt.text(halted))
    if halt_unknown:
        problems.append("whether rollouts are halted is unknown")
        told.append(halt_unknown)
    if storm:
        problems.append("there is a storm")
        told.append("STORM: %s" % storm)
    if not problems:
        return []
    summary = "; ".join(problems)
    return ["%s. npuops.ascend.status shows what to do about each." % (summary[0].upper() + summary[1:]), *told]
