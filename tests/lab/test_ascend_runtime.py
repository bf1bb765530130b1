# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host with a driver package and Huawei's ascend-docker-runtime gives its chips to containers by that runtime: what is refused, a
second run, to CDI and back beside a pod that does not notice, and uninstall. Then the same with a runtime that install has installed from
its package. One story in the order of its tests. The molecule scenario runtime runs it."""

from __future__ import annotations

import re

import pytest

from support.lab.ascend_runtime import BASE_LIST, CONFIG, HOME, PROGRAM, AscendRuntime, Package
from support.lab.own_driver import KEPT, own_driver
from support.lab.workloads import A2, Team

NODE = "npu-b"
LIMIT = f"--limit={NODE}"
ASCEND = dict(KEPT, npu_runtime_mode="ascend")
MODE = "/var/lib/npuops/device-plugins/runtime-mode"


@pytest.fixture(scope="module", name="runtime")
def fixture_runtime(lab):
    """The host with a driver and a runtime of its own, but containerd does not know of the runtime."""
    with own_driver(lab, NODE):
        found = AscendRuntime(lab, NODE)
        try:
            found.install()
            yield found
        finally:
            found.remove()


@pytest.fixture(scope="module", name="team")
def fixture_team(lab, runtime):
    with Team(lab, "ascend-runtime") as team:
        yield team


def install(lab, *arguments: str, **variables: object) -> list[str]:
    """How much each host has changed."""
    shown = lab.playbook("install", LIMIT, *arguments, **variables).stdout
    return re.findall(r"^\S+ +: ok=\d+ +changed=(\d+)", shown, re.MULTILINE)


def refused(lab, **variables: object) -> str:
    result = lab.playbook("install", LIMIT, check=False, **variables)
    assert result.returncode != 0 and "Nothing was changed" in result.stdout, result.stdout
    assert not lab.ssh(NODE, f"ls -d {MODE} /etc/cdi/huawei.com-npu.json", check=False).stdout
    return " ".join(result.stdout.split())


def seen(lab, team: Team, name: str) -> tuple:
    """Of the pod: its UID, restarts, chips, the variable, and what it finds of the driver."""
    (pod,) = team.pods(name)
    # The runtime leaves that variable to the image, at least for what kubectl exec starts.
    libraries = "/usr/local/Ascend/driver/lib64/common:/usr/local/Ascend/driver/lib64/driver"
    script = (
        'ls /dev; echo "variable=$ASCEND_VISIBLE_DEVICES"; ls /usr/local/Ascend/driver/lib64;'
        f"LD_LIBRARY_PATH={libraries} npu-smi info | grep -c 910B"
    )
    shown = lab.kubectl("exec", "-n", team.name, pod["metadata"]["name"], "--", "sh", "-c", script)
    restarts = [status["restartCount"] for status in pod["status"]["containerStatuses"]]
    assert "common\n" in shown and "driver\n" in shown and "davinci_manager\n" in shown, shown
    chips = sorted(int(chip) for chip in re.findall(r"^davinci(\d+)$", shown, re.MULTILINE))
    assert shown.endswith(f"\n{len(chips)}\n"), shown
    return pod["metadata"]["uid"], restarts, chips, re.findall(r"^variable=(.*)$", shown, re.MULTILINE)[0]


def test_what_is_missing_is_named_before_anything_is_changed(lab, runtime):
    assert "needs npu_driver_source: preinstalled" in refused(lab, npu_runtime_mode="ascend")
    assert "default runtime is runc (runc), not ascend-docker-runtime" in refused(lab, **ASCEND)
    runtime.register()
    assert "containerd has not been restarted since its configuration changed" in refused(lab, **ASCEND)
    runtime.restart_containerd()
    lab.ssh(NODE, f"mv {BASE_LIST} {BASE_LIST}.away")
    assert f"{BASE_LIST}, the list of files for containers, cannot be read" in refused(lab, **ASCEND)
    lab.ssh(NODE, f"mv {BASE_LIST}.away {BASE_LIST}; chmod o+w {PROGRAM}")
    assert "only root may change what containerd runs" in refused(lab, **ASCEND)
    lab.ssh(NODE, f"chmod o-w {PROGRAM}")


def test_install_check_mode_and_a_second_run(lab, runtime):
    assert install(lab, "--check", "--diff", **ASCEND) != ["0"]
    assert not lab.ssh(NODE, f"ls -d {MODE}", check=False).stdout
    config = lab.ssh(NODE, "cat /etc/containerd/config.toml; systemctl show -p ActiveEnterTimestamp containerd").stdout
    install(lab, **ASCEND)
    assert install(lab, **ASCEND) == ["0"]
    assert lab.ssh(NODE, f"cat {MODE}; ls /etc/cdi", check=False).stdout == "ascend\n"
    assert lab.ssh(NODE, "cat /etc/containerd/config.toml; systemctl show -p ActiveEnterTimestamp containerd").stdout == config
    status = lab.playbook("status", LIMIT, **ASCEND).stdout
    assert re.search(rf"{NODE} +8 x 910B +preinstalled +25\.5\.0 +\S+ +ascend +running +running +8 {A2} +ready", status), status


def test_a_pod_gets_its_chips_by_the_runtime(lab, team):
    team.deploy("train", node=NODE, chips={A2: 2})
    _uid, _restarts, chips, variable = seen(lab, team, "train")
    assert len(chips) == 2 and variable == ",".join(map(str, chips))


def test_to_cdi_and_back_beside_a_pod(lab, team):
    """The device plugin, which the runtime has started, names the chips in the variable all the time."""
    before = seen(lab, team, "train")
    install(lab, **KEPT)
    assert install(lab, **KEPT) == ["0"]
    team.deploy("by-cdi", node=NODE, chips={A2: 1})
    _uid, _restarts, chips, variable = seen(lab, team, "by-cdi")
    assert len(chips) == 1 and variable == "" and not set(chips) & set(before[2])
    install(lab, **ASCEND)
    assert install(lab, **ASCEND) == ["0"]
    team.deploy("again", node=NODE, chips={A2: 1})
    assert len(seen(lab, team, "again")[2]) == 1
    assert seen(lab, team, "train") == before


def plugin(lab) -> str | None:
    """UID of the device plugin's pod, if it is ready."""
    pods = lab.pods("npu-operator", labelSelector="name=ascend-device-plugin-ds")
    ready = [pod for pod in pods if all(status["ready"] for status in pod["status"].get("containerStatuses") or [{"ready": False}])]
    return ready[0]["metadata"]["uid"] if len(pods) == len(ready) == 1 else None


