# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that hold ResourceClaims of a DRA driver: Kubernetes' own example, whose plugin has to unprepare them before a pod can end."""

from __future__ import annotations

import re

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import drain_policy, node_drain
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods import blocker as pod_blocker

from support.lab.dra import DRIVER, NAME, DraTeam
from support.lab.rollout import NPU_NODES, OTHER, at_step, proof, run, untouched, upgrade, version_of, watch
from support.patience import PATIENCE

NODE, TEAM = "npu-a", "claims-test"
LIMIT = f"--limit={NODE}"
OF_NPUS = {"npu_upgrade_pod_deletion": {"dra_drivers": DRIVER}}


@pytest.fixture(scope="module")
def team(lab, installed):
    with DraTeam(lab, TEAM) as one:
        one.run_plugin("Deployment")
        one.start(NODE)
        one.deploy_holder("holder", NODE)
        yield one


def said(text: str) -> str:
    """An output with single spaces: Ansible breaks lines."""
    return " ".join(text.split())


def held(team) -> tuple[str, str]:
    """The pod on the node that holds a claim, and the claim."""
    (pod,) = (pod for pod in team.holders() if pod["spec"].get("nodeName") == NODE)
    (status,) = pod["status"]["resourceClaimStatuses"]
    return pod["metadata"]["name"], status["resourceClaimName"]


def test_a_claim_is_unprepared_before_its_node_reboots(idle, team):
    """The plan names who holds it. The plugin, which is also evicted, leaves last; nothing is left of the claim when the node goes
    down, and the workload comes back."""
    pod, claim = held(team)
    assert team.prepared(NODE) == [claim]
    version = OTHER[version_of(idle, NODE)]
    with watch(idle) as observer, run(idle, LIMIT, npu_driver_version=version) as one:
        at_step(observer, NODE, "reboot-required")
        assert [other["metadata"]["name"] for other in team.holders() if other["spec"].get("nodeName") == NODE] == []
        assert [found for found in team.claims() if found.get("status", {}).get("reservedFor")] == []
        kept = idle.console(NODE, "cat /var/lib/kubelet/dra_manager_state")
        assert claim not in kept, kept
        assert one.wait() == 0, one.text[-6000:]
        assert proof(idle, observer, {NODE: 1}, version) == []
        text = said(one.text)
    assert f"pods that hold ResourceClaims: {TEAM}/{pod} ({claim} of {DRIVER})" in text, text
    assert "other pods gone: 2" in text, text
    team.wait_available("holder", 1)
    assert held(team)[1] != claim and team.prepared(NODE) == [held(team)[1]]


def test_a_claim_that_nobody_would_unprepare(idle, team):
    """Without the driver's plugin a pod that is told to end never does. Plan and drain say so, and what they advise helps."""
    team.run_plugin("DaemonSet")
    team.start(NODE)
    team.wait_available("holder", 1)
    pod, claim = held(team)
    team.stop(NODE)
    version = OTHER[version_of(idle, NODE)]
    why = (
        f"the plugin of the DRA driver {DRIVER} does not run on {NODE}, so its ResourceClaim {claim} stays prepared and the pod"
        f" Terminating; start that plugin there again (DaemonSet {TEAM}/{NAME})"
    )
    with watch(idle) as observer:
        text = said(upgrade(idle, LIMIT, expect=1, npu_driver_version=version))
        assert f"the pod {TEAM}/{pod} (Deployment {TEAM}/holder) cannot be evicted: {why}" in text, text
        assert untouched(observer, *NPU_NODES) == []

    # A user deletes it.
    idle.kubectl("delete", "pod", pod, "-n", TEAM, "--wait=false")
    idle.wait_for(lambda: ended(idle.pod(pod, TEAM)), PATIENCE, f"no container of {pod} runs", 0.5)
    cluster = kube_client.connect({"kubeconfig": str(idle.controller_kubeconfig)})
    drain = node_drain.Drain(cluster, NODE, drain_policy.DrainPolicy.of())
    with pytest.raises(pod_blocker.Blocked, match=re.escape(why)):
        drain.evict_others()
    assert claim in team.prepared(NODE) and "deletionTimestamp" in idle.pod(pod, TEAM)["metadata"]

    team.start(NODE)
    gone = f"{pod} has ended by itself"
    idle.wait_for(lambda: pod not in {other["metadata"]["name"] for other in running(team)}, PATIENCE, gone, 0.5)
    assert claim not in team.prepared(NODE)
    text = said(idle.playbook("plan", LIMIT, npu_driver_version=version, npu_upgrade_auto=True, **OF_NPUS).stdout)
    assert "does not run on" not in text and "1 (1 NPU) ready" in text, text


def ended(pod: dict) -> bool:
    return all("terminated" in container["state"] for container in pod["status"]["containerStatuses"])


def running(team) -> list[dict]:
    return [pod for pod in team.holders() if pod["status"]["phase"] not in ("Succeeded", "Failed")]
