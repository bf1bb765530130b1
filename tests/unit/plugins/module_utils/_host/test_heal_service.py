# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the service needs, and its unit. What systemd makes of it, and its life: tests/lab/test_heal_service.py."""

from __future__ import annotations

import configparser
import getpass
import os

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host import heal_service
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError

# Only root may change its user. This one lets the account do all but what "closed" has in its name.
RUNUSER = """#!/bin/sh
[ "$1 $3 $4" = "-u -- test" ] || exit 99
case $6 in *closed*) exit 1;; esac
test "$5" "$6"
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A directory with all that a service needs."""
    (tmp_path / "bin").mkdir()
    runuser = tmp_path / "bin" / "runuser"
    runuser.write_text(RUNUSER)
    runuser.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    (tmp_path / "hosts.yml").touch()
    (tmp_path / "ansible-playbook").touch(0o755)
    return tmp_path


def setup(place, **changes):
    values = {
        "user": getpass.getuser(),
        "directory": str(place),
        "inventory": [str(place / "hosts.yml")],
        "command": str(place / "ansible-playbook"),
        "arguments": [],
        "environment": {},
    }
    return heal_service.Setup(**dict(values, **changes))


def problems(place, **changes):
    with pytest.raises(NpuError) as caught:
        setup(place, **changes).check()
    head, *lines = caught.value.message.split("\n")
    assert head == "Nothing was changed:"
    return [line.strip() for line in lines]


def test_what_works(place):
    setup(place).check()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"user": ""}, "npu_heal_service_user is not set: "),
        ({"directory": ""}, "npu_heal_service_directory is not set: "),
        ({"inventory": []}, "npu_heal_service_inventory is not set: "),
        ({"user": "npuops-nobody"}, 'npu_heal_service_user: this host has no account "npuops-nobody"'),
        ({"command": ""}, "This host has no ansible-playbook in PATH"),
        ({"command": "ansible-playbook"}, 'npu_heal_service_command is "ansible-playbook", which a systemd unit cannot contain'),
        (
            {"directory": "/a\nExecStart=/b"},
            'npu_heal_service_directory is "/a\\nExecStart=/b", which a systemd unit cannot contain',
        ),
        (
            {"inventory": ["/etc/passwd", "hosts.yml"]},
            'npu_heal_service_inventory is "hosts.yml", which a systemd unit cannot contain',
        ),
        ({"inventory": [""]}, 'npu_heal_service_inventory is "", which a systemd unit cannot contain'),
        ({"inventory": ["/nowhere/$HOME"]}, "npu_heal_service_inventory: this host has no inventory /nowhere/$HOME."),
        ({"directory": "/etc/passwd"}, "npu_heal_service_directory: this host has no directory /etc/passwd."),
        ({"command": "/etc"}, "npu_heal_service_command: this host has no program /etc."),
        ({"command": "/etc/passwd"}, "may not run /etc/passwd."),
        ({"arguments": ["--forks=2", "-K", "--ask-pass"]}, "npu_heal_service_arguments contains -K, --ask-pass, but"),
        ({"arguments": ["a\0b"]}, "npu_heal_service_arguments contains a null character"),
        ({"environment": {"A": "a\0b"}}, "npu_heal_service_environment contains a null character"),
        ({"environment": {"A B": "x"}}, 'npu_heal_service_environment contains "A B"'),
        ({"environment": {"K8S_AUTH_API_KEY": "x"}}, 'npu_heal_service_environment contains "K8S_AUTH_API_KEY"'),
        ({"environment": {"my_token": "x"}}, 'npu_heal_service_environment contains "my_token"'),
    ],
)
def test_what_cannot_work_is_refused(place, changes, sentence):
    (problem,) = problems(place, **changes)
    assert sentence in problem


SECRET = "hunter2"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"arguments": ["-e", "npu_registry_password=" + SECRET]}, "arguments contains the value of npu_registry_password,"),
        ({"arguments": ["-enpu_max_parallel=2 ansible_become_pass='%s'" % SECRET]}, "the value of ansible_become_pass,"),
        ({"arguments": ["--extra-vars", '{"npu_kubernetes_auth": {"api_key": "%s"}}' % SECRET]}, "the value of api_key,"),
        ({"arguments": ["-e", "{npu_registries: [{registry: r, Password: %s}]}" % SECRET]}, "the value of Password,"),
        ({"arguments": ["-e", "a=https://user:%s@proxy:3128" % SECRET]}, "arguments contains a URL with a password,"),
        ({"environment": {"HTTPS_PROXY": "http://user:%s@proxy:3128" % SECRET}}, "environment contains a URL with a password,"),
        ({"environment": {"ANSIBLE_OPTIONS": "-e token=" + SECRET}}, "environment contains the value of token,"),
        ({"environment": {"K8S_AUTH_API_KEYS": SECRET}}, 'environment contains "K8S_AUTH_API_KEYS"'),
        ({"environment": {"SMTP_PASS": SECRET}}, 'environment contains "SMTP_PASS"'),
    ],
)
def test_a_secret_is_refused_wherever_it_is(place, changes, sentence):
    (problem,) = problems(place, **changes)
    assert sentence in problem and "files that only %s can read" % getpass.getuser() in problem and SECRET not in problem


