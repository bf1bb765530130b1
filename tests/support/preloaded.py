# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ansible-playbook and ansible in processes that need not load Ansible: each run is a fork of one that has.

The tests start hundreds of them, and most of what a short one costs is loading the same Python and packing the same modules for the
hosts. What a run does is what it does otherwise; how the programs start, molecule, `make demo` and every run that tests kill show.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence

_NUMBER = struct.Struct("!q")


class Preloaded:
    """A process that has loaded Ansible, with the environment `environ` for all that is run. It ends with `close` or this process."""

    def __init__(self, environ: dict[str, str]) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="npu-ansible-")
        self._path = os.path.join(self._directory.name, "socket")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self._path)
            listener.listen(16)
            # -P: the modules beside this file have names of their own choice.
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(listener.fileno())],
                stdin=subprocess.PIPE,
                pass_fds=[listener.fileno()],
                env=environ,
            )

    def close(self) -> None:
        self._process.communicate(timeout=600)
        self._directory.cleanup()

    def run(self, command: Sequence[str], cwd: os.PathLike | str, timeout: float) -> subprocess.CompletedProcess:
        """As subprocess.run does it, with its output captured as text and without any input. May be called by several threads.

        :param command: ansible-playbook or ansible, and its arguments
        """
        request = json.dumps({"command": list(command), "cwd": str(cwd)}).encode()
        with (
            open(os.devnull, "rb") as nothing,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
            socket.socket(socket.AF_UNIX) as connection,
        ):
            connection.connect(self._path)
            socket.send_fds(connection, [_NUMBER.pack(len(request))], [stream.fileno() for stream in (nothing, out, err)])
            connection.sendall(request)
            process = _number(connection)
            connection.settimeout(timeout)
            try:
                status = _number(connection)
            except BaseException as error:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
                if isinstance(error, TimeoutError):
                    raise subprocess.TimeoutExpired(command, timeout, *_texts(out, err)) from None
                raise
            return subprocess.CompletedProcess(command, status, *_texts(out, err))


def _texts(*streams) -> list[str]:
    texts = []
    for stream in streams:
        stream.seek(0)
        texts.append(stream.read().decode("utf-8", "replace"))
    return texts


def _number(connection: socket.socket) -> int:
    return _NUMBER.unpack(_read(connection, _NUMBER.size))[0]


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise ConnectionError("the process that ran Ansible has ended without a word")
        data += part
    return data


# --- the other side ---


def _serve(listener: socket.socket) -> None:
    """Fork for each connection, until standard input ends. Modules are packed once: where they are kept is the forks' as well."""
    import kubernetes.client  # noqa: F401  pylint: disable=import-outside-toplevel,unused-import
    import kubernetes.dynamic  # noqa: F401  pylint: disable=import-outside-toplevel,unused-import
    from ansible.cli.adhoc import AdHocCLI  # pylint: disable=import-outside-toplevel
    from ansible.cli.playbook import PlaybookCLI  # pylint: disable=import-outside-toplevel

    programs = {"ansible-playbook": PlaybookCLI, "ansible": AdHocCLI}
    while True:
        ready = select.select([listener, sys.stdin], [], [])[0]
        if sys.stdin in ready:
            return
        connection = listener.accept()[0]
        if os.fork() == 0:
            listener.close()
            _become(programs, connection)
        connection.close()
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _become(programs: dict, connection: socket.socket) -> None:
    """Be the program that is asked for. Does not return."""
    header, streams = socket.recv_fds(connection, _NUMBER.size, 3)[:2]
    request = json.loads(_read(connection, _NUMBER.unpack(header)[0]))
    connection.sendall(_NUMBER.pack(os.getpid()))
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(request["cwd"])
    sys.argv = request["command"]
    try:
        programs[sys.argv[0]].cli_executor()
        status = 0
    except SystemExit as end:
        status = int(end.code or 0)
    sys.stdout.flush()
    sys.stderr.flush()
    connection.sendall(_NUMBER.pack(status))
    # Not exit(): what there is to put away belongs to the process that this is a fork of.
    os._exit(status)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
