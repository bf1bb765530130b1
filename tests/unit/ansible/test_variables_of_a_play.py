# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A variable that only the play has would count for half of the tasks."""

from __future__ import annotations

import json

import pytest

from support import controller

REFUSED = {"npu_driver_version": "25.5.1", "npu_upgrade_auto": True, "npu_noded_enabled": True}


def playbook(tmp_path, module, variables):
    """What a playbook prints in which one task calls the module; there is no cluster."""
    play = {
        "hosts": "localhost",
        "gather_facts": False,
        "vars": variables,
        "tasks": [{"npuops.ascend." + module: {"hosts": [], "kubeconfig": str(tmp_path / "none")}}],
    }
    path = tmp_path / "playbook.json"
    path.write_text(json.dumps([play]), encoding="utf-8")
    done = controller.run(["ansible-playbook", "-i", "localhost,", "-c", "local", str(path)], tmp_path)
    return " ".join(done.stdout.split())


@pytest.mark.parametrize("module", ["npu_preflight", "npu_plan", "npu_status"])
def test_refused_by_name(tmp_path, module):
    text = playbook(tmp_path, module, {**REFUSED, "npu_hosts": "all", "mine": 1})
    assert "not become a variable of the hosts: npu_driver_version, npu_noded_enabled, npu_upgrade_auto. Set it in the" in text


def test_others_are_let_pass(tmp_path):
    text = playbook(tmp_path, "npu_plan", {"npu_hosts": "all", "npu_namespace": "npu", "mine": 1})
    assert "not become" not in text and "kubeconfig" in text
