# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook accept with a collective: hosts that pass, the pods of pairs, and one document for each node, when all of it has ended."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import jsonschema
import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import smoke_pod
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes.acceptance_gate import ANNOTATION

from support import controller, hostile
from support.canned_hosts import DOWN, CannedHosts
from support.kube.collective_stub import MANIFEST, NODES, PODS, CollectiveApi
from support.paths import CHECKOUT
from support.patience import PATIENCE

SCHEMA = json.loads((CHECKOUT / "docs/accept.schema.json").read_text(encoding="utf-8"))
BEGAN = "2020-02-02T10:00:00Z"


class Site(CannedHosts):
    def __init__(self, directory, api):
        super().__init__(directory, "accept")
        self.api, self.verdicts = api, directory / "verdicts"
        self.manifest = directory / "reduce.yml"
        self.manifest.write_text(MANIFEST, encoding="utf-8")

    def host(self, name, verdict="PASS", seen="x", level=2, gate=2):
        """A host that accepts itself, whose Node waits for that."""
        self.api.node(name, gate=gate)
        found = {"name": "chips", "level": 1, "verdict": verdict, "seen": seen, "advice": None}
        result = {
            "level": level, "began": BEGAN, "ended": BEGAN, "driver": "25.5.0", "firmware": "7.8.0", "chips": 8, "findings": [found],
        }  # fmt: skip
        answer = {"changed": False, "state": "done", "boot_id": "boot-of-" + name, "began": BEGAN, "result": result}
        return dict(self.answers(name, answer), npu_accept_level=level)

    def accept(self, hosts, *arguments, **variables):
        given = {"npu_accept_collective_pod": str(self.manifest), "npu_accept_dir": str(self.verdicts), **variables}
        return self.run(hosts, *arguments, api=self.api.address, **given)

    @property
    def documents(self):
        """{node: document}; each was written once."""
        found = {}
        for path in self.verdicts.glob("*.json"):
            document = json.loads(path.read_text(encoding="utf-8"))
            jsonschema.validate(document, SCHEMA)
            assert document["node"] not in found, "one document for each node"
            found[document["node"]] = document
        return found

    def collective(self, name):
        """The finding of a node, None if it has none."""
        return next((found for found in self.documents[name]["findings"] if found["name"] == "collective"), None)

    @property
    def waiting(self):
        """The Nodes whose gate is closed."""
        return {name for name, one in self.api.objects[NODES].items() if one["spec"].get("taints")}

    @property
    def written(self):
        found = {name: one["metadata"].get("annotations", {}).get(ANNOTATION) for name, one in self.api.objects[NODES].items()}
        return {name: json.loads(text)["verdict"] for name, text in found.items() if text}


@pytest.fixture
def site(tmp_path):
    with CollectiveApi() as api:
        yield Site(tmp_path, api)


def test_one_document_after_the_collective(site):
    hosts = {name: site.host(name) for name in ("a", "b", "c", "d")}
    hosts |= {"looked-at": site.host("looked-at", level=1, gate=1), "bad": site.host("bad", "FAIL"), "down": DOWN}
    site.api.bad.add("d")
    gates = []
    site.api.on_patch = lambda: gates.append((len(site.api.created), len(site.api.pods)))
    done = site.accept(hosts)
    told = done.stdout + done.stderr
    assert done.returncode == 2 and "Traceback" not in told, told
    assert {name: one["verdict"] for name, one in site.documents.items()} == {
        "a": "PASS", "b": "PASS", "c": "PASS", "d": "FAIL", "looked-at": "PASS", "bad": "FAIL", "down": "UNKNOWN",
    }  # fmt: skip
    assert {name: one for name, one in site.written.items() if name in "abcd"} == {
        "a": "PASS",
        "b": "PASS",
        "c": "PASS",
        "d": "FAIL",
    }
    assert site.waiting == {"d", "bad"} and site.api.pods == []
    # What takes part is written when the last pod has gone, the others before the first one comes.
    assert sorted(gates) == [(0, 0)] * 2 + [(len(site.api.created), 0)] * 4
    assert [site.collective(name) for name in ("looked-at", "bad", "down")] == [None] * 3
    assert site.collective("d")["level"] == 2 and site.documents["d"]["ended"] > BEGAN
    assert "a and b: run the collective" in told and "  FAIL collective: Failed with each of its partners" in told, told
    assert "d: FAIL at level 2" in told.rpartition("Fail if a node was not accepted")[2]
    assert told.count("The taint npuops.ascend/not-accepted was removed") == 4, told


def test_without_the_variable_no_pod_runs(site):
    done = site.accept({name: site.host(name) for name in ("a", "b")}, npu_accept_collective_pod="")
    assert done.returncode == 0 and site.waiting == set() and site.api.created == [], done.stdout
    assert [site.collective(name) for name in "ab"] == [None, None]


def test_ignored(site):
    site.api.bad.add("a")
    done = site.accept({name: site.host(name) for name in ("a", "b")}, npu_accept_ignore=["collective"])
    assert done.returncode == 0 and site.waiting == set(), done.stdout
    assert (site.collective("a")["verdict"], site.collective("a")["ignored"]) == ("FAIL", True)
    assert "FAIL, ignored collective: The pair failed" in done.stdout, done.stdout


