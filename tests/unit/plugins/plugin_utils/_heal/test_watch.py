# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Watching: what starts a recovery, how often, and that nothing of it is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import types

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._heal import recoveries as heal_recoveries
from ansible_collections.npuops.ascend.plugins.plugin_utils._heal import watch as heal_watch
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client

from support.kube.stub import node
from support.patience import PATIENCE


class Scene:
    """A watch with a clock of its own; `plans` by time: what is due."""

    def __init__(self, interval=30, most=1):
        self.now, self.due, self.lines, self.said, self.runs, self.error, self.cures = 0.0, [], ["fine"], [], [], None, False
        self.strangers, self.looks, self.seconds, self.excluded, self.labels = [], 0, 0, [], []
        self.watch = heal_watch.Watch(self.look, self.start, self.said.append, interval, self, most)

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds

    def look(self):
        self.looks += 1
        if self.error:
            raise self.error if isinstance(self.error, NpuError) else NpuError(self.error)

        def entries(nodes, verdict):
            return [
                types.SimpleNamespace(name=name, host=name, verdict=verdict, wedge=types.SimpleNamespace(since=since))
                for name, since in nodes
            ]

        return types.SimpleNamespace(
            due=entries(self.due, "recover"), strangers=entries(self.strangers, "no-host"), table=lambda: self.lines
        )

    def start(self, excluded, label):
        """A run that takes ``seconds``."""
        self.runs.append(self.now)
        self.excluded.append(list(excluded))
        self.labels.append(label)
        begun, end = [one for one in [*self.due, *self.strangers] if one[0] not in excluded], self.now + self.seconds

        def poll():
            if self.now < end:
                return None
            if self.cures:
                self.due = [one for one in self.due if one not in begun]
                self.strangers = [one for one in self.strangers if one not in begun]
            return 0 if self.cures else 2

        return types.SimpleNamespace(poll=poll)

    def go(self, seconds):
        end = self.now + seconds
        self.watch.run(lambda: self.now < end)


def test_nothing_is_due():
    scene = Scene()
    scene.go(600)
    assert scene.runs == [] and scene.said == ["fine"]  # told once


def test_one_is():
    scene = Scene()
    scene.go(60)
    scene.due, scene.lines, scene.cures = [("npu-a", "x")], ["npu-a is wedged"], True
    scene.go(600)
    assert scene.runs == [60]
    assert scene.said == [
        "fine",
        "npu-a is wedged",
        "Recovers npu-a:",
        "The recovery has ended with status 0; watches again.",
        "npu-a is wedged",
    ]


def test_what_fails_is_tried_less_and_less_often():
    scene = Scene()
    scene.due = [("npu-a", "x")]
    scene.go(4000)
    gaps = [later - earlier for earlier, later in zip(scene.runs, scene.runs[1:])]
    # From the end of one to the next, and it is seen at the next look that it has ended.
    assert gaps[:5] == [60, 90, 150, 270, 510] and set(gaps[5:]) == {630}


def test_another_node_is_not_kept_waiting():
    scene = Scene()
    scene.due = [("npu-a", "x")]
    scene.go(1000)
    before = len(scene.runs)
    scene.due = [("npu-a", "x"), ("npu-b", "y")]
    scene.go(30)
    assert len(scene.runs) == before + 1


def test_others_are_recovered_beside_a_recovery_that_takes_long():
    """For the limits of a drain, a reboot that waits for a slot or takes half an hour."""
    scene = Scene(most=2)
    scene.due, scene.cures, scene.seconds = [("npu-a", "x")], True, 3600
    scene.go(300)
    scene.due, scene.seconds = [("npu-a", "x"), ("npu-b", "y")], 100
    scene.go(300)
    assert scene.runs == [0, 300] and scene.excluded == [[], ["npu-a"]] and scene.labels == ["", "[npu-b] "]
    assert "The recovery of npu-b has ended with status 0; watches again." in scene.said
    assert scene.due == [("npu-a", "x")]
    scene.go(3600)
    assert len(scene.runs) == 2 and scene.due == [] and scene.said[-1] == "fine"


