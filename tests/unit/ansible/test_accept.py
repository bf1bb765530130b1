# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook accept: hosts that pass, hosts that do not, one that is down, and some that lie."""

from __future__ import annotations

import json
import pathlib
import re

import jsonschema
import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes.acceptance_gate import ANNOTATION, TAINT

from support import hostile
from support.canned_hosts import DOWN, CannedHosts
from support.kube.eviction_stub import EvictionApi
from support.kube.stub import node
from support.paths import CHECKOUT

SCHEMA = json.loads((CHECKOUT / "docs/accept.schema.json").read_text(encoding="utf-8"))

NODES = "/api/v1/nodes"


def result(*findings, **changes):
    """What npu_accept answers."""
    whole = {
        "level": 1,
        "began": "2026-11-26T10:00:00Z",
        "ended": "2026-11-26T10:00:05Z",
        "driver": "25.5.0",
        "firmware": "7.8.0",
        "chips": 8,
        "findings": [
            {"name": name, "level": 1, "verdict": verdict, "seen": seen, "advice": None} for name, verdict, seen in findings
        ],
    }
    return {"changed": False, "state": "done", "boot_id": "b-1", "began": whole["began"], "result": {**whole, **changes}}


class Site(CannedHosts):
    def __init__(self, directory, api):
        super().__init__(directory, "accept")
        self.api = api

    def run(self, hosts, *arguments, **variables):
        return super().run(hosts, *arguments, api=self.api and self.api.address, **variables)

    def node(self, name, gate, boot_id="b-1"):
        """A Node that waits to be accepted at a level."""
        made = node(name, boot_id=boot_id)
        made["spec"]["taints"] = [{"key": TAINT, "value": str(gate), "effect": "NoSchedule"}]
        self.api.put(NODES, made)

    @property
    def waiting(self):
        """The Nodes that still wait."""
        return {name for name, one in self.api.objects[NODES].items() if one["spec"]["taints"]}

    @property
    def written(self):
        """{name of a Node: the verdict on it}."""
        found = {name: one["metadata"].get("annotations", {}).get(ANNOTATION) for name, one in self.api.objects[NODES].items()}
        return {name: json.loads(text)["verdict"] for name, text in found.items() if text}

    @property
    def documents(self):
        """{node: document}."""
        found = {}
        for path in (self.directory / "verdicts").glob("*.json"):
            document = json.loads(path.read_text(encoding="utf-8"))
            jsonschema.validate(document, SCHEMA)
            found[document["node"]] = document
        return found


@pytest.fixture
def site(tmp_path):
    with EvictionApi() as api:
        yield Site(tmp_path, api)


def test_one_verdict_for_each_node(site):
    hosts = {
        "good": site.answers("good", result(("chips", "PASS", "8 x 910B"))),
        "warm": site.answers("warm", result(("chip_health", "WARNING", "NPU 1: Warning"))),
        "bad": site.answers("bad", result(("network_link", "FAIL", "chip 3: DOWN"))),
        "excused": site.answers("excused", result(("chips", "PASS", "x"), ("network_optical", "FAIL", "chip 1"))),
        "down": DOWN,
        "broken": site.answers("broken", {"failed": True, "msg": "No space left on device"}),
    }
    for name, gate in (("good", 1), ("warm", 2), ("bad", 1), ("down", 1)):
        site.node(name, gate)
    done = site.run(hosts, npu_accept_dir=str(site.directory / "verdicts"), npu_accept_ignore=["network_optical"])
    told = done.stdout + done.stderr
    assert done.returncode == 2 and "Traceback" not in told, told
    verdicts = {name: document["verdict"] for name, document in site.documents.items()}
    assert verdicts == {
        "good": "PASS", "warm": "WARNING", "bad": "FAIL", "excused": "PASS", "down": "UNKNOWN", "broken": "UNKNOWN",
    }  # fmt: skip
    for line in (
        "good: PASS at level 1 (8 chips, driver 25.5.0, firmware 7.8.0)",
        "  The taint npuops.ascend/not-accepted was removed: pods can be scheduled onto the node",
        "  Pods wait until the node is accepted at level 2 or higher",
        "  FAIL network_link: Chip 3: DOWN.",
        "  UNKNOWN host: No space",
    ):
        assert line in told, told
    # Those that keep the run from success are named at its end.
    failure = told.rpartition("Fail if a node was not accepted")[2]
    assert all("%s: %s" % (name, verdicts[name]) in failure for name in ("bad", "down", "broken"))
    assert not any("%s: %s" % (name, verdicts[name]) in failure for name in ("good", "warm", "excused"))
    assert site.written == {"good": "PASS", "warm": "WARNING", "bad": "FAIL"}  # the others have no Node, or did not answer
    assert site.waiting == {"warm", "bad", "down"}


