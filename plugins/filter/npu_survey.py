# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: npu_survey
short_description: The survey of an AWX template that asks for variables of this collection
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Makes the C(survey_spec) of M(awx.awx.job_template) and M(awx.awx.workflow_job_template) of what the roles document, so that
    types and choices are the same in both.
  - No question must be answered. AWX does not pass on what is not answered, and then the inventory counts.
positional: questions, defaults
options:
  _input:
    description: The variables, in the order in which they are asked for.
    type: list
    elements: str
    required: true
  questions:
    description: The question for each variable.
    type: dict
    required: true
  defaults:
    description: By variable, the answer that the form shows when it opens.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Make the template
  awx.awx.job_template:
    name: NPU upgrade
    survey_enabled: true
    survey_spec: >-
      {{ ['npu_upgrade_max_parallel']
         | npuops.ascend.npu_survey({'npu_upgrade_max_parallel': 'Nodes at once'}) }}
"""

RETURN = r"""
_value:
  description: The survey.
  type: dict
"""

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError


def npu_survey(variables: list[str], questions: dict[str, str], defaults: dict[str, Any] | None = None) -> dict[str, Any]:
    """See DOCUMENTATION."""
    from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
    from ansible_collections.npuops.ascend.plugins.plugin_utils._awx import survey as awx_survey

    defaults = defaults or {}
    unknown = awx_survey.unknown(defaults, questions)
    if unknown:
        raise AnsibleFilterError(unknown)
    try:
        return awx_survey.survey(variables, questions, defaults)
    except NpuError as error:
        raise AnsibleFilterError(str(error))


class FilterModule:
    """The filter above."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"npu_survey": npu_survey}
