# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A play with roles of the collection and nothing else, on the controller: what install runs of them, without the rest."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess

from support.lab.lab import Lab

_PLAY = """
- hosts: npu_nodes
  gather_facts: false
  connection: local
  tasks:
"""
_TASK = """
    - ansible.builtin.import_role:
        name: npuops.ascend.{role}
      vars:
        __npu_component_removed: {removed}
      run_once: true
"""


class Roles:
    """run(removed=False, check=True, **variables) runs the ``roles``. Removed, as by uninstall, the last one goes first."""

    def __init__(self, lab: Lab, directory: pathlib.Path, *roles: str) -> None:
        self._lab, self._directory, self._roles = lab, directory, roles

    def run(self, removed: bool = False, check: bool = True, **variables: object) -> subprocess.CompletedProcess:
        play = self._directory / "roles.yml"
        roles = self._roles[::-1] if removed else self._roles
        play.write_text(_PLAY + "".join(_TASK.format(role=role, removed=str(removed).lower()) for role in roles), encoding="utf-8")
        command = ["ansible-playbook", "-i", str(self._lab.inventory), str(play), "-e", json.dumps(variables)]
        return self._lab.ansible(command, check=check)


def changed(result: subprocess.CompletedProcess) -> int:
    """How many tasks of a run changed something."""
    return sum(map(int, re.findall(r"changed=(\d+)", result.stdout)))
