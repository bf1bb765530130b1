# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: npu_settled
short_description: The hosts on which install has nothing to do
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - A host is settled if it validates, and if M(npuops.ascend.npu_driver) and M(npuops.ascend.npu_cdi_spec) would change nothing.
positional: driver, runtime
options:
  _input:
    description: What M(npuops.ascend.npu_many_hosts) returned for M(npuops.ascend.npu_validate), by inventory name.
    type: dict
    required: true
  driver:
    description: The same for M(npuops.ascend.npu_driver) in check mode.
    type: dict
    required: true
  runtime:
    description: The same for M(npuops.ascend.npu_cdi_spec) in check mode.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show the hosts on which install has nothing to do
  ansible.builtin.debug:
    msg: "{{ validations.answers | npuops.ascend.npu_settled(driver.answers, runtime.answers) }}"
  run_once: true
"""

RETURN = r"""
_value:
  description: Inventory names.
  type: list
  elements: str
"""

from collections.abc import Callable, Mapping
from typing import Any


def npu_settled(
    validations: Mapping[str, Mapping[str, Any]], driver: Mapping[str, Mapping[str, Any]], runtime: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """See DOCUMENTATION."""
    return [
        name
        for name, validation in validations.items()
        if _unchanged(validation, "valid")
        and _unchanged(driver.get(name, {}), "ready")
        and _unchanged(runtime.get(name, {}), "settled")
    ]


def _unchanged(answer: Mapping[str, Any], proof: str) -> bool:
    """``proof``: a key that only a module has that came to its end, and whose value is true where all is as it should be."""
    return bool(answer.get(proof)) and not any(answer.get(key) for key in ("changed", "failed", "unreachable"))


class FilterModule:
    """The filter above."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"npu_settled": npu_settled}
