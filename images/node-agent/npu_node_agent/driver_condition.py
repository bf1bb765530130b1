# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the Node condition DriverReady says: whether the driver works."""

from __future__ import annotations

from typing import Optional, Sequence

from ansible_collections.npuops.ascend.plugins.module_utils._chips import chip_health

from .marker import CAUSE, REASON, SINCE
from .verdict import Verdict, verdict

TYPE = "npuops.ascend/DriverReady"
NO_DRIVER_FOR_KERNEL = "NoDriverForKernel"

NOT_LOADED = Verdict(
    "False",
    "DriverNotLoaded",
    "No NPU driver is loaded since the node booted; run npuops.ascend.install, or see journalctl -u npu-driver on the node",
)
LOADING = Verdict(
    "False",
    "DriverLoading",
    "npu-driver.service is loading the NPU driver, which takes 15 minutes at most; see journalctl -u npu-driver on the node",
)
IN_MAINTENANCE = Verdict(
    "False",
    "DriverInMaintenance",
    "A maintenance of this node has not validated the NPU driver yet; if none is under way, run the playbook that began it again",
)


def failed(marker: dict) -> Verdict:
    """``marker``: driver-failed."""
    reason = NO_DRIVER_FOR_KERNEL if marker.get(CAUSE) == NO_DRIVER_FOR_KERNEL else "DriverFailed"
    text = "The NPU driver does not work on this node: %s" % (marker.get(REASON) or "unknown reason")
    return verdict("False", reason, text)


def works(marker: dict, chips: Sequence[dict] = (), missing: Optional[str] = None) -> Verdict:
    """``marker``: driver-ready; ``chips``: of chip_health.view; ``missing``: a phrase about chips that are gone.

    The node serves as long as one chip does.
    """
    ill = chip_health.told(chips)
    told = "The NPU driver%s responds; %s" % (_version(marker), "; ".join(text for text in (missing, ill) if text))
    if chips and not any(map(chip_health.serves, chips)):
        return verdict("False", "AllChipsUnhealthy", told)
    if missing:
        return verdict("True", "ChipsMissing", told)
    if ill:
        return verdict("True", "ChipsUnhealthy", told)
    return Verdict("True", "DriverResponds", "The NPU driver%s lists all chips of this node" % _version(marker))


def wedged(marker: dict) -> Verdict:
    """``marker``: driver-suspended."""
    text = "The NPU driver%s stopped responding at %s; run npuops.ascend.heal, which reboots the node: %s" % (
        _version(marker),
        marker.get(SINCE) or "an unknown time",
        marker.get(REASON) or "unknown reason",
    )
    return verdict("False", "DriverWedged", text)


def _version(marker: dict) -> str:
    return " %s" % marker["version"] if marker.get("version") else ""
