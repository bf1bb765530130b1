# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ansible-playbook, ansible and ansible-inventory in processes that need not load Ansible: each run is a fork of one that has.

The tests start hundreds of them, and most of what a short one costs is loading the same Python and packing the same modules for the
hosts. What a run does is what it does otherwise; how the programs start, molecule, `make demo` and every run that tests kill show.
A module on this machine can also be such a fork, see PreloadedPython.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import pathlib
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence

from support import costs

PLACE = tempfile.gettempdir()  # an API server of the tests may change it while it runs
_OF_PLUGINS = ("ANSIBLE_CALLBACK_RESULT_FORMAT",)
_SPENT = "cpu-seconds"
_NUMBER = struct.Struct("!q")
_END = struct.Struct("!qd")  # the exit status, and the CPU seconds with those of every process that it has started
_LIBRARY = "ansible_collections.npuops.ascend.plugins.plugin_utils"


class Preloaded:
    """A process that has loaded Ansible, with the environment `environ` for all that is run. It ends with `close` or this process."""

    _serves = "ansible"

    def __init__(self, environ: dict[str, str]) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="npu-ansible-", dir=PLACE)
        self._path = os.path.join(self._directory.name, "socket")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self._path)
            listener.listen(16)
            # -P: the modules beside this file have names of their own choice.
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _SERVER, str(pathlib.Path(__file__).parents[1]), str(listener.fileno()), self._serves],
                stdin=subprocess.PIPE,
                pass_fds=[listener.fileno()],
                env=environ,
                cwd=self._directory.name,  # not where an ansible.cfg is that no run asks for
            )

    def close(self) -> None:
        self._process.communicate(timeout=600)
        self._directory.cleanup()

    def run(
        self, command: Sequence[str], cwd: os.PathLike | str, timeout: float, more: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess:
        """As subprocess.run does it, with its output captured as text and without any input. May be called by several threads.

        :param command: ansible-playbook, ansible or ansible-inventory, and its arguments
        :param more: environment variables of this run. Ansible reads its settings when it is loaded, so these are `environ`'s; only
            what belongs to a plugin it reads later
        """
        assert not [name for name in more or () if name.startswith("ANSIBLE_") and name not in _OF_PLUGINS], more
        request = json.dumps({"command": list(command), "cwd": str(cwd), "more": dict(more or {})}).encode()
        with (
            open(os.devnull, "rb") as nothing,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
            socket.socket(socket.AF_UNIX) as connection,
        ):
            connection.connect(self._path)
            socket.send_fds(connection, [_NUMBER.pack(len(request))], [stream.fileno() for stream in (nothing, out, err)])
            connection.sendall(request)
            (process,) = _numbers(connection, _NUMBER)
            connection.settimeout(timeout)
            try:
                status, seconds = _numbers(connection, _END)
            except BaseException as error:
                _end(process, connection)
                if isinstance(error, TimeoutError):
                    raise subprocess.TimeoutExpired(command, timeout, *_texts(out, err)) from None
                raise
            costs.add(seconds)
            return subprocess.CompletedProcess(command, status, *_texts(out, err))


class PreloadedPython(Preloaded):
    """A Python that has loaded what modules import. `interpreter` is a program for ansible_python_interpreter on this machine."""

    _serves = "python"

    def __init__(self) -> None:
        super().__init__(dict(os.environ))
        self._told = 0.0
        self.interpreter = os.path.join(self._directory.name, "python")
        with open(self.interpreter, "w", encoding="utf-8") as file:
            file.write(_INTERPRETER % {"python": sys.executable, "socket": self._path})
        os.chmod(self.interpreter, 0o755)

    def account(self) -> None:
        """Tell `costs` what the forks have needed since this was called last: who has asked for them is not this process."""
        with contextlib.suppress(FileNotFoundError), open(os.path.join(self._directory.name, _SPENT), encoding="ascii") as file:
            spent = float(file.read())
            costs.add(spent - self._told)
            self._told = spent


def _end(process: int, connection: socket.socket) -> None:
    """As Ctrl-C does it, for then it ends what it has started; if that takes too long, at once."""
    with contextlib.suppress(ProcessLookupError, OSError):
        os.kill(process, signal.SIGINT)
        connection.settimeout(10)
        try:
            _numbers(connection, _END)
        except TimeoutError:
            os.kill(process, signal.SIGKILL)


def _texts(*streams) -> list[str]:
    texts = []
    for stream in streams:
        stream.seek(0)
        texts.append(stream.read().decode("utf-8", "replace"))
    return texts


def _numbers(connection: socket.socket, form: struct.Struct) -> tuple:
    return form.unpack(_read(connection, form.size))


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise ConnectionError("the process that ran Ansible has ended without a word")
        data += part
    return data


# --- the other side ---

_SERVER = """
import sys
sys.path.insert(0, sys.argv[1])
from support import preloaded
del sys.path[0]
preloaded.serve(*sys.argv[2:])
"""

# With the code on standard input it is a fork, else the Python itself.
_INTERPRETER = """#!/usr/bin/python3 -ISE
import json, os, socket, struct, sys
if sys.argv[1:]:
    os.execv(%(python)r, [%(python)r, *sys.argv[1:]])
request = json.dumps({"command": ["python"], "cwd": os.getcwd(), "more": dict(os.environ)}).encode()
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(%(socket)r)
    socket.send_fds(connection, [struct.pack("!q", len(request))], [0, 1, 2])
    connection.sendall(request)
    answer = b""
    while len(answer) < 24:
        part = connection.recv(24)
        if not part:
            sys.exit("the process that ran the module has ended without a word")
        answer += part
sys.exit(struct.unpack("!qqd", answer)[1])
"""


def serve(number: str, what: str) -> None:
    """Fork for each connection, until standard input ends. Modules are packed once: the forks share the cache."""
    listener = socket.socket(fileno=int(number))
    programs = {"ansible": _ansible, "python": _python}[what]()
    gc.freeze()  # or each collection in a fork would copy the memory of all this
    spent = 0.0
    used = 0.0  # CPU seconds of this process that a run has been told; the first one pays for the loading
    running: dict[int, tuple[int, socket.socket]] = {}  # by the descriptor that tells the end of a fork
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the runs, and the end of the tests ends this
    while True:
        ready = select.select([listener, sys.stdin, *running], [], [])[0]
        for ended in set(ready) & set(running):
            process, connection = running.pop(ended)
            os.close(ended)
            _process, status, usage = os.wait4(process, 0)
            used, before = _cpu_seconds(resource.getrusage(resource.RUSAGE_SELF)), used
            seconds = _cpu_seconds(usage) + used - before
            spent += seconds
            pathlib.Path(_SPENT + ".new").write_text(str(spent), encoding="ascii")
            os.replace(_SPENT + ".new", _SPENT)
            with contextlib.suppress(BrokenPipeError):  # who asked may have lost patience
                connection.sendall(_END.pack(os.waitstatus_to_exitcode(status), seconds))
            connection.close()
        if sys.stdin in ready:
            return
        if listener in ready:
            connection = listener.accept()[0]
            process = os.fork()
            if process == 0:
                for other in (listener, *[other for _process, other in running.values()]):
                    other.close()
                _become(programs, connection)
            running[os.pidfd_open(process)] = process, connection


def _ansible() -> dict[str, Callable[[], None]]:
    """All that a run imports, imported, and the programs."""
    import kubernetes.client
    import kubernetes.dynamic  # noqa: F401
    from ansible.cli.adhoc import AdHocCLI
    from ansible.cli.inventory import InventoryCLI
    from ansible.cli.playbook import PlaybookCLI
    from ansible.plugins.loader import init_plugin_loader

    # Every run does it again, about which Ansible warns.
    init_plugin_loader()
    warnings.filterwarnings("ignore", "AnsibleCollectionFinder has already been configured")
    with contextlib.suppress(ModuleNotFoundError):  # some runs have nothing to do with the collection
        (place,) = importlib.import_module(_LIBRARY).__path__
        for path in pathlib.Path(place).rglob("*.py"):
            parts = path.relative_to(place).with_suffix("").parts
            importlib.import_module(".".join([_LIBRARY, *parts]).removesuffix(".__init__"))
    programs = {"ansible-playbook": PlaybookCLI, "ansible": AdHocCLI, "ansible-inventory": InventoryCLI}
    return {name: program.cli_executor for name, program in programs.items()}


def _python() -> dict[str, Callable[[], None]]:
    """What modules import, and not what Ansible itself does: some of it behaves otherwise beside that."""
    import ansible.module_utils.basic  # noqa: F401
    import ansible.module_utils.urls  # noqa: F401
    import yaml  # noqa: F401

    return {"python": _code_on_standard_input}


def _code_on_standard_input() -> None:
    sys.argv = [""]
    with open(0, "rb", closefd=False) as code:
        compiled = compile(code.read(), "<stdin>", "exec")
    try:
        exec(compiled, {"__name__": "__main__"})
    except Exception:
        traceback.print_exc()
        sys.exit(1)
    finally:
        atexit._run_exitfuncs()  # modules leave it to them to remove their files


def _cpu_seconds(usage: resource.struct_rusage) -> float:
    return usage.ru_utime + usage.ru_stime


def _become(programs: dict, connection: socket.socket) -> None:
    """Be the program that is asked for. Does not return."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    header, streams = socket.recv_fds(connection, _NUMBER.size, 3)[:2]
    request = json.loads(_read(connection, *_NUMBER.unpack(header)))
    connection.sendall(_NUMBER.pack(os.getpid()))
    connection.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.update(request["more"])
    tempfile.tempdir = None  # TMPDIR may be another one
    os.chdir(request["cwd"])
    sys.argv = request["command"]
    try:
        programs[sys.argv[0]]()
        status = 0
    except SystemExit as end:
        status = int(end.code or 0)
    sys.stdout.flush()
    sys.stderr.flush()
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()  # the last processes of tasks, whose CPU seconds are told with this one's
    # Not exit(): what there is to put away belongs to the process that this is a fork of.
    os._exit(status)