def test_no_more_recoveries_than_are_allowed_and_it_says_so():
    scene = Scene()
    scene.due, scene.cures, scene.seconds = [("npu-a", "x")], True, 600
    scene.go(60)
    scene.due = [("npu-a", "x"), ("npu-b", "y")]
    scene.go(300)
    assert scene.runs == [0]
    assert [sentence for sentence in scene.said if "npu-b" in sentence] == [
        "npu-b: also due; as many recoveries are running as npu_heal_max_parallel and npu_upgrade_max_parallel allow (npu-a)."
    ]
    scene.go(600)
    assert len(scene.runs) == 2


def test_what_fails_beside_another_recovery_is_tried_less_often_as_well():
    scene = Scene(most=2)
    scene.due, scene.seconds = [("npu-a", "x")], 10_000
    scene.go(30)
    scene.due, scene.seconds = [("npu-a", "x"), ("npu-b", "y")], 0
    scene.go(1000)
    gaps = [later - earlier for earlier, later in zip(scene.runs[1:], scene.runs[2:])]
    assert gaps == [60, 90, 150, 270]


def test_credentials_that_are_refused_end_no_recovery():
    """It ends with the watch."""
    scene = Scene()
    scene.due, scene.seconds = [("npu-a", "x")], 3600
    scene.go(30)
    scene.error = kube_client.Unauthorized("No credentials.")
    scene.go(3000)
    with pytest.raises(NpuError, match="The watch stops"):
        scene.go(3000)
    assert scene.now >= 3600


def test_a_node_whose_host_it_does_not_know():
    """The run reads the inventory again; if that has no such host, the watch looks for it less and less often."""
    scene = Scene()
    scene.strangers = [("npu-d", "x")]
    scene.go(100)
    assert scene.runs == [0, 60]
    assert scene.said[:2] == ["fine", "Reloads the inventory, for npu-d:"]
    scene.due, scene.cures = [("npu-a", "y")], True
    scene.said.clear()
    scene.go(600)
    assert len(scene.runs) == 3
    assert scene.said[:2] == ["Recovers npu-a:", "Reloads the inventory, for npu-d:"]


def test_an_api_that_is_away_is_told_once_and_waited_for():
    scene = Scene()
    scene.error = "The Kubernetes API cannot be reached"
    scene.go(300)
    assert scene.said == ["The Kubernetes API cannot be reached"]
    scene.error, scene.due, scene.cures = None, [("npu-a", "x")], True
    scene.go(60)
    assert len(scene.runs) == 1


def test_the_command_is_its_own_without_the_watch(monkeypatch):
    monkeypatch.setattr(
        sys, "argv", ["/usr/bin/ansible-playbook", "-i", "fleet", "npuops.ascend.heal", "-e", "npu_heal_watch=true"]
    )
    command = heal_recoveries.own_command()
    assert command == [sys.executable, *sys.argv, "-e", '{"npu_heal_watch": false}']


@pytest.mark.parametrize("option", ["-K", "--ask-vault-pass"])
def test_it_cannot_ask_for_passwords(monkeypatch, option):
    monkeypatch.setattr(sys, "argv", ["ansible-playbook", option, "npuops.ascend.heal"])
    with pytest.raises(NpuError, match="cannot ask for passwords .*leave out %s" % option):
        heal_recoveries.own_command()


def test_a_run_tells_each_line_and_its_status():
    lines = []
    with heal_recoveries.Recoveries() as recoveries:
        run = recoveries.start([sys.executable, "-c", "print('one'); print('two', flush=True); raise SystemExit(3)"], lines.append)
        run.process.wait(PATIENCE)
        assert (run.poll(), lines) == (3, ["one", "two"])


