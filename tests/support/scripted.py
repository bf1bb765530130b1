# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbooks of the collection as Ansible runs them, with modules that answer as a test says instead of asking a cluster."""

from __future__ import annotations

import atexit
import functools
import json
import pathlib
import shutil
import subprocess
import tempfile
from collections.abc import Mapping

from support import controller
from support.paths import CHECKOUT
from support.preloaded import PLACE

# Of modules that most tests have nothing to do with.
ANSWERS: dict = {
    "npu_components": {"*": [{"deploy": {}, "left_alone": None, "version_line": None, "unfit": []}]},
    "npu_device_taints": {"*": [{"changed": False, "done": []}]},
}

PARTS = ("galaxy.yml", "meta", "playbooks", "plugins", "roles")

# At the end of each action: a run that has answers for it in its directory gets these and not the action.
REPLACE = """

from ansible_collections.npuops.ascend.plugins.plugin_utils import scripted

ActionModule = scripted.action(%r, ActionModule)
"""

# Answers with what `answers.json` has for the host: a list, each for the next call; the last one stays.
ACTION = """
import json, os, pathlib
from ansible.plugins.action import ActionBase
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.outcome import handed_on


# Not while it is loaded: the process that many runs are forks of does that.
def directory():
    return pathlib.Path(os.environ["SCRIPTED"])


def script():
    return json.loads((directory() / "answers.json").read_text())


def answer(name, host, arguments, many=False):
    with open(directory() / "calls", "a") as file:
        before = sum(json.loads(line)["module"] == name and json.loads(line)["host"] == host
                     for line in (directory() / "calls").read_text().splitlines())
        file.write(json.dumps({"module": name, "host": host, "arguments": arguments, "many": many}, default=str) + "\\n")
    answers = script()[name].get(host, script()[name].get("*"))
    return answers[min(before, len(answers) - 1)]


def asking_many(real):
    class ActionModule(real):
        def _ask(self, calls, *more):
            scripted = [call for call in calls if call.module.rpartition(".")[2] in script()]
            real = [call for call in calls if call not in scripted]
            return {
                call.host.name: answer(call.module.rpartition(".")[2], call.host.name, call.arguments, many=True) for call in scripted
            } | (super()._ask(real, *more) if real else {})

    return ActionModule


def action(name, real):
    if name == "npu_many_hosts":
        return asking_many(real)
    if name not in script():
        return real

    class ActionModule(ActionBase):
        _requires_connection = False

        def run(self, tmp=None, task_vars=None):
            ended = handed_on(self._task.args.get("previous"))
            if ended:
                return ended
            return answer(name, task_vars["inventory_hostname"], self._task.args)

    return ActionModule
"""


@functools.cache
def _collections() -> pathlib.Path:
    """The collection with its actions replaced, and links to everything else; one for all tests of this process."""
    root = pathlib.Path(tempfile.mkdtemp(prefix="npu-scripted-", dir=PLACE))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    place = root / "ansible_collections" / "npuops" / "ascend"
    replaced = ("plugins", "plugins/action", "plugins/plugin_utils")
    for folder in ("", *replaced):
        (place / folder).mkdir(parents=True)
        for source in (CHECKOUT / folder).iterdir():
            name = source.relative_to(CHECKOUT)
            if name.parts[0] in PARTS and str(name) not in replaced and source.name != "__pycache__":
                (place / name).symlink_to(source)
    for link in (place / "plugins" / "action").glob("*.py"):
        text = link.read_text(encoding="utf-8")
        link.unlink()
        link.write_text(text + REPLACE % link.stem, encoding="utf-8")
    (place / "plugins" / "plugin_utils" / "scripted.py").write_text(ACTION, encoding="utf-8")
    return root


class Scripted:
    """`answers`: module -> host or "*" -> list of results."""

    def __init__(self, directory: pathlib.Path, answers: dict) -> None:
        self.directory = directory
        self.root = _collections()
        (directory / "answers.json").write_text(json.dumps(ANSWERS | answers), encoding="utf-8")
        (directory / "calls").write_text("", encoding="utf-8")

    def run(
        self,
        plays: list | str,
        hosts: dict,
        *arguments: str,
        environ: Mapping[str, str] | None = None,
        more: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess:
        """`plays`: a playbook's name, or plays; `hosts`: host -> variables; `environ` and `more` as controller.run has them."""
        inventory = self.directory / "inventory.json"
        inventory.write_text(json.dumps({"npu_nodes": {"hosts": hosts}}), encoding="utf-8")
        if not isinstance(plays, str):
            path = self.directory / "playbook.json"
            path.write_text(json.dumps(plays), encoding="utf-8")
            plays = str(path)
        return controller.run(
            ["ansible-playbook", "-i", str(inventory), plays, *arguments],
            self.directory,
            environ={"ANSIBLE_COLLECTIONS_PATH": str(self.root), **(environ or {})},
            more={"SCRIPTED": str(self.directory), **(more or {})},
        )

    def calls(self, module: str, many: bool | None = None) -> list[tuple[str, dict]]:
        """(host, arguments) of each call, in their order.

        :param many: only the calls of tasks for many hosts, or only those of a host's own tasks
        """
        lines = [json.loads(line) for line in (self.directory / "calls").read_text(encoding="utf-8").splitlines()]
        return [(line["host"], line["arguments"]) for line in lines if line["module"] == module and many in (None, line["many"])]
