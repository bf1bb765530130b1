# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each Kubernetes distribution as it is on a host: units, processes, programs, sockets."""

from __future__ import annotations

import contextlib
import pathlib
import tempfile

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import containerd_runtime
from ansible_collections.npuops.ascend.plugins.module_utils._driver import staging
from ansible_collections.npuops.ascend.plugins.module_utils._host import distributions
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._inspect import facts as host_facts
from ansible_collections.npuops.ascend.plugins.module_utils._kubelet import kubelet_runtime

from support.host.fake_host import add_process, listening

VERSION = "#!/bin/sh\necho 'containerd github.com/containerd/containerd v1.7.23-k3s2 x'\n"

# The processes of a unit of the kubelet, with the programs that they are.
LAYOUTS = {
    "k3s": {
        "unit": "k3s-agent.service",
        "main": ["/var/lib/rancher/k3s/data/8ab3/bin/k3s", "agent"],
        "containerd": [
            "/var/lib/rancher/k3s/data/8ab3/bin/containerd",
            "-c",
            "/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
            "-a",
            "/run/k3s/containerd/containerd.sock",
            "--state",
            "/run/k3s/containerd",
            "--root",
            "/var/lib/rancher/k3s/agent/containerd",
        ],
        "ctr": "/var/lib/rancher/k3s/data/8ab3/bin/ctr",
        "expected": {
            "address": "/run/k3s/containerd/containerd.sock",
            "ctr": "/var/lib/rancher/k3s/data/8ab3/bin/ctr",
            "config_path": "/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
            "kubelet_dir": "/var/lib/kubelet",
        },
    },
    "rke2": {
        "unit": "rke2-server.service",
        "main": ["/usr/local/bin/rke2", "server"],
        "containerd": [
            "/var/lib/rancher/rke2/data/v1.31.4-rke2r1-9ccd/bin/containerd",
            "-c",
            "/var/lib/rancher/rke2/agent/etc/containerd/config.toml",
        ],
        "kubelet": ["/var/lib/rancher/rke2/data/v1.31.4-rke2r1-9ccd/bin/kubelet", "--config-dir=/x"],
        "ctr": "/var/lib/rancher/rke2/data/v1.31.4-rke2r1-9ccd/bin/ctr",
        "expected": {
            "address": "/run/k3s/containerd/containerd.sock",
            "ctr": "/var/lib/rancher/rke2/data/v1.31.4-rke2r1-9ccd/bin/ctr",
            "config_path": "/var/lib/rancher/rke2/agent/etc/containerd/config.toml",
            "kubelet_dir": "/var/lib/kubelet",
        },
    },
    "k0s": {
        "unit": "k0sworker.service",
        "main": ["/usr/local/bin/k0s", "worker"],
        "containerd": [
            "/var/lib/k0s/bin/containerd",
            "--root=/var/lib/k0s/containerd",
            "--state=/run/k0s/containerd",
            "--address=/run/k0s/containerd.sock",
            "--log-level=info",
            "--config=/etc/k0s/containerd.toml",
        ],
        "kubelet": ["/var/lib/k0s/bin/kubelet", "--root-dir=/var/lib/k0s/kubelet", "--config=/var/lib/k0s/kubelet-config.yaml"],
        "ctr": "/usr/local/bin/k0s",
        "expected": {
            "address": "/run/k0s/containerd.sock",
            "ctr": "/usr/local/bin/k0s ctr",
            "config_path": "/etc/k0s/containerd.toml",
            "kubelet_dir": "/var/lib/k0s/kubelet",
        },
    },
    "microk8s": {
        "unit": "snap.microk8s.daemon-kubelite.service",
        "containerd_unit": "snap.microk8s.daemon-containerd.service",
        "main": ["/snap/microk8s/7394/kubelite", "--kubelet-args-file=/var/snap/microk8s/7394/args/kubelet"],
        "containerd": [
            "/snap/microk8s/7394/bin/containerd",
            "--config",
            "/var/snap/microk8s/7394/args/containerd.toml",
            "--root",
            "/var/snap/microk8s/common/var/lib/containerd",
            "--state",
            "/var/snap/microk8s/common/run/containerd",
            "--address",
            "/var/snap/microk8s/common/run/containerd.sock",
        ],
        "ctr": "/snap/microk8s/7394/bin/ctr",
        "expected": {
            "address": "/var/snap/microk8s/common/run/containerd.sock",
            "ctr": "/snap/microk8s/7394/bin/ctr",
            "config_path": "/var/snap/microk8s/7394/args/containerd.toml",
            "kubelet_dir": "/var/snap/microk8s/common/var/lib/kubelet",
        },
    },
    "containerd": {
        "unit": "kubelet.service",
        "containerd_unit": "containerd.service",
        "main": ["/usr/bin/kubelet", "--config=/var/lib/kubelet/config.yaml"],
        "containerd": ["/usr/bin/containerd"],
        "ctr": "/usr/bin/ctr",
        "expected": {
            "address": "/run/containerd/containerd.sock",
            "ctr": "/usr/bin/ctr",
            "config_path": "/etc/containerd/config.toml",
            "kubelet_dir": "/var/lib/kubelet",
        },
    },
}


