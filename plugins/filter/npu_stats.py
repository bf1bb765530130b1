# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: npu_stats
short_description: How a playbook came out, for M(ansible.builtin.set_stats)
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Makes a few lines of JSON of the result of the module that a playbook ends with. AWX keeps them as artifacts of the job and
    gives them to the jobs after it in a workflow, as variables; ansible-runner does the former.
  - Lists of names have 50 entries at most; the counts are complete.
positional: kind
options:
  _input:
    description: The result of M(npuops.ascend.npu_preflight), M(npuops.ascend.npu_plan) or M(npuops.ascend.npu_status), or the
      RV(npuops.ascend.npu_report#module:report) of M(npuops.ascend.npu_report).
    type: dict
    required: true
  kind:
    description: Which of them it is, by what the playbook calls it.
    type: str
    choices: [install, plan, rollout, recovery, validation, status]
    required: true
"""

EXAMPLES = r"""
- name: Publish the result
  ansible.builtin.set_stats:
    data:
      npuops_plan: "{{ __npu_plan | npuops.ascend.npu_stats('plan') }}"
"""

RETURN = r"""
_value:
  description: C(counts) by verdict, outcome or state, lists of names, and what else there is to say; the guide for AWX has a table.
  type: dict
"""

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError


def npu_stats(result: Any, kind: str) -> dict[str, Any]:
    """See DOCUMENTATION."""
    from ansible_collections.npuops.ascend.plugins.plugin_utils._awx import stats as awx_stats
    from ansible_collections.npuops.ascend.plugins.plugin_utils._data.outside import outside

    if kind not in awx_stats.KINDS:
        raise AnsibleFilterError("npu_stats knows %s, not %s" % (", ".join(awx_stats.KINDS), kind))
    return outside(awx_stats.KINDS[kind](result))


class FilterModule:
    """The filter above."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"npu_stats": npu_stats}
