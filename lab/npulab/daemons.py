# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Long-running programs of the lab on the machine itself.

Each carries the lab's state directory and its own name in its environment. That, and not a PID file, is how it is
found again: it cannot be stale, it survives a killed `up`, and no other program is ever taken for ours.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

from .settings import GO_RUNTIME, Lab, LabError
from .tasks import Step

VARIABLE = "NPU_LAB_DAEMON"
STOP_TIMEOUT = 2  # seconds until SIGKILL; what they write goes away with the lab

_STARTED: list[subprocess.Popen] = []  # they outlive this process; Python wants them kept until then


def running(lab: Lab) -> dict[str, int]:
    """Name and PID of the lab's running programs."""
    mark = f"{VARIABLE}={lab.state}:".encode()
    found = {}
    # Not glob("[0-9]*/environ"): that looks at each file, and raises for a process that ends at that moment.
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with contextlib.suppress(OSError):
                for entry in (process / "environ").read_bytes().split(b"\0"):
                    if entry.startswith(mark) and not _is_zombie(process):
                        found[entry[len(mark) :].decode()] = int(process.name)
    return found


def _is_zombie(process: Path) -> bool:
    return (process / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0] == "Z"


def start(lab: Lab, step: Step, name: str, *command: object) -> None:
    """Start a program unless it runs; its output is appended to <state>/log/<name>.log."""
    if name in running(lab):
        return
    step.say(f"starting {name}")
    lab.logs.mkdir(parents=True, exist_ok=True)
    with (lab.logs / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env={**os.environ, **GO_RUNTIME, VARIABLE: f"{lab.state}:{name}"},
            start_new_session=True,
        )
    _STARTED.append(process)
    while name not in running(lab):  # the kernel shows a new program's environment a moment late
        if process.poll() is not None:
            raise LabError(f"{name} ended with status {process.returncode}; see {lab.logs / name}.log")
        time.sleep(0.01)


def stop_all(lab: Lab, step: Step) -> None:
    """End the lab's programs and wait until they are gone."""
    programs = running(lab)
    for name, pid in programs.items():
        step.say(f"stopping {name}")
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    end = time.monotonic() + STOP_TIMEOUT
    while left := running(lab):
        if time.monotonic() > end:
            for pid in left.values():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        time.sleep(0.1)
    for process in _STARTED:
        process.poll()
