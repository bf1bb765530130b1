#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_withdraw
short_description: Remove nodes from the NPU service of the cluster
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Removes the labels and annotations of this collection from nodes, waits until the pods of device plugin, exporter and
    node agent have left them, and deletes what the device plugin wrote about their chips, the ConfigMap
    C(mindx-dl-deviceinfo-<node>) in C(kube-system).
  - Of MindCluster's labels (C(accelerator), C(workerselector) and others) it removes those that this collection set, as
    recorded by the API server. C(npuops.ascend/skip) and C(npuops.ascend/keep-cordoned) belong to users and stay.
  - What the device plugin wrote on the nodes stays too, and is listed in RV(left); O(device_plugin_labels) removes it.
  - Checks all hosts first. Changes nothing while pods use the NPUs of one of them, while one of them is under
    maintenance, could not be checked, or is not the node it claims to be.
  - Runs inside Ansible on the controller, whatever host the task is for.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - npuops.ascend.attributes
  - npuops.ascend.attributes.cluster
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  hosts:
    description: The hosts that leave, as P(npuops.ascend.npu_hosts#filter) makes them.
    type: list
    elements: dict
    required: true
  namespace:
    description: Where the components are.
    type: str
    default: npu-operator
  force:
    description: Whether to continue although pods use the NPUs, or a maintenance is under way.
    type: bool
    default: false
  device_plugin_labels:
    description:
      - Whether to remove the labels and annotations that MindCluster's device plugin writes on its node and never removes, once
        its pod is gone.
      - These are removed by name, because nothing else writes them - the labels C(node.kubernetes.io/npu.chip.name),
        C(mind-cluster/npu-chip-memory), C(infer-card-type), C(huawei.com/Ascend910-Recover) and
        C(huawei.com/Ascend910-NetworkRecover), the annotations C(baseDeviceInfos) and C(superPodID).
      - The labels C(servertype) and C(accelerator-type) and the annotations C(serverIndex), C(serverType) and C(ResetInfo) are
        removed only where the API server recorded that the device plugin set them last.
    type: bool
    default: false
  timeout:
    description: Seconds to wait until the components' pods have left the nodes.
    type: int
    default: 120
seealso:
  - module: npuops.ascend.npu_node
"""

EXAMPLES = r"""
- name: Remove the nodes from service
  npuops.ascend.npu_withdraw:
    hosts: "{{ ansible_play_hosts_all | npuops.ascend.npu_hosts(hostvars) }}"
  run_once: true
  register: withdrawn
"""

RETURN = r"""
done:
  description: The changes made, or those that would be made in check mode.
  returned: success
  type: list
  elements: str
left:
  description: What the device plugin wrote on a node and this module left, as sentences, by inventory name.
  returned: success
  type: dict
nodes:
  description: The names of the Node objects, by inventory name.
  returned: success
  type: dict
remaining:
  description: The nodes that stay in service.
  returned: success
  type: list
  elements: str
last:
  description: Whether no node does.
  returned: success
  type: bool
service_monitors:
  description: Whether the cluster knows the kind ServiceMonitor.
  returned: success
  type: bool
admission_policies:
  description: Whether the cluster knows the kind ValidatingAdmissionPolicy in its stable version.
  returned: success
  type: bool
"""
