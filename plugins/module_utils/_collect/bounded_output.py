# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The last part of what a program prints, however much that is, and however long it would take."""

from __future__ import annotations

import collections
import os
import select
import signal
import subprocess
import time

_CHUNK = 65536


class Tail:
    """``rc`` (None if the program did not end in time), the last bytes as ``text``, and whether others were ``cut`` off."""

    def __init__(self, rc, text, cut):
        self.rc = rc
        self.text = text
        self.cut = cut


def tail(argv, seconds, most):
    """Run ``argv`` for at most ``seconds``, and keep the last ``most`` bytes of its output in whole lines. Raises OSError.

    The output is read from a pipe and only its end is kept, so no file of the host grows with it. A program that is stuck in the
    kernel keeps its pipe open, so the pipe is never waited for beyond the time limit.
    """
    # run_command has neither limit.
    process = subprocess.Popen(  # pylint: disable=ansible-bad-function
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=dict(os.environ, LC_ALL="C", SYSTEMD_PAGER="", SYSTEMD_COLORS="0"),
        start_new_session=True,
    )
    deadline = time.monotonic() + seconds
    kept = Kept(most)
    ended = False
    try:
        ended = _read(process.stdout, deadline, kept)
        rc = _wait(process, deadline) if ended else None
    finally:
        if not ended or process.poll() is None:
            _kill(process)
        process.stdout.close()
    return Tail(rc, kept.text(), kept.cut)


class Kept:
    """The last ``most`` bytes of what is added, at least one; ``cut``: whether others were cut off."""

    def __init__(self, most):
        self.most = most
        self.cut = False
        self._chunks = collections.deque()
        self._size = 0

    def add(self, chunk):
        self._chunks.append(chunk)
        self._size += len(chunk)
        while self._size - len(self._chunks[0]) >= self.most:
            self._size -= len(self._chunks.popleft())
            self.cut = True

    def text(self):
        data = b"".join(self._chunks)
        if len(data) > self.most:
            data, self.cut = data[-self.most :], True
        return whole_lines(data, self.cut)


def whole_lines(data, cut):
    """The text of ``data``; without its first line if something before it was ``cut`` off: that line may be the end of a secret."""
    if cut:
        data = data.partition(b"\n")[2]
    return data.decode("utf-8", "replace")


def _read(stream, deadline, kept):
    """Read until the end of the output; whether that came before the deadline."""
    descriptor = stream.fileno()
    poll = select.poll()
    poll.register(descriptor, select.POLLIN | select.POLLHUP)
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            return False
        chunk = os.read(descriptor, _CHUNK)
        if not chunk:
            return True
        kept.add(chunk)


def _wait(process, deadline):
    try:
        return process.wait(max(0.1, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return None


def _kill(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    try:
        process.wait(1)
    except subprocess.TimeoutExpired:
        pass  # stuck in the kernel