def set_default_runtime(runtime: AscendRuntime, name: str) -> None:
    runtime.lab.ssh(NODE, f"sed -i 's/default_runtime_name = .*/default_runtime_name = \"{name}\"/' /etc/containerd/config.toml")
    runtime.restart_containerd()


def test_a_plugin_that_the_runtime_has_not_started(lab, runtime, team):
    """It lists device nodes. What pods get is the same."""
    set_default_runtime(runtime, "runc")
    before = plugin(lab)
    lab.kubectl("delete", "pod", "-n", "npu-operator", "-l", "name=ascend-device-plugin-ds")
    lab.wait_for(lambda: plugin(lab) not in (None, before), 120, "another pod of the device plugin")
    set_default_runtime(runtime, "ascend")
    lab.wait_for(lambda: lab.node(NODE)["status"]["allocatable"].get(A2) == "8", 120, "the plugin offers the chips again")
    team.deploy("translated", node=NODE, chips={A2: 1})
    _uid, _restarts, chips, variable = seen(lab, team, "translated")
    assert [str(chip) for chip in chips] == [variable]


def test_validate_names_a_runtime_that_is_gone(lab, runtime):
    lab.ssh(NODE, f"mv {PROGRAM} {PROGRAM}.away")
    try:
        result = lab.playbook("validate", LIMIT, check=False, **ASCEND)
        assert result.returncode != 0 and f"there is no program {PROGRAM}" in " ".join(result.stdout.split()), result.stdout
    finally:
        lab.ssh(NODE, f"mv {PROGRAM}.away {PROGRAM}")


def test_uninstall_leaves_the_runtime(lab, runtime, team):
    team.remove()
    lab.playbook("uninstall", LIMIT, **ASCEND)
    assert not lab.ssh(NODE, "ls -d /var/lib/npuops /etc/cdi/huawei.com-npu.json", check=False).stdout
    assert lab.ssh(NODE, f"ls {PROGRAM}; grep -c BinaryName /etc/containerd/config.toml").stdout == f"{PROGRAM}\n1\n"


# --- from its package ---

CONTAINERD = f"cat {CONFIG}; systemctl show -p ActiveEnterTimestamp containerd"
# What an installation leaves on the host.
TRACES = f"ls -d {HOME} {BASE_LIST} /usr/local/Ascend/.npuops* {CONFIG}.npuops* /run/npuops-trial-*; grep npuops {CONFIG}"


@pytest.fixture(scope="module", name="package")
def fixture_package(lab, runtime, tmp_path_factory):
    """Call it with a version, and perhaps with another program: the variables of a host that is to get it."""
    try:
        yield Package(tmp_path_factory.mktemp("packages"), ASCEND)
    finally:
        # A test that failed may have left containerd with a runtime that is taken away next.
        lab.module(NODE, "ascend_docker_runtime_package", state="absent", force=True)


@pytest.fixture(scope="module", name="crew")
def fixture_crew(lab, package):
    with Team(lab, "ascend-package") as team:
        yield team


def failed(lab, **variables: object) -> str:
    result = lab.playbook("install", LIMIT, check=False, **variables)
    assert result.returncode != 0, result.stdout
    return " ".join(result.stdout.split())


def traces(lab) -> str:
    return lab.ssh(NODE, TRACES, check=False).stdout


def version(lab) -> str:
    return lab.ssh(NODE, f"sed -n s/^version=v//p {HOME}/ascend_docker_runtime_install.info").stdout.strip()


