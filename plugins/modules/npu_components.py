#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_components
short_description: "Step of a playbook: find out which components an upgrade may change"
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Tells which components of C(npuops.ascend.install) are in the cluster, and what their definitions depend on. An upgrade compares
    these components with their definitions, and rolls out those that differ.
  - Changes nothing.
  - Runs inside Ansible on the controller, whatever host the task is for.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - npuops.ascend.attributes
  - npuops.ascend.attributes.cluster
  - npuops.ascend.attributes.info_module
  - npuops.ascend.components
  - npuops.ascend.hosts
options:
  namespace:
    description: Namespace of the components.
    type: str
    default: npu-operator
  heed_halt:
    description: Whether a rollout that is halted keeps the components as they are.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Find the components
  npuops.ascend.npu_components:
    hosts: "{{ ansible_play_hosts_all | npuops.ascend.npu_hosts(hostvars) }}"
    components: "{{ hostvars | npuops.ascend.npu_component_settings(inventory_hostname) }}"
  run_once: true
  register: components
"""

RETURN = r"""
deploy:
  description:
    - Whether each component may be changed. Those that may are enabled and in the cluster, and nothing keeps the run from it. They
      are in the order in which install deploys them.
  returned: always
  type: dict
left_alone:
  description: Why no component is changed, such as nodes that the run leaves out. Null if nothing keeps the run from it.
  returned: always
  type: str
version_line:
  description: O(mindcluster_version_line), or null if no component of MindCluster may be changed.
  returned: always
  type: str
unfit:
  description: Which nodes have a driver that O(mindcluster_version_line) does not support, as clauses.
  returned: always
  type: list
  elements: str
accelerators:
  description: The chip families of the device plugins in the cluster, by the node label C(accelerator).
  returned: always
  type: list
  elements: str
driver_path:
  description: The driver directory on the hosts, null if no host was reached.
  returned: always
  type: str
kubelet_dir:
  description: The kubelet's directory on the hosts.
  returned: always
  type: str
containerd_dir:
  description: The directory of containerd's socket on the hosts.
  returned: always
  type: str
admission_policies:
  description: Whether the cluster has ValidatingAdmissionPolicies.
  returned: always
  type: bool
service_monitors:
  description: Whether the cluster has the Prometheus operator's resources.
  returned: always
  type: bool
stack:
  description:
    - By optional component of MindCluster, which CustomResourceDefinitions that it brings do not exist or were made by its role
      (C(crds)).
  returned: always
  type: dict
kubelet_pods:
  description: Whether the device plugin can get the pods of its node from the kubelet.
  returned: always
  type: bool
"""
