# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host that takes the connection and then says nothing: the call ends at its limit, once, and leaves no ssh behind.

Ansible itself makes the call, with its ssh connection plugin, which repeats what failed.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import threading

import ansible_collections.npuops.ascend as collection
import pytest

ROOT = os.path.abspath(os.path.join(next(iter(collection.__path__)), "..", "..", ".."))
# Seconds for the call, with all that comes before ssh in it. Where this machine is too busy for that, longer ones follow.
LIMITS = (2, 10, 50)
# Many times what the call may take. Without the limit nothing would end before it.
FAR = 60

ACTION = """
import os
from ansible.plugins.action import ActionBase
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.host_side import HostUnreachable
from ansible_collections.npuops.ascend.plugins.plugin_utils._action import host_call

host_call.LIMIT = int(os.environ["LIMIT"])


class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        port = host_call.HostPort(self, task_vars, "/var/lib/Ascend")
        try:
            return {"msg": "answered", "view": port.view()}
        except HostUnreachable as exc:
            return {"msg": "unreachable: %s" % exc.message}
"""

# As ssh to a host that froze after the handshake. What asks the master of the connection is no call to the host.
FROZEN_SSH = """#!/bin/sh
case " $* " in
  *" -O "*) exit 255 ;;
  *" -V "*) exit 0 ;;
esac
# sleep ignores them as well.
trap '' TERM HUP INT
echo $$ >>"$STARTED"
exec sleep 600
"""


class Ansible:
    def __init__(self, directory):
        self.directory = directory
        self.started = directory / "started"
        (directory / "ansible.cfg").write_text("", encoding="utf-8")
        plugins = directory / "action_plugins"
        plugins.mkdir()
        (plugins / "ask_host.py").write_text(ACTION, encoding="utf-8")
        play = {
            "hosts": "all",
            "gather_facts": False,
            "tasks": [{"ask_host": {}, "register": "asked"}, {"debug": {"msg": "<<{{ asked.msg }}>>"}}],
        }
        (directory / "playbook.json").write_text(json.dumps([play]), encoding="utf-8")

    def call(self, ssh, begun, arguments=""):
        """Have it call the host, with a limit within which ``begun()`` becomes true; returns that limit and what it printed."""
        for limit in LIMITS:
            text = self._start(ssh, limit, arguments).communicate(timeout=FAR + limit)[0]
            if begun():
                break
        return limit, text

    def _start(self, ssh, limit, arguments):
        environment = dict(
            os.environ, LIMIT=str(limit), ANSIBLE_COLLECTIONS_PATH=ROOT, ANSIBLE_NOCOLOR="1", HOME=str(self.directory), STARTED=str(self.started),
            ANSIBLE_SSH_EXECUTABLE=str(ssh), ANSIBLE_SSH_RETRIES="2", ANSIBLE_TIMEOUT="600", ANSIBLE_PIPELINING="1",
            ANSIBLE_SSH_ARGS="-F /dev/null -o BatchMode=yes -o StrictHostKeyChecking=no " + arguments,
            ANSIBLE_CONFIG=str(self.directory / "ansible.cfg"),
        )  # fmt: skip
        command = [sys.executable, "-m", "ansible", "playbook", "-i", "127.0.0.1,", str(self.directory / "playbook.json"),
                   "-e", "ansible_python_interpreter=/usr/bin/python3"]  # fmt: skip
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.fixture
def ansible(tmp_path):
    made = Ansible(tmp_path)
    yield made
    for pid in started(made):
        if alive(pid):
            os.kill(pid, signal.SIGKILL)


def started(ansible):
    return [int(line) for line in ansible.started.read_text().split()] if ansible.started.exists() else []


def alive(pid):
    try:
        return pathlib.Path("/proc/%d/stat" % pid).read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_an_ssh_that_hangs(ansible, tmp_path):
    ssh = tmp_path / "ssh"
    ssh.write_text(FROZEN_SSH, encoding="utf-8")
    ssh.chmod(0o755)
    limit, text = ansible.call(ssh, lambda: started(ansible))
    assert f"<<unreachable: no answer within {limit} s>>" in text
    assert len(started(ansible)) == 1, "it was repeated beyond its limit"
    assert not any(alive(pid) for pid in started(ansible))


def test_a_socket_that_says_nothing(ansible):
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken, ended = [], threading.Event()

        def accept():
            while True:
                try:
                    connection = server.accept()[0]
                except OSError:
                    return
                taken.append(connection)
                while connection.recv(1024):
                    pass
                ended.set()

        threading.Thread(target=accept, daemon=True).start()
        limit, text = ansible.call(shutil.which("ssh"), lambda: taken, "-p %d" % server.getsockname()[1])
        assert f"<<unreachable: no answer within {limit} s>>" in text
        assert ended.wait(FAR), "its ssh runs on"
        assert len(taken) == 1, "it was repeated beyond its limit"
        for connection in taken:
            connection.close()
