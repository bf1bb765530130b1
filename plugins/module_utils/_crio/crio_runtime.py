# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The CRI-O of this host's kubelet: whether it reads the CDI spec of this collection. Nothing of it is ever changed."""

from __future__ import annotations

import socket
import time

from ansible_collections.npuops.ascend.plugins.module_utils._crio import crio_config
from ansible_collections.npuops.ascend.plugins.module_utils._host import process as host_process
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, printable
from ansible_collections.npuops.ascend.plugins.module_utils._runtime import cri

NAME = "cri-o"
UNIT = "crio.service"
SPEC_DIR = "/etc/cdi"

RESTART = "restart CRI-O (systemctl restart %s)" % UNIT
_SECONDS = 5
_MAX_BYTES = 1 << 20


class Daemon:
    """The CRI-O that serves the CRI on the socket ``address``. Raises NpuError if another process of the host could pose as it.

    ``process``: its _host.process.Process, None if it does not run.
    """

    def __init__(self, address, fs=""):
        self.address = address
        self.process = host_process.crio(address, fs)
        self._fs = fs

    @property
    def config(self):
        """The path of its main configuration file; "" if it reads none."""
        return crio_config.main_file(*self._started_with())

    def configured(self):
        """The crio_config.SpecDirs after its next start. Raises NpuError if it would not start."""
        argv, environment = self._started_with()
        try:
            return crio_config.spec_dirs(argv, environment, self._fs)
        except (OSError, ValueError) as exc:
            raise NpuError(
                "CRI-O's configuration cannot be read, so its next start would fail: %s. Fix that, then run again" % exc
            ) from None

    def running(self):
        """The directories that the running process was started with; raises CriError if it does not respond.

        After a reload (SIGHUP) it reads those in its files, but goes on to report those of before.
        """
        text = _get(self._fs + self.address, "/config", _SECONDS)
        try:
            found = crio_config.in_text(text, "its configuration")
        except (RecursionError, ValueError) as exc:
            raise cri.CriError("%s: %s" % (self.address, exc)) from None
        if found is None:
            raise cri.CriError("%s: CRI-O does not report cdi_spec_dirs" % self.address)
        return found

    def problem(self):
        """Why containers would not get their chips, as sentences with what to do; None if they would."""
        try:
            configured = self.configured()
        except NpuError as exc:
            return exc.message
        if SPEC_DIR not in configured.directories:
            return "CRI-O does not read CDI specs from %s: %s. Then run again" % (SPEC_DIR, add_to(configured))
        try:
            running = self.running()
        except cri.CriError as exc:
            return "CRI-O does not respond: %s. Check systemctl status %s" % (exc, UNIT)
        if SPEC_DIR not in running:
            return "CRI-O reads CDI specs from %s, because it has not been restarted since its configuration changed: %s" % (
                shown(running),
                RESTART,
            )
        return None

    def _started_with(self):
        """Its command line and its environment."""
        return (self.process.argv, self.process.environment) if self.process else ([], {})


def add_to(configured):
    """What to do about the SpecDirs ``configured``, which lacks our directory."""
    return '%s sets cdi_spec_dirs to %s. Add "%s" to that list and %s' % (
        configured.source,
        shown(configured.directories),
        SPEC_DIR,
        RESTART,
    )


def shown(directories):
    """The list ``directories`` for people."""
    return printable(", ".join(directories)) or "an empty list"


def _get(address, path, seconds):
    """The text that the process on the Unix socket ``address`` serves over HTTP at ``path``; raises CriError."""
    deadline = time.monotonic() + seconds
    answer = b""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(seconds)
            connection.connect(address)
            # With HTTP/1.0, the answer comes in one piece and ends with the connection.
            connection.sendall(b"GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n" % path.encode("ascii"))
            while len(answer) <= _MAX_BYTES:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise OSError("timed out")
                connection.settimeout(left)
                data = connection.recv(1 << 16)
                if not data:
                    break
                answer += data
    except OSError as exc:
        raise cri.CriError("%s: %s" % (address, exc)) from None
    head, _separator, body = answer.partition(b"\r\n\r\n")
    if len(answer) > _MAX_BYTES or head.split(b" ")[1:2] != [b"200"]:
        raise cri.CriError("%s: the process that listens there does not answer as CRI-O does" % address)
    return body.decode("utf-8", "replace")
