# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the Node condition ChipsHealthy says: whether all chips of the node are there and serve."""

from __future__ import annotations

from typing import Optional, Sequence

from ansible_collections.npuops.ascend.plugins.module_utils._chips import chip_faults, chip_health

from .verdict import Verdict, verdict

TYPE = "npuops.ascend/ChipsHealthy"
NOT_LISTED = Verdict("Unknown", "ChipsNotListed", "npu-smi has not listed the chips yet: another process holds them")


def listed(chips: Sequence[dict], missing: Optional[str]) -> Verdict:
    """``chips``: of chip_health.view, as npu-smi listed them last; ``missing``: a phrase about chips that are gone."""
    # Those that do not serve come first, because the message is cut off at its limit.
    told = "; ".join(text for text in (missing, chip_health.told(sorted(chips, key=serves))) if text)
    if missing:
        return verdict("False", "ChipsMissing", told)
    if not chips:
        return NOT_LISTED
    number = sum(map(serves, chips))
    if number < len(chips):
        return verdict("False", "ChipsUnhealthy", "%d of %d chips serve; %s" % (number, len(chips), told))
    return verdict("True", "ChipsHealthy", "All %d chips of this node serve%s" % (len(chips), "; " + told if told else ""))


def unknown(driver: Verdict, missing: Optional[str] = None) -> Verdict:
    """``driver``: what DriverReady says of a driver that does not respond. Which chips are on the PCI bus shows without it."""
    if missing:
        return verdict("False", "ChipsMissing", missing)
    return verdict("Unknown", driver.reason, "The health of the chips is not known: %s" % driver.message)


def serves(chip: dict) -> bool:
    """Whether the device plugin offers the chip, unless the site has changed the levels of fault codes."""
    return chip_health.serves(chip) and not chip_faults.withdrawn(chip)
