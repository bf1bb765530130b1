# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Probe the chips: npu-smi must respond, and list as many chips as the PCI bus has."""

from __future__ import annotations

from typing import NamedTuple, Optional, Sequence

from ansible_collections.npuops.ascend.plugins.module_utils._chips import chip_health, chip_memory, pci
from ansible_collections.npuops.ascend.plugins.module_utils._chips.npu_smi import NpuSmi
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NoVerdict, NpuError

from .background import Background

OK, FAILED, OCCUPIED, UNDECIDED = "ok", "failed", "occupied", "undecided"

# The chip answered that another process holds it: neither a success nor a reason for a reboot, which would end that process.
_DEVICE_OCCUPIED = -8020
_LOCK_WAIT = 5  # seconds to wait for the npu-smi of a host module
_SLACK = 5  # seconds for starting, reading and killing, in addition to the time limits of NpuSmi
_LONGEST_OUTPUT = 1000


class Result(NamedTuple):
    """``outcome``: OK, FAILED, OCCUPIED, or UNDECIDED if a problem of the node itself prevented the probe.

    ``reason`` and ``output`` are empty after a success.
    """

    outcome: str
    reason: str = ""
    output: str = ""
    chips: Sequence[dict] = ()  # chip_health.view
    version: str = ""

    @property
    def listed(self) -> int:
        return len(self.chips)


class Expected(NamedTuple):
    """``number``: how many chips the node had, 0 if that is not recorded; ``missing``: the PCI addresses of those that are gone,
    and ``phrase`` about them, or None.
    """

    number: int
    missing: Sequence[str]
    phrase: Optional[str]


class Probe:
    """Runs npu-smi of the driver tree ``tree``, or one of ``fallbacks``, for at most ``timeout`` seconds.

    ``memory``: the file in which install records the chips of the host.
    """

    def __init__(self, tree: str, fallbacks: Sequence[str], pci_devices: str, lock: str, timeout: float, memory: str) -> None:
        self.npu_smi = NpuSmi(tree, timeout=timeout, lock=lock, lock_wait=_LOCK_WAIT, fallbacks=fallbacks)
        self._pci_devices = pci_devices
        self._memory = memory
        self._limit = timeout + _LOCK_WAIT + _SLACK
        self._background = Background("probe")

    def on_pci(self) -> int:
        """The number of chips on the PCI bus. Raises OSError if it cannot be determined at the moment."""
        return pci.chip_count(pci.chip_functions(self._pci_devices))

    def expected(self) -> Expected:
        """The chips that the node had when install looked last, compared with those on the PCI bus. Raises OSError."""
        remembered, present = chip_memory.read(self._memory), chip_memory.of(pci.chip_functions(self._pci_devices))
        addresses, count = chip_memory.gone(remembered, present), sum(remembered.values())
        return Expected(count, addresses, chip_memory.told(sum(present.values()), count, addresses, None))

    async def run(self) -> Result:
        """Probe once. Never raises, and never takes much longer than the time limit."""
        try:
            info = await self._background.call(self.npu_smi.info, self._limit)
            expected = self.on_pci()
        except NoVerdict as exc:
            return Result(UNDECIDED, exc.message)
        except NpuError as exc:
            details = exc.details.get("npu_smi") or {}
            outcome = OCCUPIED if details.get("dcmi_code") == _DEVICE_OCCUPIED else FAILED
            return Result(outcome, exc.message, str(details.get("output") or "")[:_LONGEST_OUTPUT])
        except TimeoutError:
            return Result(FAILED, "npu-smi could not be started or killed: it hangs in the kernel")
        except Exception as exc:
            # A shortage of files, threads or memory is a problem of the node that a reboot for the chips does not solve.
            return Result(UNDECIDED, "npu-smi cannot be run: %s" % (exc or type(exc).__name__))
        chips = chip_health.view(info["chips"])
        if len(chips) < expected:
            ids = ", ".join(chip["bus_id"] for chip in chips) or "none"
            return Result(FAILED, "npu-smi lists %d of %d chips" % (len(chips), expected), "listed: %s" % ids, chips)
        return Result(OK, chips=chips, version=info["version"])
