# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which tasks run once for each host. A task costs a process per host, even if it is skipped: on 1,000 hosts, 40 s of CPU."""

from __future__ import annotations

import json

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.pace import pace
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import rollout_report

from support.fleet import installed
from support.fleet.reports import planned
from support.scripted import Scripted

HOSTS = ("a", "b", "c")
# Notes each start of a task, which is a process, with its host.
CALLBACK = """
import json, os
from ansible.plugins.callback import CallbackBase


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_NAME = "starts"
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NEEDS_ENABLED = True

    def v2_runner_on_start(self, host, task):
        with open(os.path.join(os.environ["SCRIPTED"], "starts"), "a") as file:
            file.write(json.dumps([task.get_name(), host.name]) + "\\n")
"""

COMPONENTS = {
    "deploy": {"exporter": True}, "left_alone": None, "version_line": "7.3", "unfit": [], "driver_path": "/var/lib/Ascend/driver",
    "containerd_dir": "/run/containerd", "kubelet_dir": "/var/lib/kubelet", "accelerators": [], "admission_policies": False,
    "service_monitors": False, "kubelet_pods": False,
}  # fmt: skip
FAILED = {"failed": True, "msg": "it fails"}
PLAN = {
    "components": {"order": None, "from": [], "to": None, "changes": []},
    "hosts": {name: dict(planned(name, "up-to-date"), node=name, chips=8, to={}, other_kernels=[]) for name in HOSTS},
    "pace": pace(1),
    "due_versions": {},
    **dict.fromkeys(("order", "deferred", "due_nodes", "settled_nodes", "park", "look_at", "in_flight", "table"), []),
    **dict.fromkeys(("storm", "refusal", "problem", "halted", "estimate_seconds", "cluster_reasons"), None),
    "counts": {}, "green": True, "summary": "",
}  # fmt: skip
PREFLIGHT = installed.preflight(HOSTS)
FLEET = {"fleet": [], "rollouts": [], "storm": None, "halted": None, "problems": ["a: invalid"], "table": []}
ANSWERS = {
    **installed.ANSWERS,
    "npu_preflight": {"*": [PREFLIGHT]},
    "npu_components": {"*": [COMPONENTS]},
    "npu_plan": {"*": [PLAN]},
    "npu_heal": {"*": [PLAN]},
    "npu_status": {"*": [FLEET]},
    "npu_pending": {"*": [{"changed": False}]},
    "npu_workloads": {"*": [{"changed": False, "parked": [], "restored": [], "left": [], "lines": []}]},
    "npu_report": {
        "*": [{"report": rollout_report.document([], "r1", "upgrade", None, 1795264200.0), "problem": "a failed", "table": []}]
    },
}


@pytest.fixture(scope="module", name="noted")
def _noted(tmp_path_factory):
    """The environment in which each start of a task is noted."""
    directory = tmp_path_factory.mktemp("callbacks")
    (directory / "starts.py").write_text(CALLBACK, encoding="utf-8")
    return {"ANSIBLE_CALLBACK_PLUGINS": str(directory), "ANSIBLE_CALLBACKS_ENABLED": "starts"}


def run(tmp_path, noted, playbook, answers, *arguments):
    """(the run, {task: the hosts that it was started for}, the Scripted)."""
    scripted = Scripted(tmp_path, ANSWERS | answers)
    given = ["-e", "npu_status_file=%s" % (tmp_path / "fleet.json"), *arguments]
    done = scripted.run("npuops.ascend." + playbook, dict.fromkeys(HOSTS, {"ansible_connection": "local"}), *given, environ=noted)
    tasks = {}
    for line in (tmp_path / "starts").read_text(encoding="utf-8").splitlines():
        task, host = json.loads(line)
        tasks.setdefault(task, set()).add(host)
    return done, tasks, scripted


def per_host(tasks):
    """The tasks that were started for several hosts."""
    return {task.rpartition(" : ")[2] for task, hosts in tasks.items() if len(hosts) > 1}


