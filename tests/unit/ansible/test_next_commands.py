# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible accepts each command that the collection tells people to run next, and the hosts are those that the text is about."""

from __future__ import annotations

import json
import pathlib
import re
import shlex
import sys

import pytest
from ansible import context
from ansible.module_utils.common.collections import ImmutableDict
from ansible_collections.npuops.ascend.plugins.action import npu_driver_stage
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.interrupted import Notes
from ansible_collections.npuops.ascend.plugins.plugin_utils._adopt import way_back
from ansible_collections.npuops.ascend.plugins.plugin_utils._adopt.move import Move
from ansible_collections.npuops.ascend.plugins.plugin_utils._adopt.sides import Theirs
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import this_run
from ansible_collections.npuops.ascend.plugins.plugin_utils._heal import wedged_reboot
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance import begin, purpose
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import foreign
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import halt
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import report_table

from support import controller
from support.fleet import planning, reports
from support.fleet.hosts import host
from support.kube import stub
from support.paths import CHECKOUT

# The Node npu-a is the host worker-17 of the inventory. Its group has a name of its own, and so has a host that is no NPU node.
HOSTS = {"worker-17": {"npu_node_name": "npu-a"}, "npu-b": {}}
INVENTORY = {"gpus": {"hosts": HOSTS}, "web": {"hosts": {"npu-a": {"npu_node_name": "web-1"}}}}
EXTRA = ("npu_hosts=gpus npu_driver_version=25.5.1", '{"note": "it\'s {{ 5 }} o\'clock \\\\ \\"now\\""}', "npu_upgrade_retry=true")
RECORD = {"run": "run-1", "reason": "upgrade", "step": "reboot-required", "heartbeat": "2026-11-21T10:00:00Z"}
A, B, BOTH = {"worker-17"}, {"npu-b"}, {"worker-17", "npu-b"}


def halted(node=None):
    return halt.made("run-1", "npu-a did not come back.", "2026-11-21T10:00:00Z", "upgrade", node)


def record(**more):
    return dict(RECORD, to={"version": "25.5.0", "release": "x"}, **more)


def node(name="npu-a", **annotations):
    return {"metadata": {"name": name, "labels": {}, "annotations": annotations}}


def interrupted():
    notes = Notes()
    notes.begin("npu-a", "drain-required", "upgrade")
    notes.begin("npu-b", "drain-required", "heal")
    lines = notes.lines()
    notes.close()
    return "\n".join(lines)


def in_recovery():
    """What the plan says of a Node that a recovery has begun with."""
    text = json.dumps(dict(planning.record(), reason="recovery", to={}, step="validation-required"))
    nodes = {"npu-a": stub.node("npu-a", boot_id="x", ready=False, annotations={"npuops.ascend/maintenance": text})}
    entry = host("worker-17")
    return planning.make([dict(entry, config=dict(entry["config"], node_name="npu-a"))], nodes).problem


def tired():
    """What heal says of a node that it has rebooted often enough."""
    guards = wedged_reboot.Guards(600, 2, 1, 20, 600, False)
    last = {"run": "run-1", "generation": 3, "recoveries": ["2026-11-21T10:00:00Z", "2026-11-21T11:00:00Z"]}
    now = maintenance_record.seconds_of("2026-11-21T12:00:00Z")
    return guards.tired(stub.node("npu-a", annotations={maintenance_record.ANNOTATION_LAST: json.dumps(last)}), now)


def failed_report():
    made = reports.rows(("worker-17", "failed", "It is broken.", reports.planned("npu-a"), reports.node("npu-a")))
    return report_table.problem(reports.document(made, None, "upgrade"))


def moved(target):
    move = Move(None, None, target, None, None, None)
    return move._message({"npu-a": "it does not work"}, [], ["npu-b"])  # noqa: SLF001


def stage(**more):
    settings = {
        "npu_driver_source": "package",
        "npu_driver_package": "https://files.example/Ascend-hdk-910b-npu-driver_25.5.0_linux-aarch64.run",
        "npu_driver_package_sha256": "0" * 64,
        "npu_driver_version": "25.5.0",
    }
    result = {"failed": True, "msg": "It is damaged", "package_settings": dict(settings, **more)}
    return npu_driver_stage.ActionModule._with_command(result, {"inventory_hostname": "worker-17"})["msg"]  # noqa: SLF001


