# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run that is interrupted leaves on nodes, told when it ends.

Ctrl-C ends the process that works on a node at once, before it could say anything, and the main process knows of tasks, not
of nodes. So the workers note in a file that both have open which node is in which step, and the main process reads it when
it ends.
"""

from __future__ import annotations

import atexit
import os
import sys
from typing import Self

from ansible_collections.npuops.ascend.plugins.plugin_utils._action.shared_lines import SharedLines
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import this_run


class Notes:
    """To be made in the process that starts the workers."""

    def __init__(self) -> None:
        self._notes = SharedLines()
        self._owner = os.getpid()

    def begin(self, node: str, step: str, playbook: str) -> None:
        """The node is in the middle of its maintenance; ``playbook`` goes on with it."""
        self._notes.add(node, {"step": step, "playbook": playbook})

    def end(self, node: str) -> None:
        """Nothing is left to be told of the node here: its outcome tells."""
        self._notes.add(node, None)

    def lines(self) -> list[str]:
        """What to print about the nodes for which ``end`` was not called; [] in a worker."""
        if os.getpid() != self._owner:
            return []
        left: dict[str, dict[str, str]] = {}
        for node, state in self._notes.read():
            left.pop(node, None)
            if state:
                left[node] = state
        told = ["%s was interrupted in the step %s." % (node, state["step"]) for node, state in left.items()]
        playbooks = sorted({state["playbook"] for state in left.values()})
        if told:
            told.append(
                "What is cordoned stays cordoned, and nothing is lost. To continue it: %s. To abandon it: %s. See docs/upgrade.md,"
                ' "Release a node".'
                % (
                    this_run.in_order(this_run.again(name) for name in playbooks),
                    this_run.again("release", limit=",".join(map(this_run.host_of, left))),
                )
            )
        return told

    def close(self) -> None:
        self._notes.close()

    def tell_at_exit(self) -> Self:
        atexit.register(self._tell)
        return self

    def _tell(self) -> None:
        lines = self.lines()
        self.close()
        if lines:
            print("\n" + "\n".join(lines), file=sys.stderr, flush=True)
