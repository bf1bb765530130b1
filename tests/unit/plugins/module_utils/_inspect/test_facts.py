# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import tempfile

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._chips import chip_memory
from ansible_collections.npuops.ascend.plugins.module_utils._inspect import facts as host_facts
from ansible_collections.npuops.ascend.plugins.module_utils._runtime import ascend_docker_runtime

from support.host import mounted
from support.host.fake_host import KERNEL, add_process, listening

CONTAINERD = """#!/bin/sh
echo "containerd $*" >>"$FAKE/calls"
echo "containerd github.com/containerd/containerd/v2 v2.1.9 abcdef"
"""


def gather(host, **options):
    return host_facts.gather(fs=host.fs, **options)


def process(host, pid, name, *argv, **facts):
    add_process(host.fs, pid, name, *argv, **facts)


def socket(host, path):
    host.write(path, "")


def tree_of(host):
    """Everything below the host's root, to see that nothing changed."""
    return sorted((directory, sorted(names), sorted(files)) for directory, names, files in os.walk(host.fs))


def test_host_with_chips(host):
    host.chips(8)
    host.function("0000:00:01.0", vendor="0x8086", device_class="0x060400")
    before = tree_of(host)
    facts = gather(host)
    assert facts["chip_count"] == 8 and len(facts["chips"]) == 8
    assert facts["chips"][0] == {
        "pci_address": "0000:c0:00.0",
        "device_id": "d802",
        "subsystem_device_id": "3003",
        "chips": 1,
    }
    assert facts["family"] == {
        "name": "910B",
        "key": "910b",
        "resource": "huawei.com/Ascend910",
        "accelerator": "huawei-Ascend910",
    }
    assert facts["boot_id"] == "boot-1"
    assert facts["kernel"] == KERNEL
    assert facts["os"]["id"] == "openEuler"
    assert facts["os_key"] == "oe2403sp3"
    assert facts["problems"] == []
    assert facts["disk"]["free_bytes"] > 0 and facts["disk"]["path"] == "/"
    assert tree_of(host) == before


@pytest.mark.parametrize(
    ("files", "version"),
    [
        (["cgroup.controllers", "cpu.stat"], 2),
        (["memory/tasks", "cpu/tasks"], 1),
        (["memory/tasks", "unified/cgroup.controllers"], 1),  # hybrid: what the kubelet manages is v1
        ([], None),
    ],
)
def test_cgroup_version(host, files, version):
    for file in files:
        host.write("sys/fs/cgroup/" + file, "")
    assert gather(host)["cgroup_version"] == version


def test_host_without_chips_has_no_problems(host):
    shutil.rmtree(host.fs + "/run/systemd")
    host.write("usr/local/Ascend/driver/version.info", "Version=24.1.0\n")
    facts = gather(host)
    assert facts["chip_count"] == 0 and facts["family"] is None and facts["problems"] == []


def test_the_chips_that_a_host_without_any_had(host):
    assert (gather(host)["chips_before"]["count"], gather(host)["chips_before"]["gone"]) == (0, [])
    chip_memory.write({"0000:01:00.0": 2, "0000:02:00.0": 2}, host.fs + chip_memory.PATH)
    facts = gather(host)
    assert (facts["chip_count"], facts["problems"]) == (0, [])
    assert (facts["chips_before"]["count"], facts["chips_before"]["gone"]) == (4, ["0000:01:00.0", "0000:02:00.0"])


def test_accelerators_that_are_no_chips_are_no_problem(host):
    host.kunpeng()
    assert gather(host)["notes"] == []
    host.function("0000:01:00.0", device="0xd9ff")
    facts = gather(host)
    assert (facts["chip_count"], facts["chips"], facts["family"], facts["problems"]) == (0, [], None, [])
    assert len(facts["notes"]) == 1 and "19e5:d9ff (0000:01:00.0)" in facts["notes"][0]


