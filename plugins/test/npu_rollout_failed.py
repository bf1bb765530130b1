# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: npu_rollout_failed
short_description: Whether a rollout has reported nodes that failed
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - AWX follows the same path in a workflow whether a job has failed or was cancelled. The artifacts of the job tell the two
    apart, because a job that was cancelled did not get to its report.
options:
  _input:
    description: The C(npuops_rollout) that C(npuops.ascend.upgrade) and C(npuops.ascend.rollback) hand on; an empty dictionary if
      there is none.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Go on only if nodes have failed
  ansible.builtin.assert:
    that: npuops_rollout | default({}) is npuops.ascend.npu_rollout_failed
"""

RETURN = r"""
_value:
  description: Whether it names nodes that did not succeed, or says that the rollout is halted.
  type: bool
"""

from collections.abc import Callable
from typing import Any


def npu_rollout_failed(rollout: object) -> bool:
    """See DOCUMENTATION."""
    from ansible_collections.npuops.ascend.plugins.plugin_utils._awx import stats as awx_stats

    return awx_stats.failed(rollout)


class TestModule:
    """The test above."""

    def tests(self) -> dict[str, Callable[..., Any]]:
        return {"npu_rollout_failed": npu_rollout_failed}
