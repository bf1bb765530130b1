# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Releases and links, in a temporary directory."""

from __future__ import annotations

import os
import stat
import subprocess
import sys

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._driver import releases
from ansible_collections.npuops.ascend.plugins.module_utils._driver.releases import Layout
from ansible_collections.npuops.ascend.plugins.module_utils._host import mounts as host_mounts
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError

from support.patience import PATIENCE

DIGEST = "sha256:" + "0123456789abcdef" * 4


@pytest.fixture
def layout(tmp_path):
    return Layout(str(tmp_path / "Ascend"))


def release(layout, version="25.5.0", digest=DIGEST):
    """Commit a small release and return its name."""
    name = layout.release_name(version, "6.1.0-18-amd64", digest)
    with layout.lock():
        tmp = layout.new_directory()
        os.makedirs(os.path.join(tmp, "driver", "lib64"))
        with open(os.path.join(tmp, "driver", "version.info"), "w", encoding="ascii") as stream:
            stream.write("Version=%s\n" % version)
        layout.commit(tmp, name, {"version": version, "files": {"version.info": "x"}, "sizes": {"version.info": 15}})
    return name


def test_name_has_version_kernel_and_the_start_of_the_digest():
    assert Layout.release_name("25.5.0", "6.6.0-145", DIGEST) == "25.5.0-6.6.0-145-0123456789ab"


@pytest.mark.parametrize(
    "version, kernel, digest",
    [
        ("../25", "6.6", DIGEST),
        ("25.5.0", "6/6", DIGEST),
        ("25.5.0", "6.6", "sha256:xyz"),
        ("", "", "md5:0123456789ab"),
        ("25.5.0", "6" * 236, DIGEST),
    ],
)
def test_name_refuses_what_could_leave_the_directory(version, kernel, digest):
    with pytest.raises(NpuError):
        Layout.release_name(version, kernel, digest)


def test_commit_makes_a_complete_release_and_nothing_else(layout):
    name = release(layout)
    assert layout.releases() == [name]
    assert layout.manifest(name)["version"] == "25.5.0"
    assert layout.damage(name) is None
    assert sorted(os.listdir(layout.releases_dir)) == [".lock", name]


def test_a_release_committed_twice_keeps_the_first(layout):
    name = release(layout)
    inode = os.stat(layout.release_path(name)).st_ino
    assert release(layout) == name
    assert os.stat(layout.release_path(name)).st_ino == inode
    assert sorted(os.listdir(layout.releases_dir)) == [".lock", name]


def test_a_directory_without_manifest_is_no_release_and_is_replaced(layout):
    name = layout.release_name("25.5.0", "6.1.0-18-amd64", DIGEST)
    os.makedirs(os.path.join(layout.release_path(name), "driver", "half"))
    assert layout.releases() == [] and not layout.is_complete(name)
    release(layout)
    assert layout.is_complete(name) and not os.path.exists(os.path.join(layout.tree(name), "half"))


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 100000, '{"files": []}', '{"sizes": 5}'])
def test_a_manifest_that_is_no_manifest_means_incomplete(layout, text):
    name = release(layout)
    path = os.path.join(layout.release_path(name), "manifest.json")
    os.chmod(path, 0o644)
    with open(path, "w", encoding="ascii") as stream:
        stream.write(text)
    assert not layout.is_complete(name)


def test_damage_names_the_file(layout):
    name = release(layout)
    path = os.path.join(layout.tree(name), "version.info")
    os.truncate(path, 3)
    assert "version.info" in layout.damage(name)
    os.unlink(path)
    assert "missing" in layout.damage(name)


def test_links_are_relative_and_say_whether_they_changed(layout):
    name = release(layout)
    assert layout.target("driver") is None
    assert layout.point("driver", name) is True
    assert layout.point("driver", name) is False
    assert os.readlink(os.path.join(layout.root, "driver")) == "releases/%s/driver" % name
    assert layout.target("driver") == name
    assert layout.remove_link("driver") is True
    assert layout.remove_link("driver") is False


def test_the_empty_directory_that_a_hostpath_left_is_replaced_by_the_link(layout):
    name = release(layout)
    os.mkdir(os.path.join(layout.root, "driver"))
    assert layout.point("driver", name) is True


def test_a_directory_with_data_is_never_replaced(layout):
    name = release(layout)
    os.makedirs(os.path.join(layout.root, "driver", "lib64"))
    with pytest.raises(NpuError, match="preinstalled"):
        layout.point("driver", name)
    assert os.path.isdir(os.path.join(layout.root, "driver", "lib64"))


def test_no_link_to_what_is_not_complete(layout):
    release(layout)
    with pytest.raises(NpuError, match="not a complete release"):
        layout.point("good", "25.5.0-6.1-aaaaaaaaaaaa")


@pytest.mark.parametrize("target", ["releases", "releases/../driver", "/usr/local/Ascend/driver", "releases/a/b/driver"])
def test_a_link_elsewhere_names_no_release(layout, target):
    release(layout)
    os.symlink(target, os.path.join(layout.root, "driver"))
    assert layout.target("driver") is None


def test_prune_keeps_what_links_mounts_and_the_caller_name(layout, monkeypatch):
    names = [release(layout, version, "sha256:" + digit * 64) for version, digit in zip("12345", "abcde")]
    layout.point("driver", names[0])
    layout.point("previous", names[1])
    monkeypatch.setattr(host_mounts, "paths_of_all", lambda: {"/", "/lib/Ascend/releases/%s/driver/lib64" % names[2]})
    with layout.lock():
        assert layout.prune(keep=[names[3]]) == [names[4]]
        assert layout.releases() == names[:4]
        with pytest.raises(NpuError, match="in use"):
            layout.remove(names[2])


