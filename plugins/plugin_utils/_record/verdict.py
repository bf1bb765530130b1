# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The words for what plans say of a host: that of a rollout, that of a recovery, and preflight."""

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
# Of a recovery only.
RECOVER = "recover"
GIVE_BACK = "give-back"
IN_UPGRADE = "in-upgrade"
NOT_READY = "not-ready"
NO_HOST = "no-host"

# Of a rollout, those that something will be done with, in this order in the sentence for people.
DUE = (IN_FLIGHT, ON_TRIAL, READY, AWAITING)
VERDICTS = DUE + (BLOCKED, UNREACHABLE, FAILED, SKIPPED, UP_TO_DATE)