class Machine:
    """A / with the processes of distributions; systemctl says that their units run."""

    def __init__(self, fake, stack, directory):
        self.fake = fake
        self.stack = stack
        self.fs = directory
        self.units = {}

    def add(self, name):
        """This distribution runs; returns the ID of its containerd, which is this process."""
        layout = LAYOUTS[name]
        self.program(layout["containerd"][0])
        self.program(layout["ctr"])
        pid = 100 + len(self.units)
        self.units[layout["unit"]] = pid
        add_process(self.fs, pid, pathlib.Path(layout["main"][0]).name, *layout["main"])
        if "kubelet" in layout:
            add_process(self.fs, pid + 50, "kubelet", *layout["kubelet"])
        address = layout["expected"]["address"]
        containerd = self.stack.enter_context(listening(self.fs + address))
        unit = layout.get("containerd_unit", layout["unit"])
        with contextlib.suppress(FileExistsError):  # that of another distribution, for which one process of the machine stands
            add_process(self.fs, containerd, "containerd", *layout["containerd"], cgroup="0::/system.slice/%s\n" % unit)
        self.tell()
        return containerd

    def program(self, path):
        self.fake.program(self.fs + path, VERSION)

    def tell(self, containerd=None):
        """``containerd``: the main process of containerd.service."""
        kubelets = ["kubelet.service"] + [unit for one in distributions.EMBEDDING for unit in one.units]
        self.fake.set("show", "\n\n".join("MainPID=%d" % self.units.get(unit, 0) for unit in kubelets))
        if containerd:
            self.fake.set(
                "show-containerd", "MainPID=%d\nLoadState=loaded\nExecStart={ argv[]=/usr/bin/containerd ; }\n" % containerd
            )


@pytest.fixture
def machine(host):
    with contextlib.ExitStack() as stack, tempfile.TemporaryDirectory(prefix="npu") as directory:  # a socket's path must be short
        yield Machine(host, stack, directory)


@pytest.mark.parametrize("name", sorted(LAYOUTS))
def test_facts(machine, name):
    machine.add(name)
    expected = dict(LAYOUTS[name]["expected"], name=name, version="1.7.23-k3s2", conflict=None, control_plane=name == "rke2")
    expected.update(kubelet=True, ascend_docker_runtime=[], mode="cdi")
    assert kubelet_runtime.runtime_facts(machine.fs) == expected


@pytest.mark.parametrize("name", sorted(LAYOUTS))
def test_beside_docker_and_its_containerd(machine, name):
    """Docker's containerd listens where that of kubeadm would."""
    machine.add(name)
    for path in ("/run/docker.sock", "/run/containerd/containerd.sock"):
        if not pathlib.Path(machine.fs + path).exists():
            machine.stack.enter_context(listening(machine.fs + path))
    runtime = kubelet_runtime.runtime_facts(machine.fs)
    assert (runtime["name"], runtime["address"]) == (name, LAYOUTS[name]["expected"]["address"])


@pytest.mark.parametrize("name", sorted(LAYOUTS))
def test_daemon(machine, name):
    pid = machine.add(name)
    daemon = containerd_runtime.find(machine.fs)
    layout = LAYOUTS[name]
    assert (daemon.pid, daemon.kind, daemon.config) == (pid, name, layout["expected"]["config_path"])
    assert daemon.unit == layout.get("containerd_unit", layout["unit"])