def test_prune_keeps_what_a_boot_into_another_kernel_selects(layout):
    def staged(version, kernel, digit):
        name = layout.release_name(version, kernel, "sha256:" + digit * 64)
        with layout.lock():
            directory = layout.new_directory()
            os.mkdir(os.path.join(directory, "driver"))
            layout.commit(directory, name, {})
        return name

    good, before = staged("25.5", "6.6", "a"), staged("25.5", "6.6", "b")
    old, new, gone = staged("25.5", "6.7", "c"), staged("25.5", "6.7", "d"), staged("25.5", "6.8", "e")
    other = staged("25.3", "6.7", "f")
    os.utime(os.path.join(layout.release_path(old), releases.MANIFEST), (1000, 1000))
    layout.point("good", good)
    assert layout.for_kernel(good, "6.7") == new and layout.for_kernel(good, "6.6") == good
    assert layout.for_kernel(good, "6") is None and layout.selected() == good
    with layout.lock():
        assert layout.prune(kernels=["6.6", "6.7"]) == sorted([before, old, gone, other])
    assert layout.releases() == sorted([good, new])


@pytest.mark.parametrize(
    ("one", "other", "siblings"),
    [
        ("25.5-6.6.0-1-aaaaaaaaaaaa", "25.5-6.6.0-2-aaaaaaaaaaaa", True),
        ("25.5-6.6.0-aaaaaaaaaaaa", "25.5-6.6.0-1-aaaaaaaaaaaa", True),
        ("25.5-6.6.0-1-aaaaaaaaaaaa", "25.5-6.6.0-1-bbbbbbbbbbbb", False),
        ("25.5-6.6.0-1-aaaaaaaaaaaa", "25.3-6.6.0-2-aaaaaaaaaaaa", False),
    ],
)
def test_siblings_differ_in_the_kernel_alone(one, other, siblings):
    pair = (one, other)
    assert releases.are_siblings(*pair) == releases.are_siblings(*reversed(pair)) == siblings
    assert releases.same_driver(*pair) == (siblings or pair[0] == pair[1])
    assert not releases.same_driver(pair[0], None) and releases.same_driver(None, None)


def test_leftovers_of_a_killed_run_are_removed_by_the_next(layout):
    name = release(layout)
    os.makedirs(os.path.join(layout.releases_dir, ".new-abc", "driver"))
    os.makedirs(os.path.join(layout.releases_dir, ".old-abc", "25.0-6.1-aaaaaaaaaaaa"))
    with layout.lock():
        assert sorted(os.listdir(layout.releases_dir)) == [".lock", name]


def test_an_incomplete_release_that_a_link_names_is_left_for_a_person(layout):
    name = release(layout)
    layout.point("driver", name)
    os.unlink(os.path.join(layout.release_path(name), "manifest.json"))
    with layout.lock():
        assert os.path.isdir(layout.tree(name))


def test_the_lock_excludes_other_processes_and_dies_with_its_holder(layout):
    layout.prepare()
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import fcntl, os, sys\nf = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)\nfcntl.flock(f, fcntl.LOCK_EX)\n"
            "print('held', flush=True)\nsys.stdin.read()",
            os.path.join(layout.releases_dir, ".lock"),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(NpuError, match="Another run"):
            with layout.lock():
                pass
        holder.kill()
        holder.wait()
        with layout.lock(timeout=PATIENCE):
            pass
    finally:
        holder.kill()
        holder.communicate()


def test_root_is_created_for_root_alone_to_write_whatever_the_umask(layout):
    previous = os.umask(0)
    try:
        layout.prepare()
    finally:
        os.umask(previous)
    for path in (layout.root, layout.releases_dir):
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o755


@pytest.mark.parametrize("mode", [0o775, 0o757])
def test_a_root_that_others_can_write_is_refused(layout, mode):
    os.mkdir(layout.root)
    os.chmod(layout.root, mode)
    with pytest.raises(NpuError, match="is writable by group or others"):
        layout.prepare()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give a directory away")
def test_a_root_that_belongs_to_somebody_else_is_refused(layout):
    os.mkdir(layout.root)
    os.chown(layout.root, 1000, 1000)
    with pytest.raises(NpuError, match="user ID 1000"):
        layout.prepare()


STEPS = ("fsync_tree", "write_atomic", "os.rename", "fsync_directory")


@pytest.mark.parametrize("step", STEPS)
def test_a_commit_interrupted_at_any_step_leaves_a_release_or_none(layout, monkeypatch, step):
    """The step does not happen, and nothing after it: as if the power had gone there."""

    class PowerCut(BaseException):
        pass

    def cut(*args, **kwargs):
        raise PowerCut

    with monkeypatch.context() as patch:
        patch.setattr(releases if "." not in step else releases.os, step.rpartition(".")[2], cut)
        os.makedirs(layout.releases_dir)
        with pytest.raises(PowerCut):
            release(layout)
    assert layout.releases() == []
    name = release(layout)
    assert layout.releases() == [name] and layout.damage(name) is None
    assert sorted(os.listdir(layout.releases_dir)) == [".lock", name]


def test_two_runs_prepare_at_once(tmp_path, monkeypatch):
    """Each directory is made by another run just before this one makes it; what is no directory is still refused."""
    make = os.makedirs

    def late(path, *arguments, **keywords):
        if not os.path.lexists(path):
            os.mkdir(path, 0o755)
        make(path, *arguments, **keywords)

    monkeypatch.setattr(os, "makedirs", late)
    layout = Layout(str(tmp_path / "root"))
    layout.prepare()
    assert os.path.isdir(layout.releases_dir)
    monkeypatch.undo()
    (tmp_path / "file").write_text("")
    with pytest.raises(NpuError, match="file is not a directory, but must be one"):
        Layout(str(tmp_path / "file")).prepare()
