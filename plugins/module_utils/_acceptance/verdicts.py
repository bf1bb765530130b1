# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdicts of an acceptance, of one check and of all of them, and how far it has come."""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import one_line

LEVELS = (1, 2, 3)
PASS, WARNING, UNKNOWN, FAIL = "PASS", "WARNING", "UNKNOWN", "FAIL"
# The best one first. What could not be found out weighs more than a warning: nothing vouches for the node.
VERDICTS = (PASS, WARNING, UNKNOWN, FAIL)
# PULLING: the image that has the diagnosis.
STATES = PULLING, RUNNING, DONE = "pulling", "running", "done"
# With these, a node is not accepted.
BAD = (FAIL, UNKNOWN)
_MOST = 2000  # characters


def finding(name, level, verdict, seen, advice=None):
    """The result of one check; ``level``: of the acceptance that has it; ``advice``: what to do, or None."""
    told = one_line(str(seen))[:_MOST]
    return {"name": name, "level": level, "verdict": verdict, "seen": told, "advice": None if verdict == PASS else advice}


def worst(findings):
    """The verdict of all ``findings`` together; UNKNOWN if there are none."""
    return max((found["verdict"] for found in findings), key=VERDICTS.index, default=UNKNOWN)
