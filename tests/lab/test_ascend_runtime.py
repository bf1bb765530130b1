# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host with a driver package and Huawei's ascend-docker-runtime gives its chips to containers by that runtime: what is refused, a
second run, to CDI and back beside a pod that does not notice, and uninstall. One story in the order of its tests. The molecule scenario
runtime runs it."""

from __future__ import annotations

import re

import pytest

from support.lab.ascend_runtime import BASE_LIST, PROGRAM, AscendRuntime
from support.lab.own_driver import KEPT, own_driver
from support.lab.workloads import A2, Team

NODE = "npu-b"
LIMIT = f"--limit={NODE}"
ASCEND = dict(KEPT, npu_runtime_mode="ascend")
MODE = "/var/lib/npuops/device-plugins/runtime-mode"


@pytest.fixture(scope="module", name="runtime")
def fixture_runtime(lab):
    """The host as somebody else has set it up, but containerd does not know of the runtime."""
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