BEFORE, AFTER = (dict(PLAN, components=dict(PLAN["components"], order=order)) for order in ("before", "after"))
# A playbook, what its modules answer, the message with which it fails if it does, and how often it restores parked workloads.
RUNS = {
    "status": ("status", {}, None, 0),
    "validate": ("validate", {}, "a: invalid", 0),
    "plan": ("plan", {}, None, 0),
    "plan of components that cannot be compared": ("plan", {"npu_objects": {"*": [FAILED]}}, None, 0),
    "plan that is refused": ("upgrade", {"npu_plan": {"*": [dict(PLAN, refusal="a is blocked", green=False)]}}, "a is blocked", 1),
    "upgrade of nothing": ("upgrade", {}, "a failed", 1),
    "upgrade with a component before that does not work": (
        "upgrade", {"npu_plan": {"*": [BEFORE]}, "npu_objects": {"*": [installed.UNCHANGED, FAILED]}}, "No driver was changed: it fails", 1,
    ),
    "upgrade with a component after that does not work": (
        "upgrade", {"npu_plan": {"*": [AFTER]}, "npu_objects": {"*": [installed.UNCHANGED, FAILED]}}, "a failed", 1,
    ),
    "upgrade that cannot park": (
        "upgrade",
        {"npu_plan": {"*": [dict(PLAN, order=["a"], park=["huawei.com/Ascend910"])]}, "npu_workloads": {"*": [FAILED]}},
        "No node was touched. it fails", 1,
    ),
    "heal of nothing": ("heal", {}, "a failed", 0),
    "heal in a storm": ("heal", {"npu_heal": {"*": [dict(PLAN, storm="too many", look_at=list(HOSTS))]}}, "too many", 0),
}  # fmt: skip


@pytest.mark.parametrize("what", RUNS)
def test_no_task_runs_for_each_host(tmp_path, noted, what):
    playbook, answers, message, restored = RUNS[what]
    done, tasks, scripted = run(tmp_path, noted, playbook, answers)
    assert not per_host(tasks), done.stdout
    assert (done.returncode == 0) == (message is None) and (message or "") in done.stdout, done.stdout
    states = [arguments["state"] for _host, arguments in scripted.calls("npu_workloads")]
    assert states.count("restored") == restored, done.stdout


def test_a_second_install_runs_no_task_for_each_host(tmp_path, noted):
    done, tasks, scripted = run(tmp_path, noted, "install", {}, *installed.VERSIONS)
    assert done.returncode == 0 and not per_host(tasks), done.stdout
    for module in ("npu_driver", "npu_cdi_spec", "npu_validate"):
        assert {host for host, _arguments in scripted.calls(module, many=True)} == set(HOSTS)
        assert not scripted.calls(module, many=False)
    # Not a line for each host that is left out.
    assert "TASK [Leave out" not in done.stdout


def test_a_host_with_a_warning_has_no_task_of_its_own_for_it(tmp_path, noted):
    warning = "/usr is read-only, so there is no /usr/local/bin/npu-smi"
    answers = {"npu_driver": {"a": [dict(ANSWERS["npu_driver"]["*"][0], warnings=[warning])], **ANSWERS["npu_driver"]}}
    done, tasks, _scripted = run(tmp_path, noted, "install", answers, *installed.VERSIONS)
    assert not per_host(tasks), done.stdout
    assert " ".join((done.stdout + done.stderr).split()).count("a: " + warning) == 1, done.stdout + done.stderr


@pytest.mark.parametrize("answer", [{"unreachable": True, "msg": "no route"}, {"failed": True, "msg": "no Python"}])
def test_install_tells_of_hosts_that_all_fail(tmp_path, noted, answer):
    """And not Ansible, in its own words."""
    refused = {"failed": True, "msg": "Nothing was changed: 3 of 3 hosts cannot be installed as they are."}
    answers = {"npu_facts": {"*": [answer]}, "npu_preflight": {"*": [refused]}}
    done, _tasks, scripted = run(tmp_path, noted, "install", answers, *installed.VERSIONS)
    (call,) = scripted.calls("npu_preflight")
    told = {host["name"]: host["error"] for host in call[1]["hosts"]}
    assert told == dict.fromkeys(HOSTS, answer["msg"]) and refused["msg"] in done.stdout and done.returncode == 2, done.stdout
    assert not scripted.calls("npu_driver")


# Of a fleet in which b alone has no driver yet.
B_IS_NEW = dict(
    PREFLIGHT,
    hosts=dict(PREFLIGHT["hosts"], b=dict(PREFLIGHT["hosts"]["b"], keep_release=None)),
    look={part: {name: options for name, options in hosts.items() if name != "b"} for part, hosts in PREFLIGHT["look"].items()},
)


