# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The last acceptances of this host, in /var/lib/npuops/acceptance-history: {"results": [...]}, the latest one first."""

from __future__ import annotations

import json
import os

from ansible_collections.npuops.ascend.plugins.module_utils._acceptance.verdicts import PASS, worst
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import make_directory, read_object, write_atomic

HISTORY = "/var/lib/npuops/acceptance-history"
_MOST = 20


def read(fs=""):
    """The results, the latest one first; empty if there are none, or if the file is damaged."""
    found = (read_object(fs + HISTORY) or {}).get("results")
    return [entry for entry in found if isinstance(entry, dict)][:_MOST] if isinstance(found, list) else []


def add(result, fs=""):
    """Keep what a person wants to know later of ``result``, of ``acceptance.Acceptance``: what did not pass, and with what."""
    entry = {key: result[key] for key in ("level", "began", "ended", "driver", "firmware", "chips")}
    entry["verdict"] = worst(result["findings"])
    entry["findings"] = [found for found in result["findings"] if found["verdict"] != PASS]
    make_directory(os.path.dirname(fs + HISTORY))
    write_atomic(fs + HISTORY, json.dumps({"results": [entry, *read(fs)][:_MOST]}, sort_keys=True) + "\n", 0o644)
