# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fault codes of chips that are not OK. A node on which all chips are OK pays nothing for it."""

from __future__ import annotations

import functools
import logging
import time
from typing import NamedTuple, Sequence

from ansible_collections.npuops.ascend.plugins.module_utils._chips import chip_faults, chip_health
from ansible_collections.npuops.ascend.plugins.module_utils._chips.npu_smi import NpuSmi

from .background import Background

log = logging.getLogger(__name__)

# Chips may be ill for months: then each is asked as often as the Node is written.
_REFRESH = 5 * 60.0  # seconds
_SLACK = 20  # seconds, in addition to the time limits of chip_faults


class _Known(NamedTuple):
    health: str
    when: float
    faults: dict


class Faults:
    """Asks ``npu_smi`` for the fault codes of a chip when its health changes, and every ``refresh`` seconds while it is ill."""

    def __init__(self, npu_smi: NpuSmi, refresh: float = _REFRESH) -> None:
        self._npu_smi = npu_smi
        self._refresh = refresh
        self._known: dict[str, _Known] = {}
        self._background = Background("faults")

    async def of(self, chips: Sequence[dict], again: bool = False) -> Sequence[dict]:
        """``chips`` (of chip_health.view), those that are not OK with their codes as far as they are known. Never raises.

        ``again``: also ask those again whose health is the same, because a chip that is ill may have another fault now.
        """
        ill = {chip_health.key(chip): chip for chip in chip_health.ill(chips)}
        self._known = {key: known for key, known in self._known.items() if key in ill and known.health == ill[key]["health"]}
        now = time.monotonic()
        due = [chip for key, chip in ill.items() if again or key not in self._known or now - self._known[key].when >= self._refresh]
        # No chip waits for ever behind those that use up the time.
        due.sort(key=lambda chip: self._known[chip_health.key(chip)].when if chip_health.key(chip) in self._known else 0.0)
        if due:
            await self._ask(due)
        return [dict(chip, **self._faults(chip)) for chip in chips]

    async def _ask(self, due: Sequence[dict]) -> None:
        try:
            work = functools.partial(chip_faults.ask_all, self._npu_smi, due)
            answers = await self._background.call(work, chip_faults.SECONDS + _SLACK)
        except Exception as exc:
            # The probe judges whether npu-smi responds, and whether the node can run it.
            log.info("the fault codes of the chips are not known: %s", exc or type(exc).__name__)
            return
        for number, faults in answers.items():
            chip = due[number]
            self._known[chip_health.key(chip)] = _Known(chip["health"], time.monotonic(), faults)

    def _faults(self, chip: dict) -> dict:
        known = self._known.get(chip_health.key(chip))
        return known.faults if known else {}
