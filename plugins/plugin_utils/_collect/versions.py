# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The version of the collection, for the index of a bundle."""

from __future__ import annotations

import json
import pathlib

import yaml

_COLLECTION = pathlib.Path(__file__).resolve().parents[3]


def of_collection() -> str:
    """As Galaxy installed it, or as the checkout says; unknown without either."""
    try:
        return str(json.loads((_COLLECTION / "MANIFEST.json").read_text(encoding="utf-8"))["collection_info"]["version"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    try:
        return str(yaml.safe_load((_COLLECTION / "galaxy.yml").read_text(encoding="utf-8"))["version"])
    except (OSError, yaml.YAMLError, KeyError, TypeError):
        return "unknown"
