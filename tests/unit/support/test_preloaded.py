# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run in a fork of a loaded Ansible says and leaves is what it says and leaves otherwise."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import subprocess
import sys
import time

import pytest

from support.paths import TESTS
from support.patience import PATIENCE
from support.preloaded import Preloaded

PLAYBOOK = """
- hosts: localhost
  gather_facts: false
  tasks:
    - ansible.builtin.command: "{{ run }}"
      register: done
    - ansible.builtin.debug:
        msg: "{{ done.stdout }} {{ lookup('env', 'NPU_TEST') }}"
    - ansible.builtin.fail:
        msg: It is over.
      when: done.stdout == 'fail'
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    directory = tmp_path_factory.mktemp("preloaded")
    (directory / "play.yml").write_text(PLAYBOOK)
    (directory / "ansible.cfg").write_text(
        "[defaults]\nlocalhost_warning = False\n[inventory]\ninventory_unparsed_warning = False\n"
    )
    return directory


@pytest.fixture(scope="module")
def environ(place):
    names = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "PYTEST_"))}
    return {**names, "HOME": str(place), "ANSIBLE_CONFIG": str(place / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1", "NPU_TEST": "here"}


@pytest.fixture(scope="module")
def preloaded(environ):
    with contextlib.closing(Preloaded(environ)) as one:
        yield one


def command(run, *arguments):
    return ["ansible-playbook", "play.yml", "-e", '{"run": "%s"}' % run, *arguments]


@pytest.mark.parametrize(
    ("arguments", "status", "word"),
    [
        (command("echo well"), 0, "well here"),
        (command("echo fail"), 2, "It is over."),
        (command("echo ä", "--nonsense"), 2, "unrecognized arguments: --nonsense"),
        (["ansible", "localhost", "-m", "ping"], 0, "pong"),
    ],
)
def test_it_says_what_the_program_says(preloaded, place, environ, arguments, status, word):
    forked = preloaded.run(arguments, place, 60)
    program = os.path.join(os.path.dirname(sys.executable), arguments[0])
    started = subprocess.run([program, *arguments[1:]], cwd=place, env=environ, capture_output=True, text=True, check=False)
    assert (forked.returncode, forked.stdout, forked.stderr) == (started.returncode, started.stdout, started.stderr)
    assert forked.returncode == status and word in forked.stdout + forked.stderr


def test_several_at_once(preloaded, place):
    with concurrent.futures.ThreadPoolExecutor() as pool:
        results = list(pool.map(lambda number: preloaded.run(command("echo number-%d" % number), place, 60), range(4)))
    assert [("number-%d here" % number in result.stdout, result.returncode) for number, result in enumerate(results)] == [
        (True, 0)
    ] * 4


def test_one_that_takes_too_long_is_killed(preloaded, place):
    with pytest.raises(subprocess.TimeoutExpired):
        preloaded.run(command("sleep 5.4321"), place, 3)
    assert preloaded.run(command("echo well"), place, 60).returncode == 0


def test_it_ends_with_who_has_started_it(place):
    script = "import os, sys; from support.preloaded import Preloaded; one = Preloaded(dict(os.environ)); print(one._process.pid, flush=True)"
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": str(TESTS)}, capture_output=True, text=True, check=True
    )
    end = time.monotonic() + PATIENCE
    while os.path.exists("/proc/%s" % done.stdout.strip()):
        assert time.monotonic() < end
        time.sleep(0.1)
