# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A controller that is killed at a moment that can be seen in the cluster or on a host, with its workers, which Ansible gives sessions
of their own. See also rollout.run: that one is killed at a call that it makes."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import threading
from collections.abc import Callable

from support.lab.lab import Lab
from support.paths import CHECKOUT
from support.patience import RUN_PATIENCE


def run_killed(lab: Lab, moment: str, seen: Callable[[], object], playbook: str, *arguments: str, **variables: object) -> None:
    """Start a playbook of the collection and kill it once `seen()` is true.

    :param moment: what is seen then, for people
    """
    command = ["ansible-playbook", "-i", str(lab.inventory), f"npuops.ascend.{playbook}", *arguments, "-e", json.dumps(variables)]
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=lab.environment(),
        cwd=CHECKOUT,
        text=True,
    ) as run:
        assert run.stdout is not None
        output: list[str] = []
        reader = threading.Thread(target=lambda: output.extend(run.stdout or ()), daemon=True)
        reader.start()
        try:
            lab.wait_for(lambda: seen() or run.poll() is not None, RUN_PATIENCE, moment, 0.1)
            assert run.poll() is None, f"it ended before {moment}:\n{''.join(output)[-6000:]}"
        finally:
            for process in family(run.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)


def family(process: int) -> list[int]:
    """The process and all that it has started, directly or not."""
    try:
        children = pathlib.Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii").split()
    except OSError:
        children = []  # it has ended
    return [process, *(one for child in children for one in family(int(child)))]
