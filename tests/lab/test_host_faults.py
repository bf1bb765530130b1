# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Broken hardware on an installed host: which check says what. The last tests reboot the host, with a driver that is broken and one that is
slow."""

from __future__ import annotations

import json
import re

import pytest

from support.lab.rollout import NAMESPACE, reboot
from support.lab.workloads import Team
from support.patience import PATIENCE

pytestmark = pytest.mark.usefixtures("installed")

NODE = "npu-a"
CHIPS = 8
RESOURCE = "huawei.com/Ascend910"
WAITS = "wait-for-driver"  # the container of plugin and exporter that does


@pytest.fixture
def broken(lab):
    """Break the host: broken(kind, ...). It is whole again afterwards, and proved to be."""
    yield lambda *words: lab.fault(NODE, *words)
    lab.fault(NODE, "clear")
    lab.wait_for(lambda: lab.module(NODE, "npu_validate", fail=False).get("valid"), 120, f"{NODE} is whole again")


CHIP = r"NPU \d chip 0 \(0000:[0-9a-f:.]+\): Critical with 80E01801 \(RestartBusiness: uncorrectable HBM error [^()]+\)"
CRITICAL = f"{CHIP}(, {CHIP}){{7}}"
# What is broken, with its arguments -> the check that must say so, what it saw, and a part of what it advises.
FAULTS = {
    "wedge": ("npu_smi", "no response", "-8005"),
    "smi-fails": ("npu_smi", "no response", "-8020"),
    "smi-garbage": ("npu_smi", "no response", "cannot parse"),
    "fewer-chips": ("npu_smi", f"{CHIPS - 1} chips listed", "dmesg"),
    "alarm all 80E01801 Critical": ("health", CRITICAL, "reset or a reboot"),
    "no-dev-node": ("device_nodes", f"{CHIPS - 1} x /dev/davinciN, no /dev/davinci0", "fell off the bus"),
    "wrong-version": ("loaded_driver", "24.1.rc2.2", "Reboot the host"),
}


@pytest.mark.core
@pytest.mark.parametrize("kind", FAULTS)
def test_fault_is_named(lab, broken, kind):
    name, seen, advice = FAULTS[kind]
    broken(*kind.split())

    def failed_check():
        checks = lab.module(NODE, "npu_validate", fail=False)["checks"]
        return [check for check in checks if check["name"] == name and not check["ok"]]

    (check,) = lab.wait_for(failed_check, 30, f"{kind} makes the check {name} fail")
    assert re.fullmatch(seen, check["seen"])
    assert advice in check["message"]


# Faults of network ports, with the check that must name the chip.
PORTS = {
    "link-down 3": ("network_link", "chip 3 is down"),
    "optical-weak 5": ("network_optical", "chip 5: received power of lanes 0, 1, 2, 3"),
}


@pytest.mark.parametrize("kind", PORTS)
def test_a_bad_port_is_named(lab, broken, kind):
    name, seen = PORTS[kind]
    broken(*kind.split())

    def failed_check():
        checks = lab.module(NODE, "npu_validate", fail=False, network="strict")["checks"]
        return [check for check in checks if check["name"] == name and not check["ok"]]

    (check,) = lab.wait_for(failed_check, 30, f"{kind} makes the check {name} fail")
    assert check["seen"].startswith(seen)


def test_a_stale_file_is_named(lab, broken):
    lab.ssh(NODE, "printf 'address_2=10.64.11.77\\nnetmask_2=255.255.0.0\\n' >/etc/hccn.conf")
    try:
        checks = {check["name"]: check for check in lab.module(NODE, "npu_validate", fail=False, network="strict")["checks"]}
        assert checks["network_config"]["seen"] == "chip 2: address 10.64.11.12, the file has 10.64.11.77"
    finally:
        lab.ssh(NODE, "rm /etc/hccn.conf")


def test_no_alarm_for_ports_that_work(lab):
    result = lab.playbook("validate", "-e", "npu_validate_network=strict")
    assert "Network ports of the chips" not in result.stdout, result.stdout


# What only several hosts together show, with what validate says of it.
FLEET = {
    "stale-address 4": r"The address of chip 4 of npu-a, 10\.99\.11\.14, is not in 10\.64\.0\.0/16",
    "duplicate-address 1 10.64.12.13": r"10\.64\.12\.13 is the address of 2 chips: chip 1 of npu-a, chip 3 of npu-b",
}


@pytest.mark.parametrize("kind", FLEET)
def test_a_wrong_address_in_the_fleet_is_named(lab, broken, kind):
    broken(*kind.split())

    def told():
        result = lab.playbook("validate", "-e", "npu_validate_network=strict", check=False)
        return result.returncode != 0 and re.search(FLEET[kind], result.stdout)

    lab.wait_for(told, 120, f"validate names {kind}")


def test_npu_smi_that_hangs_is_not_waited_for(lab, broken):
    broken("smi-hangs")
    result = lab.module(NODE, "npu_validate", timeout=3)
    assert result["failed"] and "hangs in the driver" in result["msg"], result
    # The one that hangs is gone, or the next one could not ask.
    lab.fault(NODE, "clear")
    lab.wait_for(lambda: lab.module(NODE, "npu_validate", fail=False)["valid"], 60, f"{NODE} answers again")


@pytest.mark.core
def test_playbook_names_host_and_check(lab, broken):
    broken("fewer-chips")
    result = lab.playbook("validate", f"--limit={NODE}", "-e", "npu_validate_timeout=5", check=False)
    assert result.returncode != 0
    assert re.search(rf"{NODE}: invalid\s+npu_smi: {CHIPS - 1} chips listed", result.stdout), result.stdout


def test_status_names_the_pods_on_unhealthy_chips(lab, broken):
    """The device plugin tells the kubelet, and the kubelet the pod (KEP-4680), by default from Kubernetes 1.36 on."""
    told = int(lab.node(NODE)["status"]["nodeInfo"]["kubeletVersion"].split(".")[1]) >= 36
    with Team(lab, "sick-test") as team:
        for name in ("works", "other"):
            team.deploy(name, node=NODE, chips={RESOURCE: 2})
        ((pod,), (other,)) = (team.pods(name) for name in ("works", "other"))
        pod, other = pod["metadata"]["name"], other["metadata"]["name"]
        sick, *_healthy = re.findall(r"^davinci(\d+)$", lab.kubectl("exec", pod, "-n", team.name, "--", "ls", "/dev"), re.MULTILINE)
        broken("alarm", sick)
        fewer = str(CHIPS - 1)
        lab.wait_for(lambda: lab.node(NODE)["status"]["allocatable"].get(RESOURCE) == fewer, PATIENCE, "a chip is unhealthy")
        if told:
            status = f"the status of {pod} tells it"
            lab.wait_for(lambda: "Unhealthy" in json.dumps(lab.pod(pod, team.name)["status"]), PATIENCE, status)
        text = " ".join(lab.playbook("status").stdout.split())
        assert (f"pods on unhealthy chips: {team.name}/{pod} (Ascend910-{sick})" in text) is told, text
        assert other not in text, text


def test_status_names_a_chip_that_is_isolated_and_how_it_is_released(lab, broken):
    """As the device plugin records a chip on which a fault came too often. What status says to do is done literally."""
    broken("alarm", "3")
    fewer = str(CHIPS - 1)
    lab.wait_for(lambda: lab.node(NODE)["status"]["allocatable"].get(RESOURCE) == fewer, PATIENCE, "a chip is unhealthy")
    place = ("-n", "kube-system", "configmap", f"mindx-dl-deviceinfo-{NODE}")
    isolated = json.dumps({"data": {"ManuallySeparateNPU": "Ascend910-3"}})
    lab.kubectl("patch", *place, "--type=merge", "-p", isolated)
    told = " ".join(lab.playbook("status").stdout.split())
    match = re.search(r"the device plugin isolates Ascend910-3 until it is released: kubectl (-n \S+ edit configmap \S+)", told)
    assert match, told
    lab.kubectl(*match[1].split(), env={"KUBE_EDITOR": "sed -i 's/Separate\\(NPU\\): Ascend910-3/Separate\\1: \"\"/'"})
    assert lab.get(*place)["data"]["ManuallySeparateNPU"] == ""
    assert "the device plugin isolates" not in lab.playbook("status").stdout


def test_node_joins_without_its_driver_and_says_why(lab, broken):
    """The driver does not load in this boot: the node is Ready and offers no chip; install repairs it afterwards."""
    broken("load-fails")
    reboot(lab, NODE)
    failed = lab.wait_for(lambda: lab.ssh(NODE, "cat /run/npuops/driver-failed", check=False).stdout, 60, "the boot unit gives up")
    assert "drv_pcie_host" in json.loads(failed)["reason"]
    assert lab.ssh(NODE, "test -e /run/npuops/driver-ready", check=False).returncode != 0
    lab.wait_for(lambda: lab.node(NODE)["status"]["allocatable"].get(RESOURCE, "0") == "0", 60, f"{NODE} offers no {RESOURCE}")
    status = lab.playbook("status").stdout
    assert re.search(rf"{NODE}: invalid\s+driver_ready: .*drv_pcie_host", status), status

    lab.fault(NODE, "clear")
    lab.playbook("install")
    lab.wait_for(lambda: lab.node(NODE)["status"]["allocatable"].get(RESOURCE) == str(CHIPS), 180, f"{NODE} offers its chips")


def test_the_device_plugin_waits_for_a_driver_that_takes_its_time(lab, broken):
    """A plain reboot: the plugin does not try without a driver, and starts as soon as there is one."""
    plugin = {"labelSelector": "name=ascend-device-plugin-ds", "fieldSelector": f"spec.nodeName={NODE}"}
    broken("slow-devices", "600")
    reboot(lab, NODE)
    last_words = f"tail -qn 1 /var/log/pods/{NAMESPACE}_ascend-device-plugin-*/{WAITS}/*.log"
    lab.wait_for(
        lambda: "Waiting for the driver of this host" in lab.ssh(NODE, last_words, check=False).stdout,
        60,
        "the plugin says that it waits",
    )
    assert lab.ssh(NODE, "test -e /run/npuops/driver-ready", check=False).returncode != 0

    # It does not hold up who wants it gone for the 30 s that a pod is given.
    (pod,) = lab.pods(NAMESPACE, **plugin)
    lab.kubectl("-n", NAMESPACE, "delete", "pod", pod["metadata"]["name"], f"--timeout={PATIENCE}s")
    (pod,) = lab.wait_for(lambda: lab.pods(NAMESPACE, **plugin), 60, "another pod")
    log = ("-n", NAMESPACE, "logs", pod["metadata"]["name"], "-c", WAITS)
    lab.wait_for(lambda: "Waiting" in lab.kubectl(*log, check=False), 60, "that one waits, too")

    lab.fault(NODE, "clear")
    lab.wait_for(lambda: lab.ssh(NODE, "test -e /run/npuops/driver-ready", check=False).returncode == 0, 180, "the driver is ready")
    lab.wait_for(lambda: lab.node(NODE)["status"]["allocatable"].get(RESOURCE) == str(CHIPS), 60, f"{NODE} offers its chips")
    (pod,) = lab.pods(NAMESPACE, **plugin)
    (status,) = pod["status"]["containerStatuses"]
    assert status["restartCount"] == 0, status
    (waited,) = pod["status"]["initContainerStatuses"]
    assert waited["restartCount"] == 0 and waited["state"]["terminated"]["exitCode"] == 0, waited
    assert [line.partition(":")[0] for line in lab.kubectl(*log).splitlines()] == ["Waiting for the driver of this host"]


def test_a_chip_that_is_gone_after_a_reboot_is_missed(lab):
    """The firmware of the host does not find it any more: the node serves with the others, and install does not take it for granted."""
    hardware = "/etc/npusim/hardware.json"
    lost = "0000:c4:00.0"
    without = (
        f"import json; d = json.load(open({hardware!r})); d['functions'] = [f for f in d['functions'] if f['address'] != {lost!r}]"
    )
    lab.ssh(NODE, f"cp -p {hardware} /root/hardware.json && python3 -c \"{without}; json.dump(d, open({hardware!r}, 'w'))\"")
    try:
        reboot(lab, NODE)
        fewer = str(CHIPS - 1)
        lab.wait_for(lambda: lab.node(NODE)["status"]["allocatable"].get(RESOURCE) == fewer, 180, f"{NODE} offers {fewer} chips")
        told = f"{fewer} of {CHIPS} chips: {lost} is missing from the PCI bus since the boot of"
        status = " ".join(lab.playbook("status").stdout.split())
        assert f"{NODE}: degraded {told}" in status, status
        install = lab.playbook("install", check=False)
        assert install.returncode != 0 and told in " ".join(install.stdout.split()), install.stdout
        assert lab.module(NODE, "npu_validate", fail=False)["valid"]
    finally:
        lab.ssh(NODE, f"mv /root/hardware.json {hardware}")
        reboot(lab, NODE)
        lab.wait_for(lambda: lab.node(NODE)["status"]["allocatable"].get(RESOURCE) == str(CHIPS), 180, f"{NODE} offers its chips")
    assert f"{NODE}: degraded" not in " ".join(lab.playbook("status").stdout.split())
