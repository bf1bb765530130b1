# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import select
import subprocess
import sys

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._action import at_once

from support.patience import PATIENCE

# What ansible-playbook does with an action before it starts a worker for it; then a line, while the run goes on.
PROGRAM = """
import sys
from ansible.plugins.loader import action_loader, init_plugin_loader
from ansible.utils.display import Display
init_plugin_loader()
assert action_loader.get(sys.argv[1], class_only=True)
Display().display("a line")
sys.stdin.read()
"""


@pytest.mark.parametrize("action", ["npu_maintenance", "npu_heal_watch"])
def test_a_line_is_read_while_the_run_goes_on(tmp_path, action):
    collections = at_once.__file__.partition("/ansible_collections/")[0]
    environ = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED" and not key.startswith("ANSIBLE_")}
    environ.update(HOME=str(tmp_path), ANSIBLE_COLLECTIONS_PATH=collections)
    command = [sys.executable, "-c", PROGRAM, "npuops.ascend." + action]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ, cwd=tmp_path) as process:
        ready, _writable, _broken = select.select([process.stdout], [], [], PATIENCE)
        seen = process.stdout.readline() if ready else b""
        process.stdin.close()
    assert seen == b"a line\n" and process.returncode == 0
