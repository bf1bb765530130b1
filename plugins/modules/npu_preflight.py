#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_preflight
short_description: Judge every NPU host before anything is changed on any of them
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Compares what the hosts said (M(npuops.ascend.npu_facts)) with the cluster and the registry, for all hosts in one
    call.
  - Checks that each host is the node it claims to be (boot ID), that the node is C(Ready), that the driver image of
    each host's profile is in the registry, that the configuration has no unknown variables, and that the Kubernetes
    user may do what install needs.
  - Fails when anything is wrong with any host, and lists everything at once.
  - Runs inside Ansible on the controller, whatever host the task is for. The registry is asked from there too.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - npuops.ascend.attributes
  - npuops.ascend.attributes.info_module
requirements:
  - python >= 3.11
  - kubernetes >= 24.2.0
options:
  hosts:
    description:
      - The hosts to judge, as P(npuops.ascend.npu_hosts#filter) makes them.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Inventory name.
        type: str
        required: true
      facts:
        description: What M(npuops.ascend.npu_facts) returned as RV(npuops.ascend.npu_facts#module:npu).
        type: dict
      error:
        description: Why there are no facts.
        type: str
      pending:
        description: What has to be done on the host before it can be looked at. In check mode it is not done.
        type: str
      unreachable:
        description: Whether the host could not be reached.
        type: bool
        default: false
      variables:
        description: The names of all variables of the host that begin with C(npu_).
        type: list
        elements: str
        default: []
      validation:
        description: Not used by this module.
        type: dict
      config:
        description:
          - The host's configuration. Each key is a variable of the collection without its prefix C(npu_).
          - What is absent or empty has the default that the documentation of the variables names.
        type: dict
        default: {}
        suboptions:
          node_name:
            description: Name of the Node object, if it is not the inventory name.
            type: str
          driver_source:
            description: Where the driver comes from.
            type: str
          driver_version:
            description: Version of the driver package (HDK).
            type: str
          driver_repository:
            description: Repository with the driver images.
            type: str
          driver_image:
            description: A whole image reference instead of repository and profile.
            type: str
          driver_image_path:
            description: Path of the driver tree inside the image.
            type: str
          driver_profile:
            description: C(<chip>-<kernel>-<os>) instead of the computed one.
            type: str
          driver_root:
            description: Directory on the host under which the tree C(driver/) appears.
            type: str
          registry_username:
            description: User name for the registry.
            type: str
          registry_password:
            description: Password for the registry.
            type: str
          registry_plain_http:
            description: Speak HTTP instead of HTTPS to the registry.
            type: bool
          registry_ca_file:
            description: PEM file on the controller with authorities to trust for the registry.
            type: path
  namespace:
    description: Where the components are deployed.
    type: str
    default: npu-operator
  device_plugin:
    description: Whether the device plugin will be deployed.
    type: bool
    default: true
  exporter:
    description: Whether the exporter will be deployed.
    type: bool
    default: true
  node_agent:
    description: Whether the node agent will be deployed.
    type: bool
    default: true
  node_agent_image:
    description: The node agent's image. It is an error if it is not given and the agent will be deployed.
    type: str
"""

EXAMPLES = r"""
- name: Judge all hosts
  npuops.ascend.npu_preflight:
    hosts: "{{ ansible_play_hosts_all | npuops.ascend.npu_hosts(hostvars) }}"
  run_once: true
  register: preflight
"""

RETURN = r"""
hosts:
  description: The verdict on each host, by inventory name.
  returned: success
  type: dict
  contains:
    status:
      description: V(ready), or V(skipped) for a host without a chip.
      type: str
    notes:
      description: What a person should know about the host.
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
      description: What pods ask for.
      type: str
    accelerator:
      description: Value of the node label C(accelerator).
      type: str
    driver_path:
      description: Path of the driver tree on the host.
      type: str
    image:
      description: Reference of the driver image, or null.
      type: str
    digest:
      description: Digest that the reference has in the registry now, or null.
      type: str
    profile:
      description: The tag computed for the host, or null.
      type: str
ready:
  description: Inventory names of the hosts to install.
  returned: success
  type: list
  elements: str
no_chip:
  description: Inventory names of the hosts without a chip.
  returned: success
  type: list
  elements: str
plan:
  description: What install will do with each host, for people.
  returned: success
  type: list
  elements: str
service_monitors:
  description: Whether the cluster knows the kind ServiceMonitor.
  returned: success
  type: bool
admission_policies:
  description: Whether the cluster knows the kind ValidatingAdmissionPolicy in its stable version.
  returned: success
  type: bool
blocked:
  description: Inventory names of the hosts that are not in order.
  returned: failure
  type: list
  elements: str
"""
