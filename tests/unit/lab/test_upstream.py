# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""MindCluster's own programs in the lab: where their source comes from, and what the inventory names. Nothing is built."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LAB_SOURCE = str(Path(__file__).resolve().parents[3] / "lab")
sys.path.insert(0, LAB_SOURCE)

from npulab import upstream  # noqa: E402
from npulab.files import write  # noqa: E402
from npulab.settings import LabError, current_lab  # noqa: E402
from npulab.tasks import Step  # noqa: E402


@pytest.fixture(name="lab")
def _lab(tmp_path, monkeypatch):
    for name in ("STATE", "CACHE"):
        monkeypatch.setenv(f"NPU_LAB_{name}", str(tmp_path / name))
    monkeypatch.setenv("NPU_LAB", "98")
    return current_lab()


@pytest.fixture(name="step")
def _step(tmp_path):
    with Step("upstream", tmp_path / "upstream.log") as step:
        yield step


def git(where, *arguments):
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", *identity, "-C", where, *arguments], check=True, capture_output=True)


def test_version_lines():
    assert upstream.VERSION_LINES == {"7.3": "v7.3.2", "26.1": "v26.1.0"}


def test_images_of_the_mode(lab):
    assert (upstream.version_line_of(lab), upstream.repository(lab, "exporter")) == (None, "mindcluster/npu-exporter")
    write(lab.state / "upstream.json", '{"version_line": "7.3"}')
    assert (upstream.version_line_of(lab), upstream.repository(lab, "exporter")) == ("7.3", "upstream/npu-exporter")
    assert upstream.repository(lab, "device-plugin") == "upstream/ascend-k8sdeviceplugin"
    upstream.drop(lab)
    upstream.drop(lab)
    assert upstream.version_line_of(lab) is None


def test_source_of_a_clone_at_its_tag(step, tmp_path, monkeypatch):
    clone = tmp_path / "clone"
    for part in upstream.PARTS:
        write(clone / part / "file", "at the tag")
    git(tmp_path, "init", "-q", clone)
    git(clone, "add", "-A")
    git(clone, "commit", "-qm", "a")
    git(clone, "tag", "v26.1.0")
    write(clone / upstream.PARTS[0] / "file", "later")
    monkeypatch.setenv("NPU_UPSTREAM", str(clone))
    upstream.fetch(step, "v26.1.0", tmp_path / "source")
    assert [(tmp_path / "source" / part / "file").read_text() for part in upstream.PARTS] == ["at the tag"] * 3
    assert clone.is_dir() and not (tmp_path / "source.tar").exists()
    with pytest.raises(LabError, match=r"is no clone of MindCluster with the tag v7.3.2: set NPU_UPSTREAM"):
        upstream.fetch(step, "v7.3.2", tmp_path / "other")


def test_a_site_that_cannot_be_reached(step, tmp_path, monkeypatch):
    monkeypatch.delenv("NPU_UPSTREAM", raising=False)
    monkeypatch.setattr(upstream, "URL", str(tmp_path / "nowhere"))
    with pytest.raises(LabError, match=r"nowhere cannot be reached or has no v26.1.0: set NPU_UPSTREAM to the path of a clone"):
        upstream.fetch(step, "v26.1.0", tmp_path / "source")


def test_a_site_that_never_answers(step, tmp_path, monkeypatch):
    fake = tmp_path / "bin" / "git"
    write(fake, "#!/bin/sh\nexec sleep 600\n", mode=0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:/usr/bin:/bin")
    monkeypatch.delenv("NPU_UPSTREAM", raising=False)
    monkeypatch.setattr(upstream, "CLONE_SECONDS", 1)
    with pytest.raises(LabError, match="cannot be reached"):
        upstream.fetch(step, "v26.1.0", tmp_path / "source")


def test_a_program_that_cannot_be_built(lab, step, tmp_path, monkeypatch):
    fake = tmp_path / "bin" / "go"
    write(fake, "#!/bin/sh\n[ $1 = version ] && echo go version go9.9.9 && exit\nexit 1\n", mode=0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:/usr/bin:/bin")
    program = upstream.PROGRAMS[0]
    module = tmp_path / "source" / program.module
    write(module / "go.mod", "module x\n\ngo 1.26\n")
    write(module / "build" / "Dockerfile", "FROM x\n")
    with pytest.raises(LabError, match=r"^device-plugin v26.1.0 cannot be built: it needs gcc, and the Go modules from the proxy"):
        upstream.build(lab, step, program, "v26.1.0", tmp_path / "source", tmp_path / "target")
