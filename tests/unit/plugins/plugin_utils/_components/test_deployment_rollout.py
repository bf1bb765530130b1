# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A changed Deployment, brought about against an API server with Kubernetes' controller and a kubelet behind it."""

from __future__ import annotations

import copy

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._components.deployment_rollout import DeploymentRollout, fingerprint_of
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import retry as kube_retry

from support.kube.daemonset_stub import Clock
from support.kube.deployment_stub import DEPLOYMENTS, PODS, DeploymentApi, definition

OLD, NEW = "registry.example/operator:1", "registry.example/operator:2"


@pytest.fixture(name="api")
def fixture_api():
    with DeploymentApi() as server:
        assert bring_about(server, OLD)["action"] == "create"
        assert server.working() == [OLD]
        server.watch()
        yield server


def bring_about(api, image=NEW, check_mode=False, then=lambda _second: None, timeout=60, **container):
    clock = Clock(api, then)
    cluster = kube_client.connect({"host": api.address, "api_key": "token"})
    retrying = kube_retry.RetryingCluster(cluster, lambda _sentence: None, clock, retry_seconds=120)
    wanted = copy.deepcopy(definition(image))
    wanted["spec"]["template"]["spec"]["containers"][0].update(container)
    return DeploymentRollout(retrying, wanted, timeout, lambda _said: None, clock).bring_about(check_mode)


def failure(api, *args, **kwargs):
    with pytest.raises(NpuError) as caught:
        bring_about(api, *args, **kwargs)
    return caught.value.message


def image_of(api):
    return api.objects[DEPLOYMENTS]["operator"]["spec"]["template"]["spec"]["containers"][0]["image"]


def test_the_new_pod_works_before_the_old_one_goes(api):
    change = bring_about(api)
    assert (change["action"], change["label"]) == ("change", "Deployment npu-operator/operator")
    assert api.working() == [NEW] and api.fewest == 1
    assert bring_about(api) is None


def test_check_mode_changes_nothing_and_waits_for_nothing(api):
    before, now = copy.deepcopy(api.objects), api.now
    assert bring_about(api, check_mode=True)["action"] == "change"
    assert (api.objects, api.now) == (before, now)


@pytest.mark.parametrize(
    ("fate", "why"),
    [
        ("no image", "its pod cannot get its image %s: %s: not found" % (NEW, NEW)),
        ("ends", "its pod keeps ending: exit code 0"),
        ("hangs", "its pod is Running"),
        ("no pod", "it has no pod: quota exceeded"),
    ],
)
def test_what_does_not_work_returns_and_the_old_pod_stays(api, fate, why):
    (pod,) = api.objects[PODS].values()
    api.images[NEW] = fate
    told = failure(api)
    assert "Deployment npu-operator/operator: with the image %s it does not work: %s" % (NEW, why) in told
    assert "The previous definition, with the image %s, is restored; its pod was kept and works." % OLD in told
    assert image_of(api) == OLD and api.fewest == 1
    api.pass_time(5)
    assert list(api.objects[PODS].values()) == [pod]
    assert bring_about(api, OLD) is None


def test_what_was_restored_leaves_nothing_in_the_next_definition(api):
    """Such as the probe of a version line whose successor has none: it would end each pod of that."""
    probe = {"httpGet": {"path": "/", "port": 11252}}
    bring_about(api, OLD, livenessProbe=probe)
    api.images[NEW] = "no image"
    assert "is restored" in failure(api)
    assert api.objects[DEPLOYMENTS]["operator"]["spec"]["template"]["spec"]["containers"][0]["livenessProbe"] == probe
    api.images.clear()
    bring_about(api)
    assert fingerprint_of(api.objects[DEPLOYMENTS]["operator"]) == fingerprint_of(definition(NEW))


def test_a_paused_one_is_told_at_once(api):
    api.objects[DEPLOYMENTS]["operator"]["spec"]["paused"] = True
    before = api.now
    told = failure(api)
    assert "it is paused, so it gets no pod: kubectl rollout resume -n npu-operator deployment/operator" in told
    assert "is restored" in told and image_of(api) == OLD and api.now < before + 30


def test_a_run_that_follows_a_killed_one_waits_as_well(api):
    class Killed(Exception):
        pass

    def kill(_second):
        raise Killed

    with pytest.raises(Killed):
        bring_about(api, then=kill)
    assert image_of(api) == NEW and api.working() == [OLD]
    assert bring_about(api) is None
    assert api.working() == [NEW]


def test_a_first_one_that_does_not_work_has_no_way_back(api):
    api.objects[DEPLOYMENTS].clear()
    api.objects[PODS].clear()
    api.images[NEW] = "no image"
    told = failure(api)
    assert "it does not work" in told and "restored" not in told and image_of(api) == NEW


def test_somebody_else_changes_it_meanwhile(api):
    """Theirs stays."""
    theirs = "registry.example/operator:theirs"
    api.images[NEW] = "hangs"

    def change(_second):
        item = api.objects[DEPLOYMENTS]["operator"]
        item["spec"]["template"]["spec"]["containers"][0]["image"] = theirs
        item["metadata"]["generation"] += 1
        api.put(DEPLOYMENTS, item)

    told = failure(api, then=change)
    assert "Another client changed" in told and theirs in told and image_of(api) == theirs


def test_a_controller_manager_that_does_not_run(api):
    api.blind = True
    assert "the controller manager has not seen the change yet" in failure(api)
    assert image_of(api) == OLD
