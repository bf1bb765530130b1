# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text from outside in what a filter returns: it may contain what a node, a host or a survey says, and is never a template."""

from __future__ import annotations

from typing import Any, TypeVar

from ansible import template
from ansible.utils.unsafe_proxy import wrap_var

_Value = TypeVar("_Value")


def outside(value: _Value) -> _Value:
    """Return `value`, which is made of dicts, lists and plain values, with a mark on each text that it is no template.

    Up to ansible-core 2.18, text without this mark is a template, and text made of other text loses the mark. From 2.19 on, only
    text that is marked as a template is one.
    """
    marked: Any = value if hasattr(template, "trust_as_template") else wrap_var(value)
    return marked
