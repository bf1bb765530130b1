# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An upgrade brings drivers and components together, in the order that the table of what supports what demands.

Huawei's guide for another version line of MindCluster wants all jobs stopped. Here a workload keeps its chips while the version
line changes.
"""

from __future__ import annotations

import re

import pytest

from support.lab.observer import STATE
from support.lab.rollout import NAMESPACE, NPU_NODES, make_driver, proof, run, upgrade, version_of, watch
from support.lab.workloads import A2, Team
from support.patience import RUN_PATIENCE

OLD, NEW = {"npu_mindcluster_version_line": "7.3"}, {"npu_mindcluster_version_line": "26.1"}
OLD_DRIVER, NEW_DRIVER = "25.5.0", "26.0.0"
DAEMONSETS = ("ascend-device-plugin-daemonset", "ascend-device-plugin310p-daemonset", "npu-exporter")
BUSY = "npu-a"
SETTINGS = {"npu_upgrade_max_parallel": 0, "npu_upgrade_canary": False}


def version_lines(lab) -> set[str]:
    """Of the pods of MindCluster, by their images."""
    images = [
        pod["spec"]["containers"][0]["image"]
        for pod in lab.pods(NAMESPACE)
        if pod["metadata"]["ownerReferences"][0]["name"] in DAEMONSETS and "deletionTimestamp" not in pod["metadata"]
    ]
    assert images
    return {re.search(r":v(\d+\.\d+)\.", image).group(1) for image in images}


def asked_for(lab) -> set[str]:
    """By the DaemonSets."""
    path = f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets"
    found = [lab.api.get(f"{path}/{name}")["spec"]["template"]["spec"]["containers"][0]["image"] for name in DAEMONSETS]
    return {re.search(r":v(\d+\.\d+)\.", image).group(1) for image in found}


@pytest.fixture(scope="module", autouse=True)
def on_the_old_version_line(lab, installed):
    make_driver(lab, NEW_DRIVER)
    upgrade(lab, **OLD)
    assert version_lines(lab) == {"7.3"}
    yield
    upgrade(lab, **NEW, npu_upgrade_max_parallel=0)


@pytest.fixture(name="workload")
def fixture_workload(lab):
    """A pod with two chips; how it is seen: its UID, restarts and device nodes."""
    with Team(lab, "trains-test") as team:
        team.deploy("train", node=BUSY, chips={A2: 2})

        def seen() -> tuple:
            (pod,) = team.pods("train")
            devices = lab.kubectl("exec", "-n", team.name, pod["metadata"]["name"], "--", "ls", "/dev")
            restarts = [status["restartCount"] for status in pod["status"]["containerStatuses"]]
            return pod["metadata"]["uid"], restarts, sorted(re.findall(r"^davinci\d+$", devices, re.MULTILINE))

        yield seen


def test_the_plan_refuses_what_fits_in_no_order(lab, idle):
    text = upgrade(idle, expect=1, npu_driver_version=NEW_DRIVER, **OLD)
    assert f"MindCluster 7.3 supports driver 25.5, not {NEW_DRIVER}" in " ".join(text.split())
    assert version_lines(lab) == {"7.3"}


def test_a_bad_image_of_the_new_version_line_returns_and_no_node_is_touched(lab, idle, workload):
    before = workload()
    image = f"{lab.variable('npu_driver_repository').split('/')[0]}/mindcluster/ascend-k8sdeviceplugin:v26.1.9"
    with watch(lab) as observer:
        text = upgrade(
            idle, expect=1, npu_driver_version=NEW_DRIVER, npu_device_plugin_image=image, npu_rollout_timeout=60, **NEW, **SETTINGS
        )
        assert proof(lab, observer, {}) == []
        assert not any(STATE in sight.labels or sight.cordoned for sight in observer.timeline if sight.kind == "node")
    said = " ".join(text.split())
    assert "No driver was changed: " in said and f"with the image {image} it does not work on" in said
    assert asked_for(lab) == version_lines(lab) == {"7.3"}
    assert workload() == before


def test_another_version_line_under_load(lab, idle, workload):
    """There and back; no node is cordoned, no pod loses a chip, and an installed version line is not touched again."""
    before = workload()
    with watch(lab) as observer:
        for version_line, settings in (("26.1", NEW), ("7.3", OLD)):
            text = upgrade(idle, **settings)
            assert f"-> {version_line}" in text and "Nothing is due on 3 nodes; components change." in text
            assert version_lines(lab) == {version_line} and workload() == before
        assert "Components:" not in upgrade(idle, **OLD)
        assert proof(lab, observer, {}) == []
        assert not any(sight.cordoned for sight in observer.timeline if sight.kind == "node")


def test_driver_and_components_in_one_upgrade(lab, idle):
    """7.3 does not support the new driver, 26.1 supports both: the components come first. On the way back they come last."""
    ways = ((NEW_DRIVER, NEW, "before"), (OLD_DRIVER, OLD, "after"))
    for version, settings, order in ways:
        with watch(lab) as observer, run(idle, npu_driver_version=version, **settings, **SETTINGS) as one:
            observer.wait(lambda sight: sight.kind == "node" and sight.cordoned, RUN_PATIENCE, "a cordon")
            assert version_lines(lab) == asked_for(lab) == {"26.1"}, "which supports both drivers"
            status, text = one.wait(), one.text
            assert status == 0, text
            assert proof(lab, observer, dict.fromkeys(NPU_NODES, 1), version, max_parallel=0) == []
        assert f"components change {order} the drivers" in text
        assert f"{settings['npu_mindcluster_version_line']}, changed {order} the drivers." in text
        assert version_lines(lab) == {settings["npu_mindcluster_version_line"]}
        assert {version_of(lab, node) for node in NPU_NODES} == {version}
