#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_withdraw
short_description: "Step of a playbook: remove nodes from the NPU service of the cluster"
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Removes the labels and annotations of this collection from nodes, waits until the pods of the device plugin, the exporter and
    the node agent have left them, removes the conditions C(npuops.ascend/DriverReady), C(npuops.ascend/ChipsHealthy) and
    C(npuops.ascend/NetworkReady), which the agent wrote, deletes its DeviceTaintRules with the effect C(None), and deletes the
    ConfigMap C(mindx-dl-deviceinfo-<node>) in C(kube-system), in which the device plugin lists the chips of the node, unless the
    device plugin of another client serves the node.
  - Of MindCluster's labels (C(accelerator), C(workerselector) and others), removes those that this collection set, according to the
    managed fields of the Node. Keeps C(npuops.ascend/skip) and C(npuops.ascend/keep-cordoned), which belong to users.
  - Uncordons nodes that a maintenance of this collection left cordoned, unless they have the label C(npuops.ascend/keep-cordoned).
  - Keeps the labels and annotations that the device plugin set, and lists them in RV(left). O(device_plugin_labels) removes them.
  - Checks all hosts first. Changes nothing and fails if pods use the NPUs of a host, or if a host is under maintenance, could not
    be checked, or is not the node that it claims to be.
  - Of O(settings), it uses C(pod_deletion.dra_drivers). Pods with a ResourceClaim of one of these drivers use NPUs.
  - Runs inside Ansible on the controller, whatever host the task is for.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - npuops.ascend.attributes
  - npuops.ascend.attributes.full
  - npuops.ascend.attributes.cluster
  - npuops.ascend.settings
options:
  hosts:
    description: The hosts to remove, as P(npuops.ascend.npu_hosts#filter) returns them.
    type: list
    elements: dict
    required: true
  namespace:
    description: Namespace of the components.
    type: str
    default: npu-operator
  force:
    description: Whether to continue even if pods use the NPUs, a maintenance is under way, or a node was adopted and not returned.
    type: bool
    default: false
  device_plugin_labels:
    description:
      - Whether to remove the labels and annotations that MindCluster's device plugin sets on its node and never removes, after its
        pod has left the node.
      - The following are removed by name, because no other software sets them. These are the labels
        C(node.kubernetes.io/npu.chip.name), C(mind-cluster/npu-chip-memory), C(infer-card-type), C(huawei.com/Ascend910-Recover)
        and C(huawei.com/Ascend910-NetworkRecover), and the annotations C(baseDeviceInfos) and C(superPodID).
      - The labels C(servertype) and C(accelerator-type) and the annotations C(serverIndex), C(serverType) and C(ResetInfo) are
        removed only if the managed fields of the Node show that the device plugin set them last.
    type: bool
    default: false
  timeout:
    description: Seconds to wait until the pods of the components have left the nodes.
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
  description: The changes that were made, or would be made in check mode.
  returned: success
  type: list
  elements: str
left:
  description: The labels and annotations of the device plugin that were kept, as sentences, by inventory name.
  returned: success
  type: dict
left_in_cluster:
  description: What is kept in the cluster beyond the nodes, as sentences.
  returned: success
  type: list
  elements: str
stack:
  description:
    - By optional component of MindCluster, whether there is anything to remove (C(act)); which CustomResourceDefinitions are to
      be removed with it (C(crds)), because its role made them and they have no objects; and the ConfigMaps that it has
      written (C(leftovers)). Nothing while nodes remain.
  returned: success
  type: dict
nodes:
  description: The names of the Node objects, by inventory name.
  returned: success
  type: dict
remaining:
  description: The NPU nodes that remain in service.
  returned: success
  type: list
  elements: str
last:
  description: Whether no NPU node remains in service.
  returned: success
  type: bool
service_monitors:
  description: Whether the cluster knows the kind ServiceMonitor.
  returned: success
  type: bool
namespace:
  description: The namespace of the components.
  returned: success
  type: str
admission_policies:
  description: Whether the cluster knows the kind ValidatingAdmissionPolicy in its stable version.
  returned: success
  type: bool
"""
