# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many collectives at the same time, in one thread: so that whatever ends the run ends all of them, and leaves no pod."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

from ansible_collections.npuops.ascend.plugins.plugin_utils._acceptance import collective_pairs
from ansible_collections.npuops.ascend.plugins.plugin_utils._acceptance.collective import Collective
from ansible_collections.npuops.ascend.plugins.plugin_utils._acceptance.collective_pairs import Pair, Tried
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain.smoke_pod import POLL
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import Clock

_Running = dict[Pair, tuple[Collective, Generator[None, None, "str | None"]]]


def run(pairs: Sequence[Pair], of: Callable[[Pair], Collective | None], tried: list[Tried], clock: Clock) -> None:
    """Run the collectives ``of`` these pairs, and add to ``tried`` how each of them ended; None is not run. Raises NpuError."""
    waiting, running = list(pairs), _Running()
    try:
        while waiting or running:
            for pair in collective_pairs.next_ones(waiting, running):
                waiting.remove(pair)
                collective = of(pair)
                if collective is not None:
                    running[pair] = collective, collective.steps()
            for pair, (_collective, steps) in list(running.items()):
                try:
                    next(steps)
                except StopIteration as end:
                    tried.append(Tried(pair, end.value))
                    del running[pair]
            if running:
                clock.sleep(POLL)
    except BaseException:
        for collective, _steps in running.values():
            collective.delete()
        raise
