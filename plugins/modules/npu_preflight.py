#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_preflight
short_description: "Step of a playbook: check every NPU host before any of them is changed"
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Compares the facts of the hosts (M(npuops.ascend.npu_facts)) with the cluster and the registry, for all hosts in one
    call.
  - Checks that each host is the node it claims to be (boot ID), that the node is C(Ready), that the driver image of
    each host's profile is in the registry, that the configuration has no unknown variables, and that the Kubernetes
    user may do what install needs.
  - Checks that each host can have the virtual NPUs of C(npu_vnpu), and that no pod uses the NPUs of a node whose virtual NPUs
    change. Of O(settings), it uses C(pod_deletion.dra_drivers). Pods with a ResourceClaim of one of these drivers use NPUs.
  - Fails if any host has a problem, unless O(leave_out), and lists all problems at once.
  - Runs inside Ansible on the controller, whatever host the task is for. It also queries the registry from there.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - npuops.ascend.attributes
  - npuops.ascend.attributes.cluster
  - npuops.ascend.attributes.info_module
  - npuops.ascend.hosts
  - npuops.ascend.settings
  - npuops.ascend.components
options:
  namespace:
    description: Namespace of the components.
    type: str
    default: npu-operator
  image_pull_secrets:
    description: Names of the pull secrets in O(namespace) that the pods will have.
    type: list
    elements: str
    default: []
  rollout_max_unavailable:
    description:
      - Maximum number of nodes on which pods of a DaemonSet are replaced at once. Must be a number of at least 1, or a percentage
        from V(1%) to V(100%).
    type: str
    default: "1"
  adopting:
    description:
      - Whether M(npuops.ascend.npu_adopt) is going to move nodes from other device plugins. These are not reported then, and nodes
        that have not moved get no components from M(npuops.ascend.npu_node).
    type: bool
    default: false
  leave_out:
    description:
      - Whether hosts with problems are left out, instead of keeping the others from being installed. They are in RV(blocked), but
        not in RV(ready). A problem of the cluster is a failure nevertheless.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Run the preflight checks
  npuops.ascend.npu_preflight:
    hosts: "{{ ansible_play_hosts_all | npuops.ascend.npu_hosts(hostvars) }}"
    components: "{{ hostvars | npuops.ascend.npu_component_settings(inventory_hostname) }}"
  run_once: true
  register: preflight
"""

RETURN = r"""
stack:
  description:
    - By optional component of MindCluster, whether its role has anything to do (C(act)), because the component is enabled or in
      the cluster; which CustomResourceDefinitions the role is to make (C(crds)), as the cluster does not have them from another
      source; and the ConfigMaps that a disabled component has written, which are to be removed with it (C(leftovers)).
  returned: success
  type: dict
hosts:
  description: The result for each host, by inventory name.
  returned: success
  type: dict
  contains:
    status:
      description: V(ready), V(skipped) for a host without a chip, V(blocked) or V(unreachable) for one that is left out.
      type: str
    notes:
      description: Notes about the host.
      type: list
      elements: str
    node_name:
      description: Name of the Node object.
      type: str
    family:
      description: Chip family.
      type: str
    chips:
      description: Number of chips.
      type: int
    resource:
      description: The resource that pods request.
      type: str
    accelerator:
      description: Value of the node label C(accelerator).
      type: str
    driver_path:
      description: Path of the driver tree on the host.
      type: str
    distribution:
      description: Kubernetes distribution of the host, one of V(containerd), V(k3s), V(rke2), V(k0s) and V(microk8s).
      type: str
    image:
      description: Reference of the driver image, in the registry mirror if there is one, or null.
      type: str
    upstream:
      description: The same without a registry mirror.
      type: str
    digest:
      description: Digest that the reference has in the registry now, or null.
      type: str
    profile:
      description: Tag of the driver image that was computed for the host, or null.
      type: str
    other_kernels:
      description:
        - What is to be staged for kernels that do not run yet, with C(kernel), C(version), C(image), C(upstream),
          C(digest) and C(release).
      type: list
      elements: dict
    vnpu_layout:
      description: The option O(npuops.ascend.npu_vnpu#module:layout) of M(npuops.ascend.npu_vnpu), null if nothing changes.
      type: list
      elements: dict
    vnpu_pause:
      description: Whether the node leaves the NPU service while its virtual NPUs change.
      type: bool
ready:
  description: Inventory names of the hosts to install.
  returned: success
  type: list
  elements: str
look:
  description:
    - Options of single hosts for M(npuops.ascend.npu_many_hosts), by inventory name. They are for the hosts on which, as far as
      their facts tell, no driver is to be staged and no virtual NPU changes.
  returned: success
  type: dict
  contains:
    driver:
      description: Options of M(npuops.ascend.npu_driver).
      type: dict
    validation:
      description: Options of M(npuops.ascend.npu_validate).
      type: dict
pause:
  description:
    - The names of the nodes that leave the NPU service while their virtual NPUs change, as M(npuops.ascend.npu_vnpu_pause) says.
  returned: success
  type: list
  elements: str
no_chip:
  description: Inventory names of the hosts without a chip.
  returned: success
  type: list
  elements: str
plan:
  description: What install will do with each host, as text.
  returned: success
  type: list
  elements: str
service_monitors:
  description: Whether the cluster knows the kind ServiceMonitor.
  returned: success
  type: bool
components:
  description: The namespace of the components, and which of those that run on the nodes are deployed.
  returned: success
  type: dict
  contains:
    namespace:
      description: The namespace.
      type: str
    device_plugin:
      description: Whether the device plugin is deployed.
      type: bool
    exporter:
      description: Whether the exporter is deployed.
      type: bool
    node_agent:
      description: Whether the node agent is deployed.
      type: bool
    noded:
      description: Whether noded is deployed.
      type: bool
admission_policies:
  description: Whether the cluster knows the kind ValidatingAdmissionPolicy in its stable version.
  returned: success
  type: bool
kubelet_pods:
  description:
    - Whether every kubelet of the cluster supports fine-grained authorization, so that the node agent can be granted the list of
      pods alone. It is enabled by default from Kubernetes 1.33, see
      U(https://kubernetes.io/docs/reference/access-authn-authz/kubelet-authn-authz/).
  returned: success
  type: bool
blocked:
  description: Inventory names of the hosts with problems. Without O(leave_out), there are none on success.
  returned: always
  type: list
  elements: str
problems:
  description: What is wrong with RV(blocked), as text. A problem that several hosts share is one line, with their names.
  returned: success
  type: list
  elements: str
"""
