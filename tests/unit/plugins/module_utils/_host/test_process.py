# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who is taken for the host's kubelet and containerd: real processes that claim to be them, on real sockets.

Nothing that a local user or a container starts is ever run as root.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import containerd_runtime
from ansible_collections.npuops.ascend.plugins.module_utils._host import process as host_process
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._image import ctr as image_ctr
from ansible_collections.npuops.ascend.plugins.module_utils._kubelet import kubelet_runtime

NOBODY = 65534

# Run as root it leaves a trace. A shell's copy named containerd runs it when called as containerd is: -c FILE config dump.
EVIL = """#!/bin/sh
[ "$(id -u)" != 0 ] || touch %(home)s/root-was-here
touch %(home)s/started
exec sleep 600
"""

LISTEN = (
    """
import os, socket, sys, time
if "--nobody" in sys.argv:
    os.setgroups([])
    os.setuid(%d)
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen(8)
if "--chroot" in sys.argv:
    os.chroot(os.path.dirname(sys.argv[1]))
time.sleep(600)
"""
    % NOBODY
)


class Machine:
    """Processes of this machine, with the home directory of a user and a directory of root's."""

    def __init__(self, directory):
        self.home = os.path.join(directory, "home")
        self.ours = os.path.join(directory, "root")
        self.trace = os.path.join(self.home, "root-was-here")
        self.socket = os.path.join(self.ours, "c.sock")
        self.processes = []
        for path in (self.home, self.ours):
            os.mkdir(path)
            os.chmod(path, 0o755)
        os.chown(self.home, NOBODY, NOBODY)

    def start(self, argv, executable=None, uid=None, **options):
        def become():
            if uid is not None:
                os.setgroups([])
                os.setgid(uid)
                os.setuid(uid)

        # In a session of its own, so that what it starts ends with it.
        started = subprocess.Popen(argv, executable=executable, preexec_fn=become, start_new_session=True, **options)
        self.processes.append(started)
        return self.processes[-1]

    def claim(self, name, *arguments):
        """A user's process of that name; its program and its first word are the user's."""
        program = os.path.join(self.home, name)
        shutil.copy("/bin/sh", program)
        evil = os.path.join(self.home, "evil")
        with open(evil, "w", encoding="utf-8") as stream:
            stream.write(EVIL % {"home": self.home})
        os.chmod(evil, 0o755)
        self.start([evil, "-c", evil] + list(arguments), executable=program, uid=NOBODY)
        wait_for(lambda: os.path.exists(os.path.join(self.home, "started")))
        os.unlink(os.path.join(self.home, "started"))

    def listen(self, *prefix, **options):
        """A process whose program is called containerd, behind the socket. ``prefix``: a command that starts it."""
        directory = options.pop("directory", self.ours)
        program = os.path.join(directory, "containerd")
        shutil.copy(os.path.realpath(sys.executable), program)
        os.chmod(program, options.pop("mode", 0o755))
        arguments = [program, "-c", LISTEN, self.socket] + options.pop("arguments", [])
        process = self.start(list(prefix) + arguments, env=dict(os.environ, PYTHONHOME=sys.base_prefix), **options)
        wait_for(lambda: os.path.exists(self.socket) or process.poll() is not None)
        assert process.poll() is None, "this needs root with the right to make namespaces"
        return process

    def close(self):
        for process in self.processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def machine(host, monkeypatch):  # of `host` only its programs count, among them a systemctl that knows no unit
    if os.geteuid() != 0:
        pytest.fail("whether a user's program is run as root is what is tested here: run this as root")
    directory = tempfile.mkdtemp(prefix="npu")  # a socket's path must be short
    os.chmod(directory, 0o755)
    made = Machine(directory)
    monkeypatch.setattr(kubelet_runtime, "SOCKETS", (made.socket,), raising=False)
    monkeypatch.setattr(containerd_runtime, "DEFAULT_ADDRESS", made.socket)
    yield made
    made.close()
    shutil.rmtree(directory)


def look():
    """What almost every playbook does with the runtime of a host; the Daemon, or the refusal."""
    facts = kubelet_runtime.runtime_facts()
    try:
        daemon = containerd_runtime.find()
        daemon.version()
        return facts, daemon, None
    except NpuError as exc:
        return facts, None, exc.message


