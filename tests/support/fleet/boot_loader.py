# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host knows of its drivers, as npu-driver-select, npu_trial_boot and npu_validate have it: for hosts in memory."""

from __future__ import annotations

from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError


class BootLoader:
    """``broken``: releases that do not work; ``staged``: those for other kernels, which are taken in the place of one of their
    version; ``holders``: processes that have a chip open; ``wedged``: the chips do not answer; ``suspended``: the node agent has
    taken the driver out of service; ``incurable``: nor do they answer after a reboot; ``tries``: release -> how often it was tried.
    """

    def __init__(self, name: str, release: str) -> None:
        self.name = name
        self.set_up(release)
        self.kernel = self.next_kernel = "k"
        self.staged: set[str] = set()
        self.broken: set[str] = set()
        self.boot_id = "boot-%s-0" % name
        self.boots = 0
        self.tries: dict[str, int] = {}
        self.up, self.going_down = True, False
        self.holders: list[dict[str, Any]] = []
        self.wedged = self.suspended = self.incurable = False

    def set_up(self, release: str) -> None:
        """What install makes of a machine that is new."""
        self.driver: str = release
        self.good: str | None = release
        self.next: str | None = None
        self.previous: str | None = None
        self.trial: dict[str, Any] | None = None
        self.generation = 0

    @property
    def works(self) -> bool:
        return self.driver not in self.broken

    def choose(self) -> None:
        """A new boot, with the release that is to be tried, once, or else the good one."""
        self.boots += 1
        self.boot_id = "boot-%s-%d" % (self.name, self.boots)
        self.up, self.wedged, self.suspended = True, self.incurable, False
        self.kernel = self.next_kernel
        if self.next:
            self.driver, self.next = self._for_kernel(self.next), None
            self.trial = {"generation": self.generation, "release": self.driver, "boot_id": self.boot_id}
            self.tries[self.driver] = self.tries.get(self.driver, 0) + 1
        elif self.good:
            self.driver = self._for_kernel(self.good)

    def _for_kernel(self, release: str) -> str:
        fit = "%s-%s-" % (release.split("-")[0], self.kernel)
        return next((name for name in sorted(self.staged) if name.startswith(fit)), release)

    def answer(self, uptime: float) -> dict[str, Any]:
        """The view, with the host's ``uptime`` in seconds."""
        version = self.driver.split("-")[0]
        return {
            "boot_id": self.boot_id,
            "generation": self.generation,
            "driver": self.driver,
            "good": self.good,
            "next": self.next,
            "previous": self.previous,
            "trial": dict(self.trial) if self.trial else None,
            "holders": list(self.holders),
            "ready": {"version": version} if self.works and not self.suspended else None,
            "failed": None if self.works else {"reason": "insmod failed"},
            "loaded_version": version,
            "unit": "active" if self.works else "failed",
            "uptime": uptime,
            "kernel": self.kernel,
            "going_down": self.going_down,
        }

    def reboot(self, boot_id: str, generation: int, release: str | None, refuse_held: bool) -> dict[str, Any]:
        """``queued`` is called when the reboot takes effect."""
        self.fence(generation)
        already = boot_id != self.boot_id
        if already or self.going_down:
            return {"already": already, "queued": not already, "held": []}
        if refuse_held and self.holders:
            return {"already": False, "queued": False, "held": list(self.holders)}
        self.queued(boot_id, generation, release)
        self.generation, self.next, self.going_down = generation, release, True
        return {"already": False, "queued": True, "held": []}

    def queued(self, boot_id: str, generation: int, release: str | None) -> None:
        raise NotImplementedError

    def confirm(self, generation: int, release: str, boot_id: str) -> None:
        self.fence(generation)
        if boot_id != self.boot_id:
            raise NpuError("The host was rebooted since its driver was validated (boot ID %s)" % self.boot_id)
        if self.driver != release:
            raise NpuError("The driver of this boot is %s, not %s" % (self.driver, release))
        if self.good != release:
            self.previous, self.good, self.trial = self.good, release, None

    def withdraw(self, generation: int) -> None:
        self.fence(generation)
        self.generation, self.next = generation, None

    def validation(self, version: str | None) -> dict[str, Any]:
        wrong = self.wedged or not self.works or version not in (None, self.driver.split("-")[0])
        told = "npu_smi: failed" if self.wedged else "loaded_driver: %s" % self.driver
        return {"valid": not wrong, "checks": [], "msg": told if wrong else "all passed"}

    def fence(self, generation: int) -> None:
        if generation < self.generation:
            raise NpuError("Another run has taken this host over (generation %d)" % self.generation)