def test_what_is_no_secret(place):
    arguments = ["--vault-password-file=/etc/vault", "--become-password-file", "/etc/become", "--vault-id", "dev@/etc/vault"]
    arguments += ["-e", "npu_registry_password={{ lookup('file', '/etc/npuops/password') }}", "-e", "@/etc/npuops/secrets.yml"]
    arguments += ["-e", '{"npu_registry_password": "{{ password_of_the_vault }}"}', "-e", "npu_registry_password= bypass=1"]
    environment = {"ANSIBLE_VAULT_PASSWORD_FILE": "/etc/vault", "HTTPS_PROXY": "http://proxy:3128", "SSH_AUTH": "git@host:path"}
    setup(place, arguments=arguments, environment=environment).check()


def test_what_the_account_may_not_use(place):
    closed = place / "closed"
    closed.mkdir()
    (place / "closed.yml").touch()
    found = problems(place, directory=str(closed), inventory=[str(place / "closed.yml")])
    assert [problem.split(". ")[0] for problem in found] == [
        "npu_heal_service_directory: the account %s may not enter %s" % (getpass.getuser(), closed),
        "npu_heal_service_inventory: the account %s may not read %s" % (getpass.getuser(), place / "closed.yml"),
    ]


def test_all_of_it_is_told_at_once(place):
    assert len(problems(place, user="", inventory=["hosts.yml"], arguments=["-k"], environment={"A_SECRET": "x"})) == 4
    assert len(problems(place, user="npuops-nobody", directory="/nowhere", inventory=["/not/a", "/not/b"], command="")) == 5


def unit(place, **changes):
    """The unit's text, and the same as {section: {key: value}}."""
    text = setup(place, **changes).unit()
    parser = configparser.RawConfigParser(strict=False, delimiters="=", comment_prefixes="#")
    parser.optionxform = str
    parser.read_string(text)
    return text, {name: dict(parser[name]) for name in parser.sections()}


def test_the_unit(place):
    text, sections = unit(
        place,
        user="ansible",
        directory="/home/ansible/my fleet 100%",
        inventory=["/home/ansible/my fleet 100%/hosts.yml", "/etc/more"],
        command="/usr/bin/ansible-playbook",
        arguments=["--forks=2"],
        environment={"KUBECONFIG": "/home/ansible/kube config", "A": 1},
    )
    assert text.startswith("# Written by the Ansible collection npuops.ascend.\n\n[Unit]\n")
    assert 'Environment=A=1\nEnvironment="KUBECONFIG=/home/ansible/kube config"\n' in text
    service = sections["Service"]
    assert service["User"] == "ansible"
    assert service["WorkingDirectory"] == "/home/ansible/my fleet 100%%"
    assert service["ExecStart"] == (
        '/usr/bin/ansible-playbook npuops.ascend.heal -i "/home/ansible/my fleet 100%%/hosts.yml" -i /etc/more --forks=2'
        ' -e "{\\"npu_heal_watch\\": true}"'
    )
    assert (service["Type"], service["Restart"], service["KillMode"]) == ("exec", "always", "control-group")
    assert sections["Unit"]["Wants"] == sections["Unit"]["After"] == "network-online.target"
    assert sections["Install"] == {"WantedBy": "multi-user.target"}


def test_a_unit_without_an_environment(place):
    text = unit(place)[0]
    assert "Environment" not in text
    assert "\n\n\n" not in text


def test_the_start_limit_can_be_reached(place):
    """With pauses of RestartSec and half a minute for each start, else a setup that never works would be tried for ever."""
    sections = unit(place)[1]
    starts = int(sections["Unit"]["StartLimitBurst"])
    assert starts * (int(sections["Service"]["RestartSec"]) + 30) < int(sections["Unit"]["StartLimitIntervalSec"])


def test_a_name_that_no_service_can_have():
    for name in ("npuops-heal.service", "a/b", "", "-x", "a b"):
        with pytest.raises(NpuError, match="npu_heal_service_name is"):
            heal_service.Service(name)
