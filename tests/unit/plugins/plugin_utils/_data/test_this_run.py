# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command to run next is the one that was run, but for what is to change, and for secrets."""

from __future__ import annotations

import json
import shlex

import pytest
from ansible import context
from ansible.module_utils.common.collections import ImmutableDict
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import this_run


@pytest.fixture(name="started")
def _started(monkeypatch):
    """Sets the options with which ansible-playbook was started."""
    for name in ("JOB_ID", "INVENTORY_ID"):
        monkeypatch.delenv(name, raising=False)

    def start(**options):
        monkeypatch.setattr(context, "CLIARGS", ImmutableDict(options))

    start()
    return start


def test_outside_of_ansible_it_is_the_playbook(started):
    assert this_run.again("upgrade") == "ansible-playbook npuops.ascend.upgrade"


def test_inventory_hosts_and_variables_are_those_of_this_run(started, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    started(
        inventory=(str(tmp_path / "fleet"), "/etc/ansible/more", "npu-a,"),
        subset="npu-a",
        extra_vars=("npu_driver_version=25.5.1", "@site.yml", '{"npu_upgrade_drain": {"timeout": 5}}', "note='two words' x=1"),
        remote_user="root",
        become=True,
        vault_password_files=("vault.pass",),
    )
    words = shlex.split(this_run.again("upgrade"))
    assert words == [
        "ansible-playbook", "-i", "fleet", "-i", "/etc/ansible/more", "-i", "npu-a,", "--user", "root", "--become",
        "--vault-password-file", "vault.pass", "npuops.ascend.upgrade", "--limit", "npu-a", "-e", "npu_driver_version=25.5.1",
        "-e", "@site.yml", "-e", '{"npu_upgrade_drain": {"timeout": 5}}', "-e", '{"note": "two words"}', "-e", "x=1",
    ]  # fmt: skip


def test_what_is_to_change_takes_precedence(started):
    started(subset="npu-a", extra_vars=("npu_driver_version=25.5.1 npu_upgrade_retry=true", '{"npu_upgrade_clear_halt": true}'))
    told = this_run.again("upgrade", {"npu_driver_version": "25.5.0", "npu_upgrade_retry": True}, limit="npu-b")
    assert told == "ansible-playbook npuops.ascend.upgrade --limit npu-b -e npu_driver_version=25.5.0 -e npu_upgrade_retry=true"
    # Consent of this run is none to the next one.
    assert "clear_halt" not in this_run.again("upgrade")


def test_secrets_are_left_out(started):
    started(
        extra_vars=(
            "npu_registry_password=hidden npu_driver_version=25.5.1",
            json.dumps({"npu_kubernetes_auth": {"api_key": "hidden"}, "npu_upgrade_auto": True}),
            "mirror=https://me:hidden@mirror.example",
            "not: [valid",
        )
    )
    told = this_run.again("heal")
    assert "hidden" not in told and "npu_driver_version=25.5.1" in told and '{"npu_upgrade_auto": true}' in told


def test_in_awx_there_is_a_job_template(started, monkeypatch):
    started(extra_vars=("@/runner/env/extravars",))
    monkeypatch.setenv("JOB_ID", "7")
    monkeypatch.setenv("INVENTORY_ID", "2")
    assert this_run.again("upgrade") == "launch the job template of npuops.ascend.upgrade again"
    assert this_run.again("upgrade", {"npu_upgrade_retry": True}, limit="npu-a") == (
        "launch the job template of npuops.ascend.upgrade again with the variables npu_upgrade_retry: true and the limit npu-a"
    )


def test_in_awx_the_limit_of_the_job_is_repeated(started, monkeypatch):
    """Without it, the retry of one node is one of the fleet."""
    started(extra_vars=("@/runner/env/extravars",), subset="npu-a")
    monkeypatch.setenv("JOB_ID", "7")
    monkeypatch.setenv("INVENTORY_ID", "2")
    assert this_run.again("upgrade", {"npu_upgrade_retry": True}) == (
        "launch the job template of npuops.ascend.upgrade again with the variables npu_upgrade_retry: true and the limit npu-a"
    )
    assert this_run.again("rollback").endswith(" again with the limit npu-a")
    assert this_run.again("upgrade", limit="npu-b").endswith(" again with the limit npu-b")
    assert this_run.again("upgrade", without="npu-b").endswith(" again with the limit npu-a:!npu-b")


def test_in_awx_the_answers_of_the_job_are_repeated(started, monkeypatch, tmp_path):
    """The inventory still has the version before, and a launch without it would go back to that."""
    answers = tmp_path / "extravars"
    answers.write_text(
        "{'npu_driver_version': !unsafe '25.5.1', 'npu_firmware_policy': !unsafe 'upgrade', 'npu_firmware_version': !unsafe '',"
        " 'npu_upgrade_auto': !unsafe 'true', 'awx_job_id': 7}\n"
    )
    started(extra_vars=("@" + str(answers),))
    monkeypatch.setenv("JOB_ID", "7")
    monkeypatch.setenv("INVENTORY_ID", "2")
    launch, version = "launch the job template of npuops.ascend.", " again with the variables npu_driver_version: "
    firmware = ", npu_firmware_policy: upgrade"
    assert this_run.again("upgrade") == launch + "upgrade" + version + "25.5.1" + firmware
    told = this_run.again("upgrade", {"npu_driver_version": "25.5.0", "npu_upgrade_clear_halt": True})
    assert told == launch + "upgrade" + version + "25.5.0" + firmware + ", npu_upgrade_clear_halt: true"
    assert this_run.again("install") == launch + "install" + version + "25.5.1"
    # Their templates do not ask for it.
    assert this_run.again("rollback") == launch + "rollback again"
    for unusable in (b"- not a mapping\n", b"\xff\xfe: "):
        answers.write_bytes(unusable)
        assert this_run.again("upgrade") == launch + "upgrade again"
