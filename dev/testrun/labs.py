# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The labs that the tests run on. One that was running before keeps running."""

from __future__ import annotations

from pathlib import Path

from . import plan
from .runner import Runner


class Labs:
    """:param env: NPU_LABS has their numbers; by default this checkout's own (NPU_LAB) and two that nobody is likely to use"""

    def __init__(self, checkout: Path, env: dict[str, str], runner: Runner) -> None:
        own = int(env.get("NPU_LAB") or 0)
        named = env.get("NPU_LABS", "").split()
        self.numbers = [int(number) for number in named] or [own, (own + 49) % 99 + 1, (own + 50) % 99 + 1]
        self._env = {name: value for name, value in env.items() if name != "NPU_LAB_STATE"}
        self._runner = runner
        self._kept = [number for number in self.numbers if (checkout / f".lab{number or ''}" / "inventory.yml").exists()]
        self._begun: list[int] = []
        # With one lab only, all tests run on the newest releases.
        self.oldest = self.numbers[-1] if len(self.numbers) > 1 else None

    def env(self, number: int, goes: bool = False) -> dict[str, str]:
        """The environment of a program that works on this lab.

        :param goes: what the program leaves behind does not matter, as the lab goes after it
        """
        env = {**self._env, "NPU_LAB": str(number), **(plan.OLDEST if number == self.oldest else {})}
        return {**env, "NPU_LAB_GOES": "1"} if goes and number not in self._kept else env

    def up(self, number: int) -> bool:
        self._begun.append(number)
        return self._runner.alone(f"lab-{number}", ["lab/lab", "up"], self.env(number))

    def down(self) -> bool:
        """Remove the labs that `up` has started, or tried to."""
        well = True
        for number in self._begun:
            if number not in self._kept:
                well = self._runner.alone(f"lab-down-{number}", ["lab/lab", "down"], self.env(number)) and well
        return well
