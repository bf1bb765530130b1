# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Ansible makes of a host that goes away, and what the cycle is told of it."""

from __future__ import annotations

import signal
import time

import pytest
from ansible.errors import AnsibleConnectionFailure
from ansible_collections.npuops.ascend.plugins.module_utils._cycle_host import HostUnreachable
from ansible_collections.npuops.ascend.plugins.module_utils._errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils import _host_port


class Action:
    """An ActionBase with the result that a module call has."""

    def __init__(self, answer):
        self.answer, self.calls, self.resets = answer, [], 0
        self._connection = self

    def reset(self):
        self.resets += 1

    def _execute_module(self, module_name, module_args, task_vars):
        self.calls.append((module_name, module_args))
        return self.answer() if callable(self.answer) else self.answer


def port(answer):
    action = Action(answer)
    return action, _host_port.HostPort(action, {}, "/var/lib/Ascend")


def refuse():
    raise AnsibleConnectionFailure("Connection\nrefused")


def test_view():
    action, host = port({"view": {"boot_id": "b"}})
    assert host.view() == {"boot_id": "b"}
    host.view(30)
    assert action.calls == [
        ("npuops.ascend.npu_boot", {"state": "view", "root": "/var/lib/Ascend"}),
        ("npuops.ascend.npu_boot", {"state": "view", "root": "/var/lib/Ascend", "wait": 30}),
    ]


def test_rebooted():
    action, host = port({"queued": True, "held": [], "already": False})
    host.rebooted("b", 3, None, False)
    assert action.calls[0][1] == {
        "state": "rebooted",
        "boot_id": "b",
        "generation": 3,
        "refuse_held": False,
        "root": "/var/lib/Ascend",
    }
    assert action.resets == 1


def test_held():
    action, host = port({"queued": False, "held": [{"pid": 1}], "already": False})
    assert host.rebooted("b", 3, "r", True)["held"]
    assert action.resets == 0 and action.calls[0][1]["release"] == "r"


@pytest.mark.parametrize(
    "answer",
    [
        refuse,
        {"unreachable": True, "msg": "gone"},
        {"failed": True, "rc": 255, "module_stdout": "", "msg": "MODULE FAILURE"},
        {"failed": True, "rc": -15, "module_stdout": "", "msg": "MODULE FAILURE"},
    ],
)
def test_unreachable(answer):
    action, host = port(answer)
    with pytest.raises(HostUnreachable):
        host.view()
    assert action.resets == 1


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"failed": True, "msg": "Another run has taken this host over"}, "Another run has taken"),
        ({"failed": True, "rc": 127, "module_stdout": "", "msg": "x", "module_stderr": "no python"}, "no Python can be run"),
        ({"failed": True, "rc": 1, "module_stdout": "", "msg": "MODULE FAILURE"}, "MODULE FAILURE"),
    ],
)
def test_what_the_module_says(answer, text):
    _action, host = port(answer)
    with pytest.raises(NpuError, match=text) as caught:
        host.view()
    assert not isinstance(caught.value, HostUnreachable)


def test_a_host_that_hangs(monkeypatch):
    monkeypatch.setattr(_host_port, "LIMIT", 1)
    alarms = []
    previous = signal.signal(signal.SIGALRM, lambda *_arguments: alarms.append("the task's own"))
    signal.alarm(2)
    try:
        action, host = port(lambda: time.sleep(20))
        started = time.monotonic()
        with pytest.raises(HostUnreachable, match="no answer within 1 s"):
            host.view()
        assert time.monotonic() - started < 2 and action.resets == 1
        while not alarms and time.monotonic() - started < 5:
            time.sleep(0.05)
        assert alarms == ["the task's own"]
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


def test_validate():
    action, host = port({"valid": True, "checks": [], "msg": "ok"})
    assert host.validate("25.5.0")["valid"]
    module, arguments = action.calls[0]
    assert module == "npuops.ascend.npu_validate" and arguments["version"] == "25.5.0" and arguments["fail"] is False