@pytest.mark.parametrize("name", sorted(LAYOUTS))
def test_driver_images_are_pulled_with_the_same_containerd(machine, name, monkeypatch):
    machine.add(name)
    find = kubelet_runtime.containerd_access
    monkeypatch.setattr(kubelet_runtime, "containerd_access", lambda: find(machine.fs))
    containerd = staging.Stager("registry.example.com/driver:1")._containerd()
    expected = LAYOUTS[name]["expected"]
    assert containerd.address == expected["address"]
    assert containerd._ctr == expected["ctr"].split()


def test_the_socket_of_a_proxy_is_not_used_for_images(machine, monkeypatch):
    """It serves the CRI alone; containerd's own socket is another one."""
    machine.add("containerd")
    process = kubelet_runtime.host_process.containerd("/run/containerd/containerd.sock", machine.fs)
    monkeypatch.setattr(kubelet_runtime.host_process, "peer", lambda address: 1)
    monkeypatch.setattr(kubelet_runtime.host_process, "containerd", lambda address, fs="": process)
    assert kubelet_runtime.containerd_access(machine.fs) == (None, ["/usr/bin/ctr"])


@pytest.mark.parametrize("first, second", [("k3s", "microk8s"), ("containerd", "k0s")])
def test_two_at_once_are_refused(machine, first, second):
    machine.add(first)
    machine.add(second)
    conflict = kubelet_runtime.runtime_facts(machine.fs)["conflict"]
    for name in (first, second):
        assert "%s (%s)" % (distributions.named(name).title, LAYOUTS[name]["unit"]) in conflict
    with pytest.raises(NpuError) as caught:
        containerd_runtime.find(machine.fs)
    assert caught.value.message == conflict
    with pytest.raises(NpuError, match="Stop and disable"):
        kubelet_runtime.containerd_access(machine.fs)
    machine.fake.fs = machine.fs
    machine.fake.function("0000:c1:00.0")
    assert conflict in host_facts.gather(fs=machine.fs)["problems"]


@pytest.mark.parametrize("name", ["k3s", "rke2", "k0s"])
def test_one_that_does_not_run_is_not_taken_for_dockers(machine, name):
    """Its unit is up, but its containerd is not; Docker's containerd.service is."""
    layout = LAYOUTS[name]
    machine.units[layout["unit"]] = 100
    add_process(machine.fs, 100, name, *layout["main"])
    add_process(machine.fs, 300, "containerd", "/usr/bin/containerd")
    machine.program("/usr/bin/containerd")
    left = pathlib.Path(machine.fs + layout["expected"]["address"])
    left.parent.mkdir(parents=True)
    left.touch()
    machine.tell(containerd=300)
    assert kubelet_runtime.runtime_facts(machine.fs)["name"] in (name, "k3s")
    with pytest.raises(NpuError, match="The containerd of .* does not run on this host: no process listens on /run/"):
        containerd_runtime.find(machine.fs)


def test_a_program_that_others_can_change_is_not_replaced_by_dockers(machine):
    machine.add("k3s")
    machine.program("/usr/bin/containerd")
    pathlib.Path(machine.fs + LAYOUTS["k3s"]["containerd"][0]).chmod(0o777)
    runtime = kubelet_runtime.runtime_facts(machine.fs)
    assert (runtime["name"], runtime["version"], runtime["ctr"]) == ("k3s", None, None)


def test_what_was_left_of_another_does_not_count(machine):
    """k3s was installed before: its files, and a socket on which no process listens, are left."""
    machine.add("k0s")
    left = pathlib.Path(machine.fs, "run/k3s/containerd/containerd.sock")
    left.parent.mkdir(parents=True)
    left.touch()
    pathlib.Path(machine.fs, "var/lib/rancher/rke2/agent").mkdir(parents=True)
    runtime = kubelet_runtime.runtime_facts(machine.fs)
    assert (runtime["name"], runtime["conflict"]) == ("k0s", None)


@pytest.mark.parametrize("unit, restarts", [("k3s.service", True), ("k3s-agent.service", False), ("containerd.service", False)])
def test_units_of_the_control_plane(unit, restarts):
    assert distributions.restarts_control_plane(unit) is restarts
