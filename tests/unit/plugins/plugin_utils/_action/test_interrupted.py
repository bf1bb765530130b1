# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ctrl-C in a maintenance: a main process and its workers, as Ansible has them."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

from support.paths import TESTS

WORKERS = """
import os, signal, sys, time
sys.path.insert(0, os.environ["TESTS"])
from support import collection
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.interrupted import Notes

# Whoever is started in the background, as CI does it, inherits that Ctrl-C is ignored; Ansible sets its handler all the same.
signal.signal(signal.SIGINT, signal.default_int_handler)
notes = Notes().tell_at_exit()

def worker(work):
    pid = os.fork()
    if pid == 0:
        work()
        os._exit(0)
    os.waitpid(pid, 0)

def killed():
    notes.begin("npu-a", "cordon-required", "upgrade")
    notes.begin("npu-a", "drain-required", "upgrade")
    os.kill(os.getpid(), signal.SIGKILL)

def ended():
    notes.begin("npu-b", "drain-required", "upgrade")
    notes.end("npu-b")

def exits():
    sys.exit(notes.lines() != [])  # runs what is registered at exit

%s
"""


def run(text):
    script = WORKERS % textwrap.dedent(text)
    environ = dict(os.environ, TESTS=str(TESTS))
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False, env=environ)


@pytest.mark.parametrize("end", ["sys.exit(99)", "os.kill(os.getpid(), signal.SIGINT); time.sleep(60)"])
def test_the_node_and_its_step_are_told_at_the_end(end):
    told = run("worker(killed); worker(ended); " + end).stderr
    assert "npu-a was interrupted in the step drain-required.\n" in told
    assert "ansible-playbook npuops.ascend.upgrade" in told
    assert "To abandon it: ansible-playbook npuops.ascend.release --limit npu-a." in told and "npu-b" not in told


@pytest.mark.parametrize("text", ["worker(ended)", "worker(lambda: None)", "pass"])
def test_nothing_is_told_where_nothing_is_left(text):
    done = run(text)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_worker_tells_nothing():
    done = run("""
        pid = os.fork()
        notes.begin("npu-a", "drain-required", "heal")
        if pid == 0:
            exits()
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        notes.end("npu-a")
        """)
    assert (done.returncode, done.stderr) == (0, "")
