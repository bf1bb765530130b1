# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook collect: an honest host, which is this machine, one that is down, one that lies, and an API server."""

from __future__ import annotations

import base64
import gzip
import json
import os
import pathlib
import stat
import tarfile

import pytest

from support import hostile
from support.canned_hosts import DOWN, LOCAL, CannedHosts
from support.kube.eviction_stub import EvictionApi
from support.kube.stub import node


class Site(CannedHosts):
    def __init__(self, directory, api):
        super().__init__(directory, "collect")
        self.api = api

    def run(self, hosts, *arguments, auth=True, **variables):
        for name in hosts:
            self.api.put("/api/v1/nodes", node(name, annotations={"note": "password=pl4nt3d"}))
        return super().run(hosts, *arguments, api=self.api.address if auth else "http://127.0.0.1:9", **variables)

    @property
    def bundles(self):
        """{node: {member without the top directory: text}}."""
        found = {}
        for path in (self.directory / "npu-collect").glob("*.tar.gz"):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            with tarfile.open(path) as tar:
                members = tar.getmembers()
                assert all(member.isreg() and member.name.startswith(path.name[: -len(".tar.gz")] + "/") for member in members)
                texts = {member.name.partition("/")[2]: tar.extractfile(member).read().decode() for member in members}
            found[json.loads(texts["manifest.json"])["node"]] = texts
        return found


@pytest.fixture
def site(tmp_path):
    with EvictionApi() as api:
        yield Site(tmp_path, api)


def packed(**content):
    text = json.dumps({"schema": 1, "files": [], "left_out": [], "more_left_out": 0, **content}).encode()
    return {"changed": False, "content": base64.b64encode(gzip.compress(text)).decode()}


def test_a_bundle_of_each_node_also_of_one_that_is_down(site):
    done = site.run({"npu-a": LOCAL, "npu-b": DOWN}, npu_collect_size=2)
    told = done.stdout + done.stderr
    assert done.returncode == 0, told
    assert set(site.bundles) == {"npu-a", "npu-b"}, told
    for name, texts in site.bundles.items():
        assert "cluster/node.json" in texts and "pl4nt3d" not in "".join(texts.values())
        (line,) = [line for line in told.splitlines() if "%s: %s/" % (name, site.directory / "npu-collect") in line]
        assert ("the host's part: " in line) == (name == "npu-b")
    facts = json.loads(site.bundles["npu-a"]["host/facts.json"])
    assert facts["kernel"] == os.uname().release
    index = json.loads(site.bundles["npu-a"]["manifest.json"])
    assert index["schema"] == 1 and index["versions"]["npuops.ascend"] == "0.1.0" and index["host"] == "npu-a"
    assert index["limits"] == {"bytes": 2 * 2**20, "seconds": 300}
    assert {file["name"] for file in index["files"]} == set(site.bundles["npu-a"]) - {"manifest.json"}
    assert sum(file["bytes"] for file in index["files"]) <= 2 * 2**20


def test_nothing_is_changed_in_the_cluster(site):
    site.run({"npu-b": DOWN})
    assert {method for method, _path in site.api.requests} == {"GET"}


def test_check_mode_says_what_it_would_do(site):
    done = site.run({"npu-a": LOCAL, "npu-b": DOWN}, "--check")
    assert done.returncode == 0 and done.stdout.count("would write a bundle of at most 20 MiB to") >= 2, done.stdout
    assert site.bundles == {} and not (site.directory / "npu-collect").exists() and site.api.requests == []


def test_a_node_of_which_nothing_is_known_fails_the_run_and_no_other_node(site):
    honest = site.answers("npu-a", packed(files=[{"name": "facts.json", "source": "facts", "cut": False, "text": "{}"}]))
    done = site.run({"npu-a": honest, "npu-b": DOWN}, auth=False)
    assert done.returncode == 2 and "npu-b: nothing could be collected" in done.stdout, done.stdout
    assert set(site.bundles) == {"npu-a"} and "host/facts.json" in site.bundles["npu-a"]


def hostile_answers(canary):
    escape = {"name": "../../../escaped", "source": "x", "cut": False, "text": "escaped"}
    for number, text in enumerate(hostile.templates(canary)):
        left = [{"what": text, "why": text, "absent": False}]
        yield "lies-%d" % number, packed(files=[{"name": "f", "source": text, "cut": False, "text": text}], left_out=left)
        yield "fails-%d" % number, {"failed": True, "msg": text}
    yield "escapes", packed(files=[escape])
    yield "is-no-answer", {"changed": False, "content": 7}
    yield "is-a-bomb", {"changed": False, "content": base64.b64encode(gzip.compress(b"0" * 2**27)).decode()}
    yield "orders", {**packed(), "ansible_facts": {"npu_collect_dir": str(canary)}, "path": str(canary), "line": "forged"}


def test_a_host_writes_nothing_but_its_own_bundle(site):
    canary = site.directory / "evaluated"
    hosts = {name: site.answers(name, result) for name, result in hostile_answers(canary)}
    done = site.run(hosts)
    told = done.stdout + done.stderr
    assert done.returncode == 0 and "Traceback" not in told and "forged" not in told, told
    assert not canary.exists() and not list(pathlib.Path(site.directory).rglob("escaped")), told
    assert set(site.bundles) == set(hosts)
    assert hostile.SHOWN in told.replace("\\", ""), told
    for name in ("escapes", "is-no-answer", "is-a-bomb"):
        assert not [member for member in site.bundles[name] if member.startswith("host/")]


@pytest.mark.parametrize("name", ["npu_collect_size", "npu_collect_timeout"])
def test_a_limit_that_is_none(site, name):
    done = site.run({"npu-b": DOWN}, **{name: 0})
    assert done.returncode == 2 and "%s is 0, but must be at least 1" % name in done.stdout, done.stdout


def test_an_empty_answer_is_the_default(site):
    done = site.run({"npu-b": DOWN}, "-e", "npu_collect_size=", "-e", "npu_collect_dir=", "-e", "npu_collect_timeout=")
    assert done.returncode == 0 and set(site.bundles) == {"npu-b"}, done.stdout
