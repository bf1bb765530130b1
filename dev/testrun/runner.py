# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs steps side by side, each with a log of its own, shows how they get on, and ends all of them when it is told to."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

from npulab.tasks import Step, Stopped

from . import console
from .plan import Part

POLL = 0.2  # seconds
MOST_WORKERS = 32


class Interrupted(Exception):
    """A signal asks for an end."""


class Queue:
    """Parts, in the order in which workers take them."""

    def __init__(self, parts: Iterable[Part]) -> None:
        self._parts = deque(parts)
        self._lock = threading.Lock()

    def take(self) -> tuple[Part, bool] | None:
        """The next part, and whether it is the last of all; None when there is none."""
        with self._lock:
            return (self._parts.popleft(), not self._parts) if self._parts else None


class Runner:
    """
    :param checkout: where commands run; their logs are in .cache/logs
    :param heartbeat: seconds between two signs of life of a step
    :param patience: seconds that a step has to end after each signal
    :param tail: lines shown of the log of a failed step
    """

    def __init__(self, checkout: Path, *, heartbeat: float = 30, patience: float = 30, tail: int = 40) -> None:
        self.checkout = checkout
        self.logs = checkout / ".cache" / "logs"
        self.heartbeat = heartbeat
        self.patience = patience
        self.tail = tail
        self.costs: dict[str, float] = {}  # CPU seconds of each step that has ended
        self.failed: dict[str, list[str]] = {}  # steps, and the failures that their logs name
        self._running: dict[Step, float] = {}  # and when each shows a sign of life next
        self._begun: list[Future[bool]] = []
        self._workers: list[Future[bool]] = []
        self._ending = False  # nothing new may begin
        self._interrupted = False
        self._cleaning_up = False  # signals no longer matter
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(max_workers=MOST_WORKERS)
        self.logs.mkdir(parents=True, exist_ok=True)

    @contextlib.contextmanager
    def signals(self) -> Iterator[None]:
        """Have SIGINT, SIGTERM and SIGHUP interrupt what `wait` waits for.

        Who is started in the background by a script, as .ci/run does it, begins with SIGINT ignored, and so would all its children.
        They are not: exec keeps what is ignored and resets what has a handler.
        """

        def interrupt(*_: object) -> None:
            self._interrupted = True

        asked = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup means it
            asked.append(signal.SIGHUP)
        before = {signum: signal.signal(signum, interrupt) for signum in asked}
        try:
            yield
        finally:
            for signum, handler in before.items():
                signal.signal(signum, handler)

    def step(self, name: str, command: Iterable[str], env: dict[str, str]) -> bool:
        """Run a command with its output in a log and say in one line how it went; returns whether all is well."""
        log = self.logs / f"{name}.log"
        log.unlink(missing_ok=True)
        with Step(name, log) as step:
            with self._lock:
                if self._ending:
                    raise Stopped(name)
                self._running[step] = step.started + self.heartbeat
            try:
                status = step.stream(*command, cwd=self.checkout, env=env)
            except Stopped:
                self.say(console.line("end", name, step.seconds, "stopped before its end"))
                raise
            except OSError as error:  # there is no such command
                step.say(str(error))
                status = 127
            finally:
                with self._lock:
                    self.costs[name] = step.cpu
                    if not self._ending:  # otherwise `end` still looks after its children
                        del self._running[step]
        if status == 0:
            self.say(console.line("ok", name, step.seconds, console.summary(log)))
        else:
            named = self.failed[name] = console.failures(log)
            heading = console.line("FAIL", name, step.seconds, f"exit status {status}, the end of {log}:")
            self.say("\n".join([heading, *console.explanation(named, log, self.tail)]))
        return status == 0

    def alone(self, name: str, command: Iterable[str], env: dict[str, str]) -> bool:
        """A step that nothing new is begun beside; workers that were started before go on."""
        return self.wait([self._begin(self.step, name, command, env)])

    def work(self, queue: Queue, env: Callable[[bool], dict[str, str]]) -> None:
        """Start a worker: it runs part after part, whatever the one before has found.

        :param env: makes the environment of a part; its argument says whether that is the last of the queue
        """
        self._workers.append(self._begin(self._work, queue, env))

    def _work(self, queue: Queue, env: Callable[[bool], dict[str, str]]) -> bool:
        well = True
        while taken := queue.take():
            part, last = taken
            well = self.step(part.name, part.command, {**env(last), **part.env}) and well
        return well

    def _begin(self, function: Callable[..., bool], *arguments: object) -> Future[bool]:
        future = self._pool.submit(function, *arguments)
        self._begun.append(future)
        return future

    def workers_done(self) -> bool:
        """Wait for the workers and say whether all is well."""
        done, self._workers = self.wait(self._workers), []
        return done

    def wait(self, futures: Iterable[Future[bool]]) -> bool:
        futures = list(futures)
        pending = set(futures)
        while pending:
            _, pending = wait(pending, timeout=POLL, return_when=FIRST_COMPLETED)
            if self._interrupted and not self._cleaning_up:
                raise Interrupted
            self._show_signs_of_life()
        return False not in [future.result() for future in futures]

    def end(self) -> None:
        """End all that runs: first the way that lets tests put back what they changed, then for good.

        What is run after that is what cleans up: no signal interrupts it.
        """
        self._cleaning_up = True
        with self._lock:
            self._ending = True
            steps = list(self._running)
        for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            for step in steps:
                step.stop(signum)
            end = time.monotonic() + self.patience
            while not (gone := all(step.gone() for step in steps)) and time.monotonic() < end:
                time.sleep(POLL)
            if gone:
                break
        wait(self._begun, timeout=self.patience)
        with self._lock:
            self._running.clear()
            self._ending = False

    def _show_signs_of_life(self) -> None:
        now = time.monotonic()
        with self._lock:
            due = [step for step, when in self._running.items() if when <= now]
            self._running.update(dict.fromkeys(due, now + self.heartbeat))
        for step in due:
            self.say(console.line("....", step.name, step.seconds, console.last_line(step.log)))

    @staticmethod
    def say(text: str) -> None:
        """Print a line. Who no longer listens is no reason to leave labs behind."""
        with contextlib.suppress(BrokenPipeError):
            print(text + "\n", end="", flush=True)  # one write, as several threads do it
