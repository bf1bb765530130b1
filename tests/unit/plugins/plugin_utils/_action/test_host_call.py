# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Ansible makes of a host that goes away, and what the cycle is told of it."""

from __future__ import annotations

import multiprocessing
import os
import pathlib
import re
import signal

import pytest
from ansible.errors import AnsibleConnectionFailure
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._action import host_call
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.host_side import HostBusy, HostUnreachable


class Action:
    """An ActionBase with the result that a module call has. A call is made in another process, and told over a pipe."""

    def __init__(self, answer):
        self.answer, self._told, self._seen = answer, multiprocessing.SimpleQueue(), []
        self._connection = self

    def reset(self):
        self._told.put("reset")

    def _execute_module(self, module_name, module_args, task_vars):
        self._told.put((module_name, module_args))
        return self.answer() if callable(self.answer) else self.answer

    def told(self):
        while not self._told.empty():
            self._seen.append(self._told.get())
        return self._seen

    @property
    def calls(self):
        return [told for told in self.told() if told != "reset"]

    @property
    def resets(self):
        return self.told().count("reset")


def port(answer):
    action = Action(answer)
    return action, host_call.HostPort(action, {}, "/var/lib/Ascend")


VIEW = {
    "boot_id": "b",
    "generation": 3,
    "driver": "r",
    "good": "r",
    "next": None,
    "previous": None,
    "releases": ["r"],
    "trial": None,
    "holders": [],
    "ready": {"release": "r"},
    "failed": None,
    "loaded_version": "25.5.0",
    "unit": "active",
    "uptime": 12.5,
    "kernel": "6.6.0",
    "going_down": False,
}


def refuse():
    raise AnsibleConnectionFailure("Connection\nrefused")


def test_view():
    action, host = port({"view": VIEW})
    assert host.view() == VIEW
    host.view(30)
    assert action.calls == [
        ("npuops.ascend.npu_trial_boot", {"state": "view", "root": "/var/lib/Ascend"}),
        ("npuops.ascend.npu_trial_boot", {"state": "view", "root": "/var/lib/Ascend", "wait": 30}),
    ]


@pytest.mark.parametrize(("answer", "why"), [
    ({}, "it is null, not an object"),
    ({"view": dict(VIEW, boot_id=None)}, "boot_id is null, not a string"),
    ({"view": dict(VIEW, holders=[{"pid": 1}])}, "holders[0].command is missing"),
    ({"view": dict(VIEW, trial={"release": "r"})}, "trial.boot_id is missing"),
    ({"view": {name: value for name, value in VIEW.items() if name != "going_down"}}, "going_down is missing"),
])  # fmt: skip
def test_a_view_that_nobody_could_go_by(answer, why):
    _action, host = port(answer)
    with pytest.raises(NpuError, match="What the host answered is not valid: " + re.escape(why)):
        host.view()


def test_other_answers_that_nobody_could_go_by():
    with pytest.raises(NpuError, match="queued is missing"):
        port({"held": [], "already": False})[1].rebooted("b", 3, None, False)
    with pytest.raises(NpuError, match="valid is a string, not true or false"):
        port({"valid": "yes", "msg": "ok"})[1].validate("25.5.0")


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
    action, host = port({"queued": False, "held": [{"pid": 1, "command": "python", "device": "davinci0"}], "already": False})
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
        ({"failed": True}, "^npuops.ascend.npu_trial_boot failed, without a message$"),
        ({"failed": True, "rc": 1, "module_stderr": "a\nKilled\n"}, "failed with exit status 1, without a message: Killed$"),
        ({"failed": True, "module_stdout": "x" * 300}, "failed, without a message: x{200}$"),
    ],
)
def test_what_the_module_says(answer, text):
    _action, host = port(answer)
    with pytest.raises(NpuError, match=text) as caught:
        host.view()
    assert not isinstance(caught.value, HostUnreachable)


def test_the_module_of_a_call_that_was_cut_off_goes_on():
    """It may take longer than a call, and holds its lock: the next call is not refused, but asked again."""
    action, host = port({"failed": True, "busy": True, "msg": "Another run is changing the virtual NPUs on this host."})
    with pytest.raises(HostBusy, match="Another run is changing"):
        host.divided([])
    assert len(action.calls) == 1
    with pytest.raises(NpuError) as caught:
        port({"failed": True, "busy": "yes", "msg": "x"})[1].divided([])
    assert not isinstance(caught.value, HostUnreachable)


def test_what_is_found_out_on_the_host_is_not_found_out_again():
    variables = {}
    action = Action({"view": VIEW, "ansible_facts": {"discovered_interpreter_python": "/opt/python3", "other": 1}})
    host_call.HostPort(action, variables, "/var/lib/Ascend").view()
    assert variables == {"ansible_facts": {"discovered_interpreter_python": "/opt/python3"}}


def test_a_call_that_is_killed():
    action, host = port(lambda: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(HostUnreachable, match="ended without an answer"):
        host.view()
    assert action.resets == 1


def children():
    """Processes of this one, also those that have ended and are not waited for. Ansible that other tests have loaded may be one."""
    return {pid for task in pathlib.Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()}


def test_a_host_that_hangs_in_the_tasks_own_time_limit(monkeypatch):
    """An alarm that was set before is neither lost nor taken for the call's."""
    monkeypatch.setattr(host_call, "LIMIT", 60)

    class TaskIsUp(BaseException):
        pass

    def on_alarm(*_arguments):
        raise TaskIsUp

    before = children()
    previous = signal.signal(signal.SIGALRM, on_alarm)
    signal.alarm(1)
    try:
        _action, host = port(signal.pause)
        with pytest.raises(TaskIsUp):
            host.view()
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)
    assert children() == before


def test_a_connection_that_cannot_be_reset(monkeypatch):
    monkeypatch.setattr(host_call, "RESET_LIMIT", 1)
    action, host = port(refuse)
    action.reset = signal.pause
    with pytest.raises(HostUnreachable, match="refused"):
        host.view()


def test_chips_in_the_view():
    listed = [{"npu": 4, "chip": 0, "phy_id": None, "name": "310P3", "health": "Critical", "bus_id": "0000:81:00.0"}]
    action, host = port({"view": dict(VIEW, chips=listed)})
    assert host.view(chips=True)["chips"] == listed
    module, arguments = action.calls[0]
    assert module == "npuops.ascend.npu_trial_boot" and arguments["chips"] is True
    with pytest.raises(NpuError, match="health is .*, which is not a word of npu-smi"):
        port({"view": dict(VIEW, chips=[dict(listed[0], health="\x1b[2J")])})[1].view(chips=True)


def test_network_ports_in_the_view():
    ports = {"0": "UP 10.64.11.10", "15": "- -"}
    action, host = port({"view": dict(VIEW, ports=ports)})
    assert host.view(ports=True)["ports"] == ports
    assert action.calls[0][1]["network"] is True and "chips" not in action.calls[0][1]
    for damaged, why in (
        ({"0": "UP \x1b[2J"}, "is not a link and an address"),
        ({"0; reboot": "UP -"}, "is not the number of a chip|which is more than 4"),
        (dict.fromkeys(map(str, range(1025)), "- -"), "1025"),
    ):
        with pytest.raises(NpuError, match=why):
            port({"view": dict(VIEW, ports=damaged)})[1].view(ports=True)


def test_validate():
    action, host = port({"valid": True, "checks": [], "msg": "ok"})
    assert host.validate("25.5.0")["valid"]
    module, arguments = action.calls[0]
    assert module == "npuops.ascend.npu_validate" and arguments["version"] == "25.5.0" and arguments["fail"] is False
