# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: npu_installed
short_description: Whether a collection is installed
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - A play that names a module of a collection that is not installed fails with Ansible's own message before its first task. With
    this test it can say what to install.
options:
  _input:
    description: The name of the collection.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Fail if awx.awx is not installed
  ansible.builtin.assert:
    that: "'awx.awx' is npuops.ascend.npu_installed"
    fail_msg: "Install it: ansible-galaxy collection install awx.awx"
"""

RETURN = r"""
_value:
  description: Whether Ansible finds it.
  type: bool
"""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any


def npu_installed(name: str) -> bool:
    """See DOCUMENTATION."""
    try:
        return find_spec("ansible_collections." + name) is not None
    except ModuleNotFoundError:
        # Not even its namespace exists.
        return False


class TestModule:
    """The test above."""

    def tests(self) -> dict[str, Callable[..., Any]]:
        return {"npu_installed": npu_installed}
