# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One look at the chips: does npu-smi answer, and does it list as many as the PCI bus shows?"""

from __future__ import annotations

from typing import NamedTuple, Sequence

from ansible_collections.npuops.ascend.plugins.module_utils._chips import pci
from ansible_collections.npuops.ascend.plugins.module_utils._chips.npu_smi import NpuSmi
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NoVerdict, NpuError

from .background import Background

OK, FAILED, OCCUPIED, UNDECIDED = "ok", "failed", "occupied", "undecided"

# The chip answered that somebody else holds it: neither a success nor a reason to reboot under that somebody.
_DEVICE_OCCUPIED = -8020
_LOCK_WAIT = 5  # seconds for an npu-smi of a host module to end
_SLACK = 5  # seconds for reading, killing and starting, beyond what NpuSmi itself allows
_LONGEST_OUTPUT = 1000


class Result(NamedTuple):
    """``outcome``: OK, FAILED, OCCUPIED, or UNDECIDED when the node itself is in trouble and the chips were not asked.

    ``reason`` and ``output`` are empty after a success.
    """

    outcome: str
    reason: str = ""
    output: str = ""
    listed: int = 0
    version: str = ""


class Probe:
    """npu-smi of the driver tree ``tree``, or at one of ``fallbacks``, with at most ``timeout`` seconds for its answer."""

    def __init__(self, tree: str, fallbacks: Sequence[str], pci_devices: str, lock: str, timeout: float) -> None:
        self._npu_smi = NpuSmi(tree, timeout=timeout, lock=lock, lock_wait=_LOCK_WAIT, fallbacks=fallbacks)
        self._pci_devices = pci_devices
        self._limit = timeout + _LOCK_WAIT + _SLACK
        self._background = Background("probe")

    def on_pci(self) -> int:
        """How many chips the PCI bus shows. Raises OSError when that cannot be told now."""
        return pci.chip_count(pci.chip_functions(self._pci_devices))

    async def run(self) -> Result:
        """Never raises, and never takes much longer than the time limit."""
        try:
            info = await self._background.call(self._npu_smi.info, self._limit)
            expected = self.on_pci()
        except NoVerdict as exc:
            return Result(UNDECIDED, exc.message)
        except NpuError as exc:
            details = exc.details.get("npu_smi") or {}
            outcome = OCCUPIED if details.get("dcmi_code") == _DEVICE_OCCUPIED else FAILED
            return Result(outcome, exc.message, str(details.get("output") or "")[:_LONGEST_OUTPUT])
        except TimeoutError:
            return Result(FAILED, "npu-smi could not even be started or ended: it hangs in the kernel")
        except Exception as exc:
            # No file, thread or memory to be had: that is this node's trouble, and a reboot of its chips no answer.
            return Result(UNDECIDED, "npu-smi cannot be run: %s" % (exc or type(exc).__name__))
        listed = len(info["chips"])
        if listed < expected:
            ids = ", ".join(chip["bus_id"] for chip in info["chips"]) or "none"
            return Result(FAILED, "npu-smi lists %d of %d chips" % (listed, expected), "listed: %s" % ids, listed)
        return Result(OK, listed=listed, version=info["version"])
