# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The templates of roles, rendered with settings as a user has them."""

from __future__ import annotations

import json
import os

import jinja2
import yaml
from ansible_collections.npuops.ascend.plugins.module_utils._image.mirrored import mirrored
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import mindcluster
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import stack as mindcluster_stack

from support.paths import CHECKOUT

ROLES = CHECKOUT / "roles"
SHARED = {
    "npu_namespace": "npu-operator",
    "npu_registry_mirror": "",
    "npu_image_pull_policy": "IfNotPresent",
    "npu_image_pull_secrets": ["one", "two"],
    "npu_rollout_max_unavailable": "10%",
    "npu_tolerations": [{"key": "dedicated", "operator": "Exists"}],
}
PLUGIN = dict(
    SHARED,
    npu_device_plugin_image="registry.example/plugin:v7.3.0",
    npu_device_plugin_driver_path="/var/lib/Ascend/driver",
    npu_device_plugin_kubelet_dir="/var/lib/kubelet",
    npu_device_plugin_containerd_dir="/run/containerd",
    npu_device_plugin_datatrace_dir="/user/cluster-info/datatrace-config",
    npu_device_plugin_kubelet_pods=False,
    npu_node_agent_enabled=False,
    __npu_version_line=mindcluster.version_line("7.3"),
    __npu_device_plugin_families=["huawei-Ascend910"],
)
AGENT = dict(
    SHARED,
    npu_node_agent_image="registry.example/agent:0.1.0",
    npu_node_agent_driver_path="/var/lib/Ascend/driver",
    npu_node_agent_probe_interval=60,
    npu_node_agent_probe_timeout=30,
    npu_node_agent_probe_failures=3,
    npu_node_agent_admission_policy=True,
    npu_node_agent_device_taints=False,
    npu_node_agent_scrapers=[{"podSelector": {"matchLabels": {"app": "prometheus"}}}],
    npu_node_agent_monitoring_labels={"release": "prometheus"},
    __npu_node_agent_alerts={"groups": [{"name": "x", "rules": []}]},
)
EXPORTER = dict(
    SHARED,
    npu_exporter_image="registry.example/exporter:v7.3.0",
    npu_exporter_driver_path="/usr/local/Ascend/driver",
    npu_exporter_containerd_dir="/run/containerd",
    npu_exporter_scrapers=[{"podSelector": {"matchLabels": {"app": "prometheus"}}}],
    npu_exporter_service_monitor_labels={"release": "prometheus"},
    __npu_version_line=mindcluster.version_line("7.3"),
)
OPERATOR = dict(
    SHARED,
    npu_ascend_operator_image="registry.example/operator:v7.3.0",
    npu_ascend_operator_gang_scheduling=True,
    npu_ascend_operator_ranktable_dir="",
    npu_ascend_operator_resources={"limits": {"cpu": "2", "memory": "3Gi"}},
    npu_ascend_operator_node_selector={"masterselector": "dls-master-node"},
    npu_ascend_operator_tolerations=[{"key": "dedicated", "operator": "Exists"}],
    __npu_version_line=mindcluster.version_line("7.3"),
)
VOLCANO = dict(
    SHARED,
    npu_volcano_scheduler_image="registry.example/vc-scheduler:v7.3.0",
    npu_volcano_controllers_image="registry.example/vc-controller-manager:v7.3.0",
    npu_volcano_ssh_plugin=False,
    npu_volcano_scheduler_resources={"limits": {"cpu": "5500m", "memory": "8Gi"}},
    npu_volcano_controllers_resources={"limits": {"cpu": "2", "memory": "3Gi"}},
    npu_volcano_node_selector={"masterselector": "dls-master-node"},
    npu_volcano_tolerations=[{"key": "dedicated", "operator": "Exists"}],
    npu_volcano_crds=[
        crd.name for component in mindcluster_stack.COMPONENTS if component.part == "volcano" for crd in component.crds
    ],
    npu_volcano_leftovers=[{"namespace": "volcano-system", "name": "vcjob-fault-npu-cm"}],
    __npu_version_line=mindcluster.component("7.3", "npu_volcano", {}),
)
CLUSTERD = dict(
    SHARED,
    npu_clusterd_image="registry.example/clusterd:v7.3.0",
    npu_clusterd_config_dir="",
    npu_clusterd_slow_node_dir="",
    npu_clusterd_resources={"limits": {"cpu": "1", "memory": "1Gi"}},
    npu_clusterd_node_selector={"masterselector": "dls-master-node"},
    npu_clusterd_tolerations=[{"key": "dedicated", "operator": "Exists"}],
    npu_clusterd_leftovers=[{"namespace": "mindx-dl", "name": "cluster-info-node-cm"}],
    __npu_version_line=mindcluster.version_line("7.3"),
)
NODED = dict(
    SHARED,
    npu_noded_image="registry.example/noded:v7.3.0",
    npu_noded_driver_path="/var/lib/Ascend/driver",
    npu_noded_pingmesh_dir="",
    npu_noded_profiling_dir="",
    npu_noded_resources={"limits": {"cpu": "500m", "memory": "300Mi"}},
    npu_noded_leftovers=[{"namespace": "mindx-dl", "name": "mindx-dl-nodeinfo-a"}],
    __npu_version_line=mindcluster.version_line("7.3"),
)


def render(role, template, variables):
    """{kind: object} of a role's template."""
    return {item["kind"]: item for item in render_all(role, template, variables)}


def plugin_of(family, variables=None, version_line="7.3"):
    """{kind: object} of the device plugin of one family."""
    variables = dict(
        variables or PLUGIN,
        __npu_device_plugin_families=[family],
        __npu_version_line=mindcluster.version_line(version_line),
    )
    return render("npu_device_plugin", "device-plugin.yaml.j2", variables)


def render_all(role, template, variables):
    """The objects of a role's template."""
    loader = jinja2.FileSystemLoader([os.path.join(ROLES, name, "templates") for name in (role, "npu_component")])
    environment = jinja2.Environment(loader=loader, trim_blocks=True, undefined=jinja2.StrictUndefined, autoescape=False)
    environment.filters.update(to_json=json.dumps, bool=bool, dirname=os.path.dirname, **{"npuops.ascend.npu_mirrored": mirrored})
    constants = {}
    for name in ("npu_component", role):
        known = yaml.safe_load((ROLES / name / "vars" / "main.yml").read_text(encoding="utf-8"))
        constants.update((name, value) for name, value in known.items() if "{{" not in str(value))
    text = environment.get_template(template).render(constants, **variables)
    return [item for item in yaml.safe_load_all(text) if item]
