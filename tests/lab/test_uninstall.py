# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way back, and on a host that is as new a driver of its own: one story in the order of its tests, the last of all.

At its end the fleet is installed as before, unless NPU_LAB_GOES says that the lab is removed anyway (dev/test).
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess

import pytest

from support.lab import leftovers, own_driver
from support.lab.rollout import reboot

pytestmark = pytest.mark.last

CHIPS = {"npu-a": ("huawei.com/Ascend910", 8), "npu-b": ("huawei.com/Ascend910", 8), "npu-c": ("huawei.com/Ascend310P", 4)}
NODES = (*CHIPS, "cpu-a")
NAMESPACE = "npu-operator"
# The host that gets a driver from a package.
OWN = "npu-b"
PACKAGE_TREE = "/usr/local/Ascend"
# Of these, what is its own; the others are the kubelet's.
PLUGIN = re.compile(rf"(?!volumes|node\.alpha)(?:{leftovers.PLUGINS.pattern})|accelerator-type")


def changed(result: subprocess.CompletedProcess) -> dict[str, int]:
    """Host -> tasks that changed something, by the recap."""
    found = re.findall(r"^(\S+) +: ok=\d+ +changed=(\d+)", result.stdout, re.MULTILINE)
    assert found, result.stdout
    return {host: int(number) for host, number in found}


def wait_allocatable(lab, node: str) -> None:
    resource, chips = CHIPS[node]
    lab.wait_for(lambda: lab.node(node)["status"]["allocatable"].get(resource) == str(chips), 180, f"{node}: {chips} {resource}")


def pod(lab, name: str, node: str, script: str) -> dict:
    registry = str(lab.variable("npu_driver_repository")).split("/", maxsplit=1)[0]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "nodeSelector": {"kubernetes.io/hostname": node},
            "imagePullSecrets": [{"name": "lab-registry"}],
            "containers": [
                {
                    "name": "main",
                    "image": f"{registry}/lab/test:lab",
                    "command": ["/bin/sh", "-c", script],
                    "resources": {"limits": {CHIPS[node][0]: "1"}},
                }
            ],
        },
    }


def run_pod(lab, name: str, node: str, script: str, phases: tuple[str, ...]) -> str:
    lab.kubectl("delete", "pod", name, "--ignore-not-found", "--wait=true")
    lab.kubectl("create", "-f", "-", stdin=json.dumps(pod(lab, name, node, script)))
    return lab.wait_for(lambda: (phase := lab.pod(name)["status"]["phase"]) in phases and phase, 120, f"pod {name}")


def objects(lab) -> list[str]:
    """Everything of ours in the cluster but the namespace, and but the controller's account: an administrator made that."""
    kinds = (
        "daemonsets,serviceaccounts,roles,rolebindings,services,networkpolicies,clusterroles,clusterrolebindings,"
        "validatingadmissionpolicies,validatingadmissionpolicybindings,configmaps,controllerrevisions,pods"
    )
    names = lab.kubectl("get", kinds, "--all-namespaces", "-o", "name").split()
    return sorted(name for name in names if re.search(r"npu|ascend|mindx", name, re.IGNORECASE) and "/npu-controller" not in name)


@pytest.fixture(scope="module", autouse=True)
def fleet(lab, installed):
    """Installed when it begins, and again when it ends."""
    for node in CHIPS:
        wait_allocatable(lab, node)
    yield
    if os.environ.get("NPU_LAB_GOES"):
        return
    lab.kubectl("delete", "pod", "busy", "own-driver", "--ignore-not-found", "--wait=true")
    if lab.ssh(OWN, f"test -e {PACKAGE_TREE}/driver", check=False).returncode == 0:
        lab.playbook("uninstall", f"--limit={OWN}", npu_driver_source="preinstalled")
        lab.ssh(
            OWN, "sh /var/tmp/driver.run --uninstall --quiet; rm -rf /var/tmp/driver.run /usr/local/Ascend /etc/ascend_install.info"
        )
        reboot(lab, OWN)
    lab.playbook("install")


@pytest.fixture(scope="module")
def driver_package(lab) -> pathlib.Path:
    """The package that the lab's own driver images were built from."""
    return lab.driver_package("910b", str(lab.variable("npu_driver_version")))


@pytest.mark.core
def test_pods_that_use_npus_are_in_the_way(lab):
    run_pod(lab, "busy", "npu-a", "exec sleep 600", ("Running",))
    labels = lab.node("npu-a")["metadata"]["labels"]
    result = lab.playbook("uninstall", check=False)
    told = " ".join(result.stdout.split())
    assert result.returncode != 0 and "npu-a: pods use its NPUs: default/busy." in told, result.stdout
    assert "npu_uninstall_force: true" in told
    assert set(changed(result).values()) == {0}
    assert lab.node("npu-a")["metadata"]["labels"] == labels
    lab.kubectl("delete", "pod", "busy", "--wait=true")


def test_check_mode_tells_and_changes_nothing(lab):
    before = {node: leftovers.state(lab, node) for node in CHIPS}
    listed = objects(lab)
    result = lab.playbook("uninstall", "--check", "--diff")
    assert "disable npu-driver.service" in result.stdout and "enable_cdi" in result.stdout
    assert all(changed(result)[node] > 0 for node in CHIPS) and changed(result)["cpu-a"] == 0
    assert {node: leftovers.state(lab, node) for node in CHIPS} == before
    assert objects(lab) == listed


