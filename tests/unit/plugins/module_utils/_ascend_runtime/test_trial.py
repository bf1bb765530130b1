# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container is created by the runtime and removed again, before containerd uses that runtime."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import ansible_collections.npuops.ascend as collection
import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._ascend_runtime import trial
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError


@pytest.fixture(name="left", autouse=True)
def _left(tmp_path, monkeypatch):
    """What trials leave behind."""
    place = tmp_path / "run"
    place.mkdir()
    monkeypatch.setattr(trial, "_PLACE", str(place))
    return lambda: os.listdir(place)


def program(tmp_path, body):
    path = tmp_path / "ascend-docker-runtime"
    path.write_text('#!/bin/sh\necho "$@" >>%s/calls\n%s\n' % (tmp_path, body))
    path.chmod(0o550)
    return str(path)


def test_one_that_can(tmp_path, left):
    runtime = program(
        tmp_path,
        'case " $* " in *" create "*) cp "$5/config.json" %s/config.json; ls "$5/rootfs" >%s/rootfs ;; esac' % (tmp_path, tmp_path),
    )
    assert trial.problem(runtime, 3) is None
    config = json.loads((tmp_path / "config.json").read_text())
    assert "ASCEND_VISIBLE_DEVICES=3" in config["process"]["env"] and config["root"]["path"] == "rootfs"
    create, delete = (tmp_path / "calls").read_text().splitlines()
    assert create.split()[2:4] == ["create", "--bundle"] and delete.split()[2:4] == ["delete", "--force"]
    assert create.split()[-1] == delete.split()[-1] and not left()


def test_one_that_cannot(tmp_path, left):
    with pytest.raises(NpuError, match=r"26.1.9 does not create .*exit status 4\): no libdcmi.so.*Nothing was changed"):
        trial.check(program(tmp_path, "echo no libdcmi.so >&2; exit 4"), 0, "26.1.9")
    assert "delete --force" in (tmp_path / "calls").read_text() and not left()


def test_one_that_does_not_end(tmp_path, monkeypatch, left):
    monkeypatch.setattr(trial, "_CREATE_SECONDS", 0.2)
    assert "did not create one within" in trial.problem(program(tmp_path, 'case " $* " in *" create "*) sleep 60 ;; esac'), 0)
    assert not left()


def test_one_that_is_no_program(tmp_path, left):
    path = tmp_path / "runtime"
    path.write_bytes(b"\x7fELF, but not really")
    path.chmod(0o550)
    assert "cannot be run" in trial.problem(str(path), 0) and not left()


# As the runtime keeps a container below --root.
KEEPS = """case " $* " in
*" create "*) mkdir -p "$2/$6"; %s ;;
*" delete "*) %s ;;
esac"""


def killed(tmp_path, runtime):
    """A process that is killed as soon as it has created the container; the name of that."""
    code = "from ansible_collections.npuops.ascend.plugins.module_utils._ascend_runtime import trial\ntrial._PLACE = %r\n"
    code = code % str(tmp_path / "run") + "trial.problem(%r, 0)" % runtime
    paths = str(pathlib.Path(next(iter(collection.__path__))).parents[2])
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": paths}, check=False)
    assert done.returncode < 0
    (name,) = os.listdir(tmp_path / "run")
    assert (tmp_path / "run" / name / "state" / name).is_dir()
    return name


def test_what_a_killed_process_left_is_removed(tmp_path, left):
    name = killed(tmp_path, program(tmp_path, KEEPS % ("kill -9 $PPID", "")))
    (tmp_path / "run" / "other").mkdir()
    runtime = program(tmp_path, KEEPS % ("", 'rmdir "$2/$5"'))
    assert trial.problem(runtime, 0) is None
    calls = [line.split()[2:] for line in (tmp_path / "calls").read_text().splitlines()[1:]]
    assert [call[0] for call in calls] == ["delete", "create", "delete"] and calls[0] == ["delete", "--force", name]
    assert left() == ["other"]


def test_a_container_that_cannot_be_deleted_is_not_forgotten(tmp_path, left):
    name = killed(tmp_path, program(tmp_path, KEEPS % ("kill -9 $PPID", "")))
    assert "exit status 4" in trial.problem(program(tmp_path, "exit 4"), 0)
    assert left() == [name]