@pytest.mark.parametrize(
    ("subset", "pattern"),
    [(None, "all:!npu-a:!npu-b"), ("rack1:&old", "rack1:&old:!npu-a:!npu-b"), ("npu-a,npu-c", "npu-a,npu-c,!npu-a,!npu-b")],
)
def test_what_is_in_recovery_is_left_out(subset, pattern):
    assert heal_recoveries.without([], subset) == []
    assert heal_recoveries.without(["npu-a", "npu-b"], subset) == ["--limit", pattern]


WORKER = """
import os, sys
sys.path[:0] = {path!r}
from support import collection
from ansible_collections.npuops.ascend.plugins.plugin_utils._heal import recoveries
if {forks} and os.fork():
    sys.stdin.read()  # the parent, until it is killed
    os._exit(0)
with recoveries.Recoveries() as begun:
    begun.start(["/bin/sh", "-c", "echo $$; exec sleep 3600"], lambda line: print(line, flush=True)).process.wait()
"""


def _gone(pid):
    end = time.monotonic() + PATIENCE
    while os.path.exists("/proc/%d" % pid):
        with open("/proc/%d/stat" % pid, encoding="utf-8") as stream:
            if stream.read().rpartition(")")[2].split()[0] == "Z":
                return True
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


@pytest.mark.parametrize(("forks", "how"), [(False, signal.SIGTERM), (True, signal.SIGKILL)])
def test_a_run_ends_with_the_watch(forks, how):
    """The worker is told to end; or the Ansible it is a worker of is killed."""
    code = WORKER.format(path=sys.path, forks=forks)
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        pid = int(process.stdout.readline())
        assert os.path.exists("/proc/%d" % pid)
        process.send_signal(how)
        process.wait(PATIENCE)
        assert _gone(pid)


# --- credentials ---


def kubeconfig(path, api, token):
    config = {"apiVersion": "v1", "kind": "Config", "current-context": "x", "users": [{"name": "u", "user": {"token": token}}],
              "clusters": [{"name": "c", "cluster": {"server": api.address}}],
              "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}]}  # fmt: skip
    path.write_text(json.dumps(config), encoding="utf-8")
    return str(path)


def test_a_token_that_was_renewed(api, tmp_path):
    api.put("/api/v1/nodes", node("a"))
    api.tokens = {"old"}
    config = kubeconfig(tmp_path / "config", api, "old")
    nodes = heal_watch.Nodes(lambda: kube_client.connect({"kubeconfig": config}))
    assert len(nodes()) == 1
    api.tokens = {"new"}
    with pytest.raises(kube_client.Unauthorized, match="does not accept the credentials"):
        nodes()
    kubeconfig(tmp_path / "config", api, "new")
    assert len(nodes()) == 1
    (tmp_path / "config").unlink()  # it is not read until the API refuses the credentials
    assert len(nodes()) == 1


def test_credentials_that_are_not_renewed_end_the_watch():
    scene = Scene()
    scene.go(60)
    scene.error = kube_client.Unauthorized("The API does not accept the credentials (401 Unauthorized).")
    with pytest.raises(NpuError, match="The watch stops: it can no longer read the nodes. The API does not accept the credentials"):
        scene.go(10000)
    assert scene.looks == 2 + heal_watch.REFUSALS and scene.said[-1] == scene.error.message


def test_a_refusal_that_passes():
    scene = Scene()
    scene.go(60)
    for _time in range(5):
        scene.error = NpuError("nodes is forbidden", missing={"verb": "list"})
        scene.go(60)
        scene.error = None
        scene.go(30)
    assert scene.said.count("nodes is forbidden") == 5


def test_a_watch_that_was_never_let_in():
    """It does not end so often that systemd gives up on it: five times in 15 minutes."""
    scene = Scene()
    scene.error = kube_client.Unauthorized("No credentials.")
    with pytest.raises(NpuError, match="The watch stops"):
        scene.go(10000)
    assert scene.now == heal_watch.BLIND > 900 / 5


def test_whoever_is_blind_says_so_again():
    scene = Scene()
    scene.error = "The Kubernetes API cannot be reached"
    scene.go(3 * heal_watch.BLIND)
    assert scene.said == ["The Kubernetes API cannot be reached"] * 3
