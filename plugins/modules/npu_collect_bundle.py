#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_collect_bundle
short_description: "Step of a playbook: write a bundle of diagnostic data of one node"
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Gathers what the cluster reports about a node, and what M(npuops.ascend.npu_collect) finds on its host, and writes both into one
    file on the controller, which only its user may read.
  - A host that is down, a cluster that does not answer, and what the account may not read are not failures. The file
    C(manifest.json) in the bundle lists what is missing and why. The module fails if neither host nor cluster has returned
    anything.
  - Runs inside Ansible on the controller, for the host of the node. M(npuops.ascend.npu_collect) goes through the connection of
    that host.
  - Changes nothing on the host or in the cluster, and never reads a Secret.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - npuops.ascend.attributes
  - npuops.ascend.attributes.cluster
  - npuops.ascend.driver.step
attributes:
  check_mode:
    support: full
    details:
      - Reports what would be written, without asking the host or the cluster.
  diff_mode:
    support: N/A
    details:
      - The module writes a new file in each run.
  idempotent:
    support: N/A
    details:
      - The module writes a new file in each run.
options:
  node:
    description: Name of the Node object.
    type: str
    required: true
  directory:
    description: The directory on the controller in which to write the bundle. It is created if it does not exist.
    type: path
    required: true
  size:
    description: Maximum size of the contents before compression, in MiB.
    type: int
    default: 20
  timeout:
    description: Seconds after which nothing more is begun on the host.
    type: int
    default: 300
  namespace:
    description: Namespace of the components.
    type: str
    default: npu-operator
seealso:
  - module: npuops.ascend.npu_collect
"""

EXAMPLES = r"""
- name: Collect the diagnostic data of the node
  npuops.ascend.npu_collect_bundle:
    node: "{{ npu_node_name | default(inventory_hostname) }}"
    directory: ./npu-collect
  register: bundle

- name: Show the path of the bundle
  ansible.builtin.debug:
    msg: "{{ bundle.line }}"
"""

RETURN = r"""
path:
  description: Absolute path of the bundle, V(none) in check mode.
  returned: success
  type: str
size:
  description: Size of the bundle in bytes.
  returned: success, except in check mode
  type: int
missing:
  description: What exists and is not in the bundle, each with the reason.
  returned: success
  type: list
  elements: str
line:
  description: One line with the node, the path and what is missing.
  returned: success
  type: str
"""
