# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""python -m simulator.apart: what a copy of the library with a defect in it answers. Prints JSON."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from simulator.schedule import Schedule, make
from simulator.shrink import shortest
from simulator.simulation import simulate


def violation(file: str) -> str | None:
    found = simulate(Schedule.from_json(Path(file).read_text(encoding="utf-8"))).violation
    return found.name if found is not None else None


def first(start: str, stop: str) -> dict[str, Any] | None:
    for seed in range(int(start), int(stop)):
        found = simulate(make(seed)).violation
        if found is not None:
            short = shortest(make(seed), found.name)
            return {"seed": seed, "violation": found.name, "schedule": dataclasses.asdict(short), "length": short.length}
    return None


if __name__ == "__main__":
    questions: dict[str, Callable[..., Any]] = {"violation": violation, "first": first}
    print(json.dumps(questions[sys.argv[1]](*sys.argv[2:])))