def test_a_users_process_is_neither_kubelet_nor_containerd(machine):
    mine = os.path.join(machine.home, "c.sock")
    machine.claim("kubelet", "--container-runtime-endpoint=unix://" + mine)
    machine.claim("containerd", "--address", mine)
    facts, daemon, refusal = look()
    if daemon is not None:
        with pytest.raises(NpuError):
            daemon.dump()
    assert not os.path.exists(machine.trace), "a user's program was run as root"
    assert facts["address"] != mine
    assert daemon is None and refusal


def test_a_users_socket_is_not_the_kubelets(machine):
    """Whatever leads there, who listens decides."""
    machine.socket = os.path.join(machine.home, "c.sock")
    process = machine.listen(directory=machine.home, arguments=["--nobody"])
    for module, name, value in (
        (kubelet_runtime, "SOCKETS", (machine.socket,)),
        (containerd_runtime, "DEFAULT_ADDRESS", machine.socket),
    ):
        setattr(module, name, value)  # the fixture puts them back
    facts, daemon, refusal = look()
    assert (facts["version"], facts["ctr"], daemon) == (None, None, None)
    assert machine.socket in refusal and "process %d" % process.pid in refusal and "user ID %d" % NOBODY in refusal


def test_the_one_behind_the_socket_is_it_whoever_came_first(machine):
    machine.claim("containerd", "--address", machine.socket)
    process = machine.listen()
    facts, daemon, refusal = look()
    assert not os.path.exists(machine.trace)
    assert refusal is None and daemon.pid == process.pid
    assert daemon.binary == os.path.join(machine.ours, "containerd") and facts["address"] == machine.socket


@pytest.mark.parametrize(
    "prefix, arguments, words",
    [
        (["unshare", "--pid", "--fork", "--kill-child"], [], "PID namespace"),
        (["unshare", "--mount"], [], "mount namespace"),
        ([], ["--chroot"], "root directory"),
    ],
    ids=["pid", "mount", "chroot"],
)
def test_a_containers_process_is_not_the_hosts(machine, prefix, arguments, words):
    """Root or not: its paths are not the host's."""
    machine.listen(*prefix, arguments=arguments)
    if arguments:
        wait_for(lambda: os.readlink("/proc/%d/root" % machine.processes[-1].pid) != "/")
    facts, daemon, refusal = look()
    assert (facts["version"], daemon) == (None, None)
    assert words in refusal and machine.socket in refusal


def test_a_program_that_a_user_can_change_is_not_run(machine):
    """Root started it once, from a directory that belongs to another user."""
    machine.listen(directory=machine.home)
    facts, daemon, refusal = look()
    assert (facts["version"], daemon) == (None, None)
    assert machine.home in refusal and "user ID %d" % NOBODY in refusal


@pytest.mark.parametrize("mode", [0o777, 0o757])
def test_a_program_that_everybody_can_write_is_not_run(machine, mode):
    machine.listen(mode=mode)
    facts, daemon, refusal = look()
    assert (facts["version"], daemon) == (None, None)
    assert "mode %04o" % mode in refusal


def test_a_ctr_that_a_user_can_change_is_not_run(machine, monkeypatch):
    """It is on the PATH that a user kept when becoming root."""
    shutil.copy("/bin/sh", os.path.join(machine.home, "ctr"))
    monkeypatch.setenv("PATH", machine.home)
    monkeypatch.setattr(image_ctr, "_CTR_PATHS", ())
    with pytest.raises(NpuError, match="changed by users other than root.*%s" % machine.home):
        image_ctr.Containerd(machine.socket)


def test_a_process_that_ends_while_it_is_looked_at(tmp_path, monkeypatch):
    """All processes of a host are looked at to find the kubelet, and some end at any moment: their command line is empty then."""
    proc = tmp_path / "proc" / "4711"
    proc.mkdir(parents=True)
    (proc / "exe").symlink_to("/usr/bin/true")
    answers = iter(["/usr/bin/true\0", ""])
    monkeypatch.setattr(host_process, "read_text", lambda path, default=None: next(answers))
    assert host_process.Process(4711, str(tmp_path)).program == "/usr/bin/true"
