# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run that was stopped on this machine is continued at once."""

from __future__ import annotations

import os
import subprocess
import sys
import types

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import run_process

from support.fleet.fake_fleet import Killed
from support.fleet.maintenance_bench import Bench

# A playbook, and a worker that tells its name and lives as long as its input.
WORKER = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("run_process", %r)
found = importlib.util.module_from_spec(spec)
spec.loader.exec_module(found)
print(found.own(), flush=True)
sys.stdin.read()
"""
PLAYBOOK = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]]); sys.stdin.read()"


@pytest.fixture
def other():
    """(the process of another run, its name)"""
    with subprocess.Popen(
        [sys.executable, "-c", PLAYBOOK, WORKER % run_process.__file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield types.SimpleNamespace(process=process, name=process.stdout.readline().strip())
        process.stdin.close()


def ended(other):
    other.process.stdin.close()
    other.process.wait(60)
    other.process.stdin = open(os.devnull, "w", encoding="utf-8")
    return other.name


def stopped(process):
    """A Bench whose run is killed in the drain."""
    bench = Bench()

    def dies():
        raise Killed()

    bench.pods.on_drain = dies
    with pytest.raises(Killed):
        bench.run(order={"process": process})
    bench.pods.on_drain = None
    return bench


def test_only_who_has_ended_has(other):
    assert not run_process.has_ended(other.name) and not run_process.has_ended(run_process.own())
    name = ended(other)
    assert run_process.has_ended(name)
    # The same numbers elsewhere, or given to others since.
    assert not run_process.has_ended("0123456789abcdef" + name[16:])
    place, parent, own = name.split()
    assert not run_process.has_ended(" ".join((place, run_process.own().split()[2], own)))
    assert not run_process.has_ended(" ".join((place, parent, run_process.own().split()[2])))
    reused = "%d.1" % os.getpid()
    assert run_process.has_ended(" ".join((place, reused, own)))


@pytest.mark.parametrize("name", [None, "", "x", "0123456789abcdef 1.1", "0123456789abcdef 1.1 %s.1" % (10**9), "a" * 200])
def test_what_is_no_name_has_not_ended(name):
    assert not run_process.has_ended(name)


def test_the_next_run_continues_at_once(other):
    bench = stopped(ended(other))
    before = bench.world.clock.now()
    bench.run(run="run-2", until="reboot")
    assert bench.record["run"] == "run-2" and bench.world.clock.now() - before < 60
    assert any("the run run-1 has ended on this machine" in sentence for _step, sentence in bench.said)


def test_who_lives_is_waited_for(other):
    bench = stopped(other.name)
    before = bench.world.clock.now()
    bench.run(run="run-2", until="reboot")
    assert bench.world.clock.now() - before >= 90
    bench.run(run="run-2")
    bench.assert_upgraded()
    assert "process" not in bench.last
