# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far a run is with all of its nodes.

Each node has a process of its own, and the main process knows of tasks, not of nodes. So the workers write how each maintenance
ended into a file that all of them have open.
"""

from __future__ import annotations

import collections
import json
import os
import tempfile
import time
from collections.abc import Callable

from ansible_collections.npuops.ascend.plugins.plugin_utils._record.outcome import DEFERRED, DONE, UP_TO_DATE, WITHDRAWN

_WELL = (DONE, UP_TO_DATE, WITHDRAWN)


class Progress:
    """To be made in the process that starts the workers; they inherit the file.

    :param monotonic: seconds of a clock that all of them share
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._file = tempfile.TemporaryFile("a+b", buffering=0)
        self._monotonic = monotonic

    def close(self) -> None:
        self._file.close()

    def begin(self) -> None:
        """The maintenance of a node begins, or a hook of the user has ended."""
        self._write("", "")

    def end(self, node: str, outcome: str) -> None:
        """The maintenance of the node ended, or was deferred; ``outcome``: one of _record.outcome."""
        self._write(node, outcome)

    def _write(self, node: str, outcome: str) -> None:
        self._file.write(json.dumps([node, outcome, self._monotonic()]).encode() + b"\n")

    def text(self, due: int) -> str:
        """Such as ``3 of 24 nodes done, 1 deferred, about 2 h left``; empty for a single node.

        :param due: nodes that the run is to maintain
        """
        if due < 2:
            return ""
        first, ended = self._read()
        counts = collections.Counter(ended.values())
        words = ["%d of %d nodes done" % (sum(counts.pop(outcome, 0) for outcome in _WELL), due)]
        words += ["%d %s" % (count, outcome) for outcome, count in sorted(counts.items())]
        # A node that was deferred is tried again.
        final = len(ended) - counts[DEFERRED]
        left = due - final
        if left > 0 and final > 0 and first is not None:
            words.append("about %s left" % _duration((self._monotonic() - first) / final * left))
        return ", ".join(words)

    def _read(self) -> tuple[float | None, dict[str, str]]:
        """(when the first maintenance began, {node: its last outcome})."""
        # The workers share the position in the file.
        content = os.pread(self._file.fileno(), os.fstat(self._file.fileno()).st_size, 0)
        first, ended = None, {}
        for line in content.splitlines():
            node, outcome, when = json.loads(line)
            first = when if first is None else first
            if node:
                ended[node] = outcome
        return first, ended


def _duration(seconds: float) -> str:
    minutes = max(1, round(seconds / 60))
    hours, rest = divmod(minutes, 60)
    if not hours:
        return "%d min" % minutes
    # Minutes beside many hours would only look exact.
    return "%d h" % round(minutes / 60) if hours >= 5 or not rest else "%d h %d min" % (hours, rest)