def test_two_families_are_a_problem(host):
    host.function("0000:01:00.0", device="0xd802")
    host.function("0000:81:00.0", device="0xd500")
    facts = gather(host)
    assert facts["family"] is None and facts["chip_count"] == 2
    assert "0000:01:00.0" in facts["problems"][0] and "0000:81:00.0" in facts["problems"][0]


def test_without_systemd(host):
    host.chips(1)
    shutil.rmtree(host.fs + "/run/systemd")
    assert any("systemd" in problem for problem in gather(host)["problems"])


@pytest.mark.parametrize("option, text", [("noexec", "mounted noexec"), ("ro", "mounted read-only")])
def test_mount_that_no_driver_can_be_on(host, option, text):
    host.chips(1)
    place = host.fs + "/var/lib/Ascend"
    os.makedirs(place)
    program = (
        "from ansible_collections.npuops.ascend.plugins.module_utils._inspect import facts\nprint(facts.gather(fs=%r)['problems'])"
    ) % host.fs
    assert text in mounted.output_of(["-t", "tmpfs", "-o", option, "none", place], program)
    assert gather(host)["problems"] == []


# --- the driver ---


def test_a_release_that_lost_a_file_is_not_complete(host):
    """Install then stages it, which says what is wrong."""
    name = host.release("a")
    host.link("driver", name)
    manifest = {"version": "25.5.0", "files": {"lib64/driver/libdcmi.so": "sum"}, "sizes": {"lib64/driver/libdcmi.so": 0}}
    host.write("var/lib/Ascend/releases/%s/manifest.json" % name, json.dumps(manifest))
    assert gather(host)["driver"]["complete"] is True
    os.unlink(os.path.join(host.fs, "var/lib/Ascend/releases", name, "driver/lib64/driver/libdcmi.so"))
    assert gather(host)["driver"]["complete"] is False


def test_driver_of_ours(host):
    host.chips(2)
    name = host.release("a")
    host.link("driver", name)
    host.link("good", name)
    host.write("sys/module/drv_pcie_host/initstate", "live\n")
    host.write("sys/module/drv_pcie_host/version", "25.5.0\n")
    host.write("run/npuops/driver-loading", name + "\n")
    host.write("run/npuops/driver-ready", '{"boot_id": "boot-1", "release": "%s"}' % name)
    host.write("run/npuops/driver-failed", '{"boot_id": "boot-0", "reason": "old"}')
    driver = gather(host)["driver"]
    assert driver == {
        "root": "/var/lib/Ascend",
        "managed": True,
        "package": None,
        "tree": "/var/lib/Ascend/driver",
        "version": "25.5.0",
        "release": name,
        "complete": True,
        "good": name,
        "next": None,
        "loaded": True,
        "loaded_release": name,
        "loaded_version": "25.5.0",
        "ready": {"boot_id": "boot-1", "release": name},
        "failed": None,
        "problem": None,
    }


@pytest.mark.parametrize("text", ["", "{", "[]", '{"boot_id": "boot-0"}'])
def test_marker_that_does_not_count(host, text):
    host.write("run/npuops/driver-ready", text)
    assert gather(host)["driver"]["ready"] is None


@pytest.mark.parametrize("path", ["/usr/local/Ascend", "/opt/ascend"])
def test_package_host_does_not_go_to_images(host, path):
    host.chips(1)
    host.write("etc/ascend_install.info", "UserName=HwHiAiUser\nDriver_Install_Path_Param=%s\n" % path)
    host.write(path + "/driver/version.info", "Version=24.1.0\n")
    facts = gather(host)
    assert facts["driver"]["package"] == path
    assert path in facts["problems"][0] and "preinstalled" in facts["problems"][0]
    assert gather(host, source="preinstalled")["driver"]["problem"] is None


def test_autoloading_modules_are_a_package_too(host):
    host.chips(1)
    host.write("lib/modules/%s/updates/drv_pcie_host.ko.xz" % KERNEL, "")
    assert "/lib/modules/" in gather(host)["problems"][0]


