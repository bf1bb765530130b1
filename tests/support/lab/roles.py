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
        tasks_from: {tasks}
      run_once: true
"""


class Roles:
    """run(tasks="main", check=True, **variables) runs the ``roles``; for tasks="absent", the last one first."""

    def __init__(self, lab: Lab, directory: pathlib.Path, *roles: str) -> None:
        self._lab, self._directory, self._roles = lab, directory, roles

    def run(self, tasks: str = "main", check: bool = True, **variables: object) -> subprocess.CompletedProcess:
        play = self._directory / f"{tasks}.yml"
        roles = self._roles if tasks == "main" else self._roles[::-1]
        play.write_text(_PLAY + "".join(_TASK.format(role=role, tasks=tasks) for role in roles), encoding="utf-8")
        command = ["ansible-playbook", "-i", str(self._lab.inventory), str(play), "-e", json.dumps(variables)]
        return self._lab.ansible(command, check=check)


def changed(result: subprocess.CompletedProcess) -> int:
    """How many tasks of a run changed something."""
    return sum(map(int, re.findall(r"changed=(\d+)", result.stdout)))