def test_a_verdict_that_the_node_does_not_get(site):
    """Its host is another one: the run fails, whatever the verdict."""
    site.node("good", 1, boot_id="b-2")
    done = site.run({"good": site.answers("good", result(("chips", "PASS", "8 x 910B")))})
    failure = done.stdout.rpartition("Fail if a node was not accepted")[2]
    assert done.returncode == 2 and site.waiting == {"good"} and site.written == {}, done.stdout
    assert "The verdict was not written to the Node: The host is not the node: its boot ID is b-1" in failure, done.stdout


def test_before_there_is_a_cluster(site):
    site.api = None
    done = site.run({"good": site.answers("good", result(("chips", "PASS", "8 x 910B")))})
    assert done.returncode == 0 and "good: PASS" in done.stdout and "not written" not in done.stdout, done.stdout


def test_check_mode_and_no_directory_write_nothing(site):
    site.node("good", 1)
    hosts = {"good": site.answers("good", result(("chips", "PASS", "8 x 910B")))}
    done = site.run(hosts, "--check", npu_accept_dir=str(site.directory / "verdicts"))
    assert done.returncode == 0 and "good: PASS" in done.stdout and not (site.directory / "verdicts").exists(), done.stdout
    assert site.waiting == {"good"} and site.written == {}
    done = site.run(hosts, "-e", "npu_accept_level=", "-e", "npu_accept_ignore=", "-e", "npu_accept_toolbox=")
    assert done.returncode == 0 and "good: PASS at level 1" in done.stdout, done.stdout


def test_a_toolbox_image_and_its_credentials_reach_the_host_and_nothing_else(site):
    """The fleet pulls both images from one mirror. Nothing of that is sent for level 1."""
    sent = site.directory / "sent"
    hosts = {"good": site.answers("good", result(("chips", "PASS", "8 x 910B")))}
    python = site.directory / "good.python"
    python.write_text(python.read_text().replace("exec cat", 'cat "$@" >>"%s"; exec cat' % sent), encoding="utf-8")
    settings = {
        "npu_accept_toolbox_image": "tools.example.com/mlops/toolbox:26.1.0",
        "npu_driver_repository": "registry.example.com/mlops/ascend-driver",
        "npu_registry_username": "alice",
        "npu_registry_password": "s3cret-word",
        "npu_registry_mirror": "site.example.com/npuops",
    }
    done = site.run(hosts, "-vvvv", npu_accept_level=1, **settings)
    assert done.returncode == 0 and "s3cret-word" not in sent.read_text(errors="replace"), done.stdout
    site.node("good", 2)
    done = site.run(hosts, "-vvvv", npu_accept_level=2, **settings)
    assert done.returncode == 0 and "s3cret-word" not in done.stdout + done.stderr, done.stdout
    text = sent.read_text(errors="replace")
    assert all(
        word in text for word in ("s3cret-word", "alice", "tools.example.com/mlops/toolbox:26.1.0", "site.example.com/npuops")
    )


@pytest.mark.parametrize("level", [0, 4, "all"])
def test_a_level_that_there_is_not(site, level):
    done = site.run({"good": site.answers("good", result(("chips", "PASS", "x")))}, npu_accept_level=level)
    # With ansible-core 2.18, an expression makes a text of a number.
    told = r"npu_accept_level is '?%s'?; it must be a whole number, 1 to 3" % level
    assert done.returncode == 2 and re.search(told, done.stdout), done.stdout


def hostile_answers(canary):
    for number, text in enumerate(hostile.templates(canary)):
        yield "lies-%d" % number, result((text, "FAIL", text))
        yield "fails-%d" % number, {"failed": True, "msg": text}
    good = ("chips", "PASS", "8 x 910B")
    yield "is-no-answer", {"changed": False, "result": 7}
    yield "has-another-state", {**result(good), "state": "later"}
    yield "has-another-verdict", result(("chips", "FINE", "8 x 910B"))
    yield "escapes", result(good, ended="../../../escaped")
    yield "is-long", result(*[good] * 300)
    yield "is-longer", result(("chips", "PASS", "x" * 10**5))
    yield "orders", {**result(good), "ansible_facts": {"npu_accept_ignore": ["chips"]}, "lines": ["forged"]}


def test_a_host_decides_about_itself_only(site):
    canary = site.directory / "evaluated"
    hosts = {name: site.answers(name, answer) for name, answer in hostile_answers(canary)}
    done = site.run(hosts, npu_accept_dir=str(site.directory / "verdicts"))
    told = done.stdout + done.stderr
    assert done.returncode == 2 and "Traceback" not in told and "forged" not in told, told
    assert not canary.exists() and not list(pathlib.Path(site.directory).rglob("*escaped*")), told
    assert hostile.SHOWN in told.replace("\\", ""), told
    verdicts = {name: document["verdict"] for name, document in site.documents.items()}
    assert set(verdicts) == set(hosts) and verdicts.pop("orders") == "PASS"
    assert {verdict for name, verdict in verdicts.items() if not name.startswith("lies")} == {"UNKNOWN"}
