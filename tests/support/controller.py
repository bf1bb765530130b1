# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A controller with this checkout as a collection: Ansible's programs as users run them there, without its being loaded each time."""

from __future__ import annotations

import atexit
import functools
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from typing import TypeVar

from support import collection
from support.patience import RUN_PATIENCE
from support.preloaded import PLACE, Preloaded, PreloadedPython

_AnyPreloaded = TypeVar("_AnyPreloaded", bound=Preloaded)
# What tells Ansible and the clients of APIs where to go, or names the test at hand.
_TOLD = ("ANSIBLE_", "CONTROLLER_", "K8S_AUTH_", "KUBE", "PYTEST_", "TOWER_", "XDG_")

# Of the checkout's, what makes runs shorter, and which Python a host has.
_CONFIGURATION = """
[defaults]
interpreter_python = /usr/bin/python3
internal_poll_interval = 0.01

[connection]
pipelining = True
"""


def environment(home: os.PathLike | str) -> dict[str, str]:
    """That of a program of Ansible which a test starts by itself: as `run` has it."""
    return {**_environ(), "HOME": str(home)}


def run(
    command: Sequence[str],
    home: os.PathLike | str,
    *,
    environ: Mapping[str, str] | None = None,
    more: Mapping[str, str] | None = None,
    localhost: bool = False,
    timeout: float = RUN_PATIENCE,
) -> subprocess.CompletedProcess:
    """As Preloaded.run does it, in the directory `home`, which is that of the user.

    :param environ: what else Ansible's configuration is; each needs a process that loads Ansible, which stays for other runs
    :param more: other environment variables
    :param localhost: modules run on this machine only, and so in a Python that has loaded what they import
    """
    with _one_at_a_time:
        lasting = _lasting(frozenset({**_environ(), **(environ or {})}.items()))
        python = _lasting_python() if localhost else None
    if python:
        command = [*command, "-e", "ansible_python_interpreter=" + python.interpreter]
    try:
        return lasting.run(command, home, timeout, {"HOME": str(home), **(more or {})})
    except subprocess.TimeoutExpired as late:
        raise AssertionError("%s had not ended after %d s:\n%s%s" % (command, timeout, late.stdout, late.stderr)) from None
    finally:
        if python:
            python.account()


_one_at_a_time = threading.Lock()  # a test may do several runs at once


@functools.cache
def _lasting(environ: frozenset[tuple[str, str]]) -> Preloaded:
    return _closed_at_exit(Preloaded(dict(environ)))


@functools.cache
def _lasting_python() -> PreloadedPython:
    return _closed_at_exit(PreloadedPython())


def _closed_at_exit(lasting: _AnyPreloaded) -> _AnyPreloaded:
    """What it has cost is part of what this process has cost only if this one waits for its end."""
    atexit.register(lasting.close)
    return lasting


def _environ() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_TOLD)}
    home = _home()
    return {
        **kept,
        "HOME": str(home),
        "ANSIBLE_CONFIG": str(home / "ansible.cfg"),
        "ANSIBLE_COLLECTIONS_PATH": collection.TREE,
        "ANSIBLE_NOCOLOR": "1",
    }


@functools.cache
def _home() -> pathlib.Path:
    home = pathlib.Path(tempfile.mkdtemp(prefix="npu-home-", dir=PLACE))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    (home / "ansible.cfg").write_text(_CONFIGURATION, encoding="utf-8")
    return home
