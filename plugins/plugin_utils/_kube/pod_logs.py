# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The newest lines of a container's log, with a limit, however long they are."""

from __future__ import annotations

import contextlib
import time
from typing import NamedTuple

from ansible_collections.npuops.ascend.plugins.module_utils._collect.bounded_output import Kept
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster

# Container runtimes split lines at 16 KiB, and the kubelet counts the parts.
_LONGEST_LINE = 32 * 1024
_SECONDS = 30
# The kubelet's own word for a log that is gone.
_NO_LOG = "unable to retrieve container logs for "


class Tail(NamedTuple):
    """``cut``: whether there may be older lines; ``ended``: whether it was read to its end, and has the newest line."""

    text: str
    cut: bool
    ended: bool


def tail(cluster: AnyCluster, pod: str, lines: int, most: int, container: str = "", previous: bool = False) -> Tail:
    """Of the last ``lines``, the last ``most`` bytes in whole lines; ``pod``: its path. Raises NpuError."""
    # limitBytes ends an answer, so with ``most`` it would keep the oldest of the lines.
    limit = lines * _LONGEST_LINE
    query = [("tailLines", str(lines)), ("limitBytes", str(limit))]
    query += [("container", container)] if container else []
    query += [("previous", "true")] if previous else []
    kept = Kept(min(most, limit))
    left, ended = limit, False
    deadline = time.monotonic() + _SECONDS
    with contextlib.closing(cluster.without_retries.pieces(pod + "/log", query_params=query)) as pieces:
        for piece in pieces:
            kept.add(piece[:left])
            left -= len(piece)
            if left <= 0 or time.monotonic() >= deadline:
                break
        else:
            ended = True
    text = kept.text()
    return Tail(text, kept.cut or text.count("\n") >= lines, ended)


def last_lines(cluster: AnyCluster, pod: str, lines: int, container: str = "", previous: bool = False) -> list[str]:
    """Those with text of the last ``lines``, for a message that they explain: none if there is no log, or no answer at once."""
    try:
        # A pod that never started has no log (400); one whose node is gone has none either (5xx).
        text = tail(cluster, pod, lines, lines * _LONGEST_LINE, container, previous).text
    except NpuError:
        return []
    return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith(_NO_LOG)]
