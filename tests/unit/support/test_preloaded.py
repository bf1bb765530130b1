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

from support import costs
from support.paths import TESTS
from support.patience import PATIENCE
from support.preloaded import Preloaded, PreloadedPython

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


@pytest.fixture(scope="module")
def python():
    with contextlib.closing(PreloadedPython()) as one:
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
    forked = preloaded.run(arguments, place, PATIENCE)
    program = os.path.join(os.path.dirname(sys.executable), arguments[0])
    started = subprocess.run([program, *arguments[1:]], cwd=place, env=environ, capture_output=True, text=True, check=False)
    assert (forked.returncode, forked.stdout, forked.stderr) == (started.returncode, started.stdout, started.stderr)
    assert forked.returncode == status and word in forked.stdout + forked.stderr


def test_several_at_once(preloaded, place):
    with concurrent.futures.ThreadPoolExecutor() as pool:
        results = list(pool.map(lambda number: preloaded.run(command("echo number-%d" % number), place, PATIENCE), range(4)))
    assert [("number-%d here" % number in result.stdout, result.returncode) for number, result in enumerate(results)] == [
        (True, 0)
    ] * 4


def test_one_that_takes_too_long_is_killed(preloaded, place):
    with pytest.raises(subprocess.TimeoutExpired):
        preloaded.run(command("sleep 5.4321"), place, 3)
    assert preloaded.run(command("echo well"), place, PATIENCE).returncode == 0


def test_it_ends_with_who_has_started_it(place):
    script = "import os, sys; from support.preloaded import Preloaded; one = Preloaded(dict(os.environ)); print(one._process.pid, flush=True)"
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": str(TESTS)}, capture_output=True, text=True, check=True
    )
    end = time.monotonic() + PATIENCE
    while os.path.exists("/proc/%s" % done.stdout.strip()):
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("import os, sys; print(sys.argv, os.getcwd(), os.environ['NPU_TEST'], __name__)", 0),
        ("import atexit, sys; atexit.register(print, 'put away'); print('wrong', file=sys.stderr); sys.exit(3)", 3),
        ("import ansible.module_utils.basic, sys; print('ansible.errors' in sys.modules)", 0),
    ],
)
def test_a_python_for_modules(python, place, code, status):
    environ = {**os.environ, "NPU_TEST": "here"}
    forked, started = (
        subprocess.run([program], input=code, cwd=place, env=environ, capture_output=True, text=True, check=False)
        for program in (python.interpreter, sys.executable)
    )
    assert (forked.returncode, forked.stdout, forked.stderr) == (started.returncode, started.stdout, started.stderr)
    assert forked.returncode == status


def test_a_python_for_modules_tells_what_is_wrong_with_the_code(python):
    done = subprocess.run([python.interpreter], input="x = 1\nx.y", capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "AttributeError: 'int' object has no attribute 'y'" in done.stderr


BUSY = "import time\nwhile time.process_time() < 0.5:\n    pass\n"


def test_the_cpu_seconds_of_a_run_are_told(preloaded, place):
    """With those of the processes that it has started."""
    (place / "busy.py").write_text(BUSY)
    before = costs.elsewhere()
    assert preloaded.run(command("%s busy.py" % sys.executable), place, PATIENCE).returncode == 0
    assert 0.5 < costs.elsewhere() - before < 60


def test_the_cpu_seconds_of_modules_are_told(python):
    python.account()
    before = costs.elsewhere()
    subprocess.run([python.interpreter], input=BUSY, text=True, check=True)
    python.account()
    spent = costs.elsewhere() - before
    python.account()
    assert 0.5 < spent < 60 and costs.elsewhere() - before == spent
