# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Install, upgrade and remove as a whole: what fails leaves everything as it was. The host is a directory; its containerd is a fake."""

from __future__ import annotations

import os
import pathlib
from types import SimpleNamespace

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._ascend_runtime import containers, engine, installation, trial
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import (
    ascend_runtime,
    cdi_spec,
    containerd_config,
    containerd_runtime,
    default_runtime,
)
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._runtime import ascend_docker_runtime, cri

from support.host import driver_packages, runtime_packages

CONFIG = """version = 2
[plugins."io.containerd.grpc.v1.cri"]
  enable_cdi = true
  cdi_spec_dirs = ["/etc/cdi"]
[plugins."io.containerd.grpc.v1.cri".containerd]
  default_runtime_name = "runc"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
"""
GOOD = b"#!/bin/sh\nexit 0\n"
BAD = b"#!/bin/sh\necho no libdcmi.so >&2\nexit 4\n"


class Host:
    def __init__(self, top, directory, monkeypatch):
        self.top, self.directory, self.made = top, directory, 0
        self.config = top / "config.toml"
        self.containers, self.has_state = directory / "state", True
        self.containers.mkdir()
        self.config.write_text(CONFIG)
        self.running = self.dump().default_runtime
        self.restarts = 0
        self.restart_fails = False
        self.daemon = containerd_runtime.Daemon(
            1, "/usr/bin/containerd", str(self.config), True, "/run/x.sock", "containerd.service"
        )
        self.daemon.dump = lambda config=None: self.dump(config)
        monkeypatch.setattr(containerd_runtime, "find", lambda: self.daemon)
        monkeypatch.setattr(containerd_runtime, "check_restartable", lambda _daemon: None)
        monkeypatch.setattr(containerd_runtime, "restart", self.restart)
        monkeypatch.setattr(cri, "status", lambda _address: SimpleNamespace(default_runtime=self.running))
        monkeypatch.setattr(cdi_spec, "look", lambda: SimpleNamespace(chips=1, numbers=[0], missing=[]))

    def dump(self, config=None):
        with open(config or self.config, encoding="utf-8") as stream:
            return containerd_config.Dump((self.has_state and 'state = "%s"\n' % self.containers or "") + stream.read())

    def restart(self, *_args):
        self.restarts += 1
        if self.restart_fails and "ascend" in self.config.read_text():
            raise NpuError("it does not come back")
        self.running = self.dump().default_runtime
        return SimpleNamespace(default_runtime=self.running)

    def package(self, version, program=GOOD):
        self.made += 1
        directory = self.directory / str(self.made)
        directory.mkdir()
        return runtime_packages.write(directory, version, runtime_packages.members(version, program))

    def install(self, path, digest=None, version_line="26.1"):
        change = engine.Install(path.name, digest or "sha256:" + driver_packages.sha256(path), str(path), version_line)
        reason = change.examine()
        if reason:
            change.apply()
        return reason

    def state(self):
        """Every file with its content."""
        places = [os.path.join(where, name) for where, _directories, names in os.walk(self.top) for name in names]
        return {place: pathlib.Path(place).read_bytes() for place in places if not place.endswith(".lock")}


@pytest.fixture(name="host")
def _host(tmp_path, monkeypatch):
    top = tmp_path / "root"
    parent = top / "usr/local/Ascend"
    (parent / "driver/lib64").mkdir(parents=True)
    (top / "run").mkdir()
    home = str(parent / "Ascend-Docker-Runtime")
    for name, value in {
        "PARENT": str(parent),
        "HOME": home,
        "PROGRAM": home + "/ascend-docker-runtime",
        "BASE_LIST": str(top / "etc/ascend-docker-runtime.d/base.list"),
    }.items():
        monkeypatch.setattr(installation, name, value)
    monkeypatch.setattr(installation, "unfit_place", lambda: None)
    monkeypatch.setattr(ascend_docker_runtime, "LOGS", str(top / "logs"))
    monkeypatch.setattr(ascend_runtime, "LIBRARIES", str(parent / "driver/lib64"))
    monkeypatch.setattr(engine, "_LOCK", str(top / "run/runtime.lock"))
    monkeypatch.setattr(trial, "_PLACE", str(top / "run"))
    return Host(top, tmp_path, monkeypatch)


def test_install_a_second_time_upgrade_and_remove(host):
    before = host.state()
    first = host.package("26.1.0")
    assert host.install(first) == "the Ascend Docker Runtime is not installed"
    assert host.running == ("ascend", installation.PROGRAM) and host.restarts == 1
    assert host.install(first) is None
    assert "of another package is installed" in host.install(host.package("26.1.1", GOOD + b"#"))
    assert installation.find().version == "26.1.1" and host.restarts == 1
    removal = engine.Removal()
    assert removal.examine() and removal.would_change()
    removal.apply()
    assert host.state() == before and host.running == ("runc", "") and not driver_packages.RAN.exists()
    assert engine.Removal().examine() is None


def test_a_runtime_that_starts_no_container(host):
    before = host.state()
    with pytest.raises(NpuError, match=r"exit status 4\): no libdcmi.so"):
        host.install(host.package("26.1.0", BAD))
    assert host.state() == before and host.restarts == 0
    host.install(host.package("26.1.0"))
    before = host.state()
    with pytest.raises(NpuError, match="does not create a container"):
        host.install(host.package("26.1.1", BAD))
    assert host.state() == before and installation.find().version == "26.1.0"


def test_a_containerd_that_does_not_come_back(host):
    before = host.state()
    host.restart_fails = True
    with pytest.raises(NpuError, match="was restored. With that, it responds again"):
        host.install(host.package("26.1.0"))
    assert host.state() == before and host.running == ("runc", "")