def test_our_own_entry_is_no_package(host):
    host.chips(1)
    host.link("driver", host.release("a"))
    host.write("etc/ascend_install.info", "Driver_Install_Path_Param=/var/lib/Ascend\n")
    os.makedirs(host.fs + "/usr/local")
    os.symlink("../../var/lib/Ascend", host.fs + "/usr/local/Ascend")
    facts = gather(host)
    assert facts["driver"]["package"] is None and facts["problems"] == []


def test_foreign_driver_is_loaded(host):
    host.chips(1)
    host.write("sys/module/drv_pcie_hdc_host/initstate", "live\n")
    host.write("sys/module/drv_pcie_hdc_host/version", "24.1.0\n")
    facts = gather(host)
    assert facts["driver"]["loaded_version"] == "24.1.0"
    assert "24.1.0" in facts["problems"][0]


@pytest.mark.parametrize("root", ["/var/lib/Ascend", "/usr/local/Ascend", "/opt/npu"])
def test_preinstalled_tree_is_found(host, root):
    host.chips(1)
    host.write(root + "/driver/version.info", "Version=24.1.0\n")
    driver = gather(host, source="preinstalled", root="/opt/npu")["driver"]
    assert (driver["root"], driver["tree"], driver["version"]) == (root, root + "/driver", "24.1.0")
    assert driver["problem"] is None


def test_preinstalled_without_a_driver(host):
    host.chips(1)
    assert "contains a driver" in gather(host, source="preinstalled")["problems"][0]


def test_firmware(host):
    assert gather(host)["firmware_version"] is None
    host.write("usr/local/Ascend/firmware/version.info", "Version=7.7.0.1.231\n")
    assert gather(host)["firmware_version"] == "7.7.0.1.231"


# --- the container runtime ---


def test_containerd_of_the_kubelet(host):
    endpoint = "--container-runtime-endpoint=unix:///run/containerd/containerd.sock"
    process(host, 10, "kubelet", "/usr/bin/kubelet", endpoint)
    process(host, 11, "containerd", "/opt/c/bin/containerd", "--config", "/etc/c/config.toml")
    host.set("show", "MainPID=0\nId=containerd.service\n")
    for name in ("containerd", "ctr"):
        host.program(host.fs + "/opt/c/bin/" + name, CONTAINERD)
    assert gather(host)["runtime"]["version"] is None, "by its name it is nothing"
    host.set("show", "MainPID=11\nId=containerd.service\n")
    host.forget_calls()
    assert gather(host)["runtime"] == {
        "name": "containerd",
        "version": "2.1.9",
        "address": "/run/containerd/containerd.sock",
        "ctr": "/opt/c/bin/ctr",
        "config_path": "/etc/c/config.toml",
        "kubelet": True,
        "control_plane": False,
        "kubelet_dir": "/var/lib/kubelet",
        "conflict": None,
        "ascend_docker_runtime": [],
        "mode": "cdi",
    }
    assert [call for call in host.calls if not call.startswith("systemctl show")] == ["containerd --version"]


@pytest.mark.parametrize("facts", [{"uid": 1000}, {"namespace": "pid:[2]"}])
def test_a_kubelet_that_is_not_the_hosts_counts_for_nothing(host, facts):
    process(host, 10, "kubelet", "/usr/bin/kubelet", "--container-runtime-endpoint=unix:///run/user/x.sock", **facts)
    assert gather(host)["runtime"]["name"] == "none"


def test_kubelet_of_a_unit_and_one_in_k3s(host):
    process(host, 10, "hyperkube", "/usr/bin/hyperkube", "--container-runtime-endpoint=unix:///run/my.sock")
    host.set("show", "MainPID=10\nId=kubelet.service\n")
    assert gather(host)["runtime"]["address"] == "/run/my.sock"
    process(host, 11, "k3s-agent", "/usr/local/bin/k3s", "agent", "--container-runtime-endpoint=/run/other.sock")
    host.set("show", "MainPID=0\n\nMainPID=0\n\nMainPID=11\nId=k3s-agent.service\n")
    assert gather(host)["runtime"]["address"] == "/run/other.sock"


