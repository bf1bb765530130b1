# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: npu_lines
short_description: Lines in the form that Ansible shows unbroken
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Ansible shows results as JSON, where a list has one line per item and a text with line breaks has one long line; or,
    with C(callback_result_format=yaml), as YAML, where it is the other way round and long items of a list are folded.
  - Returns the list as it is for JSON, and as one text for YAML.
  - Other data is returned as it is for JSON, and as a text of JSON with sorted keys for YAML. Ansible itself sorts them for JSON.
options:
  _input:
    description: The lines, a text, or other data.
    type: raw
    required: true
"""

EXAMPLES = r"""
- name: Show the fleet
  ansible.builtin.debug:
    msg: "{{ fleet.table | npuops.ascend.npu_lines }}"
"""

RETURN = r"""
_value:
  description: The lines as a list or as one text, or the data.
  type: raw
"""

import json
from collections.abc import Callable
from typing import Any

from ansible import constants
from ansible.errors import AnsibleError

try:
    # Up to ansible-core 2.18, a template whose text looks like a list, a dictionary or a boolean returns that instead of the text.
    # This kind of text stays one.
    from ansible.utils.native_jinja import NativeJinjaText as Text
except ImportError:
    Text = str


def npu_lines(lines: Any) -> Any:
    """See DOCUMENTATION."""
    if isinstance(lines, str):
        return Text(lines)
    if _result_format() != "yaml":
        return lines
    if isinstance(lines, list) and all(isinstance(line, str) for line in lines):
        return Text("\n".join(lines))
    return Text(json.dumps(lines, indent=2, sort_keys=True))


def _result_format() -> str | None:
    try:
        name = constants.config.get_config_value("DEFAULT_STDOUT_CALLBACK")
        return constants.config.get_config_value("result_format", plugin_type="callback", plugin_name=name)
    except AnsibleError:
        # A callback without that option.
        return None


class FilterModule:
    """The filter above."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"npu_lines": npu_lines}
