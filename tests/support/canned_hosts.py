# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts of an inventory that answer any module with what a test says, or are down, and the run of a playbook for them."""

from __future__ import annotations

import json

from support import controller

NEAR = """
DOCUMENTATION = "{name: near, short_description: a shell on this machine, author: us, description: x, options: {}}"
from ansible.plugins.connection.local import Connection as Local
class Connection(Local):
    transport = "near"
"""
DOWN = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 9, "ansible_ssh_retries": 0}
LOCAL = {"ansible_connection": "local"}


class CannedHosts:
    """In ``directory``; ``playbook``: its name in the collection."""

    def __init__(self, directory, playbook):
        self.directory, self.playbook = directory, playbook
        (directory / "near.py").write_text(NEAR, encoding="utf-8")

    def answers(self, name, result):
        """A host that answers any module with this."""
        said, python = self.directory / (name + ".json"), self.directory / (name + ".python")
        said.write_text(json.dumps(result), encoding="utf-8")
        python.write_text("#!/bin/sh\nexec cat '%s'\n" % said, encoding="utf-8")
        python.chmod(0o755)
        return {"ansible_connection": "near", "ansible_python_interpreter": str(python)}

    def run(self, hosts, *arguments, api, **variables):
        """``api``: the address of an API server, None for a controller without credentials."""
        inventory = self.directory / "hosts.json"
        inventory.write_text(json.dumps({"npu_nodes": {"hosts": hosts, "vars": variables}}), encoding="utf-8")
        return controller.run(
            ["ansible-playbook", "-i", str(inventory), "npuops.ascend." + self.playbook, *arguments],
            self.directory,
            environ={"ANSIBLE_CONNECTION_PLUGINS": str(self.directory)},
            more={
                "TMPDIR": str(self.directory),
                "PWD": str(self.directory),
                "HOME": str(self.directory),
                **({"K8S_AUTH_HOST": api, "K8S_AUTH_API_KEY": "token"} if api else {}),
            },
        )
