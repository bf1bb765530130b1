# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""MindCluster's trains: what their device plugin and exporter need of Kubernetes, as mindcluster.yml says it."""

from __future__ import annotations

import functools
import os
from typing import Any

import yaml

_HERE = os.path.dirname(os.path.abspath(__file__))


@functools.lru_cache(maxsize=1)
def table() -> dict[str, Any]:
    """The content of mindcluster.yml."""
    with open(os.path.join(_HERE, "mindcluster.yml"), encoding="utf-8") as stream:
        return yaml.load(stream, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def names() -> tuple[str, ...]:
    """The names of the trains, the oldest first."""
    return tuple(table()["trains"])


def train(name: str) -> dict[str, Any]:
    """What is known of the train, with the names of its families' objects."""
    rows = table()
    known = rows["trains"][name]
    plugin = known["device_plugin"]
    families = {family: dict(rows["families"][family], **row) for family, row in plugin["families"].items()}
    return dict(known, name=name, device_plugin=dict(plugin, families=families))
