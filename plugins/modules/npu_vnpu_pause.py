#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_vnpu_pause
short_description: "Step of a playbook: take nodes out of the NPU service while their virtual NPUs change"
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Pauses the components of nodes, so that the kubelet gives no NPU to any pod until M(npuops.ascend.npu_vnpu) has changed the
    virtual NPUs of the host. The device plugin looks for virtual NPUs only when it starts. C(npuops.ascend.install) runs it.
  - Sets the label C(npuops.ascend/components=paused) and the annotation C(npuops.ascend/vnpu-change), and waits until the pods of
    device plugin, exporter and node agent have left.
  - Changes nothing and fails if pods use the NPUs of one of the nodes, or if one of them is in maintenance or is
    already paused, but not by this module. If a pod gets an NPU before the device plugin has left, everything is given back.
  - Of O(settings), it uses C(pod_deletion.dra_drivers). Pods with a ResourceClaim of one of these drivers use NPUs.
  - Runs inside Ansible on the controller, whatever host the task is for.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - npuops.ascend.attributes
  - npuops.ascend.attributes.full
  - npuops.ascend.attributes.cluster
  - npuops.ascend.settings
options:
  nodes:
    description: Names of the nodes.
    type: list
    elements: str
    required: true
  state:
    description:
      - V(resumed) gives back what V(paused) did, and leaves other nodes unchanged.
    type: str
    choices: [paused, resumed]
    default: paused
  namespace:
    description: Namespace of the components.
    type: str
    default: npu-operator
  timeout:
    description: Seconds to wait until the pods of the components have left the nodes.
    type: int
    default: 120
seealso:
  - module: npuops.ascend.npu_vnpu
"""

EXAMPLES = r"""
- name: Take the nodes out of the NPU service
  npuops.ascend.npu_vnpu_pause:
    nodes: "{{ preflight.pause }}"
  run_once: true
"""

RETURN = r"""
done:
  description: The changes that were made, or would be made in check mode.
  returned: success
  type: list
  elements: str
"""
