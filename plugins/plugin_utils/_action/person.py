# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who gives an order, for all who look at it later."""

from __future__ import annotations

import getpass
import os
import socket
from typing import Any


def person(job: dict[str, Any] | None) -> str:
    """The user that AWX has launched this for, or who has started it. ``job``: of ``_awx.job.job_of``."""
    if job and job.get("user"):
        return "%s (job %s)" % (job["user"], job.get("id"))
    try:
        return "%s@%s" % (getpass.getuser(), socket.gethostname())
    except (OSError, KeyError):  # a user that has no name
        return "user ID %d@%s" % (os.getuid(), socket.gethostname())
