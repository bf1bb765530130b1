# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a condition of the Node says."""

from __future__ import annotations

from typing import NamedTuple

_LONGEST_MESSAGE = 1024  # the limit of the admission policy


class Verdict(NamedTuple):
    """What a condition says. No ``reason`` begins with "Npu": by that, the controller knows the conditions of a maintenance."""

    status: str
    reason: str
    message: str


def verdict(status: str, reason: str, text: str) -> Verdict:
    """A Verdict whose message may have any length."""
    return Verdict(status, reason, text[:_LONGEST_MESSAGE])