def test_endpoint_from_the_kubelets_configuration(host):
    process(host, 10, "kubelet", "/usr/bin/kubelet", "--config=/etc/kubelet.yaml")
    host.write("etc/kubelet.yaml", 'kind: KubeletConfiguration\ncontainerRuntimeEndpoint: "unix:///run/my.sock"\n')
    assert gather(host)["runtime"]["address"] == "/run/my.sock"


@pytest.mark.parametrize(
    "endpoint, name",
    [
        ("unix:///var/run/crio/crio.sock", "cri-o"),
        ("unix:///run/cri-dockerd.sock", "docker"),
        ("/run/k3s/containerd/containerd.sock", "k3s"),
    ],
)
def test_other_runtimes_of_the_kubelet(host, endpoint, name):
    socket(host, "run/containerd/containerd.sock")
    process(host, 10, "kubelet", "/usr/bin/kubelet", "--container-runtime-endpoint", endpoint)
    assert gather(host)["runtime"]["name"] == name


@pytest.mark.parametrize(
    "path, name",
    [
        ("run/containerd/containerd.sock", "containerd"),
        ("var/run/crio/crio.sock", "cri-o"),
        ("run/k3s/containerd/containerd.sock", "k3s"),
        ("var/run/docker.sock", "docker"),
    ],
)
def test_by_socket_without_a_kubelet(host, path, name):
    socket(host, path)
    runtime = gather(host)["runtime"]
    assert (runtime["name"], runtime["version"]) == (name, None)


@pytest.mark.parametrize("running", [False, True])
def test_rke2(host, running):
    program = "/var/lib/rancher/rke2/bin/containerd"
    host.program(host.fs + program, CONTAINERD)
    with contextlib.ExitStack() as stack:
        if running:
            short = stack.enter_context(tempfile.TemporaryDirectory(prefix="npu"))  # a socket's path must be short
            os.rename(host.fs, short + "/fs")
            host.fs = short + "/fs"
            pid = stack.enter_context(listening(host.fs + "/run/k3s/containerd/containerd.sock"))
            process(host, pid, "containerd", program, cgroup="0::/system.slice/rke2-agent.service")
        else:
            socket(host, "run/k3s/containerd/containerd.sock")
            os.makedirs(host.fs + "/var/lib/rancher/rke2/agent")
        runtime = gather(host)["runtime"]
    assert (runtime["name"], runtime["version"]) == ("rke2", "2.1.9")
    assert runtime["config_path"] == "/var/lib/rancher/rke2/agent/etc/containerd/config.toml"


def test_no_runtime(host):
    assert gather(host)["runtime"]["name"] == "none"


# --- what an upgrade asks for ---


def test_what_an_upgrade_asks_for(host):
    old, new = host.release("a"), host.release("b", version="25.5.1")
    host.link("previous", old)
    os.makedirs(host.fs + "/var/lib/Ascend/releases/25.9.9-half")
    with open("%s/var/lib/Ascend/releases/%s/driver/version.info" % (host.fs, new), "a", encoding="utf-8") as stream:
        stream.write("compatible_version_fw=[7.0.0,8.9.9]\n")
    host.write("var/lib/npuops/trial", '{"generation": 1, "release": "%s", "boot_id": "boot-1"}' % new)
    facts = host_facts.upgrade_facts(fs=host.fs)
    assert (facts["previous"], facts["trial"]) == (old, new)
    assert sorted(facts["staged"]) == sorted([old, new])
    assert facts["staged"][new]["firmware"] == ["7.0.0", "8.9.9"]
    assert facts["staged"][new]["version"] == "25.5.1"
    assert facts["staged"][old]["firmware"] is None


