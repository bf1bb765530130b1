# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ascend-docker-runtime as containerd's default runtime: whether it is, and what keeps it from starting containers with chips."""

from __future__ import annotations

import os

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import ascend_runtime, containerd_config
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._runtime import cri

from support.paths import UNIT

HOME = "/usr/local/Ascend/Ascend-Docker-Runtime"
PROGRAM = HOME + "/ascend-docker-runtime"
ASCEND = ("ascend", PROGRAM)
RUNC = ("runc", "")
LIST = (
    "/usr/local/Ascend/driver/lib64\n/usr/local/Ascend/driver/include\n/usr/local/dcmi\n/usr/local/bin/npu-smi\n/var/queue_schedule"
)
CONFIG = (UNIT / "fixtures/containerd/ascend-default.toml").read_text(encoding="utf-8")
# As containerd 2.3 prints it.
NEW = """version = 4
[plugins.'io.containerd.cri.v1.runtime'.containerd]
default_runtime_name = '%s'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
BinaryName = ''
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.ascend.options]
BinaryName = '/usr/local/Ascend/Ascend-Docker-Runtime/ascend-docker-runtime'
"""


class Daemon:
    address = "/run/containerd/containerd.sock"

    def __init__(self, text=CONFIG):
        self.text = text

    def dump(self):
        return containerd_config.Dump(self.text)


@pytest.fixture
def running(monkeypatch):
    """Sets what the running containerd has as its default runtime; an exception: it does not answer."""

    def run(found):
        def status(address):
            if isinstance(found, Exception):
                raise found
            return cri.CriStatus(True, False, [], found)

        monkeypatch.setattr(cri, "status", status)

    run(ASCEND)
    return run


@pytest.fixture
def fs(tmp_path):
    """A / with the runtime and a driver of a package."""
    tmp_path.chmod(0o755)
    for name in ("runtime", "hook", "cli"):
        put(tmp_path, "%s/ascend-docker-%s" % (HOME, name)).chmod(0o550)
    put(tmp_path, ascend_runtime.BASE_LIST, LIST)
    put(tmp_path, "/usr/local/Ascend/driver/lib64/driver/libdcmi.so")
    put(tmp_path, "/usr/local/bin/npu-smi")
    return str(tmp_path)


def put(root, path, text=""):
    place = root / path.lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    return place


def problem(fs, daemon=None, source="preinstalled"):
    return next(ascend_runtime.problems(source, fs, lambda: daemon or Daemon()), None)


def test_in_order(fs, running):
    assert problem(fs) is None


@pytest.mark.parametrize(
    "text, expected",
    [(CONFIG, ASCEND), (NEW % "ascend", ASCEND), (NEW % "runc", RUNC), (NEW % "other", ("other", "")), ("version = 2\n", None)],
    ids=["1.7", "2.3", "runc", "unknown", "none"],
)
def test_the_default_runtime_in_the_configuration(text, expected):
    assert containerd_config.Dump(text).default_runtime == expected


@pytest.mark.parametrize("source", ["image", "package"])
def test_drivers_that_are_reached_through_a_link(fs, running, source):
    assert "needs npu_driver_source: preinstalled" in problem(fs, source=source)


def test_another_default_runtime(fs, running):
    assert "default runtime is runc (runc), not ascend-docker-runtime" in problem(fs, Daemon(NEW % "runc"))
    assert "Install it with Huawei's package" in problem(fs, Daemon("version = 2\n"))


def test_containerd_that_was_not_restarted(fs, running):
    running(RUNC)
    assert "has not been restarted" in problem(fs) and "runc (runc)" in problem(fs)
    running(None)
    assert "has not been restarted" in problem(fs)
    running(cri.CriError("/run/x: timed out"))
    assert problem(fs).endswith("CRI does not respond: /run/x: timed out")


def test_a_host_without_containerd(fs, running):
    def find():
        raise NpuError("The kubelet of this host uses CRI-O")

    assert (
        next(ascend_runtime.problems("preinstalled", fs, find)) == "npu_runtime_mode is ascend: The kubelet of this host uses CRI-O"
    )


@pytest.mark.parametrize("name", ["ascend-docker-runtime", "ascend-docker-hook", "ascend-docker-cli"])
def test_programs_that_are_missing_or_that_others_may_change(fs, running, name):
    path = "%s%s/%s" % (fs, HOME, name)
    os.chmod(path, 0o440)
    assert "there is no program %s/%s" % (HOME, name) in problem(fs)
    os.chmod(path, 0o757)
    assert "has the mode 0757" in problem(fs)
    os.chmod(path, 0o550)
    os.chown(path, 1000, 0)
    assert "belongs to the user ID 1000" in problem(fs)
    os.unlink(path)
    assert "there is no program %s/%s" % (HOME, name) in problem(fs)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("/usr/local/dcmi\n", "does not list /usr/local/Ascend/driver/lib64"),
        ("", "does not list /usr/local/Ascend/driver/lib64"),
        ("/usr/local/Ascend/driver\n", None),
        ("/x\n" * 200, "has more than 128 entries"),
        (LIST + "\n/missing\nrelative\n", None),
    ],
    ids=["others", "empty", "whole", "long", "missing"],
)
def test_the_list_of_files(fs, running, tmp_path, text, expected):
    put(tmp_path, ascend_runtime.BASE_LIST, text)
    found = problem(fs)
    assert found is None if expected is None else expected in found


def test_no_list_and_no_driver(fs, running, tmp_path):
    (tmp_path / "usr/local/Ascend/driver").rename(tmp_path / "elsewhere")
    assert problem(fs).endswith("there is no driver in /usr/local/Ascend/driver/lib64")
    os.unlink(fs + ascend_runtime.BASE_LIST)
    assert "cannot be read: No such file or directory" in problem(fs)


@pytest.mark.parametrize("path", ["usr/local/Ascend/driver", "usr/local/bin/npu-smi", "usr/local"])
def test_what_is_reached_through_a_link(fs, running, tmp_path, path):
    (tmp_path / path).rename(tmp_path / "elsewhere")
    (tmp_path / path).symlink_to(tmp_path / "elsewhere")
    assert "is reached through a link" in problem(fs)