def test_the_program_stays_while_the_configuration_names_it(host, monkeypatch):
    """Without it, containerd could not start a container."""
    monkeypatch.setattr(default_runtime.Registration, "_restore", lambda _self, _undo: "the original could not be restored")
    host.restart_fails = True
    with pytest.raises(NpuError, match="could not be restored"):
        host.install(host.package("26.1.0"))
    assert installation.PROGRAM in host.config.read_text() and os.access(installation.PROGRAM, os.X_OK)


def test_a_run_that_was_killed_before_containerd_was_told(host, monkeypatch):
    path = host.package("26.1.0")
    change = engine.Install(path.name, "sha256:" + driver_packages.sha256(path), str(path))
    change.examine()
    with change._files():
        pass
    assert host.running == ("runc", "")
    assert host.install(path) == "containerd's default runtime is runc" and host.running[0] == "ascend"


def test_a_changed_file_is_installed_again(host):
    path = host.package("26.1.0")
    host.install(path)
    program = installation.HOME + "/ascend-docker-hook"
    os.unlink(program)
    assert host.install(path) == program + " is not as npuops.ascend installed it"
    os.unlink(installation.BASE_LIST)
    assert host.install(path) == installation.BASE_LIST + " is missing"
    assert host.install(path) is None and host.restarts == 1


REFUSED = {
    "damaged": (lambda host: host.install(host.package("26.1.0"), "sha256:" + "0" * 64), "arrived on this host with"),
    "version_line": (lambda host: host.install(host.package("7.3.0")), "npu_mindcluster_version_line is 26.1"),
    "foreign": (lambda host: (os.mkdir(installation.HOME), host.install(host.package("26.1.0"))), "has not installed it"),
    "no-driver": (
        lambda host: (os.rmdir(ascend_runtime.LIBRARIES), host.install(host.package("26.1.0"))),
        "there is no driver in",
    ),
    "other-version": (
        lambda host: host.install(host.package("26.1.0").rename(host.directory / runtime_packages.name_of("26.1.7"))),
        "has the version 26.1.0, which its name does not say",
    ),
}


@pytest.mark.parametrize("case", sorted(REFUSED))
def test_refused_and_nothing_changed(host, case):
    before = host.state()
    attempt, told = REFUSED[case]
    with pytest.raises(NpuError, match=told):
        attempt(host)
    assert host.state() == before and host.restarts == 0


def test_another_machine(host, monkeypatch):
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(machine="aarch64"))
    program = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00\x3e\x00" + bytes(40)
    with pytest.raises(NpuError, match="is for x86_64, and this host is aarch64: set npu_runtime_package for each architecture"):
        host.install(host.package("26.1.0", program))


def test_what_containers_need_stays(host, monkeypatch):
    host.install(host.package("26.1.0"))
    users = containers.Users(["a", "b"], ["a"])
    monkeypatch.setattr(containers, "of", lambda _program, _daemon: users)
    removal = engine.Removal()
    assert removal.examine() is None and not removal.would_change() and "containers have chips by it (1)" in removal.kept
    users.with_chips.clear()
    removal = engine.Removal()
    assert removal.examine() and "containers that it has started (2) need them" in removal.kept
    removal.apply()
    assert host.running == ("runc", "") and os.path.exists(installation.PROGRAM)
    again = engine.Removal()
    assert again.examine() is None and not again.would_change()
    users.all.clear()
    removal = engine.Removal()
    assert removal.examine()
    removal.apply()
    assert not os.path.exists(installation.HOME) and host.restarts == 2


@pytest.mark.parametrize("place", ["configuration", "command-line"])
def test_containers_are_found_where_containerd_keeps_them(host, place):
    host.install(host.package("26.1.0"))
    if place == "command-line":
        host.daemon.state = str(host.containers)
        host.containers = host.directory / "another"
    bundle = host.directory / "state/io.containerd.runtime.v2.task/k8s.io/a"
    bundle.mkdir(parents=True)
    (bundle / "runtime").write_text(installation.PROGRAM)
    (bundle / "config.json").write_text('{"process": {"env": ["ASCEND_VISIBLE_DEVICES=0"]}}')
    removal = engine.Removal()
    assert removal.examine() is None and "containers have chips by it (1)" in removal.kept


@pytest.mark.parametrize("case", ["no-state", "no-directory", "no-list"])
def test_a_removal_that_cannot_see_the_containers_is_refused(host, case):
    host.install(host.package("26.1.0"))
    if case == "no-state":
        host.has_state = False
    elif case == "no-directory":
        host.containers.rmdir()
    else:
        host.containers.rmdir()
        host.containers.write_text("")
    with pytest.raises(NpuError, match="It is not known which containers the Ascend Docker Runtime has started.*run again"):
        engine.Removal().examine()
    assert os.path.exists(installation.PROGRAM) and host.running[0] == "ascend"


def test_a_containerd_that_has_not_run_since_boot_has_no_containers(host):
    host.install(host.package("26.1.0"))
    host.containers.rmdir()
    host.daemon.pid = None
    assert containers.of(installation.PROGRAM, host.daemon) == ([], [])


def test_files_that_somebody_removed_by_hand(host):
    """containerd still runs them, and starts no pod."""
    host.install(host.package("26.1.0"))
    os.rename(installation.HOME, str(host.directory / "away"))
    removal = engine.Removal()
    assert removal.examine()
    removal.apply()
    assert host.config.read_text() == CONFIG and host.running == ("runc", "")
