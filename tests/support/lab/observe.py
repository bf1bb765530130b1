# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The observer in a process of its own, for molecule: `python -m support.lab.observe start DIRECTORY VERSION [bare]`, and `end(directory)` in a test.

Unless bare, starting also makes the workloads that are to be disturbed. VERSION is what the NPU nodes have to end on.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time

from support.lab.lab import Lab
from support.lab.observer import Sight, problems
from support.lab.rollout import watch
from support.lab.workloads import scenario
from support.paths import CHECKOUT, TESTS
from support.patience import PATIENCE, RUN_PATIENCE


class Recorded:
    """What an observer has written down, with its methods."""

    def __init__(self, directory: pathlib.Path) -> None:
        found = json.loads((directory / "timeline.json").read_text(encoding="utf-8"))
        self.timeline = [Sight(**sight) for sight in found["timeline"]]
        self._gaps = found["gaps"]
        self.boots = found["boots"]

    def now(self, kind: str = "node") -> dict[str, Sight]:
        return {sight.name: sight for sight in self.timeline if sight.kind == kind}

    def catch_up(self) -> None:
        """It had, before it ended."""

    def problems(self, max_parallel, reboots, unasked=(), only=None) -> list[str]:
        assert only is None
        return self._gaps + problems(self.timeline, max_parallel, reboots, unasked)


def start(lab: Lab, directory: pathlib.Path, version: str, bare: bool = False) -> None:
    """Returns when it watches."""
    if not bare:
        scenario(lab)
    end_forgotten(directory)
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    (directory / "version").write_text(version, encoding="utf-8")
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "support.lab.observe", "run", str(directory)],
            cwd=TESTS,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    end_of_patience = time.monotonic() + PATIENCE
    while not (directory / "pid").exists():
        if process.poll() is not None or time.monotonic() > end_of_patience:
            sys.exit("the observer does not start: " + (directory / "log").read_text(encoding="utf-8"))
        time.sleep(0.1)


def end_forgotten(directory: pathlib.Path) -> None:
    """One that a scenario which failed in the middle has left."""
    with contextlib.suppress(OSError, ValueError):  # none was, or it has ended
        pid = int((directory / "pid").read_text(encoding="utf-8"))
        if str(directory) in pathlib.Path("/proc", str(pid), "cmdline").read_text(encoding="utf-8").split("\0"):
            os.kill(pid, signal.SIGTERM)
            while pathlib.Path("/proc", str(pid)).exists():  # or its last word would be taken for that of the next one
                time.sleep(0.1)


def follow(lab: Lab, directory: pathlib.Path) -> None:
    """Watch until SIGTERM, then write the timeline."""
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    with watch(lab) as observer:
        (directory / "pid").write_text(str(os.getpid()), encoding="utf-8")
        over.wait(4 * RUN_PATIENCE)
    new = directory / "timeline.new"
    new.write_text(
        json.dumps(
            {"timeline": [dataclasses.asdict(sight) for sight in observer.timeline], "gaps": observer.gaps, "boots": observer.boots}
        ),
        encoding="utf-8",
    )
    new.rename(directory / "timeline.json")


def end(directory: pathlib.Path) -> Recorded:
    """End the observer of a directory and return what it saw."""
    if not (directory / "timeline.json").exists():
        os.kill(int((directory / "pid").read_text(encoding="utf-8")), signal.SIGTERM)
        patience = time.monotonic() + PATIENCE
        while not (directory / "timeline.json").exists():
            assert time.monotonic() < patience, (directory / "log").read_text(encoding="utf-8")
            time.sleep(0.1)
    return Recorded(directory)


if __name__ == "__main__":
    running = Lab(pathlib.Path(os.environ.get("NPU_LAB_STATE") or CHECKOUT / ".lab"))
    if sys.argv[1] == "start":
        start(running, pathlib.Path(sys.argv[2]), sys.argv[3], bare=sys.argv[4:] == ["bare"])
    else:
        follow(running, pathlib.Path(sys.argv[2]))
