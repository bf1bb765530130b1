# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines that are seen when they are said, also where the output is no terminal: a file, a pipe, the journal.

Ansible writes to a stdout that Python buffers there, and leaves it to the end of the run to empty the buffer. What an
action says in its hour would be read after it.
"""

from __future__ import annotations

import sys


def show_lines_at_once() -> None:
    """To be called while an action plugin is loaded: the process that writes loads it too, before it starts workers."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(line_buffering=True)
