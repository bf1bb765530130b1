# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pings through the network ports of the chips: a number of them, in a limited time."""

from __future__ import annotations

import time

from ansible_collections.npuops.ascend.plugins.module_utils._chips import hccn_tool
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError


def run(pings, tool, total=60):
    """The results of ``pings``, (chip, address) each, as {chip, address, sent, received, problem}.

    ``sent`` and ``received`` are None if it is unknown whether the address answers; ``problem`` says why. After ``total`` seconds,
    or a ping that hangs, no other is begun.
    """
    deadline = time.monotonic() + total
    results, ended = [], None
    for chip, address in pings:
        if ended is None and time.monotonic() >= deadline:
            ended = "the %d s for all pings were over" % total
        result = {"chip": chip, "address": address, "sent": None, "received": None, "problem": ended}
        results.append(result)
        if ended is not None:
            continue
        try:
            result["sent"], result["received"] = tool.ping(chip, address)
        except hccn_tool.Hangs as exc:
            result["problem"] = ended = exc.message
        except NpuError as exc:
            result["problem"] = exc.message
    return results
