# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runtime on a host: complete or absent, whose it is, and what is no longer as it was."""

from __future__ import annotations

import os

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._ascend_runtime import installation, placing
from ansible_collections.npuops.ascend.plugins.module_utils._ascend_runtime import package as runtime_package
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError

from support.host import runtime_packages

DIGEST = "sha256:" + "ab" * 32


class Root:
    """A / of a host."""

    def __init__(self, top, directory):
        self.top, self.directory, self.count = top, directory, 0
        self.fs = str(top)
        self.home = top / installation.HOME.lstrip("/")
        self.list = top / installation.BASE_LIST.lstrip("/")

    def put(self, version, before=None, list_content=None):
        self.count += 1
        directory = self.directory / str(self.count)
        directory.mkdir()
        files = runtime_packages.members(version, b"#!/bin/sh\n# %s\n" % version.encode())
        files["base.list"] = list_content or files["base.list"]
        path = runtime_packages.write(directory, version, files)
        with placing.workspace(self.fs) as work:
            unpacked = runtime_package.Unpacked(str(path), work + "/package", path.name)
            found = placing.prepare(unpacked, DIGEST, work + "/new", before, self.fs)
            written = placing.write_base_list(unpacked.base_list, before, self.fs)
            placing.put(work + "/new", self.fs)
        return found, written


@pytest.fixture(name="root")
def _root(tmp_path):
    top = tmp_path / "root"
    (top / "usr/local/Ascend/driver").mkdir(parents=True)
    for place in (top, top / "usr", top / "usr/local", top / "usr/local/Ascend"):
        place.chmod(0o755)
    return Root(top, tmp_path)


def test_an_installation_says_whose_it_is(root):
    assert installation.find(root.fs) is None and installation.foreign(root.fs) is None
    assert root.put("26.1.0")[1]
    found = installation.find(root.fs)
    assert (found.version, found.digest, installation.foreign(root.fs)) == ("26.1.0", DIGEST, None)
    assert installation.damage(found, root.fs) is None and not installation.list_is_changed(found, root.fs)
    assert sorted(os.listdir(root.home.parent)) == ["Ascend-Docker-Runtime", "driver"]
    modes = {name: oct((root.home / name).stat().st_mode & 0o7777) for name in ("ascend-docker-runtime", ".", "npuops.json")}
    assert modes == {"ascend-docker-runtime": "0o550", ".": "0o750", "npuops.json": "0o640"}
    assert root.list.stat().st_mode & 0o7777 == 0o440
    assert "version=v26.1.0\n" in (root.home / "ascend_docker_runtime_install.info").read_text()


@pytest.mark.parametrize("exchange", [True, False])
def test_another_version_takes_its_place(root, monkeypatch, exchange):
    if not exchange:
        monkeypatch.setattr(placing, "_exchange", lambda *_paths: False)
    before = root.put("26.1.0")[0]
    root.put("26.1.1", before)
    assert installation.find(root.fs).version == "26.1.1"
    assert b"26.1.1" in (root.home / "ascend-docker-hook").read_bytes()
    assert sorted(os.listdir(root.home.parent)) == ["Ascend-Docker-Runtime", "driver"]


def test_leftovers_of_killed_runs_go(root):
    (root.home.parent / ".npuops-runtime-abc" / "package").mkdir(parents=True)
    root.put("26.1.0")
    assert sorted(os.listdir(root.home.parent)) == ["Ascend-Docker-Runtime", "driver"]


def test_a_runtime_of_somebody_else(root):
    root.home.mkdir()
    assert "npuops.ascend has not installed it. Unset npu_runtime_package" in installation.foreign(root.fs)
    (root.home / "npuops.json").write_text("[]")
    with pytest.raises(NpuError, match="cannot be read"):
        installation.find(root.fs)


@pytest.mark.parametrize("name", runtime_packages.PROGRAMS)
def test_a_changed_program_is_seen(root, name):
    found = root.put("26.1.0")[0]
    program = root.home / name
    content = program.read_bytes()
    program.write_bytes(content + b"#")
    assert installation.damage(found, root.fs) == "%s/%s is not as npuops.ascend installed it" % (installation.HOME, name)
    program.write_bytes(content)
    assert installation.damage(found, root.fs) is None
    program.chmod(0o557)
    assert installation.damage(found, root.fs)
    program.unlink()
    program.symlink_to("/bin/true")
    assert installation.damage(found, root.fs)


def test_a_list_that_somebody_changed_stays(root):
    before = root.put("26.1.0")[0]
    mine = root.list.read_text() + "\n/opt/mine\n"
    root.list.chmod(0o640)
    root.list.write_text(mine)
    assert installation.list_is_changed(before, root.fs)
    after, written = root.put("26.1.1", before, b"/usr/local/Ascend/driver/lib64\n/new\n")
    assert not written and root.list.read_text() == mine
    placing.remove(after, root.fs)
    assert root.list.read_text() == mine and not root.home.exists()


def test_an_upgrade_that_was_killed_before_its_list_was_written(root):
    before = root.put("26.1.0")[0]
    old = root.list.read_bytes()
    between = root.put("26.1.1", before, b"/usr/local/Ascend/driver/lib64\n/new\n")[0]
    root.list.chmod(0o640)
    root.list.write_bytes(old)
    assert not installation.list_is_changed(between, root.fs)
    assert root.put("26.1.1", between, b"/usr/local/Ascend/driver/lib64\n/new\n")[1]
    assert root.list.read_bytes().endswith(b"/new\n")


def test_removed_with_its_list(root):
    found = root.put("26.1.0")[0]
    placing.remove(found, root.fs)
    assert sorted(os.listdir(root.home.parent)) == ["driver"] and not root.list.parent.exists()


def test_places_that_the_runtime_would_refuse(root, tmp_path):
    assert installation.unfit_place(root.fs) is None
    root.home.parent.chmod(0o775)
    assert "Users other than root can change" in installation.unfit_place(root.fs)
    root.home.parent.rename(tmp_path / "elsewhere")
    root.home.parent.symlink_to(tmp_path / "elsewhere")
    assert "is reached through a link, which the runtime refuses" in installation.unfit_place(root.fs)
