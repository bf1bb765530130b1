# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The labs that the tests run on. One that was running before keeps running."""

from __future__ import annotations

from pathlib import Path

from . import plan
from .plan import Place
from .runner import Runner


class Labs:
    """:param env: NPU_LABS has their numbers; by default this checkout's own (NPU_LAB) and three that no person is likely to use"""

    def __init__(self, checkout: Path, env: dict[str, str], runner: Runner) -> None:
        own = int(env.get("NPU_LAB") or 0)
        numbers = [int(number) for number in env.get("NPU_LABS", "").split()]
        numbers += [number for number in (own, *((own + more) % 99 + 1 for more in (49, 50, 51))) if number not in numbers]
        places = (Place.NEWEST, Place.OLDEST, Place.OWN, Place.ROLLOUTS)
        self._numbers = {**dict(zip(places, numbers)), Place.ALONE: numbers[0]}
        self._env = {name: value for name, value in env.items() if name != "NPU_LAB_STATE"}
        self._runner = runner
        self._kept = [number for number in numbers if (checkout / f".lab{number or ''}" / "inventory.yml").exists()]
        self._begun: dict[int, bool] = {}  # whether it has started

    def env(self, place: Place, last: bool) -> dict[str, str]:
        """The environment of a part.

        :param last: what it leaves behind does not matter if the lab goes after it
        """
        if place is Place.NO_LAB:
            return self._env
        number = self._numbers[place]
        env = {**self._env, "NPU_LAB": str(number), **(plan.OLDEST if place is Place.OLDEST else {})}
        return {**env, "NPU_LAB_GOES": "1"} if last and number not in self._kept else env

    def up(self, place: Place) -> bool:
        number = self._numbers[place]
        if number not in self._begun:
            self._begun[number] = False  # also of one that is interrupted, something has to go
            self._begun[number] = self._runner.alone(f"lab-{number}", ["lab/lab", "up"], self.env(place, last=False))
        return self._begun[number]

    def down(self) -> bool:
        """Remove the labs that `up` has started, or tried to."""
        well = True
        for number in self._begun:
            if number not in self._kept:
                well = self._runner.alone(f"lab-down-{number}", ["lab/lab", "down"], {**self._env, "NPU_LAB": str(number)}) and well
        return well
