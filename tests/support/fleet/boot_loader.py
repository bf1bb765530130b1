# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host knows of its drivers, as npu-driver-select, npu_trial_boot and npu_validate have it: for hosts in memory."""

from __future__ import annotations

from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._chips import chip_health
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError


class BootLoader:
    """``brings``: release -> the firmware with it; ``firmware``: what the chips run, ``flash``: what they will after the next boot;
    ``writes``: how often it was written; ``written``: the last write, as npu_firmware keeps it; ``ignores_flash``: the chips do not
    take it.
    ``tells_next_kernel``: the host knows which kernel it boots next.
    ``broken``: releases that do not work; ``staged``: those for other kernels, which are taken in the place of one of their
    version; ``holders``: processes that have a chip open; ``wedged``: the chips do not answer; ``suspended``: the node agent has
    taken the driver out of service; ``health``: that of each chip, as npu-smi tells it; ``worsens``: release -> the chips that are
    Critical with it; ``incurable``: nor do they answer after a reboot; ``tries``: release -> how often it was tried;
    ``load_seconds``: for how long after the boot the driver loads, and npu-smi fails.
    """

    def __init__(self, name: str, release: str) -> None:
        self.name = name
        self.set_up(release)
        self.kernel = self.next_kernel = "k"
        self.tells_next_kernel = False
        self.staged: set[str] = set()
        self.broken: set[str] = set()
        self.boot_id = "boot-%s-0" % name
        self.boots = 0
        self.load_seconds = 0.0
        self.tries: dict[str, int] = {}
        self.up, self.going_down = True, False
        self.holders: list[dict[str, Any]] = []
        self.wedged = self.suspended = self.incurable = False
        self.health = ["OK"] * 8
        self.worsens: dict[str, list[int]] = {}
        self.brings: dict[str, str] = {}
        self.firmware = self.flash = "7.8.0.6.201"
        self.writes, self.ignores_flash, self.flash_fails = 0, False, False
        self.written: dict[str, Any] | None = None

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

    @property
    def loads(self) -> bool:
        return self.boots > 0 and self.since_boot() < self.load_seconds

    def since_boot(self) -> float:
        """Seconds since the boot."""
        raise NotImplementedError

    def choose(self) -> None:
        """A new boot, with the release that is to be tried, once, or else the good one."""
        self.boots += 1
        self.boot_id = "boot-%s-%d" % (self.name, self.boots)
        self.up, self.wedged, self.suspended = True, self.incurable, False
        self.kernel = self.next_kernel
        if self.written and self.written["state"] == "writing":
            self.written.update(state="failed", reason="the host went down while the firmware was written")
        elif not self.ignores_flash:
            self.firmware = self.flash
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
            "ready": {"version": version} if self.works and not self.suspended and not self.loads else None,
            "failed": None if self.works or self.loads else {"reason": "insmod failed"},
            "loaded_version": version,
            "unit": "activating" if self.loads else "active" if self.works else "failed",
            "uptime": uptime,
            "kernel": self.kernel,
            "next_kernel": self.next_kernel if self.tells_next_kernel else None,
            "releases": sorted({self.driver, *self.staged}),
            "going_down": self.going_down,
            "firmware": dict(self.written) if self.written else None,
        }

    def reboot(self, boot_id: str, generation: int, release: str | None, refuse_held: bool) -> dict[str, Any]:
        """``queued`` is called when the reboot takes effect."""
        self.fence(generation)
        already = boot_id != self.boot_id
        if already or self.going_down:
            return {"already": already, "queued": not already, "held": []}
        if self.written and self.written["state"] == "writing":
            raise NpuError("The firmware is being written into the chips of this host")
        if refuse_held and self.holders:
            return {"already": False, "queued": False, "held": list(self.holders)}
        self.queued(boot_id, generation, release)
        self.generation, self.next, self.going_down = generation, release, True
        return {"already": False, "queued": True, "held": []}

    def queued(self, boot_id: str, generation: int, release: str | None) -> None:
        raise NotImplementedError

    def write_firmware(self, boot_id: str, generation: int, release: str, wanted: str, again: bool) -> dict[str, Any]:
        """``flash_begins`` is called when the write begins; ``flash_ends`` ends it."""
        self.fence(generation)
        answer: dict[str, Any] = {"state": None, "held": [], "msg": "nothing to write"}
        last, version = self.written or {}, self.brings[release]
        if version != wanted:
            raise NpuError("Release %s has the firmware %s, not %s" % (release, version, wanted))
        if boot_id != self.boot_id:
            return answer
        if last.get("boot_id") == boot_id and (last["state"] != "failed" or (self.generation == generation and not again)):
            return dict(answer, state=last["state"])
        if self.loads:
            raise NpuError("npu-smi info failed with status 187 (DCMI -8005, inner error)")
        if self.firmware == version:
            return answer
        if last.get("version") == version and not again:
            raise NpuError("The firmware %s is not written again: %s" % (version, last["reason"] or "the chips do not run it"))
        if self.going_down:
            raise NpuError("The firmware %s is not written, because this host is about to reboot" % version)
        if self.holders:
            return dict(answer, held=list(self.holders))
        self.generation = generation
        self.writes += 1
        self.written = {"state": "writing", "version": version, "release": release, "boot_id": boot_id, "reason": None}
        self.flash_begins()
        return dict(answer, state="writing")

    def flash_begins(self) -> None:
        raise NotImplementedError

    def flash_ends(self) -> None:
        if not self.up or self.written is None or (self.written["state"], self.written["boot_id"]) != ("writing", self.boot_id):
            return
        if self.flash_fails:
            self.written.update(state="failed", reason="the package failed")
        else:
            self.flash = self.written["version"]
            self.written["state"] = "written"

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
        wrong = self.wedged or self.loads or not self.works or version not in (None, self.driver.split("-")[0])
        told = "npu_smi: failed" if self.wedged else "loaded_driver: %s" % self.driver
        chips = [] if wrong else self.listed()
        if chips and not any(map(chip_health.serves, chips)):
            wrong, told = True, "health: %s" % chip_health.told(chips)
        found = {"valid": not wrong, "checks": [], "msg": told if wrong else "all passed"}
        return dict(found, firmware_version=self.firmware, chips=len(self.health), chip_health=chips or [])

    def listed(self) -> list[dict[str, Any]] | None:
        """The chips, as npu-smi lists them; None if it fails."""
        if self.wedged or self.loads or not self.works:
            return None
        sick = self.worsens.get(self.driver, [])
        return [
            {
                "npu": number,
                "chip": 0,
                "bus_id": "0000:%02x:00.0" % (number + 1),
                "health": "Critical" if number in sick else health,
            }
            for number, health in enumerate(self.health)
        ]

    def fence(self, generation: int) -> None:
        if generation < self.generation:
            raise NpuError("Another run has taken this host over (generation %d)" % self.generation)
