# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A CRI-O on a host below a directory: its configuration, its process, and what it answers on its socket."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import threading

from support.host.fake_host import add_process
from support.patience import PATIENCE

SOCKET = "/var/run/crio/crio.sock"

# What its packages install.
DROP_IN = """[crio.image]
signature_policy = "/etc/crio/policy.json"

[crio.runtime]
default_runtime = "crun"
# cdi_spec_dirs = ["/no/such"]

[crio.runtime.runtimes.crun]
runtime_path = "/usr/libexec/crio/crun"
"""

ANSWER = """HTTP/1.0 200 OK\r\nContent-Type: application/toml\r\n\r\n[crio]
  root = "/var/lib/containers/storage"
  [crio.api]
    listen = "/var/run/crio/crio.sock"
  [crio.runtime]
    default_capabilities = ["CHOWN", "KILL"]
    cdi_spec_dirs = %s
    [crio.runtime.runtimes]
      [crio.runtime.runtimes.crun]
        runtime_path = "/usr/libexec/crio/crun"
"""

PROGRAM = """#!/bin/sh
printf 'crio version 1.36.3\\n   GitCommit:      unknown\\n   GoVersion:      go1.26.3\\n'
"""


def answer(*directories):
    """What CRI-O answers that was started with these directories for CDI specs."""
    return (ANSWER % ("[%s]" % ", ".join('"%s"' % directory for directory in directories))).encode()


class Crio:
    """``fs``: the host's /, which has a short path; ``answer``: what the process on the socket answers to each request;
    ``without_end``: again and again. ``sent``: the bytes that were taken."""

    def __init__(self, fs, stack):
        self.fs = fs
        self.answer = answer("/etc/cdi", "/var/run/cdi")
        self.requests: list[bytes] = []
        self.without_end = False
        self.sent = 0
        self._stack = stack
        self.write("/etc/crio/crio.conf.d/10-crio.conf", DROP_IN)
        self.write("/usr/bin/crio", PROGRAM, 0o755)
        add_process(fs, 20, "kubelet", "/usr/bin/kubelet", "--container-runtime-endpoint=unix://" + SOCKET)

    def write(self, path, text, mode=0o644):
        """The file ``path`` of the host has this content."""
        os.makedirs(os.path.dirname(self.fs + path), exist_ok=True)
        with open(self.fs + path, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.chmod(self.fs + path, mode)

    def start(self, *arguments, environment=None, name="crio", **facts):
        """It runs as this very process."""
        pid = os.getpid()
        add_process(self.fs, pid, name, "/usr/bin/" + name, *arguments, cgroup="0::/system.slice/crio.service\n", **facts)
        self.write("/proc/%d/environ" % pid, "".join("%s=%s\0" % pair for pair in (environment or {}).items()))
        os.makedirs(os.path.dirname(self.fs + SOCKET), exist_ok=True)
        listener = self._stack.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(self.fs + SOCKET)
        listener.listen(8)
        thread = threading.Thread(target=self._serve, args=(listener,))
        thread.start()
        self._stack.callback(thread.join, PATIENCE)
        self._stack.callback(listener.shutdown, socket.SHUT_RDWR)

    def _serve(self, listener):
        with contextlib.suppress(OSError):
            while True:
                with listener.accept()[0] as connection, contextlib.suppress(OSError):
                    request = connection.recv(65536)
                    if request:  # who only asks for the process on the socket says nothing
                        self.requests.append(request)
                        self._answer(connection)

    def _answer(self, connection):
        while True:
            connection.sendall(self.answer)
            self.sent += len(self.answer)
            if not self.without_end:
                break


@contextlib.contextmanager
def crio():
    """A host with CRI-O, which does not run yet."""
    with contextlib.ExitStack() as stack:
        fs = stack.enter_context(tempfile.TemporaryDirectory(prefix="npu"))
        os.chmod(fs, 0o755)
        yield Crio(fs, stack)
