# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the verdict on every node of a plan goes by: what was asked for, what the cluster says, and whom else to ask."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.driver_contents import DriverContents
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.rollback import Wave
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.rollout_settings import Lookups, RolloutSettings
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.snapshot import FleetSnapshot
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight.driver_image import Answers


@dataclasses.dataclass(frozen=True)
class PlanContext:
    settings: RolloutSettings
    lookups: Lookups
    snapshot: FleetSnapshot
    contents: DriverContents  # of the driver images and packages
    holders: Collection[str]  # the names of the nodes that have a slot
    answers: Answers | None  # of the registry; None for a rollback, which only takes what is staged
    wave: Wave | None  # what the last upgrade brought, for a rollback
