# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts of many hosts from one task: each is reached as by a task of its own, and none is kept waiting for another one."""

from __future__ import annotations

import json
import pathlib

import pytest
import yaml

from support import controller
from support.canned_hosts import DOWN, LOCAL, CannedHosts
from support.paths import CHECKOUT

PLAY = [
    {
        "hosts": "npu_nodes",
        "gather_facts": False,
        "tasks": [
            {
                "npuops.ascend.npu_many_hosts": {
                    "module": "npu_facts",
                    "hosts": "{{ ansible_play_hosts }}",
                    "variables": {
                        name: "npu_" + name for name in ("driver_root", "driver_source", "runtime_mode", "runtime_package")
                    },
                    "timeout": 20,
                },
                "delegate_to": "localhost",
                "run_once": True,
                "register": "fleet",
            },
            {
                "ansible.builtin.copy": {"content": "{{ fleet | to_json }}", "dest": "{{ result }}"},
                "delegate_to": "localhost",
                "run_once": True,
                "become": False,
            },
        ],
    }
]
# Notes that it was called, and does what it is asked for.
SUDO = """#!/bin/sh
echo "$@" >> '%s'
while [ "$1" != /bin/sh ] && [ "$1" != sh ]; do shift; done
exec "$@"
"""


@pytest.fixture(scope="module", name="asked")
def _asked(tmp_path_factory):
    """(the answers by host, the directory) of one run with hosts of every kind."""
    directory = tmp_path_factory.mktemp("fleet")
    canned = CannedHosts(directory, "unused")
    sudo = directory / "sudo"
    sudo.write_text(SUDO % (directory / "sudo.calls"), encoding="utf-8")
    sudo.chmod(0o755)
    frozen = directory / "frozen.python"
    frozen.write_text("#!/bin/sh\necho $$ > '%s'\nexec sleep 3600\n" % (directory / "frozen.pid"), encoding="utf-8")
    frozen.chmod(0o755)
    hosts = {
        "near": dict(LOCAL, npu_driver_root="", npu_driver_source=None),
        "elsewhere": dict(LOCAL, npu_driver_root="/srv/ascend"),
        "elevated": dict(LOCAL, ansible_become=True, ansible_become_exe=str(sudo), ansible_become_user="nobody"),
        "canned": canned.answers(
            "canned",
            {"npu": {"hostname": "{{ 1 + 1 }}"}, "ansible_facts": {"npu_driver_root": "/evil"}, "warnings": ["old {{ 1 + 1 }}"]},
        ),
        "chatty": canned.answers(
            "chatty",
            {
                "npu": {},
                "warnings": ["old {{ 1 + 1 }}", {"evil": "x" * 100_000}, "clears \x1b[2J the screen", *map(str, range(99))],
            },
        ),
        "templated": dict(LOCAL, root="/nonsense", npu_driver_source="{{ root }}"),
        "undefined": dict(LOCAL, npu_driver_root="{{ missing }}"),
        "down": DOWN,
        "unplugged": {"ansible_connection": "no.such.plugin"},
        "without-python": dict(LOCAL, ansible_python_interpreter="/no/python"),
        "frozen": dict(LOCAL, ansible_python_interpreter=str(frozen)),
    }
    (directory / "hosts.json").write_text(json.dumps({"npu_nodes": {"hosts": hosts}}), encoding="utf-8")
    (directory / "play.json").write_text(json.dumps(PLAY), encoding="utf-8")
    done = controller.run(
        [
            "ansible-playbook",
            "-i",
            str(directory / "hosts.json"),
            str(directory / "play.json"),
            "-e",
            f"result={directory / 'result'}",
            "--forks=3",
        ],
        directory,
        environ={"ANSIBLE_CONNECTION_PLUGINS": str(directory)},
        more={"HOME": str(directory)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (directory / "told").write_text(done.stdout + done.stderr, encoding="utf-8")
    return json.loads((directory / "result").read_text(encoding="utf-8"))["answers"], directory


def test_each_host_has_an_answer_and_the_task_does_not_fail(asked):
    answers, _directory = asked
    # In ansible-core 2.21, each result says whether it failed.
    keys = ("npu", "failed", "unreachable")
    assert {name: [key for key in keys if answer.get(key, False) is not False] for name, answer in answers.items()} == {
        "near": ["npu"], "elsewhere": ["npu"], "elevated": ["npu"], "canned": ["npu"], "chatty": ["npu"], "templated": ["failed"],
        "undefined": ["failed"], "down": ["unreachable"], "unplugged": ["failed"], "without-python": ["failed"], "frozen": ["unreachable"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("host", "told"),
    [
        ("templated", "value of driver_source must be one of: image, package, preinstalled, got: /nonsense"),
        ("undefined", "'missing' is undefined"),
        ("down", "Data could not be sent to remote host"),
        ("unplugged", "the connection plugin 'no.such.plugin' was not found"),
        ("frozen", "no answer within 20 s"),
    ],
)
def test_why_one_has_no_facts(asked, host, told):
    assert told in asked[0][host]["msg"]


def test_each_is_asked_with_its_own_options(asked):
    """What is sent is put together once for all that get the same."""
    roots = {name: asked[0][name]["npu"]["driver"]["root"] for name in ("near", "elsewhere", "elevated")}
    assert roots == {"near": "/var/lib/Ascend", "elsewhere": "/srv/ascend", "elevated": "/var/lib/Ascend"}


def test_an_answer_is_data_and_without_what_is_about_the_call(asked):
    answers, _directory = asked
    assert answers["canned"]["npu"] == {"hostname": "{{ 1 + 1 }}"}
    assert not {"invocation", "ansible_facts", "diff"} & {key for answer in answers.values() for key in answer}


def test_a_warning_is_shown_once_with_its_hosts_and_is_bounded(asked):
    answers, directory = asked
    told = " ".join((directory / "told").read_text(encoding="utf-8").split())
    assert told.count("canned, chatty: old {{ 1 + 1 }}") == 1 and "chatty: 1" in told and "chatty: 2" not in told
    assert "chatty: clears ?[2J the screen" in told and "\x1b[2J" not in told
    assert len(told) < 20_000 and not [name for name, answer in answers.items() if "warnings" in answer]


def test_only_the_host_that_asks_for_it_becomes_another_user(asked):
    (call,) = (asked[1] / "sudo.calls").read_text(encoding="utf-8").splitlines()
    assert "-u nobody" in call


def test_what_hangs_has_ended(asked):
    pid = (asked[1] / "frozen.pid").read_text(encoding="utf-8").strip()
    assert not pathlib.Path("/proc", pid).exists() or not pathlib.Path("/proc", pid, "cmdline").read_bytes()


def _tasks(block):
    for task in block or ():
        for part in ("tasks", "block", "rescue", "always"):
            yield from _tasks(task.get(part))
        yield task


def test_every_task_for_many_hosts_is_one_that_a_fleet_can_have():
    """It is no host's own, and a limit that a site has for each task (task_timeout) is not one for the whole fleet."""
    files = [path for folder in ("playbooks", "roles") for path in (CHECKOUT / folder).rglob("*.yml")]
    texts = [text for text in (path.read_text(encoding="utf-8") for path in files) if "npu_many_hosts:" in text]
    found = [task for text in texts for task in _tasks(yaml.safe_load(text)) if "npuops.ascend.npu_many_hosts" in task]
    assert len(found) > 5
    for task in found:
        assert (task["delegate_to"], task["run_once"], task["timeout"]) == ("localhost", True, 0), task["name"]
