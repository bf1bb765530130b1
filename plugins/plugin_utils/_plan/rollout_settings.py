# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run was asked for, and whom its plan asks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import Brings, Facts
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain.drain_policy import DrainPolicy
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.window import Window
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods.blocker import Blocker
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods.pod_view import Pod
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight import driver_package, firmware_package
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.min_available import MinAvailable

REASONS = (maintenance_record.UPGRADE_REASON, maintenance_record.ROLLBACK_REASON)


@dataclasses.dataclass(frozen=True)
class RolloutSettings:
    """What the run was asked for, as the variables npu_upgrade_* say it."""

    policy: DrainPolicy
    reason: str
    auto: bool
    approval_max_age: int  # seconds; 0 = without limit
    max_parallel: int | str  # 10%: of all NPU nodes of the cluster, see _record.max_parallel
    retry: bool
    park: bool  # whether npu_upgrade_workloads says so
    canary: bool
    clear_halt: bool
    allow_older: bool
    node_soak: int = 0
    min_available: MinAvailable = MinAvailable()
    domain: Mapping[str, Any] = dataclasses.field(default_factory=lambda: {"label": "", "max_parallel": 1, "together": False})
    window: Window = Window()

    @classmethod
    def of(cls, settings: Mapping[str, Any], reason: str = REASONS[0]) -> RolloutSettings:
        """From the complete settings of the role npu_upgrade."""
        return cls(
            policy=DrainPolicy.of(settings["wait_for_jobs"], settings["pod_deletion"], settings["drain"]),
            reason=reason,
            park=settings["workloads"] == "park",
            window=Window.of(settings["window"]),
            min_available=MinAvailable(settings["min_available"]),
            **{
                name: settings[name]
                for name in (
                    "auto",
                    "approval_max_age",
                    "max_parallel",
                    "retry",
                    "canary",
                    "clear_halt",
                    "allow_older",
                    "node_soak",
                    "domain",
                )
            },
        )


@dataclasses.dataclass(frozen=True)
class Lookups:
    """What a plan asks while it is made.

    ``resolve(reference, config, machine)`` -> digest; ``size(reference, digest, config, machine)`` -> bytes;
    ``support(version, facts, node_info, firmware, declared)`` -> (reasons, notes); ``confirm(pods)`` -> Blockers;
    ``firmware(reference, digest, config, machine)`` -> what the image brings, or None;
    ``firmware_package(source, config)`` -> what is in the firmware package; ``now``: seconds since 1970;
    ``own_boot_id``: of the controller; ``own_pod``: its pod's name or None;
    ``white_list``: None where the cluster has none, else ``white_list(image)`` -> why it may not run, or None.
    """

    resolve: Callable[[str, dict[str, Any], str | None], str]
    size: Callable[[str, str, dict[str, Any], str | None], int]
    support: Callable[[str, Facts, Object, str | None, list[str] | None], tuple[list[str], list[str]]]
    confirm: Callable[[Sequence[Pod]], list[Blocker]]
    now: float
    own_boot_id: str | None = None
    own_pod: str | None = None
    white_list: Callable[[str], str | None] | None = None
    firmware: Callable[[str, str, dict[str, Any], str | None], Brings | None] | None = None
    package: driver_package.Look = driver_package.look
    firmware_package: firmware_package.Look = firmware_package.look