def test_install_changes_only_the_hosts_that_need_it(tmp_path, noted):
    """A host that fails is not touched any more, and keeps the others from nothing, even if no other one is to be changed."""
    answers = {
        "npu_preflight": {"*": [B_IS_NEW]},
        "npu_driver_stage": {"b": [FAILED]},
        "npu_cdi_spec": {"c": [dict(installed.SETTLED, would_change=True, settled=False)], "*": [installed.SETTLED]},
    }
    done, _tasks, scripted = run(tmp_path, noted, "install", answers, *installed.VERSIONS)
    called = {name: [host for host, _arguments in scripted.calls(name, many=False)] for name in ANSWERS}
    assert called["npu_driver_stage"] == ["b"] and called["containerd_cdi"] == ["c"], done.stdout
    for module in ("npu_driver", "npu_cdi_spec", "npu_validate"):
        assert called[module] == ["c"], module
        assert sorted(host for host, _arguments in scripted.calls(module, many=True)) == ["a", "c"]
    # With what the look has found out about the host that needed nothing.
    (_host, arguments), *_others = scripted.calls("npu_node")
    assert [node["name"] for node in arguments["nodes"]] == ["a", "c"] and done.returncode == 2, done.stdout


def test_a_host_that_fails_alone_keeps_the_others_from_nothing(tmp_path, noted):
    """Of a fleet in order, it is the only host that needs something: its play must not end the run."""
    answers = {
        "npu_preflight": {"*": [B_IS_NEW]},
        "npu_driver_stage": {"b": [FAILED]},
    }
    done, tasks, scripted = run(tmp_path, noted, "install", answers, *installed.VERSIONS)
    (_host, arguments), *_others = scripted.calls("npu_node")
    assert [node["name"] for node in arguments["nodes"]] == ["a", "c"] and done.returncode == 2, done.stdout
    assert len(scripted.calls("npu_wait")) == 1 and not per_host(tasks), done.stdout


def test_an_empty_extra_variable_does_not_hide_what_preflight_checked(tmp_path, noted):
    """Such as of an unset variable of the shell, or of a survey. The version of an image is compared with this one."""
    answers = {"npu_preflight": {"*": [B_IS_NEW]}}
    empty = [item for name in ("version", "image", "digest") for item in ("-e", "npu_driver_%s=" % name)]
    done, _tasks, scripted = run(tmp_path, noted, "install", answers, *installed.VERSIONS, *empty)
    ((host, arguments),) = scripted.calls("npu_driver_stage")
    staged = {name: arguments[name] for name in ("version", "image", "digest")}
    assert (host, staged) == ("b", {"version": "25.5.0", "image": "r/i:t", "digest": "sha256:1"}), done.stdout


# An answer to one of the looks, and whether the host is settled with it.
LOOKS = {
    "a driver that is to be activated": ("npu_driver", {"changed": True, "ready": {}}),
    "a driver that is not ready": ("npu_driver", {"changed": False, "ready": None}),
    "a CDI spec that is to be written": ("npu_cdi_spec", dict(installed.SETTLED, changed=True)),
    "a runtime without CDI": ("npu_cdi_spec", dict(installed.SETTLED, settled=False)),
    "a host that is not valid": ("npu_validate", {"changed": False, "failed": True, "valid": False, "msg": "npu-smi fails"}),
    "a host that went down": ("npu_validate", {"unreachable": True, "msg": "no route"}),
}


@pytest.mark.parametrize("what", LOOKS)
def test_a_host_that_needs_something_has_its_own_tasks(tmp_path, noted, what):
    module, answer = LOOKS[what]
    done, tasks, _scripted = run(tmp_path, noted, "install", {module: {"b": [answer], **ANSWERS[module]}}, *installed.VERSIONS)
    assert tasks["npuops.ascend.npu_driver : Activate the driver"] == {"b"}, done.stdout


def test_the_hosts_keep_their_order(tmp_path, noted):
    """The first one is also the first whose container runtime is restarted."""
    answers = {"npu_cdi_spec": {"*": [dict(installed.SETTLED, settled=False)]}}
    done, _tasks, _scripted = run(tmp_path, noted, "install", answers, *installed.VERSIONS)
    told = done.stdout.partition("[Group the hosts that need something]")[2].partition("TASK")[0]
    assert [line.rpartition("item=")[2] for line in told.splitlines() if "item=" in line] == [name + ")" for name in HOSTS], told
