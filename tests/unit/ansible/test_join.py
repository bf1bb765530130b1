# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook join: what keeps one node from service keeps no other from it, and the run names it."""

from __future__ import annotations

import pytest

from support.fleet import installed
from support.scripted import Scripted

HOSTS = ("bad", "good", "waits", "serves")
WHY = "no driver image for the profile x"
FAILED = {"failed": True, "msg": "it fails"}
LAST = "Fail if a node could not be set up, or was not accepted"


def found(install=(), **accept):
    return {"install": list(install), "accept": [{"host": host, "level": level} for host, level in accept.items()], "lines": []}


def accepted(host, problem=None):
    return {"changed": False, "document": {}, "lines": ["%s: verdict" % host], "problem": problem, "collective": None}


class Join:
    """A run in which `bad` and `good` are new, and `waits` waits to be accepted. ``answers``: of modules that answer otherwise."""

    def __init__(self, directory, preflight, **answers):
        finds = [found(["bad", "good"], waits=1), found(good=1)]
        usual = {
            **installed.ANSWERS,
            "npu_join": {"*": finds},
            "npu_preflight": {"*": [preflight]},
            "npu_accept_node": {host: [accepted(host)] for host in HOSTS},
        }
        self.scripted = Scripted(directory, usual | answers)
        hosts = dict.fromkeys(HOSTS, {"ansible_connection": "local"})
        self.done = self.scripted.run("npuops.ascend.join", hosts, *installed.VERSIONS)
        self.told = self.done.stdout + self.done.stderr
        self.failure = " ".join(self.told.partition(LAST)[2].split()).replace("\\n", " ")

    def of(self, module):
        return [host for host, _arguments in self.scripted.calls(module)]

    @property
    def labelled(self):
        return [node["name"] for _host, arguments in self.scripted.calls("npu_node") for node in arguments["nodes"]]


def test_all_is_well(tmp_path):
    run = Join(tmp_path, installed.preflight(["bad", "good"]))
    assert run.done.returncode == 0, run.told
    assert run.labelled == ["bad", "good"] and run.of("npu_accept_node") == ["waits", "good"], run.told


def test_a_node_that_cannot_be_set_up_is_left_out(tmp_path):
    run = Join(tmp_path, installed.preflight(["good"], bad=WHY))
    ((_host, arguments),) = run.scripted.calls("npu_preflight")
    assert arguments["leave_out"] and [host["name"] for host in arguments["hosts"]] == ["bad", "good"], run.told
    assert run.labelled == ["good"] and run.of("npu_accept_node") == ["waits", "good"], run.told
    # No play of install after preflight has it.
    later = run.told.partition("PLAY [Deploy the cluster components]")[2].partition("PLAY [Find the nodes that are to be accepted")[
        0
    ]
    assert "[good]" in later and "[bad]" not in later and set(run.of("npu_driver")) == {"good"}, run.told
    assert run.done.returncode == 2 and "Not set up: bad: " + WHY in run.failure and "--limit bad" in run.failure, run.told
    assert "good:" not in run.failure, run.told


def test_nothing_is_done_if_none_can_be_set_up(tmp_path):
    run = Join(tmp_path, installed.preflight([], bad=WHY, good=WHY), npu_join={"*": [found(["bad", "good"], waits=1), found()]})
    assert run.of("npu_accept_node") == ["waits"], run.told
    assert not any(run.of(module) for module in ("npu_driver", "npu_validate", "npu_objects", "npu_node", "npu_wait")), run.told
    assert run.done.returncode == 2 and all("Not set up: %s: " % name + WHY in run.failure for name in ("bad", "good")), run.told


def unsettled(*names):
    """The result for both hosts, with these on which install stages the driver."""
    result = installed.preflight(["bad", "good"])
    hosts = {name: dict(one, keep_release=None) if name in names else one for name, one in result["hosts"].items()}
    look = {part: {name: one for name, one in options.items() if name not in names} for part, options in result["look"].items()}
    return result | {"hosts": hosts, "look": look}


@pytest.mark.parametrize("names", [("bad",), ("bad", "good")])
def test_a_node_whose_install_fails_keeps_no_other_from_service(tmp_path, names):
    """Also if the other one needs no driver."""
    finds = {"bad": [found(["bad", "good"], waits=1)], "*": [found(good=1)]}
    stage = {"bad": [FAILED], **installed.ANSWERS["npu_driver_stage"]}
    run = Join(tmp_path, unsettled(*names), npu_driver_stage=stage, npu_join=finds)
    assert run.labelled == ["good"] and run.of("npu_accept_node") == ["waits", "good"], run.told
    assert run.done.returncode == 2 and "bad: it failed in this run" in run.failure and "Not set up" not in run.failure, run.told


# What ends the run of install.
ENDS = {
    "the cluster is refused": {"npu_preflight": {"*": [FAILED]}},
    "all hosts fail": {"npu_driver_stage": {"*": [FAILED]}},
    "the nodes do not offer their chips": {"npu_wait": {"*": [FAILED]}},
}


@pytest.mark.parametrize("what", ENDS)
def test_nodes_that_wait_are_accepted_whatever_becomes_of_the_install(tmp_path, what):
    run = Join(tmp_path, unsettled("bad", "good"), **ENDS[what])
    assert run.done.returncode == 2 and run.of("npu_accept_node") == ["waits"], run.told


def test_a_node_that_is_not_accepted_keeps_none_from_being_set_up(tmp_path):
    answers = {host: [accepted(host, host + ": FAIL at level 1")] for host in HOSTS}
    run = Join(tmp_path, installed.preflight(["good"], bad=WHY), npu_accept_node=answers)
    assert run.labelled == ["good"] and run.of("npu_accept_node") == ["waits", "good"], run.told
    for text in ("Not set up: bad: " + WHY, "waits: FAIL at level 1", "good: FAIL at level 1"):
        assert text in run.failure, run.told
    assert run.done.returncode == 2
