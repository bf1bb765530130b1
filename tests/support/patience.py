# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long tests wait at most. They wait for conditions, so that none of these is ever waited for where all is well.

No test may depend on how fast the machine is: these end a test that would not end, on a machine that is ten times slower, too.
"""

from __future__ import annotations

# Seconds in which one thing has to happen: a pod starts, a host reboots, the node agent tells of a wedge.
PATIENCE = 600
# Seconds for one whole run of a playbook.
RUN_PATIENCE = 3600
