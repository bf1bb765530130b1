# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures: the agent as a process, with a kubelet on one side and plugins on the other."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import sys
import tempfile

import pytest
from api_server import ApiServer
from fakes import HERE, Agent, Kubelet, Plugin, collections_tree

_tree = tempfile.mkdtemp(prefix="npuops-agent-")
atexit.register(shutil.rmtree, _tree, ignore_errors=True)
sys.path[:0] = [os.path.dirname(HERE), collections_tree(_tree)]


@pytest.fixture
def agent(tmp_path):
    """The agent, not started; stopped at the end, and then it must have been alive and without a traceback."""
    agent = Agent(tmp_path)
    yield agent
    status = agent.stop() if agent.alive() else 0
    log = agent.read_log()
    print(log)
    assert status == 0
    assert "Traceback" not in log


@pytest.fixture
def api():
    """A running API server."""
    api = ApiServer()
    yield api
    api.stop()


@pytest.fixture
def ready(agent):
    """Put driver-ready; call the result to remove it, or with a boot ID to put it again."""
    path = os.path.join(agent.run_dir, "driver-ready")

    def put(boot_id=None):
        if boot_id is None:
            os.unlink(path)
            return
        with open(path + ".new", "w", encoding="utf-8") as stream:
            json.dump({"version": "25.5.0", "release": "25.5.0-6.6-abc", "boot_id": boot_id}, stream)
        os.rename(path + ".new", path)

    put(agent.boot_id)
    return put


@pytest.fixture
def kubelet(agent):
    """A running kubelet."""
    kubelet = Kubelet(agent.kubelet_dir).start()
    yield kubelet
    kubelet.stop()


@pytest.fixture
def plugins(agent):
    """Make and start plugins: plugins(resource, devices, ...)."""
    made = []

    def make(*args, **kwargs):
        made.append(Plugin(agent.plugin_dir, *args, **kwargs).start())
        return made[-1]

    yield make
    for plugin in made:
        plugin.stop()


@pytest.fixture
def spec(agent):
    """A CDI spec as the collection writes it, for chips 0 to 3."""
    shared = [{"path": "/dev/" + name} for name in ("davinci_manager", "devmm_svm", "hisi_hdc", "dvpp_cmdlist")]
    document = {
        "cdiVersion": "0.5.0",
        "kind": "huawei.com/npu",
        "devices": [{"name": str(n), "containerEdits": {"deviceNodes": [{"path": "/dev/davinci%d" % n}]}} for n in range(4)],
        "containerEdits": {"deviceNodes": shared},
    }
    with open(agent.cdi_spec, "w", encoding="utf-8") as stream:
        json.dump(document, stream)
    return document