# What prints commands: the text, and the hosts of each command in it.
SCENARIOS = {
    "a halt": (lambda: halt.text(halted()), [BOTH, BOTH]),
    "a halt with a node": (lambda: halt.text(halted("npu-a")), [BOTH, B, BOTH]),
    "a maintenance of the other kind": (lambda: begin.other_purpose("npu-a", record()), [A]),
    "a rollback": (lambda: begin.other_purpose("npu-b", record(reason="rollback") | {"reason": "rollback"}), [B]),
    "a node that failed before": (lambda: purpose._failed_before(node()), [A]),  # noqa: SLF001
    "an interruption": (interrupted, [BOTH, BOTH, BOTH]),
    "a recovery in a plan": (in_recovery, [A]),
    "a node in recovery that was rebooted too often": (tired, [A]),
    "a report": (failed_report, [BOTH]),
    "an adoption": (lambda: moved(None), [BOTH, BOTH]),
    "a return": (lambda: moved(Theirs([], [])), [BOTH, BOTH]),
    "an uninstall": (lambda: way_back.left([{"kind": "DaemonSet", "metadata": {"name": "x", "namespace": "y"}}])[0], [BOTH]),
    "a damaged release of a package": (stage, [A]),
}


@pytest.fixture(name="told")
def _told(monkeypatch, tmp_path):
    """Starts a run with an inventory; returns the commands that have been made since: (command, the file that made it)."""
    for name in ("JOB_ID", "INVENTORY_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hosts.json").write_text(json.dumps(INVENTORY), encoding="utf-8")
    options = {"inventory": (str(tmp_path / "hosts.json"),), "extra_vars": EXTRA, "remote_user": "admin", "become": True}
    monkeypatch.setattr(context, "CLIARGS", ImmutableDict(options))
    made, again = [], this_run.again

    def recorded(*arguments, **options):
        made.append((again(*arguments, **options), pathlib.Path(sys._getframe(1).f_code.co_filename).name))  # noqa: SLF001
        return made[-1][0]

    monkeypatch.setattr(this_run, "again", recorded)
    this_run.inventory_is({**HOSTS, **INVENTORY["web"]["hosts"]})
    yield made
    this_run.inventory_is(None)


def hosts_of(command, home):
    """Of the first play that works on hosts; one before it only looks whether there are any."""
    done = controller.run([*shlex.split(command), "--list-hosts"], home)
    assert done.returncode == 0 and not re.search("Could not match.*: (?!__)", done.stderr), (
        command + "\n" + done.stdout + done.stderr
    )
    play = re.search(r"play #\d+ \(gpus\).*?hosts \(\d+\):\n((?: {6}\S+\n)*)", done.stdout, re.DOTALL)
    return set(play.group(1).split())


def test_ansible_accepts_them_and_the_hosts_are_those(told, tmp_path):
    files, seen, wrong = set(), {}, []
    for name, (make_text, expected) in SCENARIOS.items():
        told.clear()
        text = make_text()
        commands = [command for command, _file in told if command in text]
        assert len(commands) == len(expected), (name, text)
        for command, hosts in zip(commands, expected):
            # What follows belongs to the text.
            assert re.search(re.escape(command) + r"(?=$|\n|\. [A-Z]| && )", text), (name, text)
            if command not in seen:
                seen[command] = hosts_of(command, tmp_path)
            if seen[command] != hosts:
                wrong.append((name, command, seen[command]))
        files |= {file for _command, file in told}
    assert wrong == []
    # Whatever makes a command has a scenario here.
    assert files == {path.name for path in (CHECKOUT / "plugins").rglob("*.py") if "this_run.again(" in path.read_text("utf-8")}


def test_variables_arrive_as_they_were_given(told, tmp_path):
    play = [{"hosts": "localhost", "gather_facts": False, "tasks": [{"debug": {"msg": "<{{ note }}|{{ npu_driver_version }}>"}}]}]
    (tmp_path / "play.json").write_text(json.dumps(play), encoding="utf-8")
    command = shlex.split(this_run.again("upgrade"))
    done = controller.run(["play.json" if word == "npuops.ascend.upgrade" else word for word in command], tmp_path)
    assert json.dumps("<it's 5 o'clock \\ \"now\"|25.5.1>") in done.stdout, done.stdout + done.stderr


def test_a_text_of_a_host_is_no_option_and_no_template(told):
    for package in ("{{ lookup('pipe', 'id') }}", "x.run npu_upgrade_auto=true", "x\ny", 5, "x" * 2000):
        assert "ansible-playbook" not in stage(npu_driver_package=package)
    assert "ansible-playbook" not in stage(npu_driver_package_sha256="0" * 63)
    assert "ansible-playbook" not in stage(npu_upgrade_auto="true")


def test_without_an_inventory_it_is_the_name_of_the_node(told):
    this_run.inventory_is(None)
    assert "--limit npu-a -e" in this_run.again("heal", node="npu-a")
    this_run.inventory_is({})
    assert foreign.give_back().endswith("-e npu_adopt=true -e npu_adopt_state=returned")
    assert "--limit npu-z" in this_run.again("heal", node="npu-z")
