# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import hook_files

TASKS = "- name: Drain the jobs\n  ansible.builtin.command: 'true'\n  vars: {secret: !unsafe '{{ x }}'}\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (TASKS, None),
        ("[]", None),
        ("$ANSIBLE_VAULT;1.1;AES256\n3162\n", None),
        (None, "cannot be read: No such file or directory"),
        ("- name: [", "cannot be read: "),
        ("name: A task without a list", "is no list of tasks"),
        ("- a\n", "is no list of tasks"),
        ("", "is no list of tasks"),
        (b"\xff\xfe- name", "cannot be read: "),
    ],
)
def test_a_file_that_ansible_cannot_load_is_named(tmp_path, text, why):
    file = tmp_path / "hook.yml"
    if text is not None:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    told = hook_files.problems({"hook_before": "", "hook_after": str(file), "with_os": ""})
    if why is None:
        assert told == []
    else:
        assert len(told) == 1 and told[0].startswith(f"npu_upgrade_hook_after: {file} {why}")


def test_a_recovery_runs_no_file_for_the_operating_system():
    settings = {"hook_before": "", "hook_after": "", "with_os": "/missing"}
    assert hook_files.problems(settings, hook_files.OF_A_RECOVERY) == [] and len(hook_files.problems(settings)) == 1
