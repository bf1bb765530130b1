# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import threading
import types

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from ansible_collections.npuops.ascend.plugins.plugin_utils._action import many_hosts

from support.patience import PATIENCE

try:
    from ansible.template import trust_as_template as TRUSTED
except ImportError:  # ansible-core 2.18

    def TRUSTED(text):
        return text


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({}, {"conn_pass": "c", "become_pass": "b"}),
        ({"ansible_password": "c"}, {"become_pass": "b"}),
        ({"ansible_ssh_pass": "c", "ansible_become_password": "b"}, {}),
        ({"ansible_become_pass": "b", "ansible_user": "u"}, {"conn_pass": "c"}),
    ],
)
def test_a_password_of_the_controller_is_for_no_host(own, expected):
    """Of the context of a task that is delegated, Ansible makes the password what the host that it is delegated to has."""
    context = types.SimpleNamespace(password="c", become_pass="b")
    assert many_hosts.passwords(context, {"ansible_delegated_vars": {"localhost": own}}, "localhost") == expected


def test_templates_of_two_hosts_are_evaluated_side_by_side(monkeypatch):
    """Ansible keeps who looks at values on a stack, and takes one that ends out of order for a failure of the host."""
    variables = {"inner": "x"}
    Templar(loader=DataLoader(), variables=variables).template(TRUSTED("{{ inner }}"))  # as the task has done before
    entered, first_ended = threading.Barrier(2, timeout=60), threading.Event()

    class Slow(dict):
        """A variable that is looked at while another host's is."""

        def __getitem__(self, _key):
            if entered.wait():
                first_ended.wait(60)
            return "x"

    def result(_many, _call):
        try:
            return {"text": Templar(loader=DataLoader(), variables={"slow": Slow(key=1)}).template(TRUSTED("{{ slow['key'] }}"))}
        except Exception as exc:
            return {"text": str(exc)}
        finally:
            first_ended.set()

    monkeypatch.setattr(many_hosts, "_result", result)
    calls = [many_hosts.Call(types.SimpleNamespace(name=name), {}, "m", {}) for name in "ab"]
    task = types.SimpleNamespace(play=types.SimpleNamespace(connection="ssh"))
    action = types.SimpleNamespace(_task=types.SimpleNamespace(copy=lambda: task))
    answers = many_hosts.ask(action, calls, {}, 2, PATIENCE)
    assert {name: answer.get("text") for name, answer in answers.items()} == {"a": "x", "b": "x"}, answers


class Host(many_hosts._Action):
    """One of a host that is reached, without Ansible around it."""

    _templar, _connection = types.SimpleNamespace(template=lambda value: value), None

    def __init__(self, built, discovers=False):  # pylint: disable=super-init-not-called
        self._built, self._discovered_interpreter_key = built, "discovered_interpreter_python" if discovers else None

    def _compute_environment_string(self, raw_environment_out=None):
        pass


@pytest.fixture(name="builds")
def _builds(monkeypatch):
    made = []
    monkeypatch.setattr(many_hosts.HostAction, "_configure_module", lambda _self, *asked: made.append(asked) or len(made))
    return made


def test_what_hosts_are_sent_is_put_together_once(builds):
    built = {}
    variables = {"ansible_python_interpreter": "/usr/bin/python3"}
    assert [Host(built)._configure_module("npu_facts", {"root": "/"}, dict(variables, host=host)) for host in "abc"] == [1, 1, 1]
    others = [
        ("npu_validate", {"root": "/"}, variables),
        ("npu_facts", {"root": "/srv"}, variables),
        ("npu_facts", {"root": "/"}, {}),
        ("npu_facts", {"root": "/"}, {"ansible_facts": {"discovered_interpreter_python": "/opt/python"}}),
        ("npu_facts", {"root": "/"}, dict(variables, ansible_module_compression="ZIP_STORED")),
    ]
    assert [Host(built)._configure_module(*other) for other in others] == [2, 3, 4, 5, 6]


def test_a_python_that_was_discovered_is_that_of_one_host(builds):
    built = {}
    assert [Host(built, discovers=True)._configure_module("npu_facts", {}, {}) for _host in "ab"] == [1, 2] and not built


def test_what_is_kept_of_what_hosts_are_sent_is_bounded(builds):
    """Without pipelining, the arguments name a directory of the host."""
    built = {}
    for number in range(1000):
        Host(built)._configure_module("npu_facts", {"_ansible_tmpdir": "/tmp/%d" % number}, {})
    assert len(builds) == 1000 and len(built) < 50
