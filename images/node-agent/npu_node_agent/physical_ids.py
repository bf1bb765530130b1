# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The physical IDs of chips, N of /dev/davinciN, by which DRA drivers know them."""

from __future__ import annotations

import time
from typing import Collection, Dict, Iterable, Tuple

from ansible_collections.npuops.ascend.plugins.module_utils._chips.npu_smi import NpuSmi
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NoVerdict, NpuError

# NPU ID and chip ID, by which npu-smi knows a chip. The NPU ID is the number of a slot on most boards (dcmi_init_for_server.c of
# hicann/driver), and need not be the physical ID.
Place = Tuple[int, int]

_SECONDS = 20.0  # for all calls of npu-smi
_PAUSE = 0.2  # seconds between two of them: a probe that waits for npu-smi looks ten times a second


class PhysicalIds:
    """Asks ``npu_smi`` for them, and remembers the answers until ``forget``: a chip that goes may change the numbers of others."""

    def __init__(self, npu_smi: NpuSmi) -> None:
        self._npu_smi = npu_smi
        self._places: Dict[int, Place] = {}

    def forget(self) -> None:
        self._places = {}

    @property
    def known(self) -> Collection[int]:
        """The physical IDs whose places are known."""
        return self._places.keys()

    def of(self, places: Collection[Place], candidates: Iterable[int]) -> Dict[Place, int]:
        """Those of ``places``, as far as they are among ``candidates`` and npu-smi tells; blocking."""
        known, deadline = self._places, time.monotonic() + _SECONDS
        cards = {npu for npu, _chip in places}
        for number in sorted(candidates, key=lambda number: number not in cards):
            if number in known:
                continue
            if time.monotonic() >= deadline or set(places) <= set(known.values()):
                break
            try:
                known[number] = self._npu_smi.place(number)
            except NoVerdict:
                break
            except NpuError as exc:
                if exc.details.get("npu_smi", {"status": 0})["status"] is None:
                    break  # it hangs
            time.sleep(_PAUSE)
        return {place: number for number, place in known.items() if place in places}
