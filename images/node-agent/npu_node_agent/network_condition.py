# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the Node condition NetworkReady says: whether chips report faults of their network ports.

Each chip reports its own port. Addresses, and whether hosts reach each other, npuops.ascend.validate compares.
"""

from __future__ import annotations

from typing import Sequence

from ansible_collections.npuops.ascend.plugins.module_utils._chips import chip_faults, chip_health

from .chips_condition import NOT_LISTED
from .verdict import Verdict, verdict

TYPE = "npuops.ascend/NetworkReady"


def listed(chips: Sequence[dict]) -> Verdict:
    """``chips``: of chip_health.view with their codes, as npu-smi listed them last."""
    if not chips:
        return NOT_LISTED
    faults = [(chip, chip_faults.of_network(chip)) for chip in chips]
    down = ["%s%s" % (chip_health.name(chip), chip_faults.told({"codes": codes})) for chip, codes in faults if codes]
    if down:
        told = "%d of %d chips report faults of their network ports; %s" % (len(down), len(chips), ", ".join(down))
        return verdict("False", "PortFaults", told)
    # Of many codes, only the worst ones are kept, and a port that is down is not among these.
    silent = [chip_health.name(chip) for chip in chip_health.ill(chips) if "codes" not in chip or chip.get("codes_left_out")]
    if silent:
        return verdict("Unknown", "FaultCodesNotKnown", "Not all faults of these chips are known: %s" % ", ".join(silent))
    return Verdict("True", "NoPortFaults", "No chip of this node reports a fault of its network port")


def unknown(driver: Verdict) -> Verdict:
    """``driver``: what DriverReady says of a driver that does not respond."""
    return verdict("Unknown", driver.reason, "The state of the network ports is not known: %s" % driver.message)
