# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A new driver that is no good: the node ends on the old one, healthy and in service, and no other node is touched."""

from __future__ import annotations

import json

import pytest

from support.lab.observer import COMPONENTS, LAST, LEASE, STATE
from support.lab.rollout import TAKEOVER, make_driver, proof, run, upgrade, version_of, watch
from support.paths import CHECKOUT
from support.patience import PATIENCE

NODE, CHIPS, RESOURCE = "npu-a", "8", "huawei.com/Ascend910"
OTHERS = ("npu-b", "npu-c")
# Version in the registry, what is wrong with it (lab/driver-image), what the reason on the node has to say.
BAD = [
    pytest.param("25.5.3", "load-fails", "drv_pcie_host", marks=pytest.mark.core),
    ("25.5.4", "wrong-version", "24.1.rc2.2"),
    ("25.5.5", "fewer-chips", "7"),
]


def failed_back(lab, observer, old: str, reboots: int, *reason: str) -> list[str]:
    """What is not as it must be after a rollback: healthy on the old driver, in service, halted, the reason on the node."""
    result = proof(lab, observer, {NODE: reboots}, old, halted=True)
    node = lab.node(NODE)
    told = json.loads(node["metadata"]["annotations"].get(LAST, "{}"))
    if node["metadata"]["labels"].get(STATE) != "upgrade-failed":
        result.append(f"{NODE} is labelled {node['metadata']['labels'].get(STATE)}")
    if node["metadata"]["labels"].get(COMPONENTS) != "enabled":
        result.append(f"components are {node['metadata']['labels'].get(COMPONENTS)}")
    if told.get("outcome") != "rolled-back":
        result.append(f"the outcome is {told.get('outcome')}")
    result += [
        f"the reason on the node does not name {word}: {told.get('failure')}"
        for word in reason
        if word not in str(told.get("failure"))
    ]
    first = {sight.name: sight for sight in observer.timeline if sight.first and sight.kind == "node"}
    result += [
        f"{sight.name} was touched"
        for sight in observer.timeline
        if sight.name in OTHERS and (sight.cordoned or sight.record or sight.boot_id != first[sight.name].boot_id)
    ]
    if not observer.now("lease")[LEASE].slots["halted"]:
        result.append("not halted")
    lab.wait_for(
        lambda: lab.node(NODE)["status"]["allocatable"].get(RESOURCE) == CHIPS, PATIENCE, "all chips are allocatable again"
    )
    return result


def goes_on(lab, version: str) -> None:
    """The documented commands: repaired, it is tried again."""
    upgrade(lab, f"--limit={NODE}", npu_driver_version=version, npu_upgrade_clear_halt=True, npu_upgrade_retry=True, **TAKEOVER)
    assert version_of(lab, NODE) == version
    assert STATE not in lab.node(NODE)["metadata"]["labels"]


@pytest.mark.parametrize("version, kind, reason", BAD)
def test_a_bad_driver_is_rolled_back(idle, version, kind, reason):
    make_driver(idle, version, kind)
    old = version_of(idle, NODE)
    with watch(idle) as observer:
        upgrade(idle, "--limit=npu-a,npu-b,npu-c", expect=1, npu_driver_version=version)
    assert failed_back(idle, observer, old, 2, reason) == []
    goes_on(idle, "25.5.1" if old == "25.5.0" else "25.5.0")


def test_the_smoke_pod_fails(idle, tmp_path):
    old = version_of(idle, NODE)
    new = "25.5.1" if old == "25.5.0" else "25.5.0"
    image = str(idle.variable("npu_driver_repository")).split("/", maxsplit=1)[0] + "/lab/test:lab"
    manifest = tmp_path / "smoke.yml"

    def write(script: str) -> None:
        manifest.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": "smoke", "namespace": "default"},
                    "spec": {
                        "restartPolicy": "Never",
                        "imagePullSecrets": [{"name": "lab-registry"}],
                        "containers": [
                            {
                                "name": "main",
                                "image": image,
                                "command": ["/bin/sh", "-c", script],
                                "resources": {"limits": {RESOURCE: "1"}},
                            }
                        ],
                    },
                }
            ),
            encoding="utf-8",
        )

    write("echo no collective communication; exit 7")
    with watch(idle) as observer:
        upgrade(idle, f"--limit={NODE}", expect=1, npu_driver_version=new, npu_upgrade_smoke_pod=str(manifest))
    assert failed_back(idle, observer, old, 2, "no collective communication") == []
    write("npu-smi info")
    upgrade(
        idle,
        f"--limit={NODE}",
        npu_driver_version=new,
        npu_upgrade_smoke_pod=str(manifest),
        npu_upgrade_clear_halt=True,
        npu_upgrade_retry=True,
        **TAKEOVER,
    )
    assert version_of(idle, NODE) == new
    assert not idle.pods("default"), "the smoke pod is still there"


def test_the_host_hangs_and_is_power_cycled(idle):
    """No run tells it to go back: it comes back on the old driver by itself, and the run understands that."""
    make_driver(idle, "25.5.6", "hang")
    old = version_of(idle, NODE)
    with (
        watch(idle) as observer,
        run(idle, f"--limit={NODE}", npu_driver_version="25.5.6", npu_upgrade_reboot={"timeout": 2 * PATIENCE}) as one,
    ):
        observer.wait(
            lambda sight: sight.name == NODE and bool(sight.record) and bool(sight.record["boot_id"]), PATIENCE, "the intent"
        )
        before = observer.now()[NODE].boot_id
        idle.wait_for(lambda: frozen(idle, NODE), PATIENCE, f"{NODE} has booted the new driver and froze")
        idle._run([str(CHECKOUT / "lab" / "power"), NODE, "cycle"])
        assert one.wait() != 0
        text = one.text
    assert observer.now()[NODE].boot_id != before
    seen = [sight.boot_id for sight in observer.timeline if sight.name == NODE and sight.boot_id]
    boots = len(dict.fromkeys(seen)) - 1
    problems = [line for line in failed_back(idle, observer, old, boots) if "by its own wtmp" not in line]
    assert [line for line in problems if "without an intent" not in line] == [], text[-4000:]
    goes_on(idle, "25.5.1" if old == "25.5.0" else "25.5.0")


def frozen(lab, node: str) -> bool:
    """Whether the host's processes have stopped. It is seen from outside: nothing on it answers any more."""
    return lab.console(node, "grep -ls '^State:.T' /proc/[0-9]*/status") != ""
