# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The words for what a plan says of a host."""

from __future__ import annotations

UP_TO_DATE = "up-to-date"
IN_FLIGHT = "in-flight"
ON_TRIAL = "on-trial"
READY = "ready"
AWAITING = "awaiting-approval"
SKIPPED = "skipped"
BLOCKED = "blocked"
UNREACHABLE = "unreachable"
FAILED = "failed"

# Those that something will be done with, in this order in the sentence for people.
DUE = (IN_FLIGHT, ON_TRIAL, READY, AWAITING)
VERDICTS = DUE + (BLOCKED, UNREACHABLE, FAILED, SKIPPED, UP_TO_DATE)
