# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a cluster and its hosts say is shown and never evaluated: the playbooks themselves, with an API server and hosts that
try to run something on the controller.

A host that an attacker has taken over may answer a module with anything: here its Python is a script that prints it.
"""

from __future__ import annotations

import importlib
import json
import pathlib
import re

import ansible_collections.npuops.ascend as npuops_ascend
import pytest
import yaml
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.host_module import HostAction

from support import controller, hostile
from support.canned_hosts import NEAR
from support.fleet.hosts import NEW_RELEASE, OLD, OLD_RELEASE, host
from support.host.registry_server import Registry
from support.kube.eviction_stub import EvictionApi, pod
from support.kube.stub import node

COLLECTION = pathlib.Path(next(iter(npuops_ascend.__path__)))
NODES = "/api/v1/nodes"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/npu-operator/leases"
PODS = "/api/v1/namespaces/npu-operator/pods"
ALL_PODS = "/api/v1/pods"
STATE = "npu.openfuyao.com/driver-upgrade-state"
PROFILE = "910b-6.6.0-145.0.4.135-oe2403sp3"
REPOSITORY = "mlops/ascend-driver"


PLAUSIBLE, ABSURD = "plausible", "absurd"


class Unsafe(str):
    """A value as an inventory plugin, a survey or the result of a module has it: no template."""


yaml.SafeDumper.add_representer(Unsafe, lambda dumper, value: dumper.represent_scalar("!unsafe", str(value)))


class Fleet:
    """A node and its host for each form of an attack. ``kind``: PLAUSIBLE, with an attack in each free text, so that playbooks
    come far; or ABSURD, with nothing else in it."""

    def __init__(self, directory, connection, api, registry, kind):
        self.directory, self.connection, self.api, self.registry, self.kind = directory, connection, api, registry, kind
        self.canary = directory / "evaluated"
        self.texts = {"%s-%d" % (kind, number): text for number, text in enumerate(hostile.templates(self.canary))}
        self._cluster()
        self.answers = {name: self._answer(name, text) for name, text in self.texts.items()}

    def _cluster(self):
        for name, text in self.texts.items():
            wedged = json.dumps({"reason": text, "since": "2026-01-01T00:00:00Z"})
            last = json.dumps({"run": text, "generation": 1, "outcome": "failed", "failure": text, "step": text, "recoveries": []})
            annotations = {"npuops.ascend/wedged": wedged, "npuops.ascend/last-maintenance": last, "note": text}
            item = node(name, boot_id="boot-" + name, labels={"openfuyao.com/npu.present": ""}, annotations=annotations)
            item["status"]["conditions"][0]["message"] = text
            item["status"]["nodeInfo"].update(osImage=text, kernelVersion=text)
            if self.kind == ABSURD:
                item["metadata"]["labels"].update(
                    hostile.everywhere(text, {STATE: "", "npuops.ascend/driver-version": "", "pool": ""})
                )
                item["metadata"]["annotations"] = hostile.everywhere(text, annotations)
                item["status"] = hostile.everywhere(text, item["status"])
                item["spec"] = {"taints": [{"key": text, "value": text, "effect": text}]}
            self.api.put(NODES, item)
            agent = pod("agent-" + name, node=name, namespace="npu-operator", ready=False, labels={"app": "npu-node-agent"})
            agent["status"].update(message=text, reason=text, containerStatuses=[{"name": text, "ready": False, "state": {
                "waiting": {"reason": text, "message": text}}}])  # fmt: skip
            self.api.put(PODS, agent)
            self.api.put(ALL_PODS, pod("job-" + name, node=name, npus=8, labels={"app": text}, owner=(text, text)))
        slots = {"max": 1, "halted": {"who": text, "why": text, "when": text}, "holders": {"gone": {"run": text, "since": text}}}
        lease = {"metadata": {"name": "npu-maintenance", "annotations": {"npuops.ascend/slots": json.dumps(slots)}}}
        self.api.put(LEASES, lease)

    def _answer(self, name, text):
        """What the host says, whatever it is asked: the results of all modules at once."""
        facts = host(name)["facts"]
        # The host is another one than the Node's, so that its maintenance ends before it is a long one.
        view = {"boot_id": text, "generation": 0, "driver": OLD_RELEASE, "good": OLD_RELEASE, "next": None, "previous": None,
                "releases": [OLD_RELEASE, NEW_RELEASE], "trial": None, "holders": [], "ready": {"version": OLD}, "failed": None,
                "loaded_version": OLD, "unit": "active", "uptime": 90000.0}  # fmt: skip
        facts["os"]["pretty_name"] = text
        facts["driver"]["failed"] = {"reason": text}
        if self.kind == ABSURD:
            facts, view = hostile.everywhere(text, facts), hostile.everywhere(text, view)
            facts["problems"] = [text]
        checks = [{"name": text, "ok": False, "expected": text, "seen": text, "message": text}]
        return {"changed": False, "npu": facts, "validation": {"valid": False, "checks": checks, "msg": text}, "checks": checks,
                "valid": False, "view": view, "queued": False, "msg": text, "warnings": [text], "release": text, "left": [text],
                "devices": [text], "would_change": True}  # fmt: skip

    def run(self, playbook, answers=None, **variables):
        """The playbook, with hosts that answer each module with what ``answers`` has for them."""
        hosts = {}
        for name, answer in (answers or self.answers).items():
            said, python = self.directory / (name + ".json"), self.directory / (name + ".python")
            said.write_text(json.dumps(answer), encoding="utf-8")
            python.write_text("#!/bin/sh\nexec cat '%s'\n" % said, encoding="utf-8")
            python.chmod(0o755)
            hosts[name] = {"ansible_connection": "near", "ansible_python_interpreter": str(python)}
        settings = {
            "npu_driver_version": "25.5.2",
            "npu_driver_repository": "%s/%s" % (self.registry.address, REPOSITORY),
            "npu_registry_plain_http": True,
            "npu_node_agent_image": "registry.example/agent:0.1.0",
            "npu_status_file": str(self.directory / "fleet.json"),
            "npu_upgrade_plan_file": "plan.json",  # relative to where the command was started
            "npu_upgrade_report_dir": str(self.directory / "report"),
            "npu_upgrade_auto": True,
            "npu_upgrade_clear_halt": True,
            "npu_upgrade_on_blocked": "defer",
            "npu_upgrade_pod_deletion": {"force": True, "timeout": 1},
            "npu_upgrade_drain": {"timeout": 1},
            "npu_heal_auto": True,
            "npu_heal_storm_percent": 100,
            "npu_wait_timeout": 1,
            "npu_validate_timeout": 0,
            **variables,
        }
        inventory = self.directory / "hosts.yml"
        inventory.write_text(yaml.safe_dump({"npu_nodes": {"hosts": hosts, "vars": settings}}), encoding="utf-8")
        done = controller.run(
            ["ansible-playbook", "-i", str(inventory), "-v", "--diff", "npuops.ascend." + playbook],
            self.directory,
            environ={"ANSIBLE_CONNECTION_PLUGINS": str(self.connection), "ANSIBLE_SHOW_CUSTOM_STATS": "1"},
            more={"TMPDIR": str(self.directory), "K8S_AUTH_HOST": self.api.address, "K8S_AUTH_API_KEY": "token"},
        )
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def connection(tmp_path_factory):
    """A folder of plugins: the controller is never rebooted, so a host that is reached as "local" has no maintenance."""
    directory = tmp_path_factory.mktemp("connection")
    (directory / "near.py").write_text(NEAR, encoding="utf-8")
    return directory


@pytest.fixture
def fleet(tmp_path, connection, request):
    with EvictionApi() as api, Registry() as registry:
        manifest = {"schemaVersion": 2, "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip",
                                                    "digest": "sha256:" + "ab" * 32, "size": 2**20}]}  # fmt: skip
        registry.put_manifest(REPOSITORY, "25.5.2-" + PROFILE, manifest)
        api.objects["/api/v1/services"] = {}
        yield Fleet(tmp_path, connection, api, registry, request.param)


@pytest.mark.parametrize("fleet", [PLAUSIBLE, ABSURD], indirect=True)
@pytest.mark.parametrize("playbook", ["status", "validate", "install", "upgrade", "heal", "uninstall"])
def test_what_hosts_and_nodes_say_is_shown_and_not_evaluated(fleet, playbook):
    told = fleet.run(playbook)
    assert not fleet.canary.exists(), told
    assert "PLAY RECAP" in told and "Traceback" not in told, told
    assert hostile.SHOWN in told.replace("\\", ""), told


@pytest.mark.parametrize("fleet", [PLAUSIBLE], indirect=True)
@pytest.mark.parametrize("asked", ["@", "nodes[].reason"])
@pytest.mark.parametrize("playbook", ["status", "upgrade"])
def test_what_is_asked_of_them_is_not_evaluated(fleet, playbook, asked):
    told = fleet.run(playbook, npu_query=asked)
    assert not fleet.canary.exists(), told
    assert "PLAY RECAP" in told and "cannot be answered" not in told and "Traceback" not in told, told
    answer = re.search(
        r"TASK \[(?:npuops\.ascend\.\w+ : )?Show the (?:fleet|report)\] .*?(?=\nTASK)", told.split("PLAY [Report]")[-1], re.S
    ).group()
    assert hostile.SHOWN in answer.replace("\\", ""), told


# Where a fleet may use what its nodes say, such as a directory for each owner of nodes. A file that there must be ends the run early.
SETTINGS = ("npu_upgrade_report_dir", "npu_upgrade_plan_file", "npu_status_file", "npu_driver_image_path", "npu_registry_ca_file")


@pytest.mark.parametrize("fleet", [PLAUSIBLE], indirect=True)
@pytest.mark.parametrize("playbook", ["status", "install", "plan", "upgrade", "heal"])
def test_settings_that_come_from_outside_data_are_not_evaluated(fleet, playbook):
    template = "{{ lookup('ansible.builtin.pipe', 'touch %s') }}" % fleet.canary
    told = fleet.run(playbook, **{name: Unsafe("%s/%s/%s" % (fleet.directory, name, template)) for name in SETTINGS})
    assert not fleet.canary.exists(), told
    assert "PLAY RECAP" in told and "Traceback" not in told, told


@pytest.mark.parametrize("fleet", [PLAUSIBLE], indirect=True)
@pytest.mark.parametrize("playbook", ["status", "upgrade"])
def test_what_a_host_says_when_it_fails(fleet, playbook):
    failures = {
        name: {"failed": True, "msg": text, "module_stderr": text, "exception": text, "rc": 1} for name, text in fleet.texts.items()
    }
    told = fleet.run(playbook, failures)
    assert not fleet.canary.exists(), told
    assert "PLAY RECAP" in told and hostile.SHOWN in told.replace("\\", ""), told


@pytest.mark.parametrize("fleet", [PLAUSIBLE], indirect=True)
@pytest.mark.parametrize("playbook", ["status", "install", "upgrade", "heal", "uninstall"])
def test_a_host_changes_no_variable_of_anybody(fleet, playbook):
    """Ansible acts on some keys of a result, whatever module it is of: hosts, groups, facts and statistics come from them."""
    evil = fleet.directory / "evil"
    evil.write_text("#!/bin/sh\ntouch '%s'\nexit 1\n" % fleet.canary, encoding="utf-8")
    evil.chmod(0o755)
    near = {"ansible_connection": "local", "ansible_python_interpreter": str(evil)}
    orders = {
        "add_host": {"host_name": "plausible-3", "groups": ["npu_nodes", "__npu_due", "__npu_ready"], "host_vars": near},
        "ansible_facts": {**near, "npu_kubernetes_auth": {"host": "http://127.0.0.1:9"}, "npu_driver_version": "9.9.9"},
        "ansible_stats": {"data": {"npuops_status": "taken over"}, "per_host": False, "aggregate": False},
    }
    answers = {
        name: dict(answer, changed=True, **orders) if name == "plausible-0" else answer for name, answer in fleet.answers.items()
    }
    told = fleet.run(playbook, answers)
    assert not fleet.canary.exists(), told
    assert "127.0.0.1:9" not in told and "9.9.9" not in told and "taken over" not in told, told


def test_every_module_has_an_action_that_passes_on_no_orders():
    names = {path.stem for path in (COLLECTION / "plugins" / "modules").glob("*.py")}
    assert names == {path.stem for path in (COLLECTION / "plugins" / "action").glob("*.py")}
    for name in names:
        text = (COLLECTION / "plugins" / "modules" / (name + ".py")).read_text(encoding="utf-8")
        action = importlib.import_module("ansible_collections.npuops.ascend.plugins.action." + name).ActionModule
        assert issubclass(action, HostAction) == ("AnsibleModule(" in text), name
