# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbooks of the collection as Ansible runs them, with modules that answer as a test says instead of asking a cluster."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

from support.paths import CHECKOUT
from support.patience import PATIENCE

# Of modules that most tests have nothing to do with.
ANSWERS: dict = {"npu_components": {"*": [{"deploy": {}, "left_alone": None, "train": None, "unfit": []}]}}

PARTS = ("galaxy.yml", "meta", "playbooks", "plugins", "roles")

# Answers with what `answers.json` has for the host: a list, each for the next call; the last one stays.
STUB = """
import json, os, pathlib
from ansible.plugins.action import ActionBase
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.outcome import handed_on


class ActionModule(ActionBase):
    _requires_connection = False

    def run(self, tmp=None, task_vars=None):
        ended = handed_on(self._task.args.get("previous"))
        if ended:
            return ended
        directory = pathlib.Path(os.environ["SCRIPTED"])
        name, host = %r, task_vars["inventory_hostname"]
        told = {"module": name, "host": host, "arguments": self._task.args}
        with open(directory / "calls", "a") as file:
            before = sum(json.loads(line)["module"] == name and json.loads(line)["host"] == host
                         for line in (directory / "calls").read_text().splitlines())
            file.write(json.dumps(told, default=str) + "\\n")
        script = json.loads((directory / "answers.json").read_text())[name]
        answers = script.get(host, script.get("*"))
        return answers[min(before, len(answers) - 1)]
"""


class Scripted:
    """`answers`: module -> host or "*" -> list of results."""

    def __init__(self, directory: pathlib.Path, answers: dict) -> None:
        answers = ANSWERS | answers
        self.directory = directory
        self.root = directory / "collections"
        place = self.root / "ansible_collections" / "npuops" / "ascend"
        place.mkdir(parents=True)
        for part in PARTS:
            source = CHECKOUT / part
            shutil.copytree(source, place / part) if source.is_dir() else shutil.copy(source, place / part)
        for module in answers:
            (place / "plugins" / "action" / (module + ".py")).write_text(STUB % module, encoding="utf-8")
        (directory / "answers.json").write_text(json.dumps(answers), encoding="utf-8")
        (directory / "calls").write_text("", encoding="utf-8")
        (directory / "ansible.cfg").write_text("", encoding="utf-8")

    def run(self, plays: list | str, hosts: dict, *arguments: str) -> subprocess.CompletedProcess:
        """`plays`: a playbook's name, or plays; `hosts`: host -> variables."""
        inventory = self.directory / "inventory.json"
        inventory.write_text(json.dumps({"npu_nodes": {"hosts": hosts}}), encoding="utf-8")
        if not isinstance(plays, str):
            path = self.directory / "playbook.json"
            path.write_text(json.dumps(plays), encoding="utf-8")
            plays = str(path)
        environment = dict(
            os.environ, ANSIBLE_COLLECTIONS_PATH=str(self.root), ANSIBLE_NOCOLOR="1", HOME=str(self.directory),
            ANSIBLE_CONFIG=str(self.directory / "ansible.cfg"), SCRIPTED=str(self.directory),
        )  # fmt: skip
        command = [sys.executable, "-m", "ansible", "playbook", "-i", str(inventory), plays, *arguments]
        with subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                output = process.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)  # it ends its workers, which are in no group of ours
                raise AssertionError("the playbook had not ended after %d s:\n%s" % (PATIENCE, process.communicate()[0])) from None
        return subprocess.CompletedProcess(command, process.returncode, *output)

    def calls(self, module: str) -> list[tuple[str, dict]]:
        """(host, arguments) of each call, in their order."""
        lines = [json.loads(line) for line in (self.directory / "calls").read_text(encoding="utf-8").splitlines()]
        return [(line["host"], line["arguments"]) for line in lines if line["module"] == module]
