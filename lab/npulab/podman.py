# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calling podman always in the same way, whatever the machine's own configuration says."""

from __future__ import annotations

import json
import subprocess
import time
from typing import Any

from .settings import Lab, LabError
from .tasks import Step

# runc: crun fails on hybrid cgroups. cgroupfs: the machine's PID 1 need not be systemd.
COMMAND = ("podman", "--runtime", "runc", "--cgroup-manager", "cgroupfs")
LIST_ATTEMPTS = 20


def podman(step: Step, *arguments: object, check: bool = True, **options: Any) -> subprocess.CompletedProcess:
    return step.run(*COMMAND, *map(str, arguments), check=check, **options)


def containers(lab: Lab) -> dict[str, str]:
    """Name and state (running, exited, created...) of the lab's containers."""
    return {item["Names"][0]: item["State"] for item in _list("ps", "--all") if _is_ours(lab, item["Names"][0])}


def volumes(lab: Lab) -> list[str]:
    return [item["Name"] for item in _list("volume", "ls") if _is_ours(lab, item["Name"])]


def _is_ours(lab: Lab, name: str) -> bool:
    return name.startswith(f"{lab.name}-")


def _list(*arguments: str) -> list[dict]:
    for _attempt in range(LIST_ATTEMPTS):
        result = subprocess.run([*COMMAND, *arguments, "--format", "json"], capture_output=True, text=True, check=False)
        if result.returncode == 0:
            return json.loads(result.stdout or "[]") or []
        time.sleep(0.2)  # it fails where another podman removes a container at that moment: nothing is not the answer then
    raise LabError(f"podman {' '.join(arguments)}: {result.stderr.strip()}")
