# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A call that ends at its limit, whatever it does.

A signal handler that raises does not suffice: connection plugins catch what they do not know and try again, and a library in C
may never come back to Python. So the call runs in a process of its own, which is killed with all that it has started.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pathlib
import signal
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.utils.display import Display

# Seconds after the limit in which the kernel ends a call whose caller was killed.
_GRACE = 5
_PROC = pathlib.Path("/proc")


Answer = TypeVar("Answer")


class TimeIsUp(Exception):
    """The call took longer than it may."""


class Cut(Exception):
    """The call ended without an answer."""


def call(function: Callable[[], Answer], seconds: int) -> Answer:
    """What ``function()`` returns, which must be picklable. What it changes in this process's memory is lost.

    Raises TimeIsUp, Cut, AnsibleConnectionFailure, or AnsibleError with whatever else it raised.
    """
    ours, theirs = multiprocessing.Pipe(duplex=False)
    with ours:
        pid = os.fork()
        if not pid:
            _serve(function, theirs, seconds)
        theirs.close()
        try:
            kind, answer = _receive(ours, time.monotonic() + seconds, seconds)
        except BaseException:
            _kill(pid)
            raise
        finally:
            os.waitpid(pid, 0)
    if kind == "returned":
        return answer
    raise AnsibleConnectionFailure(answer) if kind == "unreachable" else AnsibleError(answer)


def _serve(function: Callable[[], Any], pipe: Connection, seconds: int) -> None:
    """The other process. Never returns: what is above it on the stack belongs to its parent."""
    try:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)
        signal.alarm(seconds + _GRACE)
        with contextlib.suppress(RuntimeError):  # not in a worker of Ansible: it may write itself
            Display().set_queue(_Relay(pipe))
        try:
            answer = ("returned", function())
        except AnsibleConnectionFailure as exc:
            answer = ("unreachable", str(exc))
        except AnsibleError as exc:
            answer = ("raised", str(exc))
        except BaseException:
            answer = ("raised", traceback.format_exc())
        pipe.send(answer)
    finally:
        os._exit(0)


class _Relay:
    """Where Display puts what a worker says. Its own queue has a lock that all workers share, and a killed one keeps it."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def send_display(self, method: str, *args: Any, **kwargs: Any) -> None:
        self._pipe.send(("said", (method, args, kwargs)))


def _receive(pipe: Connection, deadline: float, seconds: float) -> tuple[str, Any]:
    while pipe.poll(max(deadline - time.monotonic(), 0)):
        try:
            kind, content = pipe.recv()
        except EOFError:
            raise Cut("the call ended without an answer")
        if kind != "said":
            return kind, content
        method, args, kwargs = content
        getattr(Display(), method)(*args, **kwargs)
    raise TimeIsUp("no answer within %d s" % seconds)


def _kill(pid: int) -> None:
    """Kill the process with its descendants."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)  # so that it starts no others
        kill_descendants(pid)
        os.kill(pid, signal.SIGKILL)


def kill_descendants(pid: int) -> None:
    """Kill all that the process has started. The master of an SSH connection is none of them: it has left for good."""
    for descendant in reversed(descendants(pid)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(descendant, signal.SIGKILL)


def descendants(pid: int) -> list[int]:
    """Parents before children; none where there is no /proc."""
    children: dict[int, list[int]] = {}
    for path in _PROC.glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            parent = int(path.read_text(errors="replace").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(path.parent.name))
    found, waiting = [], [pid]
    while waiting:
        waiting.extend(children.get(waiting[0], []))
        found.append(waiting.pop(0))
    return found[1:]
