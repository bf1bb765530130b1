# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the scheduler of Volcano can assign chips, as far as its configuration says."""

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight import volcano_scheduler

from support.kube.stub import ApiServer

CONFIGMAPS = "/api/v1/configmaps"
WITH = """actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: %s
"""


@pytest.fixture(name="api")
def fixture_api():
    with ApiServer() as server:
        server.objects[CONFIGMAPS] = {}
        # Of others, that say what only Volcano's would have to.
        server.put(CONFIGMAPS, {"metadata": {"name": "notes", "namespace": "team"}, "data": {"todo": WITH % "volcano-npu_v1.0.0"}})
        yield server


def judge(api, version_line="26.1", **settings):
    cluster = kube_client.connect({"host": api.address, "api_key": "token"})
    return volcano_scheduler.judge(cluster, version_line, {"volcano": True, **settings})


def configured(api, plugin):
    metadata = {"name": "volcano-scheduler-configmap", "namespace": "volcano-system"}
    api.put(CONFIGMAPS, {"metadata": metadata, "data": {"volcano-scheduler.conf": WITH % plugin}})


@pytest.mark.parametrize("plugin", ["volcano-npu_v26.1.0_linux-aarch64", "volcano-npu_v26.1.0", '"volcano-npu_ours"'])
def test_a_scheduler_with_the_plugin(api, plugin):
    configured(api, plugin)
    assert judge(api) == ([], [])


def test_a_scheduler_without_it_is_refused(api):
    configured(api, "gang")
    (reason,), notes = judge(api)
    assert (
        "no plugin in the ConfigMap volcano-system/volcano-scheduler-configmap has a name that begins with volcano-npu_" in reason
    )
    assert "ascend-for-volcano of MindCluster 26.1, or set npu_device_plugin_volcano: false" in reason and notes == []


def test_another_version_line_is_told(api):
    configured(api, "volcano-npu_v7.3.0_linux-x86_64")
    reasons, (note,) = judge(api)
    assert reasons == [] and "runs volcano-npu_v7.3.0_linux-x86_64, and npu_mindcluster_version_line is 26.1" in note
    assert judge(api, "7.3") == ([], [])


def test_a_scheduler_that_is_not_found_or_may_not_be_looked_for(api):
    reasons, (note,) = judge(api)
    assert reasons == [] and "no ConfigMap volcano-scheduler-configmap is in the cluster" in note
    api.faults["GET", CONFIGMAPS] = (403, 'configmaps is forbidden: User "x" cannot list resource "configmaps" in API group ""')
    reasons, (note,) = judge(api)
    assert reasons == [] and 'the Kubernetes user may not "list" on "configmaps"' in note


@pytest.mark.parametrize("settings", [{"volcano": "false"}, {"volcano": ""}, {"volcano": "maybe"}])
def test_without_volcano_nobody_looks(api, settings):
    assert judge(api, **settings) == ([], [])
    assert not [path for _method, path, *_more in api.requests if path.startswith(CONFIGMAPS)]


@pytest.mark.parametrize("volcano", [True, False])
def test_a_volcano_that_the_run_deploys_has_the_plugin(api, volcano):
    cluster = kube_client.connect({"host": api.address, "api_key": "token"})
    reasons, notes = volcano_scheduler.judge(cluster, "26.1", {"volcano": volcano}, ours=True)
    assert reasons == [] and not any(path.startswith(CONFIGMAPS) for _method, path, *_more in api.requests)
    assert [note.endswith(". Set npu_device_plugin_volcano: true") for note in notes] == ([] if volcano else [True])