def test_check_mode(site):
    left = smoke_pod.for_node(smoke_pod.read(MANIFEST), "a")
    site.api.put(PODS, left)
    done = site.accept({name: site.host(name) for name in ("a", "b")}, "--check")
    assert done.returncode == 0 and site.api.created == [] and site.waiting == {"a", "b"} and site.written == {}, done.stdout
    assert not site.verdicts.exists()
    # Nor does it remove what a killed run has left.
    assert [pod["metadata"]["name"] for pod in site.api.pods] == [left["metadata"]["name"]]


@pytest.mark.parametrize("content", [None, "kind: Deployment\napiVersion: apps/v1\nmetadata: {name: x}"])
def test_a_manifest_that_is_none_is_refused_before_anything_runs(site, content):
    site.manifest.unlink() if content is None else site.manifest.write_text(content, encoding="utf-8")
    done = site.accept({name: site.host(name) for name in ("a", "b")})
    assert done.returncode == 2 and site.waiting == {"a", "b"} and site.api.created == [], done.stdout
    assert done.stdout.count("UNKNOWN host: Npu_accept_collective_pod ") == 2, done.stdout


def test_what_a_killed_run_left_does_not_keep_the_diagnosis_away(site):
    left = smoke_pod.for_node(smoke_pod.read(MANIFEST), "a")
    left["spec"]["nodeName"], left["status"] = "a", {"phase": "Running"}
    site.api.put(PODS, left)
    original = site.api.answer

    def answer(method, path, query, body):
        if path == "/api/v1/pods" and query.get("fieldSelector") == "spec.nodeName=a":
            return 200, {"metadata": {}, "items": site.api.pods}
        return original(method, path, query, body)

    site.api.answer = answer
    done = site.accept({name: site.host(name) for name in ("a", "b")})
    assert done.returncode == 0 and site.waiting == set(), done.stdout


def test_a_document_that_cannot_be_written_is_told_and_keeps_the_gate(site):
    site.verdicts.write_text("a file")
    done = site.accept({name: site.host(name) for name in ("a", "b")})
    assert done.returncode == 2 and site.waiting == {"a", "b"} and site.api.pods == [], done.stdout
    failure = done.stdout.rpartition("Fail if a node was not accepted")[2]
    for name in "ab":
        assert "%s: PASS at level 2 (8 chips, driver 25.5.0, firmware 7.8.0). The verdict could not be written" % name in failure, (
            failure
        )


def test_words_of_hosts_pass_through_as_words(site):
    canary = site.directory / "evaluated"
    texts = hostile.templates(canary)
    hosts = {"h%d" % number: site.host("h%d" % number, "WARNING", text) for number, text in enumerate(texts)}
    site.api.statuses["h0"] = {"phase": "Failed", "message": texts[1], "podIP": texts[1]}
    done = site.accept(hosts)
    told = done.stdout + done.stderr
    assert not canary.exists() and "Traceback" not in told, told
    assert [site.documents["h%d" % number]["findings"][0]["seen"] for number in range(len(texts))] == texts
    assert site.documents["h0"]["verdict"] == "FAIL" and site.collective("h2")["verdict"] == "PASS", told
    assert hostile.SHOWN in told.replace("\\", ""), told


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_ended_leaves_no_pod(site, number):
    """By Ctrl-C, by a service manager, or by the kernel when there is no memory left."""
    hosts = {name: site.host(name) for name in ("a", "b")}
    inventory = site.directory / "hosts.json"
    variables = {"npu_accept_collective_pod": str(site.manifest), "npu_accept_dir": str(site.verdicts)}
    inventory.write_text(json.dumps({"npu_nodes": {"hosts": hosts, "vars": variables}}), encoding="utf-8")
    ended = []

    def look(method, path, query, body):
        # No pod of the pair succeeds by itself.
        if method == "GET" and path.startswith(PODS + "/") and len(site.api.created) == 2 and not ended:
            ended.append(path)
            os.kill(run.pid, number)
        if ended and method == "GET" and path.startswith(PODS + "/"):
            return 200, {"metadata": {"name": "x", "uid": "u"}, "status": {"phase": "Running", "podIP": "10.0.0.1"}}
        return original(method, path, query, body)

    original, site.api.answer = site.api.answer, look
    with subprocess.Popen(
        [str(pathlib.Path(sys.executable).with_name("ansible-playbook")), "-i", str(inventory), "npuops.ascend.accept"],
        cwd=site.directory,
        env={
            **controller.environment(site.directory),
            "ANSIBLE_CONNECTION_PLUGINS": str(site.directory),
            "K8S_AUTH_HOST": site.api.address,
            "K8S_AUTH_API_KEY": "token",
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as run:
        told, _nothing = run.communicate(timeout=PATIENCE)
    assert ended and len(site.api.created) == 2, told
    assert comes_true(lambda: not site.api.pods), told
    assert site.waiting == {"a", "b"} and not site.verdicts.exists(), told


def comes_true(condition):
    """Whether it comes true: a worker outlives an Ansible that was killed."""
    end = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()
