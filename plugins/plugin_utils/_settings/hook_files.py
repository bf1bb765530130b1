# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files with tasks of the user that run for each node.

Ansible takes a file that it cannot load for a failure of the whole run: it would end without a report, in the middle of a
maintenance, with workloads parked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ansible.errors import AnsibleError
from ansible.parsing.dataloader import DataLoader
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import one_line

# Settings of npu_upgrade. A recovery upgrades no operating system.
OF_A_RECOVERY = ("hook_before", "hook_after")
OF_A_ROLLOUT = (*OF_A_RECOVERY, "with_os")
_VAULT = b"$ANSIBLE_VAULT"


def problems(settings: Mapping[str, Any], names: Iterable[str] = OF_A_ROLLOUT) -> list[str]:
    """Why the files of these settings cannot run, as sentences without a period."""
    found = ((name, settings.get(name), why_not(settings[name])) for name in names if settings.get(name))
    return ["npu_upgrade_%s: %s %s" % (name, path, why) for name, path, why in found if why]


def why_not(path: str) -> str | None:
    """Why the file has no tasks, as a phrase, or None."""
    try:
        with open(path, "rb") as file:
            if file.read(len(_VAULT)) == _VAULT:
                return None  # only Ansible has the password
        tasks = DataLoader().load_from_file(path)
    except (OSError, UnicodeError, AnsibleError) as exc:  # UnicodeError: ansible-core before 2.19
        return "cannot be read: %s" % one_line(getattr(exc, "strerror", None) or getattr(exc, "message", None) or exc)
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        return "is no list of tasks"
    return None
