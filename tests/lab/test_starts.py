# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Components start once: what has to be waited for is waited for, not tried again and again with ever longer pauses."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.usefixtures("installed")

NAMESPACE = "npu-operator"
NODE = "npu-a"
WAITING = ("ascend-device-plugin", "npu-exporter")


def pods(lab):
    """The pods of the components that wait for the driver of NODE, without those that are on their way out."""
    return [
        pod
        for pod in lab.pods(NAMESPACE, fieldSelector=f"spec.nodeName={NODE}")
        if pod["metadata"]["name"].startswith(WAITING) and "deletionTimestamp" not in pod["metadata"]
    ]


def ready(pod):
    return any(entry["type"] == "Ready" and entry["status"] == "True" for entry in pod["status"].get("conditions", []))


def restarts(lab):
    return {
        status["name"]: status["restartCount"]
        for pod in pods(lab)
        for status in pod["status"].get("initContainerStatuses", []) + pod["status"].get("containerStatuses", [])
    }


def pauses(lab):
    """Events of the kubelet about containers that ended too often."""
    return {
        event["metadata"]["uid"]: event["message"]
        for event in lab.get("events", "-n", NAMESPACE)["items"]
        if event.get("reason") == "BackOff" and "restarting failed" in event["message"]
    }


def offers(lab, number):
    return lab.node(NODE)["status"]["allocatable"].get("huawei.com/Ascend910") == str(number)


@pytest.fixture
def hidden(lab):
    """The driver of NODE is not ready; hidden() makes it ready again."""
    lab.ssh(NODE, "mv /run/npuops/driver-ready /run/npuops/hidden")
    back = "test ! -e /run/npuops/hidden || mv /run/npuops/hidden /run/npuops/driver-ready"
    yield lambda: lab.ssh(NODE, back)
    lab.ssh(NODE, back)


def replace(lab):
    """New pods of both components."""
    before = pods(lab)
    assert len(before) == len(WAITING)
    lab.kubectl("delete", "pod", "-n", NAMESPACE, *(pod["metadata"]["name"] for pod in before))
    return {pod["metadata"]["uid"] for pod in before}


@pytest.mark.core
def test_pods_that_come_before_the_driver_wait_and_start_once(lab, hidden):
    earlier = pauses(lab)
    gone = replace(lab)

    def waiting():
        new = [pod for pod in pods(lab) if pod["metadata"]["uid"] not in gone]
        running = [
            pod for pod in new if any("running" in status["state"] for status in pod["status"].get("initContainerStatuses", []))
        ]
        return len(running) == len(WAITING)

    lab.wait_for(waiting, 120, "both wait for the driver")
    hidden()
    lab.wait_for(lambda: len(pods(lab)) == len(WAITING) and all(map(ready, pods(lab))), 120, "both are ready")
    lab.wait_for(lambda: offers(lab, 8), 60, "the chips are back")
    assert set(restarts(lab).values()) == {0}, restarts(lab)
    assert not set(pauses(lab)) - set(earlier), pauses(lab)


def test_containers_that_end_while_the_driver_is_suspended_wait(lab, hidden):
    """The kubelet restarts them at once, without running their init container again, and they do not end."""
    gone = replace(lab)
    hidden()
    lab.wait_for(
        lambda: (
            len(pods(lab)) == len(WAITING)
            and all(map(ready, pods(lab)))
            and not {pod["metadata"]["uid"] for pod in pods(lab)} & gone
        ),
        120,
        "both are ready",
    )
    lab.ssh(NODE, "mv /run/npuops/driver-ready /run/npuops/hidden && pkill -x device-plugin && pkill -x npu-exporter")
    lab.wait_for(
        lambda: {name: count for name, count in restarts(lab).items() if count} == {"device-plugin-01": 1, "npu-exporter": 1},
        120,
        "each was started anew",
    )
    hidden()
    lab.wait_for(lambda: offers(lab, 8), 60, "the chips are back")
    assert max(restarts(lab).values()) == 1, restarts(lab)


@pytest.mark.core
@pytest.mark.last
def test_a_power_cycle_costs_no_pause(lab):
    earlier, before = pauses(lab), restarts(lab)
    boot_id = lab.node(NODE)["status"]["nodeInfo"]["bootID"]
    lab.ssh(NODE, "systemctl reboot --force", check=False)
    lab.wait_for(lambda: lab.node(NODE)["status"]["nodeInfo"]["bootID"] != boot_id, 180, f"{NODE} booted")
    lab.wait_for(
        lambda: len(pods(lab)) == len(WAITING) and all(map(ready, pods(lab))) and offers(lab, 8), 180, "the chips are back"
    )
    assert not set(pauses(lab)) - set(earlier), pauses(lab)
    assert all(count <= before[name] + 1 for name, count in restarts(lab).items()), (before, restarts(lab))