@pytest.mark.core
def test_one_node_leaves_and_the_others_stay_in_service(lab):
    result = lab.playbook("uninstall", "--limit=npu-a")
    assert "the driver stays loaded until this host is rebooted" in " ".join(result.stdout.split())
    leftovers.assert_gone(lab, "npu-a")
    assert lab.node("npu-a")["status"]["allocatable"].get("huawei.com/Ascend910", "0") == "0"
    wait_allocatable(lab, "npu-b")
    wait_allocatable(lab, "npu-c")
    assert "daemonset.apps/npu-exporter" in objects(lab)


@pytest.mark.core
def test_all_leave_and_nothing_stays(lab):
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "npu-maintenance", "namespace": "npu-operator"},
        "spec": {},
    }
    lab.kubectl("apply", "-f", "-", stdin=json.dumps(lease))  # as a rollout leaves it
    lab.playbook("uninstall")
    assert lab.kubectl("get", "lease", "-n", "npu-operator", "-o", "name") == ""
    for node in NODES:
        leftovers.assert_gone(lab, node)
    assert objects(lab) == []
    # The node that has no Python of its own has none again.
    assert lab.ssh("npu-c", "find / -xdev -name 'python3*' -type f -perm -u+x | head", check=False).stdout == ""


def test_what_the_device_plugin_wrote_goes_where_that_is_asked_for(lab):
    """By what the API server remembers of the plugin's own writes; those of kubectl stay, under the same names."""

    def left(node):
        metadata = lab.node(node)["metadata"]
        return {key: value for key, value in {**metadata["labels"], **metadata["annotations"]}.items() if PLUGIN.match(key)}

    wanted = {"node.kubernetes.io/npu.chip.name", "servertype", "baseDeviceInfos", "superPodID", "serverIndex", "serverType"}
    before = {node: left(node) for node in CHIPS}
    assert all(wanted < set(there) for there in before.values()), before
    lab.kubectl("label", "node", "npu-a", "--overwrite", "servertype=soc", "accelerator-type=module-910b-8")
    try:
        told = " ".join(lab.playbook("uninstall").stdout.split())
        wrote = "huawei.com/driver.version, infer-card-type, node.kubernetes.io/npu.chip.name"
        assert f"node npu-c keeps what the device plugin wrote on it, {wrote}" in told, told
        assert "npu_uninstall_device_plugin_labels: true removes that" in told
        removes = {"npu_uninstall_device_plugin_labels": True}
        dry = " ".join(lab.playbook("uninstall", "--check", "--diff", **removes).stdout.split())
        dry = dry.replace(", - ", ", ")  # a line of the diff that was too long
        removed = [set(found.split(", ")) for found in re.findall(r"remove ((?:(?! from node ).)+) from node npu-c", dry)]
        assert any({*wrote.split(", "), *wanted} <= found for found in removed), dry
        assert left("npu-c") == before["npu-c"]
        lab.playbook("uninstall", "--limit=npu-c", **removes)
        assert left("npu-c") == {} and left("npu-b") == before["npu-b"]
        assert "keeps what" not in lab.playbook("uninstall", **removes).stdout
        assert left("npu-a") == {"servertype": "soc", "accelerator-type": "module-910b-8"} and left("npu-b") == {}
    finally:
        lab.kubectl("label", "node", "npu-a", "servertype-", "accelerator-type-")


@pytest.mark.core
def test_a_second_run_changes_nothing(lab):
    assert set(changed(lab.playbook("uninstall")).values()) == {0}


def driver_files(lab) -> list[str]:
    """The host's own driver, with times, so that every write is seen."""
    places = f"{PACKAGE_TREE} /usr/local/dcmi /usr/local/bin/npu-smi /lib/modules/*/updates /etc/ascend_install.info"
    found = lab.ssh(
        OWN, f"find {places} /lib/davinci.conf /etc/ld.so.conf.d -printf '%p %y %m %U:%G %s %T@\\n' | sort"
    ).stdout.splitlines()
    assert len(found) > 20, found
    return found


def test_a_driver_of_the_hosts_own_serves_pods_and_is_not_touched(lab, driver_package):
    own_driver.install(lab, OWN, driver_package)
    before = driver_files(lab)

    variables = {"npu_driver_source": "preinstalled"}
    lab.playbook("install", f"--limit={OWN}", **variables)
    wait_allocatable(lab, OWN)
    phase = run_pod(lab, "own-driver", OWN, "ls /dev; npu-smi info -l", ("Succeeded", "Failed"))
    said = lab.last_log("own-driver")
    lab.kubectl("delete", "pod", "own-driver", "--wait=false")
    assert phase == "Succeeded", said
    assert len(re.findall(r"^davinci\d+$", said, re.MULTILINE)) == 1, said
    assert re.search(r"Total Count +: 1\b", said), said

    assert set(changed(lab.playbook("install", f"--limit={OWN}", **variables)).values()) == {0}
    lab.playbook("validate", f"--limit={OWN}", **variables)
    status = lab.playbook("status", f"--limit={OWN}", **variables).stdout
    assert re.search(rf"{OWN} +8 x 910B +preinstalled +25\.5\.0 .* ready", status), status
    assert driver_files(lab) == before


def test_uninstall_leaves_a_driver_that_was_there_before(lab):
    before = driver_files(lab)
    lab.playbook("uninstall", f"--limit={OWN}", npu_driver_source="preinstalled")
    assert driver_files(lab) == before
    assert lab.ssh(OWN, "npu-smi info >/dev/null; test ! -e /var/lib/npuops -a ! -e /etc/cdi/huawei.com-npu.json").returncode == 0
    assert objects(lab) == []
