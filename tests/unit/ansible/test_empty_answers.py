# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An extra variable that is empty hides the inventory's value from Ansible. It must not become a default with consequences."""

from __future__ import annotations

import json
import re

import pytest
import yaml
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import empty_answers, spec_defaults

from support import controller
from support.paths import CHECKOUT

INVENTORY = {
    "npu_nodes": {
        "hosts": {"a": {"ansible_connection": "local"}, "b": {"ansible_connection": "local", "npu_driver_version": "25.5.9"}},
        "vars": {
            "series": "25.5",
            "npu_driver_version": "{{ series }}.4",
            "npu_driver_repository": "registry.example.com/mlops/ascend-driver",
            "npu_upgrade_auto": True,
            "npu_upgrade_max_parallel": 0,
            "npu_upgrade_hook_before": "/srv/before.yml",
            "npu_namespace": "npu",
        },
    }
}
VERSIONS = "(ansible_play_hosts_all | npuops.ascend.npu_hosts(hostvars)) | map(attribute='config.driver_version')"
EMPTY = ["npu_driver_version=", "npu_driver_version=' '", '{"npu_driver_version": null}', '{"npu_driver_version": "\\t"}']


def run(tmp_path, tasks, *extra):
    """The results of the tasks for each host, and all that was printed."""
    (tmp_path / "inventory.yml").write_text(yaml.safe_dump(INVENTORY), encoding="utf-8")
    play = {"hosts": "npu_nodes", "gather_facts": False, "tasks": tasks}
    (tmp_path / "playbook.yml").write_text(yaml.safe_dump([play]), encoding="utf-8")
    command = ["ansible-playbook", "-i", "inventory.yml", "playbook.yml"]
    for text in extra:
        command += ["-e", text]
    done = controller.run(command, tmp_path)
    return done.stdout + done.stderr


def shown(tmp_path, expression, *extra):
    """What the expression is on each host."""
    text = run(tmp_path, [{"ansible.builtin.debug": {"msg": "{{ {'is': %s} | to_json }}" % expression}}], *extra)
    found = dict(re.findall(r'ok: \[(\w)\] => \{\n +"msg": (".*")\n', text))
    assert sorted(found) == ["a", "b"], text
    return {host: json.loads(json.loads(value))["is"] for host, value in found.items()}


@pytest.mark.parametrize("empty", EMPTY)
def test_an_empty_version_is_the_inventorys(tmp_path, empty):
    assert shown(tmp_path, VERSIONS, empty) == {"a": ["25.5.4", "25.5.9"], "b": ["25.5.4", "25.5.9"]}


class Manager:
    """As the one of ansible-core 2.18: what the module copy makes of it is for another process, and has no loader."""

    def __init__(self, loader, extra):
        self._loader, self._extra_vars = loader, extra

    def __getstate__(self):
        return {"_extra_vars": self._extra_vars}

    def __setstate__(self, state):
        self.__dict__.update(state, _loader=None)


class HostVars:
    def __init__(self, inventory, variable_manager, loader):
        self._inventory, self._variable_manager, self._loader = inventory, variable_manager, loader
        variable_manager._hostvars = self


def test_ansible_goes_on_with_its_own_variables():
    ours = Manager("loader", {"npu_driver_version": "", "npu_namespace": "npu"})
    whole = HostVars("inventory", ours, "loader")
    view = empty_answers.given(whole)
    assert view._variable_manager._extra_vars == {"npu_namespace": "npu"} and view._variable_manager._loader == "loader"
    assert ours._extra_vars == {"npu_driver_version": "", "npu_namespace": "npu"} and ours._hostvars is whole


def test_a_version_that_is_given_wins(tmp_path):
    assert shown(tmp_path, VERSIONS, "npu_driver_version=26.0.0")["a"] == ["26.0.0", "26.0.0"]


def test_empty_settings_of_an_upgrade_are_the_inventorys(tmp_path):
    """As the playbooks hand them to the modules, with all of them empty."""
    empty = [name + "=" for name in spec_defaults.role_options("npu_upgrade")]
    found = shown(tmp_path, settings_of_the_plan(), *empty)["a"]
    assert (found["auto"], found["max_parallel"], found["hook_before"]) == (True, 0, "/srv/before.yml")
    assert found == shown(tmp_path, settings_of_the_plan())["a"]


def settings_of_the_plan():
    """The expression with which the role gives npu_plan its settings."""
    tasks = yaml.safe_load((CHECKOUT / "roles" / "npu_upgrade" / "tasks" / "plan.yml").read_text(encoding="utf-8"))
    return next(task["npuops.ascend.npu_plan"] for task in tasks if "npuops.ascend.npu_plan" in task)["settings"].strip()[2:-2]


@pytest.mark.parametrize("module", ["npu_plan", "npu_preflight", "npu_status"])
def test_what_tasks_read_by_themselves_is_refused(tmp_path, module):
    tasks = [{"npuops.ascend." + module: {"hosts": [], "kubeconfig": "none"}, "run_once": True}]
    text = " ".join(run(tmp_path, tasks, "npu_namespace=").split())
    assert "npu_namespace is empty (-e on the command line, or an answer in a survey), and in the inventory it has a value." in text
    text = " ".join(run(tmp_path, tasks, "npu_driver_version=", "npu_upgrade_auto=", "npu_status_file=").split())
    assert "is empty" not in text and "kubeconfig" in text
