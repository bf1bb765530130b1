# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run programs that may hang forever."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import tempfile

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NoVerdict


class Result:
    """Exit status (None if the program did not end in time), standard output and standard error as text."""

    def __init__(self, rc, stdout, stderr):
        self.rc = rc
        self.stdout = stdout
        self.stderr = stderr

    @property
    def timed_out(self):
        return self.rc is None

    @property
    def text(self):
        """Both outputs, stripped, for messages."""
        return "\n".join(part.strip() for part in (self.stdout, self.stderr) if part.strip())


# prctl(2): the signal a process gets when its parent dies.
_PR_SET_PDEATHSIG = 1


def run(argv, timeout, env=None, stdin=None, pass_fds=(), die_with_us=False, most=None):
    """Run ``argv``, and wait at most ``timeout`` seconds, whatever the program does.

    Output goes to files, not pipes: a process that is stuck in the kernel keeps its pipe open, and reading from it would hang.
    After the timeout the process group is killed; a process that cannot be killed (state D) is left behind. With ``die_with_us``
    the kernel kills the program if this process is killed, so that it does not interfere with a later run. The program inherits the
    file descriptors ``pass_fds``: a lock on one of them lasts as long as the program. Of each output, ``most`` bytes are read,
    by default all. Raises FileNotFoundError if the program does not exist, and NoVerdict if there was no space for its output.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        # run_command has no time limit that holds for a program that cannot be killed.
        process = subprocess.Popen(  # pylint: disable=ansible-bad-function
            argv,
            stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env=dict(os.environ, LC_ALL="C", **(env or {})),
            start_new_session=True,
            pass_fds=pass_fds,
            preexec_fn=_die_with_parent() if die_with_us else None,
        )
        if stdin is not None:
            process.stdin.write(stdin.encode("utf-8"))
            process.stdin.close()
        rc = None
        try:
            rc = _wait(process, timeout)
        finally:
            # After the timeout, or when a signal handler raises.
            if rc is None:
                os.killpg(process.pid, signal.SIGKILL)
                _wait(process, 1)
        for stream in (out, err):
            _check_room(stream, argv[0])
            stream.seek(0)
        return Result(rc, *(stream.read(most).decode("utf-8", "replace") for stream in (out, err)))


def _check_room(stream, program):
    """Raise NoVerdict if the disk is full: otherwise truncated output would be mistaken for the complete one."""
    end = os.fstat(stream.fileno()).st_size
    try:
        os.pwrite(stream.fileno(), b"\0", end)
        os.ftruncate(stream.fileno(), end)
    except OSError as exc:
        raise NoVerdict(
            "There is no space for the output of %s in %s (%s): free some space and run again"
            % (program, tempfile.gettempdir(), exc.strerror)
        ) from None


def _die_with_parent():
    """A function for the child to call between fork and exec. The library is loaded before the fork."""
    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _wait(process, timeout):
    """The exit status, or None if the process has not ended after ``timeout`` seconds."""
    open_descriptor = vars(os).get("pidfd_open")  # from Python 3.9 on
    try:
        descriptor = open_descriptor(process.pid) if open_descriptor else None
    except OSError:
        descriptor = None  # Linux before 5.3
    if descriptor is None:
        # Asks again and again, at intervals that grow to 50 ms.
        try:
            return process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None
    try:
        ended = select.poll()
        ended.register(descriptor, select.POLLIN)
        return process.wait() if ended.poll(timeout * 1000) else None
    finally:
        os.close(descriptor)
