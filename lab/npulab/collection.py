# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collection as a user has it installed: its library and its playbooks. The lab uses both and copies neither."""

from __future__ import annotations

import importlib
import sys
import threading
from pathlib import Path
from types import ModuleType

from .settings import CHECKOUT, Lab
from .tasks import Step

TREE = CHECKOUT / ".cache" / "collections"
_LOCK = threading.Lock()


def library(name: str) -> ModuleType:
    """The module plugins/module_utils/<name>, with dots for slashes. Python needs no Ansible for that, only an installed path."""
    with _LOCK:
        if str(_installed()) not in sys.path:
            sys.path.insert(0, str(TREE))
        return importlib.import_module(f"ansible_collections.npuops.ascend.plugins.module_utils.{name}")


def make_venv(lab: Lab, step: Step) -> None:
    """Make .venv with Ansible in it; does nothing if it exists, and waits while another process makes it."""
    step.run(CHECKOUT / "dev" / "venv", cwd=CHECKOUT)


def run_playbook(lab: Lab, step: Step, name: str, *arguments: object) -> None:
    """Run a playbook of the collection as its user would."""
    step.run(
        CHECKOUT / ".venv" / "bin" / "ansible-playbook",
        CHECKOUT / "playbooks" / f"{name}.yml",
        *arguments,
        cwd=CHECKOUT,
        env={
            "ANSIBLE_COLLECTIONS_PATH": str(_installed()),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_LOCAL_TEMP": str(lab.state / "ansible"),
        },
    )


def _installed() -> Path:
    link = TREE / "ansible_collections" / "npuops" / "ascend"
    if not link.is_symlink():
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(CHECKOUT)
    return TREE
