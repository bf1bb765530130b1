# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the kubelet's CRI-O reads our CDI spec, by its files and by what its process answers on a real socket."""

from __future__ import annotations

import shutil

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import containerd_runtime
from ansible_collections.npuops.ascend.plugins.module_utils._crio import crio_runtime
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._inspect import facts as host_facts
from ansible_collections.npuops.ascend.plugins.module_utils._kubelet import kubelet_runtime
from ansible_collections.npuops.ascend.plugins.module_utils._runtime import cri

from support.host import crio as crio_host
from support.host.fake_host import add_process, listening


@pytest.fixture
def machine(host):  # the programs of that one, among them a systemctl, are on the PATH
    with crio_host.crio() as found:
        yield found


def problem(machine):
    daemon = kubelet_runtime.crio(machine.fs)
    assert daemon is not None
    return daemon.problem()


def test_as_its_packages_install_it(machine):
    machine.start()
    assert problem(machine) is None
    assert machine.requests[-1].startswith(b"GET /config HTTP/1.0\r\n")


def test_its_facts(machine):
    machine.start("--config", "/opt/crio.conf")
    assert kubelet_runtime.runtime_facts(machine.fs) == {
        "name": "cri-o",
        "version": "1.36.3",
        "address": "/var/run/crio/crio.sock",
        "ctr": None,
        "config_path": "/opt/crio.conf",
        "kubelet": True,
        "control_plane": False,
        "kubelet_dir": "/var/lib/kubelet",
        "conflict": None,
        "ascend_docker_runtime": [],
        "mode": "cdi",
    }


def test_files_without_our_directory(machine):
    machine.write("/etc/crio/crio.conf.d/20-site.conf", '[crio.runtime]\ncdi_spec_dirs = ["/var/run/cdi", "/opt/cdi"]\n')
    machine.start()
    assert problem(machine) == (
        "CRI-O does not read CDI specs from /etc/cdi: /etc/crio/crio.conf.d/20-site.conf sets cdi_spec_dirs to /var/run/cdi,"
        ' /opt/cdi. Add "/etc/cdi" to that list and restart CRI-O (systemctl restart crio.service). Then run again'
    )


def test_an_option_without_our_directory(machine):
    machine.start("--cdi-spec-dirs=/opt/cdi")
    assert "its command-line option --cdi-spec-dirs sets cdi_spec_dirs to /opt/cdi" in problem(machine)


def test_a_variable_without_our_directory(machine):
    machine.start(environment={"CONTAINER_CDI_SPEC_DIRS": ",", "HOME": "/root"})
    assert "variable CONTAINER_CDI_SPEC_DIRS sets" in problem(machine)


def test_a_process_older_than_its_files(machine):
    machine.answer = crio_host.answer("/opt/cdi")
    machine.start()
    assert problem(machine) == (
        "CRI-O reads CDI specs from /opt/cdi, because it has not been restarted since its configuration changed: restart CRI-O"
        " (systemctl restart crio.service)"
    )


def test_files_that_keep_it_from_starting(machine):
    machine.write("/etc/crio/crio.conf.d/20-site.conf", "[crio.runtime\n")
    machine.start()
    assert "its next start would fail" in problem(machine) and "20-site.conf, line 1" in problem(machine)


def test_a_process_that_does_not_run(machine):
    machine.write("/var/run/crio/crio.sock", "")
    assert "CRI-O does not respond" in problem(machine) and "systemctl status crio.service" in problem(machine)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.0 404 Not Found\r\n\r\n",
        b"HTTP/1.0 200 OK\r\n\r\n[crio.api]\n",
        b"HTTP/1.0 200 OK\r\n\r\n[crio\n",
        b"HTTP/1.0 200 OK\r\n\r\n[crio.runtime]\ncdi_spec_dirs = 7\n",
        b"HTTP/1.0 200 OK\r\n\r\n\xff" + b"[" * 5000,
        bytes(range(256)),
    ],
    ids=["nothing", "not-found", "no-list", "no-toml", "no-array", "deep", "another-protocol"],
)
def test_answers_that_are_none(machine, answer):
    machine.answer = answer
    machine.start()
    with pytest.raises(cri.CriError):
        kubelet_runtime.crio(machine.fs).running()
    assert "CRI-O does not respond" in problem(machine)


def test_an_answer_without_end(machine):
    machine.answer += b"#" * (1 << 16)
    machine.without_end = True
    machine.start()
    assert "CRI-O does not respond" in problem(machine)
    assert machine.sent < 4 << 20


def test_a_process_that_hangs(machine, monkeypatch):
    monkeypatch.setattr(crio_runtime, "_SECONDS", 0.05)
    with listening(machine.fs + crio_host.SOCKET) as pid:
        add_process(machine.fs, pid, "crio", "/usr/bin/crio")
        assert "crio.sock: timed out. Check systemctl status crio.service" in problem(machine)


def test_another_process_does_not_pose_as_it(machine):
    """A user's, or a container's."""
    machine.start(namespace="pid:[2]")
    with pytest.raises(NpuError, match="is not safe to use.*Only a crio that runs as root"):
        kubelet_runtime.crio(machine.fs)
    assert kubelet_runtime.runtime_facts(machine.fs)["version"] is None
    assert "is not safe to use" in kubelet_runtime.crio_problems(kubelet_runtime.runtime_facts(machine.fs), machine.fs)[0]


def test_another_program_on_its_socket_is_not_it(machine):
    machine.start(name="proxy")
    assert kubelet_runtime.crio(machine.fs).process is None


def test_hosts_with_chips_tell_it_before_anything_is_changed(machine, host):
    host.chips(2)
    shutil.copytree(host.fs + "/sys", machine.fs + "/sys", symlinks=True)
    shutil.copytree(host.fs + "/run/systemd", machine.fs + "/run/systemd")
    machine.start()
    ours = [text for text in host_facts.gather(source="preinstalled", fs=machine.fs)["problems"] if "CRI-O" in text]
    assert ours == []
    machine.answer = crio_host.answer()
    ours = [text for text in host_facts.gather(source="preinstalled", fs=machine.fs)["problems"] if "CRI-O" in text]
    assert len(ours) == 1 and "reads CDI specs from an empty list" in ours[0]


def test_other_runtimes_are_not_it(machine):
    machine.write("/proc/20/cmdline", "/usr/bin/kubelet\0--container-runtime-endpoint=unix:///run/containerd/containerd.sock\0")
    assert kubelet_runtime.crio(machine.fs) is None


def test_driver_images_need_containerd(machine):
    machine.start()
    with pytest.raises(NpuError, match="npu_driver_source to preinstalled"):
        kubelet_runtime.containerd_access(machine.fs)


def test_there_is_no_containerd_to_configure(machine):
    machine.start()
    with pytest.raises(NpuError, match=r"uses CRI-O \(/var/run/crio/crio.sock\)"):
        containerd_runtime.find(machine.fs)
