# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The systemd unit that keeps the watch running, as it is written. What systemd makes of it: tests/lab/test_recovery_service.py."""

from __future__ import annotations

import configparser
import os

import jinja2
import yaml
from ansible_collections.npuops.ascend.plugins.filter.npu_unit import npu_unit
from ansible_collections.npuops.ascend.plugins.plugin_utils import _watch

ROLE = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3, "roles", "npu_recovery_service"))


def load(*path):
    with open(os.path.join(ROLE, *path), encoding="utf-8") as stream:
        return yaml.safe_load(stream)


def unit(**changes):
    """The unit's text, and the same as {section: {key: value}}."""
    variables = load("vars", "main.yml")
    variables.update(
        npu_recovery_service_user="ansible",
        npu_recovery_service_directory="/home/ansible/my fleet 100%",
        npu_recovery_service_environment={"KUBECONFIG": "/home/ansible/kube config", "A": "1"},
        __npu_recovery_service_words=["/usr/bin/ansible-playbook", "npuops.ascend.heal", "-i", "/home/ansible/my fleet 100%/hosts.yml"],
    )
    variables.update(changes)
    loader = jinja2.FileSystemLoader(os.path.join(ROLE, "templates"))
    environment = jinja2.Environment(loader=loader, trim_blocks=True, undefined=jinja2.StrictUndefined, autoescape=False)
    environment.filters["npuops.ascend.npu_unit"] = npu_unit
    text = environment.get_template("heal.service.j2").render(variables)
    parser = configparser.RawConfigParser(strict=False, delimiters="=", comment_prefixes="#")
    parser.optionxform = str
    parser.read_string(text)
    return text, {name: dict(parser[name]) for name in parser.sections()}


def test_the_unit():
    text, sections = unit()
    assert text.startswith(load("vars", "main.yml")["__npu_recovery_service_mark"] + "\n")
    assert 'Environment=A=1\nEnvironment="KUBECONFIG=/home/ansible/kube config"\n' in text
    service = sections["Service"]
    assert service["User"] == "ansible"
    assert service["WorkingDirectory"] == "/home/ansible/my fleet 100%%"
    assert service["ExecStart"] == '/usr/bin/ansible-playbook npuops.ascend.heal -i "/home/ansible/my fleet 100%%/hosts.yml"'
    assert (service["Type"], service["Restart"], service["KillMode"]) == ("exec", "always", "control-group")
    assert sections["Unit"]["Wants"] == sections["Unit"]["After"] == "network-online.target"
    assert sections["Install"] == {"WantedBy": "multi-user.target"}


def test_a_unit_without_an_environment():
    text, _sections = unit(npu_recovery_service_environment={})
    assert "Environment" not in text
    assert "\n\n\n" not in text


def test_the_start_limit_can_be_reached():
    """With pauses of RestartSec and half a minute for each start, else a setup that never works would be tried for ever."""
    _text, sections = unit()
    starts = int(sections["Unit"]["StartLimitBurst"])
    assert starts * (int(sections["Service"]["RestartSec"]) + 30) < int(sections["Unit"]["StartLimitIntervalSec"])


def test_it_refuses_what_the_watch_refuses():
    assert tuple(load("vars", "main.yml")["__npu_recovery_service_asking"]) == _watch._ASKING


def test_defaults_are_those_that_are_documented():
    options = load("meta", "argument_specs.yml")["argument_specs"]["main"]["options"]
    assert {name: option["default"] for name, option in options.items()} == load("defaults", "main.yml")
