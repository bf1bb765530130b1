# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""After install: the cluster and the hosts are asked, never the play. Run by molecule, and again after a reboot."""

from __future__ import annotations

import json
import os
import pathlib
import re

import pytest

from support.lab.untouched import untouched_state
from support.patience import PATIENCE

# What the lab's hardware is (lab/README.md): Node name -> resource, chips, what each pod gets of it.
NPU_NODES = {
    "npu-a": ("huawei.com/Ascend910", 8),
    "npu-b": ("huawei.com/Ascend910", 8),
    "npu-c": ("huawei.com/Ascend310P", 4),
}
PLAIN_NODE = "cpu-a"
READ_ONLY_NODE = "npu-c"
NAMESPACE = "npu-operator"
TEST_IMAGE = "lab/test:lab"


@pytest.mark.parametrize("node", NPU_NODES)
def test_allocatable(lab, node):
    resource, chips = NPU_NODES[node]
    lab.wait_for(
        lambda: lab.node(node)["status"]["allocatable"].get(resource) == str(chips),
        PATIENCE,
        f"{node}: allocatable {resource} = {chips}",
    )


@pytest.mark.parametrize("node", NPU_NODES)
def test_the_node_says_that_its_driver_works(lab, node):
    def works():
        found = lab.node(node)["status"]["conditions"]
        return [one for one in found if one["type"] == "npuops.ascend/DriverReady" and one["status"] == "True"]

    lab.wait_for(works, PATIENCE, f"{node}: condition npuops.ascend/DriverReady")


def test_present_label(lab):
    names = lab.kubectl("get", "nodes", "-l", "openfuyao.com/npu.present", "-o", "name").split()
    assert sorted(names) == sorted(f"node/{name}" for name in NPU_NODES)
    for name in NPU_NODES:
        assert lab.node(name)["metadata"]["labels"]["openfuyao.com/npu.present"] == ""


@pytest.mark.parametrize("node", NPU_NODES)
def test_pod_gets_its_chip(lab, node):
    """A pod says nothing but the resource, runs on that node and has one chip's device node, no more."""
    resource = NPU_NODES[node][0]
    registry = lab.variable("npu_driver_repository").split("/")[0]
    name = f"verify-{node}"
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "restartPolicy": "Never",
            "nodeSelector": {"kubernetes.io/hostname": node},
            "imagePullSecrets": [{"name": "lab-registry"}],
            "containers": [
                {
                    "name": "main",
                    "image": f"{registry}/{TEST_IMAGE}",
                    "command": ["/bin/sh", "-c", "ls /dev"],
                    "resources": {"limits": {resource: "1"}},
                }
            ],
        },
    }
    lab.wait_for(lambda: resource in lab.node(node)["status"]["allocatable"], PATIENCE, f"{node}: {resource}")
    lab.kubectl("delete", "pod", name, "--ignore-not-found", "--wait=true")
    try:
        lab.kubectl("create", "-f", "-", stdin=json.dumps(pod))
        phase = lab.wait_for(
            lambda: (status := lab.pod(name)["status"])["phase"] in ("Succeeded", "Failed") and status["phase"],
            120,
            f"pod {name} ends",
        )
        devices = lab.last_log(name).split()
        assert phase == "Succeeded", devices
        assert len([device for device in devices if re.fullmatch(r"davinci\d+", device)]) == 1, devices
        assert "davinci_manager" in devices
    finally:
        lab.kubectl("delete", "pod", name, "--ignore-not-found", "--wait=false")


@pytest.mark.parametrize("node", NPU_NODES)
def test_npu_smi_on_the_host(lab, node):
    """The command that users type, with the path that is a contract."""
    result = lab.ssh(
        node,
        "LD_LIBRARY_PATH=/var/lib/Ascend/driver/lib64/driver:/var/lib/Ascend/driver/lib64/common "
        "/var/lib/Ascend/driver/tools/npu-smi info | head -2",
    )
    assert re.search(r"\| npu-smi \S+ +Version: \S+ +\|", result.stdout), result.stdout


