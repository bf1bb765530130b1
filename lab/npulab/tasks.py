# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs steps side by side, in the order their dependencies ask for, and shows how they get on."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from .settings import LabError

FIRST_SIGN = 15  # seconds after which a step says what it does
PROGRESS_INTERVAL = 60  # seconds between two signs of life of a long step, and after what it told
LOG_TAIL = 20  # lines shown of the log of a failed step


class Stopped(Exception):
    """Another step failed; this one was ended because of that."""


class Step:
    """What a step's function gets: a log of its own and a way to run programs that write into it."""

    def __init__(self, name: str, log: Path) -> None:
        self.name = name
        self.log = log
        self.note = ""  # what it is doing, shown in progress lines
        self.started = time.monotonic()
        self.cpu = 0.0  # seconds of the processor that `stream` has cost, with all that its program waited for
        self.next_sign = float(FIRST_SIGN)  # of life, in seconds after it began
        self._group: int | None = None  # of the program that runs now
        self._groups: set[int] = set()  # those that were told to end
        self._stopped = False
        self._lock = threading.Lock()
        log.parent.mkdir(parents=True, exist_ok=True)
        self._file = log.open("a", encoding="utf-8", buffering=1)

    def __enter__(self) -> Step:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    def say(self, text: str) -> None:
        """Remember what the step is doing, for the log and for progress lines."""
        self.note = text
        self._file.write(f"{time.strftime('%H:%M:%S')} {text}\n")

    def tell(self, text: str) -> None:
        """Say something that people should see even if all goes well."""
        self.say(text)
        self.next_sign = self.seconds + PROGRESS_INTERVAL
        # A program may print its result on stdout.
        print(f"{self.name}: {text}", file=sys.stderr, flush=True)

    def check(self) -> None:
        """Raise Stopped if the step is to end; for steps that work without a program."""
        if self._stopped:
            raise Stopped(self.name)

    def run(
        self,
        *command: object,
        input: str | None = None,
        check: bool = True,
        quiet: bool = False,
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
    ) -> subprocess.CompletedProcess:
        """Run a program; its output goes to the log and is returned.

        :param input: text for its standard input, never logged
        :param check: raise LabError when it fails
        :param quiet: do not write its standard output to the log (it may hold a secret)
        :param env: variables to add to the environment
        """
        words = [str(word) for word in command]
        self._file.write(f"{time.strftime('%H:%M:%S')} $ {' '.join(words)}\n")
        process = self._start(
            words,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            text=True,
            errors="replace",
            stdin=subprocess.PIPE if input is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._file if not quiet else subprocess.PIPE,
        )
        output, errors = process.communicate(input)
        self._ended()
        self._file.write(errors or "" if quiet else output)
        if check and process.returncode != 0:
            raise LabError(f"'{' '.join(words[:4])}...' ended with status {process.returncode}")
        return subprocess.CompletedProcess(words, process.returncode, output, errors)

    def stream(self, *command: str | os.PathLike, cwd: Path | None = None, env: dict[str, str] | None = None) -> int:
        """Run a program that writes straight into the log, which so shows at any time how far it is; returns its exit status.

        :param env: all of its environment
        """
        process = self._start(
            [str(word) for word in command],
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=self._file,
            stderr=subprocess.STDOUT,
        )
        # Unlike RUSAGE_CHILDREN, wait4 tells of this program and its descendants alone.
        _pid, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.cpu += usage.ru_utime + usage.ru_stime
        self._ended()
        return process.returncode

    def _start(self, words: list[str], **options: Any) -> subprocess.Popen:
        """Start a program in a process group of its own, so that `stop` also reaches its children."""
        with self._lock:
            if self._stopped:
                raise Stopped(self.name)
            process = subprocess.Popen(words, start_new_session=True, **options)
            self._group = process.pid
            return process

    def _ended(self) -> None:
        """The program of now has ended. Its children may outlive it, which matters only to who stops the step."""
        with self._lock:
            self._group = None
            if self._stopped:
                raise Stopped(self.name)

    def wait_for(self, what: str, condition: Callable[[], object], timeout: float, interval: float = 0.2) -> None:
        """Wait until `condition` returns something true; LabError after `timeout` seconds."""
        self.say(f"waiting for {what}")
        end = time.monotonic() + timeout
        while not condition():
            self.check()
            if time.monotonic() > end:
                raise LabError(f"{what}: not within {timeout:.0f} s")
            time.sleep(interval)

    def stop(self, signum: signal.Signals = signal.SIGTERM) -> None:
        """End the program that the step runs now, with its children, and keep it from starting another."""
        with self._lock:
            self._stopped = True
            if self._group is not None:
                self._groups |= _groups_below(self._group)
            # The program first: it hears of it before its children are gone, and puts back what it changed.
            for group in sorted(self._groups, key=lambda group: group != self._group):
                try:
                    os.killpg(group, signum)
                except ProcessLookupError:  # it ended by itself just now
                    pass
                except PermissionError:  # sudo has made it root's
                    self._groups.discard(group)

    def gone(self) -> bool:
        """Whether nothing is left of the program that `stop` ended, children included."""
        with self._lock:
            return not any(_lives(group) for group in self._groups)

    def tail(self, lines: int = LOG_TAIL) -> list[str]:
        return self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]


