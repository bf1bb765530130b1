# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Quantities of extended resources, such as huawei.com/Ascend910, in each form in which the API server keeps them.

Source: https://pkg.go.dev/k8s.io/apimachinery/pkg/api/resource#Quantity. 1000 is stored as 1k.
Extended resources are whole numbers.
"""

from __future__ import annotations

import re

_QUANTITY = re.compile(r"([+-]?[0-9]{1,20})(?:(k|[KMGTPE]i|[MGTPE])|[eE]([0-9]{1,2}))?\Z")
_POWERS = "KMGTPE"


def whole(quantity: object) -> int | None:
    """The number; None for anything that is not a whole number."""
    match = _QUANTITY.match(str(quantity))
    if not match:
        return None
    digits, suffix, exponent = match.groups()
    factor = 1
    if exponent:
        factor = 10 ** int(exponent)
    elif suffix:
        factor = (1024 if suffix.endswith("i") else 1000) ** (_POWERS.index(suffix[0].upper()) + 1)
    return int(digits) * factor
