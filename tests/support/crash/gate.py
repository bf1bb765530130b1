# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Killing a controller at an exact call.

A `Gate` numbers the mutating calls that one controller makes, to the API (api_proxy) and to the hosts (counting_ssh), and
at call `at` does what its `Fate` says. A `Controller` is a program, with all it has started, that can be killed at once.
"""

from __future__ import annotations

import contextlib
import enum
import json
import os
import pathlib
import re
import signal
import socketserver
import subprocess
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from support.patience import PATIENCE

HERE = pathlib.Path(__file__).resolve().parent
MARK = "NPUOPS_TEST_CONTROLLER"  # environment variable by which a controller's processes are known
SOCKET = "NPUOPS_TEST_GATE"  # environment variable with the socket that counting_ssh asks


class Fate(enum.Enum):
    """What happens to call `at`."""

    NOTHING = "nothing"  # calls are counted only
    KILL_BEFORE = "kill-before"  # the controller dies, the call never reaches its target
    KILL_AFTER = "kill-after"  # the call reaches its target; the controller dies before it learns of it
    DARK_BEFORE = "dark-before"  # the call does not get through and the API is unreachable for some time
    DARK_AFTER = "dark-after"  # the call gets through, its answer does not, and the API is unreachable for some time


class Answer(enum.Enum):
    """What a proxy does with a call or its answer."""

    GO = "go"
    DROP = "drop"


@dataclass(frozen=True)
class Call:
    """One mutating call, `what` in words that are the same in every run: "PATCH nodes/npu-a step=cordon-required ..."."""

    number: int
    target: str  # "api" or the host's address
    what: str
    time: float = field(compare=False)


class Gate:
    """Counts calls and does to call `at` what `fate` says; afterwards, if it killed, nothing gets through any more.

    :param at: the call's number, or a regular expression: then it is the first one whose kind matches, whatever its number
    :param node: the node that the run is about; the words of calls have NODE in its place
    :param kill: called once, returns when the controller is dead
    :param dark: seconds for which the API is unreachable
    """

    def __init__(
        self,
        at: int | str | None = None,
        fate: Fate = Fate.NOTHING,
        kill: Callable[[], None] = lambda: None,
        dark: float = 30,
        node: str | None = None,
    ) -> None:
        self.at, self.fate, self.kill, self.node, self._dark_seconds = at, fate, kill, node, dark
        self.calls: list[Call] = []
        self.dead = False
        self.on_dark: list[Callable[[], None]] = []  # called when the API goes dark
        self._dark_until = 0.0
        self._lock = threading.Lock()

    @property
    def reached(self) -> bool:
        """Whether there was a call `at`."""
        return isinstance(self.at, int) and len(self.calls) >= self.at

    def record(self) -> dict[str, object]:
        """What there is to tell of call `at`: the call, or all that there were instead of it."""
        call = self.calls[self.at - 1] if self.reached else None
        instead = {} if call else {"calls": [call.what for call in self.calls]}
        return {"at": self.at, "reached": self.reached, "call": call and call.what, "target": call and call.target, **instead}

    @property
    def dark(self) -> bool:
        return time.monotonic() < self._dark_until

    def before(self, target: str, what: str) -> tuple[int, Answer]:
        """A call arrives: its number, and whether it goes on."""
        if self.node:
            what = what.replace(self.node, "NODE")
        with self._lock:
            if self.dead:
                return 0, Answer.DROP
            number = len(self.calls) + 1
            self.calls.append(Call(number, target, what, time.time()))
            if isinstance(self.at, str) and re.search(self.at, kind(what)):
                self.at = number
            if number != self.at:
                return number, Answer.GO
            if self.fate is Fate.KILL_BEFORE:
                self._die()
                return number, Answer.DROP
            if self.fate is Fate.DARK_BEFORE:
                self._go_dark()
                return number, Answer.DROP if target == "api" else Answer.GO
            return number, Answer.GO

    def after(self, number: int) -> Answer:
        """The call was answered: whether the controller gets the answer."""
        with self._lock:
            if self.dead:
                return Answer.DROP
            if number == self.at and self.fate is Fate.KILL_AFTER:
                self._die()
                return Answer.DROP
            if number == self.at and self.fate is Fate.DARK_AFTER:
                self._go_dark()
                return Answer.DROP if self.calls[number - 1].target == "api" else Answer.GO
            return Answer.GO

    def light(self) -> None:
        """The API can be reached again."""
        self._dark_until = 0.0

    def _die(self) -> None:
        self.dead = True
        self.kill()

    def _go_dark(self) -> None:
        self._dark_until = time.monotonic() + self._dark_seconds
        for function in self.on_dark:
            function()


class GateSocket:
    """The gate as counting_ssh sees it: `with GateSocket(gate, directory) as ssh: ssh.environment`.

    `lost`: addresses of hosts that do not answer on SSH for now.
    """

    def __init__(self, gate: Gate, directory: pathlib.Path) -> None:
        self.gate = gate
        self.lost: set[str] = set()
        path = directory / "gate"
        path.unlink(missing_ok=True)
        self._server = socketserver.ThreadingUnixStreamServer(str(path), _gate_handler(self))
        self._server.daemon_threads = True
        self.environment = {SOCKET: str(path), "ANSIBLE_SSH_EXECUTABLE": str(HERE / "counting_ssh")}

    def __enter__(self) -> GateSocket:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _gate_handler(ssh: GateSocket) -> type[socketserver.StreamRequestHandler]:
    class Handler(socketserver.StreamRequestHandler):
        """One ssh command: {"host", "what", "counts"}, then, when it ended, one more line."""

        def handle(self) -> None:
            with contextlib.suppress(OSError):  # the controller, or only its ssh, is gone
                question = json.loads(self.rfile.readline())
                if question["host"] in ssh.lost:
                    self._say("lost")
                    return
                number, answer = (0, Answer.DROP if ssh.gate.dead else Answer.GO)
                if question["counts"]:
                    number, answer = ssh.gate.before(question["host"], question["what"])
                self._say(answer.value)
                if answer is Answer.GO and self.rfile.readline():
                    self._say(ssh.gate.after(number).value)

        def _say(self, word: str) -> None:
            self.wfile.write(word.encode("ascii") + b"\n")
            self.wfile.flush()

    return Handler


class Controller:
    """A program with all its descendants. Ansible's workers and SSH's masters leave its process group, so they are known
    by a variable in their environment instead.
    """

    def __init__(self, command: list[str], output: pathlib.Path, env: dict[str, str], cwd: pathlib.Path | None = None) -> None:
        self.mark = uuid.uuid4().hex
        self.output = output
        self.killed = False
        with output.open("ab") as stream:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                env={**env, MARK: self.mark},
                cwd=cwd,
                start_new_session=True,
            )

    @property
    def text(self) -> str:
        return self.output.read_text(encoding="utf-8", errors="replace")

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def wait(self, timeout: float) -> int:
        """Its exit status; after `timeout` seconds it is killed and the test fails."""
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"not done within {timeout:.0f} s, killed:\n{self.text[-4000:]}") from None

    def interrupt(self) -> None:
        """Ctrl-C, as a terminal has it: for all processes that have not left it."""
        os.killpg(self._process.pid, signal.SIGINT)

    def kill(self) -> None:
        """SIGKILL to all of it at once; returns when none is left."""
        self.killed = True
        end = time.monotonic() + PATIENCE
        while pids := self.processes():
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._process.poll()  # a dead child remains a zombie until its parent asks for its status
            assert time.monotonic() < end, f"processes {pids} do not die"
        # One that has given up its environment already may still be about to die.
        self._process.wait(PATIENCE)

    def processes(self) -> list[int]:
        """IDs of what runs of it, zombies not counted."""
        wanted = f"{MARK}={self.mark}".encode("ascii")
        found = []
        for directory in pathlib.Path("/proc").iterdir():
            if directory.name.isdigit():
                with contextlib.suppress(OSError):  # it ended meanwhile, or belongs to another user
                    if wanted in (directory / "environ").read_bytes().split(b"\0"):
                        found.append(int(directory.name))
        return found


def describe_request(method: str, path: str, body: dict) -> str:
    """A mutating request in words that are the same in every run: no times, versions, generated names or run IDs."""
    words = [method, re.sub(r"^/(api|apis)/", "", path)]
    if "/events" in path:
        return "event"  # made or refreshed
    if path.endswith("/eviction"):
        return f"{method} eviction"
    metadata = body.get("metadata") or {}
    for kind in ("labels", "annotations"):
        for key, value in sorted((metadata.get(kind) or {}).items()):
            words.append(_setting(key, value))
    if "/nodes/" in path:
        words += [_setting(key, value) for key, value in sorted((body.get("spec") or {}).items())]
    return " ".join(words)


def kind(what: str) -> str:
    """The words of a call without what other nodes at work, a heartbeat more or less, a foreign cordon, and a node agent that has
    told already that the chips answer again, or not yet, change in them."""
    what = re.sub(r"(:[\w-]*(?:\+boot)?)/\d+| unschedulable=\S+| reboot-required=\S+", r"\1", what)
    return re.sub(r"slots:(\S+)(?: halted)?", lambda slots: f"slots:{'NODE' if 'NODE' in slots[1].split(',') else 'others'}", what)


def _setting(key: str, value: object) -> str:
    name = key.rpartition("/")[2]
    if value is None or isinstance(value, bool):
        return f"{name}={'-' if value is None else str(value).lower()}"
    if name in ("driver-upgrade-state", "components", "reboot-required"):
        return f"{name}={value}"
    try:
        document = json.loads(value)
    except (TypeError, ValueError):
        return name
    if not isinstance(document, dict):
        return name
    if "holders" in document:
        return f"{name}:{','.join(sorted(document['holders'])) or 'none'}{' halted' if document.get('halted') else ''}"
    # How many marks of time it has tells writes of one step apart.
    intent = "+boot" if document.get("boot_id") else ""
    return f"{name}:{document.get('step', '')}{intent}/{len(document.get('times') or ())}" if "step" in document else name


def describe_payload(payload: bytes) -> tuple[str, bool]:
    """What an Ansible module that is piped to a host is, and whether it may change the host. The unknown may."""
    text = payload.decode("utf-8", "replace")
    names = re.findall(r"module_fqn=[^A-Za-z]{0,3}([\w.]+)", text) or re.findall(r"\bansible_module=[^A-Za-z]{0,3}(\w+)", text)
    if not names:
        return "unknown program", True
    name = names[-1].rpartition(".")[2]
    state = re.findall(r'\\*"state\\*": *\\*"(\w+)\\*"', text)
    if name in ("npu_facts", "npu_validate", "npu_smi_info", "setup", "ping", "stat", "slurp"):
        return name, False
    if name == "npu_trial_boot":
        return f"{name} {state[-1] if state else 'view'}", bool(state) and state[-1] != "view"
    return f"{name} {state[-1]}" if state else name, True
