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

    def result(_action, _call, _secrets):
        try:
            return {"text": Templar(loader=DataLoader(), variables={"slow": Slow(key=1)}).template(TRUSTED("{{ slow['key'] }}"))}
        except Exception as exc:
            return {"text": str(exc)}
        finally:
            first_ended.set()

    monkeypatch.setattr(many_hosts, "_result", result)
    calls = [many_hosts.Call(types.SimpleNamespace(name=name), {}, "m", {}) for name in "ab"]
    answers = many_hosts.ask(None, calls, {}, 2, PATIENCE)
    assert {name: answer.get("text") for name, answer in answers.items()} == {"a": "x", "b": "x"}, answers