@pytest.mark.parametrize("text", ['{"release": "x", "boot_id": "boot-0"}', "{", "[]", ""])
def test_a_trial_of_another_boot_is_over(host, text):
    host.write("var/lib/npuops/trial", text)
    assert host_facts.upgrade_facts(fs=host.fs)["trial"] is None


@pytest.mark.parametrize(
    "content, generation",
    [
        (None, 0),
        ('{"generation": 7}\n', 7),
        ("", 0),
        ("{", 0),
        ("[]", 0),
        ("7", 0),
        ('{"generation": "7"}', 0),
        ('{"generation": null}', 0),
    ],
)
def test_the_newest_maintenance_that_has_been_at_the_host(host, content, generation):
    if content is not None:
        host.write("var/lib/npuops/maintenance", content)
    assert host_facts.upgrade_facts(fs=host.fs)["generation"] == generation


def test_whose_process_has_a_chip(host):
    os.mknod(host.fs + "/dev/davinci0", stat.S_IFCHR | 0o600, os.makedev(237, 0))
    for pid, group in ((100, "0::/kubepods.slice/kubepods-burstable.slice/x\n"), (101, "0::/user.slice\n")):
        process(host, pid, "python", "python", "train.py", cgroup=group, exe="/usr/bin/python")
        os.makedirs("%s/proc/%d/fd" % (host.fs, pid))
        os.symlink(host.fs + "/dev/davinci0", "%s/proc/%d/fd/3" % (host.fs, pid))
    holders = host_facts.upgrade_facts(fs=host.fs)["holders"]
    assert [(entry["pid"], entry["pod"]) for entry in holders] == [(100, True), (101, False)]


def test_the_next_kernel_and_its_driver(host):
    host.chips(1)
    assert gather(host)["next_kernel"] is None
    good = host.release("a")
    host.link("driver", good)
    host.link("good", good)
    os.makedirs(host.fs + "/lib/modules/9.9.9")
    host.write("boot/grub2/grub.cfg", "menuentry 'Linux' {\n\tlinux /vmlinuz-9.9.9 ro\n}\n")
    assert gather(host)["next_kernel"] == {"kernel": "9.9.9", "release": None, "symvers": None}
    host.write("boot/symvers-9.9.9.gz", "")
    assert gather(host)["next_kernel"]["symvers"] == host.fs + "/boot/symvers-9.9.9.gz"
    host.release("b", version="25.5.1", kernel="9.9.9")
    assert gather(host)["next_kernel"]["release"] is None, "of another version"
    fitting = host.release("c", kernel="9.9.9")
    assert gather(host)["next_kernel"]["release"] == fitting
    assert gather(host, source="preinstalled")["next_kernel"] is None
    host.write("boot/grub2/grub.cfg", "menuentry 'Linux' {\n\tlinux /vmlinuz-%s ro\n}\n" % KERNEL)
    assert gather(host)["next_kernel"] is None


@pytest.mark.parametrize("text, mode", [("ascend\n", "ascend"), ("cdi\n", "cdi"), ("", "cdi"), ("ascend" * 100, "cdi")])
def test_how_containers_get_their_chips(host, text, mode):
    host.write("var/lib/npuops/device-plugins/runtime-mode", text)
    assert gather(host)["runtime"]["mode"] == mode


@pytest.mark.parametrize("path", ["/etc/containerd/config.toml", "/etc/docker/daemon.json"])
def test_what_configures_ascend_docker_runtime(host, path):
    host.write(path, 'BinaryName = "/usr/local/Ascend/Ascend-Docker-Runtime/ascend-docker-runtime"\n')
    assert ascend_docker_runtime.configured("/etc/containerd/config.toml", host.fs) == [path]
    host.write(path, "x" * (1024 * 1024) + "ascend-docker-runtime")
    assert ascend_docker_runtime.configured(None, host.fs) == ascend_docker_runtime.configured("/etc", host.fs) == []
