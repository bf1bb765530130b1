# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of a role as its meta/argument_specs.yml documents them."""

from __future__ import annotations

import functools
import os

import yaml

_ROLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), *[os.pardir] * 3, "roles")


@functools.lru_cache(maxsize=None)
def role_options(role):
    """By name, the options of the entry point main."""
    with open(os.path.join(_ROLES, role, "meta", "argument_specs.yml"), encoding="utf-8") as stream:
        return yaml.safe_load(stream)["argument_specs"]["main"]["options"]