def test_a_runtime_of_somebody_else_is_not_replaced(lab, runtime, package):
    assert "npuops.ascend has not installed it. Unset npu_runtime_package" in refused(lab, **package("26.1.0"))
    runtime.remove()
    assert "set npu_runtime_mode: ascend, or unset npu_runtime_package" in refused(
        lab, **dict(package("26.1.0"), npu_runtime_mode="cdi")
    )
    assert "npu_mindcluster_version_line is 26.1. It is a part of MindCluster" in refused(lab, **package("7.3.0"))
    lab.ssh(NODE, f"sed -i 's/default_runtime_name = .*/default_runtime_name = \"other\"/' {CONFIG}")
    lab.ssh(NODE, f"sed -i 's/runtimes.runc\\b/runtimes.other/' {CONFIG}")
    assert "Make runc the default runtime" in refused(lab, **package("26.1.0"))
    lab.ssh(
        NODE, f"sed -i 's/runtimes.other\\b/runtimes.runc/; s/default_runtime_name = .*/default_runtime_name = \"runc\"/' {CONFIG}"
    )


def test_nothing_of_a_package_that_cannot_be_used_stays(lab, package):
    before = lab.ssh(NODE, CONTAINERD).stdout
    wrong = dict(package("26.1.0"), npu_runtime_package_sha256="0" * 64)
    assert "it is another file, or npu_runtime_package_sha256 is wrong" in failed(lab, **wrong)
    broken = failed(lab, **package("26.1.9", b"#!/bin/sh\necho broken >&2\nexit 3\n"))
    assert "does not create a container with a chip on this host: it fails (exit status 3): broken" in broken
    assert install(lab, "--check", "--diff", **package("26.1.0")) != ["0"]
    assert traces(lab) == "" and lab.ssh(NODE, CONTAINERD).stdout == before


def test_installed_from_its_package(lab, package, crew):
    install(lab, **package("26.1.0"))
    assert install(lab, **package("26.1.0")) == ["0"]
    assert version(lab) == "26.1.0" and lab.ssh(NODE, f"cat {MODE}").stdout == "ascend\n"
    crew.deploy("train", node=NODE, chips={A2: 2})
    _uid, _restarts, chips, variable = seen(lab, crew, "train")
    assert len(chips) == 2 and variable == ",".join(map(str, chips))


def test_another_version_beside_a_pod(lab, package, crew):
    """One that starts no container changes nothing. A good one takes the place of the old one, and containerd does not restart."""
    before, containerd = seen(lab, crew, "train"), lab.ssh(NODE, CONTAINERD).stdout
    assert "exit status 3" in failed(lab, **package("26.1.9", b"#!/bin/sh\nexit 3\n"))
    assert version(lab) == "26.1.0" and install(lab, **package("26.1.0")) == ["0"]
    install(lab, **package("26.1.1"))
    assert install(lab, **package("26.1.1")) == ["0"]
    assert version(lab) == "26.1.1" and lab.ssh(NODE, CONTAINERD).stdout == containerd
    crew.deploy("later", node=NODE, chips={A2: 1})
    assert len(seen(lab, crew, "later")[2]) == 1 and seen(lab, crew, "train") == before
    # What the old version has started ends by the new one.
    lab.kubectl("delete", "deployment", "-n", crew.name, "later", "train", "--wait")
    lab.wait_for(lambda: not lab.pods(crew.name), 120, "the pods have ended")


def test_a_file_that_somebody_changed(lab, package):
    lab.ssh(NODE, f"echo '# changed' >>{HOME}/ascend-docker-cli")
    result = lab.playbook("validate", LIMIT, check=False, **package("26.1.1"))
    assert result.returncode != 0 and f"{HOME}/ascend-docker-cli is not as npuops.ascend installed it" in " ".join(
        result.stdout.split()
    )
    assert install(lab, **package("26.1.1")) != ["0"]
    lab.playbook("validate", LIMIT, **package("26.1.1"))


def test_to_cdi_only_when_no_pod_needs_the_runtime(lab, package, crew):
    crew.deploy("long", node=NODE, chips={A2: 1})
    before = seen(lab, crew, "long")
    result = lab.playbook("install", LIMIT, **KEPT)
    shown = " ".join((result.stdout + result.stderr).split())
    assert "stays containerd's default runtime, because containers have chips by it (" in shown
    assert seen(lab, crew, "long") == before and "npuops.ascend: was" in traces(lab)
    crew.remove()
    install(lab, **KEPT)
    assert install(lab, **KEPT) == ["0"]
    assert lab.ssh(NODE, f"grep default_runtime_name {CONFIG}").stdout.split() == ["default_runtime_name", "=", '"runc"']


def test_uninstall_removes_what_install_installed(lab, runtime, package):
    install(lab, **package("26.1.1"))
    lab.playbook("uninstall", LIMIT, **package("26.1.1"))
    assert traces(lab) == ""
    assert not lab.ssh(NODE, "ls -d /var/lib/npuops /etc/cdi/huawei.com-npu.json", check=False).stdout
