#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_objects
short_description: Manage a list of Kubernetes objects in one call
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Applies several objects like M(kubernetes.core.k8s) with C(apply=true), with the code of kubernetes.core.
  - It is made for the roles of this collection, which often run without any changes. It takes a tenth of the time of
    M(kubernetes.core.k8s), names each object that changes, and shows a diff for each. In check mode, it supports namespaces that
    do not exist yet.
  - Runs inside Ansible on the controller, whatever host the task is for.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - npuops.ascend.attributes
  - npuops.ascend.attributes.full
  - npuops.ascend.attributes.cluster
options:
  definitions:
    description: The objects as YAML documents.
    type: str
    required: true
  state:
    description:
      - Whether the objects must exist. Fields that are not in a definition are not changed, unless they were in the definition that
        was applied before.
    type: str
    choices: [present, absent]
    default: present
seealso:
  - module: kubernetes.core.k8s
"""

EXAMPLES = r"""
- name: Deploy the exporter
  npuops.ascend.npu_objects:
    definitions: "{{ lookup('ansible.builtin.template', 'npu-exporter.yaml.j2') }}"
  run_once: true
"""

RETURN = r"""
changes:
  description: What changed, or would change in check mode.
  returned: success
  type: list
  elements: str
  sample:
    - change DaemonSet npu-operator/npu-exporter
"""
