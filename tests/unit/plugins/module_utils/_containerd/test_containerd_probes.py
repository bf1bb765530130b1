# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configurations that are easily misunderstood, each there and back. tests/lab does the same with real containerd."""

from __future__ import annotations

import pathlib
import shutil

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import (
    cdi_spec,
    config_files,
    containerd_config,
    disable_cdi,
    enable_cdi,
)
from ansible_collections.npuops.ascend.plugins.module_utils._runtime import cri

from support.host import containerd_probes as probes

pytest.importorskip("tomllib")
EDITED = [case for case in probes.CASES if isinstance(probes.EXPECTED[case[0]][case[1]], dict)]


def test_each_has_an_expected_outcome():
    assert set(probes.EXPECTED) == {path.name for path in probes.DIRECTORY.iterdir() if path.is_dir()}
    assert all(set(outcomes) == {"files", "1.7", "2"} for outcomes in probes.EXPECTED.values())


@pytest.fixture
def etc(tmp_path, monkeypatch):
    """The directory of a configuration, once it is laid out; containerd runs with what it had before."""
    monkeypatch.setattr(config_files, "BACKUPS", str(tmp_path / "backups"))
    monkeypatch.setattr(cri, "status", lambda address, timeout=5: cri.CriStatus(True, False, ["/etc/cdi"]))
    monkeypatch.setattr(cdi_spec, "spec_files", lambda *_args: [cdi_spec.PATH])
    return tmp_path / "etc"


def lay_out(etc, name):
    shutil.copytree(probes.DIRECTORY / name, etc)
    return etc


def tree(directory):
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", probes.EXPECTED)
def test_files_are_read_in_containerds_order(etc, name):
    lay_out(etc, name)
    try:
        files = containerd_config.load(str(etc / "config.toml"))
    except ValueError as exc:
        assert any(words in str(exc) for words in probes.EXPECTED[name]["1.7"])
        return
    assert [str(pathlib.Path(file.path).relative_to(etc)) for file in files] == probes.EXPECTED[name]["files"]


@pytest.mark.parametrize("name, release", probes.CASES)
def test_outcome(etc, tmp_path, name, release):
    before = tree(lay_out(etc, name))
    seen = probes.outcome(probes.program(tmp_path / "containerd", release), str(etc))
    assert probes.agrees(seen, probes.EXPECTED[name][release]), seen
    assert tree(etc) == before


@pytest.mark.parametrize("name, release", EDITED)
def test_there_and_back(etc, tmp_path, name, release):
    """On: one file changes, and containerd reads no other one than before. Off: every byte is as it was."""
    before = tree(lay_out(etc, name))
    daemon = probes.daemon(probes.program(tmp_path / "containerd", release), etc)
    switch = enable_cdi.Switch(daemon)
    assert switch.examine()
    switch.apply(restart=False)
    after = tree(etc)
    changed = {path for path in after if before.get(path) != after[path]}
    edited = probes.EXPECTED[name][release]["file"]
    assert edited in changed
    assert changed - {edited} <= {edited + ".npuops-backup"}
    read = [str(pathlib.Path(file.path).relative_to(etc)) for file in containerd_config.load(daemon.config)]
    assert read == (probes.EXPECTED[name]["files"] or ["config.toml"])
    again = enable_cdi.Switch(daemon)
    assert "has not been restarted since" in again.examine() and not again.would_change(restart=False)

    revert = disable_cdi.Revert(daemon)
    assert revert.examine() and revert.left is None
    revert.apply(restart=False)
    # The backup goes with the next one, which sees that the running containerd has CDI off.
    revert = disable_cdi.Revert(daemon)
    revert.examine()
    assert revert.left is None
    revert.apply(restart=False)
    assert {path: data for path, data in tree(etc).items() if data != before.get(path)} == {}
    assert not (tmp_path / "backups").exists()
    lost = set(before) - set(tree(etc))
    assert lost <= {"config.toml.npuops-backup"} and (name.startswith("l01") or not lost)


@pytest.mark.parametrize("name", ["l04-stale-backup-nonutf8-on", "g04-gbk-comment", "g06-gbk-in-import"])
def test_uninstall_is_not_in_the_way_of_itself(etc, tmp_path, name):
    """What it cannot follow it leaves, with the reason."""
    before = tree(lay_out(etc, name))
    revert = disable_cdi.Revert(probes.daemon(probes.program(tmp_path / "containerd", "1.7"), etc))
    assert revert.examine() is None and not revert.would_change()
    assert "UTF-8" in revert.left or ".npuops-backup" in revert.left
    assert tree(etc) == before
