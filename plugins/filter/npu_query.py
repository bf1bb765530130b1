# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: npu_query
short_description: What a JMESPath expression finds in a result of the playbooks
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Answers C(npu_query). Without an expression it is the table of the result.
  - Without a result, says why the expression is wrong, and an empty string when it is not.
requirements:
  - jmespath
positional: kind, result
options:
  _input:
    description: The expression, or an empty string.
    type: str
    required: true
  kind:
    description: What is asked, which decides what the top-level keys are.
    type: str
    choices: [status, plan, report]
    required: true
  result:
    description: The result of M(npuops.ascend.npu_status), M(npuops.ascend.npu_plan) or M(npuops.ascend.npu_report).
    type: dict
  rest:
    description: What Ansible has cut off the expression, which makes it wrong.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Show the nodes that are not ready
  ansible.builtin.debug:
    msg: "{{ 'nodes[?!healthy].name' | npuops.ascend.npu_query('status', fleet) | npuops.ascend.npu_lines }}"
"""

RETURN = r"""
_value:
  description: The answer, as P(npuops.ascend.npu_lines#filter) takes it. A number, a truth value and null are texts.
  type: raw
"""

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError


def npu_query(expression: str, kind: str, result: Any = None, rest: str = "") -> Any:
    """See DOCUMENTATION."""
    from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
    from ansible_collections.npuops.ascend.plugins.plugin_utils._data.outside import outside
    from ansible_collections.npuops.ascend.plugins.plugin_utils._report import query

    try:
        if result is None:
            return query.problem(expression, kind, rest)
        # The cluster's words are shown, not evaluated.
        return outside(query.answer(expression, kind, result))
    except NpuError as exc:
        raise AnsibleFilterError(exc.message) from exc


class FilterModule:
    """The filter above."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"npu_query": npu_query}
