# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far a run is with all of its nodes.

Each node has a process of its own, and the main process knows of tasks, not of nodes. So the workers write how each maintenance
ended into a file that all of them have open.
"""

from __future__ import annotations

import collections
import time
from collections.abc import Callable

from ansible_collections.npuops.ascend.plugins.plugin_utils._action.shared_lines import SharedLines
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.duration import duration
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.outcome import DEFERRED, DONE, HALTED, UP_TO_DATE, WITHDRAWN

_WELL = (DONE, UP_TO_DATE, WITHDRAWN)


class Progress:
    """To be made in the process that starts the workers.

    :param monotonic: seconds of a clock that all of them share
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._lines = SharedLines()
        self._monotonic = monotonic

    def close(self) -> None:
        self._lines.close()

    def begin(self) -> None:
        """The maintenance of a node begins, or a hook of the user has ended."""
        self._lines.add("", "", self._monotonic())

    def end(self, node: str, outcome: str) -> None:
        """The maintenance of the node ended, or was deferred; ``outcome``: one of _record.outcome."""
        self._lines.add(node, outcome, self._monotonic())

    def text(self, due: int) -> str:
        """Such as ``3 of 24 nodes done, 1 deferred, about 2 h left``; empty for a single node.

        :param due: nodes that the run is to maintain
        """
        if due < 2:
            return ""
        first, ended = self._read()
        counts = collections.Counter(ended.values())
        done = sum(counts.pop(outcome, 0) for outcome in _WELL)
        words = ["%d of %d nodes done" % (done, due)]
        words += ["%d %s" % (count, outcome) for outcome, count in sorted(counts.items())]
        # A node that was deferred is tried again.
        final = len(ended) - counts[DEFERRED]
        left = due - final
        # Where none is done, or no other one begins, nothing says how long it takes.
        if left > 0 and done and not counts[HALTED] and first is not None:
            words.append("about %s left" % duration((self._monotonic() - first) / final * left))
        return ", ".join(words)

    def _read(self) -> tuple[float | None, dict[str, str]]:
        """(when the first maintenance began, {node: its last outcome})."""
        entries = self._lines.read()
        return entries[0][2] if entries else None, {node: outcome for node, outcome, _when in entries if node}
