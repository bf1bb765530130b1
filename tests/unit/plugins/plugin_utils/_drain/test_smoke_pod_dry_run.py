# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import smoke_pod_dry_run
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client

PODS = "/api/v1/namespaces/train/pods"
MANIFEST = """
apiVersion: v1
kind: Pod
metadata: {name: smoke, namespace: train}
spec:
  containers: [{name: main, image: registry/smoke:1}]
"""


@pytest.fixture
def problems(api, tmp_path):
    """A function: what the plan says of the smoke pod."""

    def ask(text=MANIFEST):
        path = tmp_path / "smoke.yml"
        path.write_text(text, encoding="utf-8")
        return smoke_pod_dry_run.problems(kube_client.connect({"host": api.address, "api_key": "token"}), str(path), "npu-a")

    return ask


def test_nothing_is_created(api, problems):
    assert problems() == [] and not api.objects.get(PODS)
    assert ("POST", PODS) in api.requests


def test_without_a_smoke_pod_nothing_is_asked():
    assert smoke_pod_dry_run.problems(None, None, "npu-a") == []


def test_a_manifest_that_cannot_be_read(tmp_path):
    path = str(tmp_path / "nowhere.yml")
    (told,) = smoke_pod_dry_run.problems(None, path, "npu-a")
    assert told.startswith("npu_upgrade_smoke_pod cannot be read: ") and path in told


def test_a_manifest_of_something_else(problems):
    assert problems("kind: Job") == ["This definition lacks apiVersion, kind or metadata.name: {'kind': 'Job'}"]


@pytest.mark.parametrize("verb", ["get", "create", "delete"])
def test_a_permission_that_is_missing(api, problems, verb):
    """Without delete, the pod of one upgrade is in the way of the next."""
    api.denied = {(verb, "pods")}
    assert problems() == ['for npu_upgrade_smoke_pod, the Kubernetes user may not "%s" on "pods" in the namespace train' % verb]
    assert ("POST", PODS) not in api.requests


@pytest.mark.parametrize(
    "status, message",
    [
        (404, 'namespaces "train" not found'),
        (403, 'pods "smoke" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true'),
        (403, 'pods "smoke" is forbidden: exceeded quota: chips'),
        (422, 'Pod "smoke" is invalid: spec.containers: Required value'),
    ],
)
def test_what_the_api_server_would_refuse(api, problems, status, message):
    api.faults["POST", PODS] = (status, message)
    (told,) = problems()
    assert told.startswith("the smoke pod train/smoke-") and told.endswith(message)


@pytest.mark.parametrize(
    "status, message",
    [
        (409, 'pods "smoke" already exists'),
        (429, "too many requests"),
        (400, "admission webhook mine.example.com does not support dry run"),
    ],
)
def test_what_says_nothing_about_the_pod(api, problems, status, message):
    api.faults["POST", PODS] = (status, message)
    assert problems() == []
