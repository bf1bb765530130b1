# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `make test` and `make test-all` do.

It runs before .venv exists, so it needs nothing but the standard library.
"""

from __future__ import annotations

import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
# The lab's own runner is what runs these steps, too.
sys.path.insert(0, str(CHECKOUT / "lab"))