@pytest.mark.parametrize("node", NPU_NODES)
def test_driver_is_ready_in_this_boot(lab, node):
    marker = json.loads(lab.ssh(node, "cat /run/npuops/driver-ready").stdout)
    boot_id = lab.ssh(node, "cat /proc/sys/kernel/random/boot_id").stdout.strip()
    assert marker["boot_id"] == boot_id
    assert lab.ssh(node, "readlink -f /var/lib/Ascend/driver").stdout == lab.ssh(node, "readlink -f /var/lib/Ascend/good").stdout
    lab.wait_for(lambda: lab.node(node)["status"]["nodeInfo"]["bootID"] == boot_id, 60, f"{node}: nodeInfo.bootID")


@pytest.mark.parametrize("node", NPU_NODES)
def test_exporter_answers(lab, node):
    pods = lab.wait_for(
        lambda: [
            pod
            for pod in lab.pods(NAMESPACE, fieldSelector=f"spec.nodeName={node}")
            if "npu-exporter" in pod["metadata"]["name"] and pod["status"].get("podIP")
        ],
        PATIENCE,
        f"{node}: a pod of the exporter with an address",
    )
    assert len(pods) == 1
    chips, address = NPU_NODES[node][1], pods[0]["status"]["podIP"]

    def answers():
        metrics = lab.ssh(PLAIN_NODE, f"curl -sSf --max-time 10 http://{address}:8082/metrics").stdout
        healthy = re.findall(r"^npu_chip_info_health_status\{.*\} 1\b", metrics, re.MULTILINE)
        return re.search(rf"^machine_npu_nums(\{{.*\}})? {chips}\b", metrics, re.MULTILINE) and len(healthy) == chips

    # It reads the list of chips once a minute, so a wedge that was repaired is seen that long.
    lab.wait_for(answers, PATIENCE, f"{node}: the exporter tells of {chips} healthy chips")


def test_host_paths_on_the_read_only_host(lab):
    """Every hostPath of what runs there exists, as what it should be, and is writable where the container writes."""
    assert "ro" in lab.ssh(READ_ONLY_NODE, "findmnt -n -o OPTIONS --target /usr").stdout.strip().split(",")
    paths = {}
    for pod in lab.pods(NAMESPACE, fieldSelector=f"spec.nodeName={READ_ONLY_NODE}"):
        volumes = {volume["name"]: volume["hostPath"]["path"] for volume in pod["spec"]["volumes"] if "hostPath" in volume}
        for container in pod["spec"]["containers"]:
            for mount in container["volumeMounts"]:
                if mount["name"] in volumes:
                    path = volumes[mount["name"]]
                    paths[path] = paths.get(path, False) or not mount.get("readOnly", False)
    assert "/var/lib/Ascend/driver" in paths and "/var/lib/kubelet/device-plugins" in paths, paths
    for path, written in paths.items():
        lab.ssh(READ_ONLY_NODE, f"test -e '{path}'")
        if written and lab.ssh(READ_ONLY_NODE, f"test -d '{path}'", check=False).returncode == 0:
            lab.ssh(READ_ONLY_NODE, f'probe=\'{path}/.verify\' && touch "$probe" && rm "$probe"')
    # hostPath without a type makes a directory where the link should be, if it comes first.
    assert lab.ssh(READ_ONLY_NODE, "stat -c %F /var/lib/Ascend/driver").stdout.strip() == "symbolic link"


def test_node_without_chip_is_untouched(lab):
    """By what must not be there, and by comparison with what molecule's prepare.yml saw before the first install."""
    labels = {**lab.node(PLAIN_NODE)["metadata"]["labels"], **lab.node(PLAIN_NODE)["metadata"]["annotations"]}
    ours = [key for key in labels if re.search("npu|ascend|accelerator", key, re.IGNORECASE)]
    assert ours == []
    pods = lab.pods(NAMESPACE, fieldSelector=f"spec.nodeName={PLAIN_NODE}")
    assert [pod["metadata"]["name"] for pod in pods] == []
    for path in ("/var/lib/npuops", "/var/lib/Ascend", "/etc/cdi", "/run/npuops", "/var/log/mindx-dl"):
        assert lab.ssh(PLAIN_NODE, f"test ! -e {path}", check=False).returncode == 0, f"{path} exists on {PLAIN_NODE}"
    before = os.environ.get("NPU_UNTOUCHED")
    if before:
        recorded = json.loads(pathlib.Path(before).read_text(encoding="utf-8"))
        assert len(recorded["files"]) > 1000, "the recorded manifest is empty: nothing would be proved"
        assert untouched_state(lab, PLAIN_NODE) == recorded