class Graph:
    """Steps and what each of them waits for."""

    def __init__(self, logs: Path) -> None:
        self.logs = logs
        self._functions: dict[str, Callable[[Step], None]] = {}
        self._needs: dict[str, set[str]] = {}

    def add(self, name: str, function: Callable[[Step], None], after: Iterable[str] = ()) -> None:
        self._functions[name] = function
        self._needs[name] = set(after)

    def run(self) -> None:
        """Run all steps. When one fails the others are ended, its log is shown and LabError raised."""
        unknown = set().union(*self._needs.values()) - set(self._functions)
        assert not unknown, f"steps wait for unknown steps: {unknown}"
        waiting, done = dict(self._needs), set[str]()
        running: dict[Future[None], Step] = {}
        failure: tuple[Step, BaseException] | None = None
        started = time.monotonic()
        with ThreadPoolExecutor(max_workers=len(self._functions)) as pool:
            try:
                while running or (waiting and failure is None):
                    if failure is None:
                        for name in [name for name, needs in waiting.items() if needs <= done]:
                            del waiting[name]
                            step = Step(name, self.logs / f"{name.replace(' ', '-')}.log")
                            running[pool.submit(_run, self._functions[name], step)] = step
                    finished, _ = wait(running, timeout=1, return_when=FIRST_COMPLETED)
                    for future in finished:
                        step = running.pop(future)
                        error = future.exception()
                        if error is None:
                            done.add(step.name)
                            _line(started, step, "done")
                        elif failure is None:
                            failure = (step, error)
                            _line(started, step, "FAILED")
                            for other in running.values():
                                other.stop()
                    for step in running.values():
                        if step.seconds >= step.next_sign:
                            step.next_sign = step.seconds + PROGRESS_INTERVAL
                            _line(started, step, f"... {step.note}")
            except BaseException:  # Ctrl-C: leave no half-run program behind
                for step in running.values():
                    step.stop()
                raise
        if failure is not None:
            _explain(*failure)


def _lives(group: int) -> bool:
    """Whether a process of the group runs. Who has ended and was not waited for does not."""
    return any(its_group == group and state != "Z" for _pid, state, _parent, its_group in _processes())


def _groups_below(leader: int) -> set[int]:
    """The process groups of a process and its descendants: some, such as Ansible's workers, begin groups of their own."""
    processes = list(_processes())
    groups, family = {leader}, {leader}
    while found := {pid for pid, _state, parent, _group in processes if parent in family} - family:
        family |= found
        groups |= {group for pid, _state, _parent, group in processes if pid in found}
    return groups


def _processes() -> Iterator[tuple[int, str, int, int]]:
    """(ID, state, ID of the parent, process group) of all that there are."""
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ended just now
            state, parent, group = file.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[:3]
            yield int(file.parent.name), state, int(parent), int(group)


def _run(function: Callable[[Step], None], step: Step) -> None:
    with step:
        function(step)


def _line(started: float, step: Step, text: str) -> None:
    print(f"[{time.monotonic() - started:5.0f} s] {step.name:<22} {step.seconds:6.1f} s  {text}", flush=True)


def _explain(step: Step, error: BaseException) -> None:
    for line in step.tail():
        print(f"    {line}", file=sys.stderr)
    if not isinstance(error, LabError):
        traceback.print_exception(error)
    raise LabError(f"{step.name}: {error}\n  whole log: {step.log}")
