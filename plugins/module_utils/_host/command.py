# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running a host program that may hang for ever."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import tempfile

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NoVerdict


class Result:
    """Exit status (None when it did not end in time), standard output and standard error as text."""

    def __init__(self, rc, stdout, stderr):
        self.rc = rc
        self.stdout = stdout
        self.stderr = stderr

    @property
    def timed_out(self):
        return self.rc is None

    @property
    def text(self):
        """Both outputs, stripped: what to show a person."""
        return "\n".join(part.strip() for part in (self.stdout, self.stderr) if part.strip())


# prctl(2): the signal a process gets when its parent dies.
_PR_SET_PDEATHSIG = 1


def run(argv, timeout, env=None, stdin=None, pass_fds=(), die_with_us=False):
    """Run ``argv`` for at most ``timeout`` seconds; never waits longer, whatever the program does.

    Output goes through files, not pipes: a process stuck in the kernel keeps its pipe open, and reading
    it would hang us as well. Past the limit the process group is killed; a process that does not even
    die (state D) is left behind, not waited for. With ``die_with_us`` the kernel kills the program when we are
    killed, so that it does not work on against whoever repeats the call. The program inherits the file
    descriptors ``pass_fds``: a lock held through one lasts as long as the program. Raises FileNotFoundError when
    there is no such program, and NoVerdict when there was no room for its output.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
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
            # Past the limit, or we are told to end (a signal handler raises).
            if rc is None:
                os.killpg(process.pid, signal.SIGKILL)
                _wait(process, 1)
        for stream in (out, err):
            _check_room(stream, argv[0])
            stream.seek(0)
        return Result(rc, out.read().decode("utf-8", "replace"), err.read().decode("utf-8", "replace"))


def _check_room(stream, program):
    """NoVerdict when the disk is full: what the program could not write looks like something it did not say."""
    end = os.fstat(stream.fileno()).st_size
    try:
        os.pwrite(stream.fileno(), b"\0", end)
        os.ftruncate(stream.fileno(), end)
    except OSError as exc:
        raise NoVerdict(
            "There is no room for the output of %s in %s (%s): make some, then run again"
            % (program, tempfile.gettempdir(), exc.strerror)
        ) from None


def _die_with_parent():
    """A function for the child between fork and exec; the library is loaded before the fork."""
    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _wait(process, timeout):
    """The exit status, or None when it has not ended ``timeout`` seconds from now."""
    try:
        # Looks every half a millisecond at first: most of our commands end after a few.
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        return None
