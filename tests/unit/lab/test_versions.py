# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which Kubernetes and containerd a lab has: the newest, those that the environment names, and for good."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

LAB_SOURCE = Path(__file__).resolve().parents[3] / "lab"
sys.path.insert(0, str(LAB_SOURCE))

from npulab import binaries, cli, dra_driver, settings, versions  # noqa: E402


@pytest.fixture(name="chosen", autouse=True)
def _chosen(tmp_path, monkeypatch):
    """The lab, with the releases that it is given."""
    monkeypatch.setenv("NPU_LAB", "98")
    monkeypatch.setenv("NPU_LAB_STATE", str(tmp_path / "state"))

    def current(kubernetes="", containerd=""):
        monkeypatch.setenv("NPU_LAB_KUBERNETES", kubernetes)
        monkeypatch.setenv("NPU_LAB_CONTAINERD", containerd)
        return settings.current_lab()

    return current


def number(release):
    return [int(part) for part in release.split(".")]


def test_default_is_known_and_kubernetes_the_newest(chosen):
    lab = chosen()
    assert lab.kubernetes.release == max(versions.known("kubernetes"), key=number)
    assert lab.containerd.release == versions.default("containerd")


def test_chosen_by_the_environment(chosen):
    lab = chosen("1.34", "2.1")
    assert (lab.kubernetes.release, lab.containerd.release) == ("1.34", "2.1")
    assert {node.name: lab.node_containerd(node).release for node in lab.nodes} == {
        "npu-a": "2.1",
        "npu-b": "1.7",  # whatever the others have
        "npu-c": "2.1",
        "cpu-a": "2.1",
    }
    assert [module.name for module in binaries.modules(lab)] == ["registry", "containerd-2.1", "containerd-1.7", "kubernetes-1.34"]


@pytest.mark.parametrize(("kubernetes", "containerd"), [("1.20", ""), ("v1.37.2", ""), ("", "3.0"), ("", "2")])
def test_unknown_release(chosen, kubernetes, containerd):
    project = "kubernetes" if kubernetes else "containerd"
    with pytest.raises(
        settings.LabError, match=f"NPU_LAB_{project.upper()} is .*: the lab knows {', '.join(versions.known(project))}$"
    ):
        chosen(kubernetes, containerd)


def test_a_lab_keeps_its_releases(chosen):
    cli._settle_releases(chosen("1.35", "2.4"))
    lab = chosen()  # as in another shell, that has not set them
    assert (lab.kubernetes.release, lab.containerd.release) == ("1.35", "2.4")
    cli._settle_releases(lab)
    before = (lab.state / versions.RECORD).read_text(encoding="utf-8")
    with pytest.raises(
        settings.LabError, match=r"npulab98 was made with kubernetes v1\.35\..* and containerd v2\.4\..*lab/lab down"
    ):
        cli._settle_releases(chosen("1.36", "2.4"))
    assert (lab.state / versions.RECORD).read_text(encoding="utf-8") == before


def test_a_lab_of_an_older_checkout_is_not_half_changed(chosen):
    lab = chosen()
    (lab.state / "nodes").mkdir(parents=True)
    with pytest.raises(settings.LabError, match="was made with other releases"):
        cli._settle_releases(lab)
    (lab.state / versions.RECORD).write_text('{"kubernetes": "v1.30.1", "containerd": "v2.0.0"}', encoding="utf-8")
    with pytest.raises(settings.LabError, match=r"was made with kubernetes v1\.30\.1 and containerd v2\.0\.0"):
        cli._settle_releases(chosen())


@pytest.mark.parametrize("release", versions.releases(), ids=lambda release: release.name)
def test_each_release_has_its_module(release):
    """Fails when a version was changed without running lab/go/update."""
    text = (LAB_SOURCE / "go" / release.name / "go.mod").read_text(encoding="utf-8")
    name = "k8s.io/kubernetes" if release.project == "kubernetes" else r"github.com/containerd/containerd(?:/v2)?"
    assert re.search(
        rf"^\t{name} v{re.escape(release.number)} // indirect$|^require {name} v{re.escape(release.number)}", text, re.M
    )
    assert release.number.startswith(release.release + ".")
    assert (LAB_SOURCE / "go" / release.name / "go.sum").stat().st_size > 0


def test_the_dra_driver_is_of_the_default_kubernetes():
    """As above; and it is the one program that is built of that module."""
    assert dra_driver.version() == versions.known("kubernetes")[versions.default("kubernetes")].version
    (tool,) = binaries._tools(dra_driver.MODULE)
    assert binaries._program(tool) == dra_driver.PROGRAM
    assert len(binaries._tools(binaries.kubernetes(settings.current_lab()))) > 5


def test_the_go_that_the_lab_installs_builds_all_releases(chosen):
    installed = tuple(number(binaries.GO_PACKAGE.split("==")[1]))
    for path in LAB_SOURCE.glob("go/*/go.mod"):
        (needed,) = re.findall(r"^go ([0-9.]+)$", path.read_text(encoding="utf-8"), re.M)
        assert tuple(number(needed)) <= installed, path


def test_the_page_names_the_default_versions(chosen):
    page = (LAB_SOURCE / "README.md").read_text(encoding="utf-8")
    lab = chosen()
    for release in (lab.kubernetes, lab.containerd, versions.known("containerd")["1.7"]):
        assert release.number in page, release.name
