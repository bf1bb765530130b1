#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_image_white_list
short_description: "Step of a playbook: allow driver images in the cluster's ImageWhiteList"
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Some platforms have the kind C(ImageWhiteList). Driver images that its object C(ascend-driver) in C(cpaas-system) does not name
    may not run. The module adds driver images to it, in the form in which those are written that it names already.
  - Does nothing in a cluster that does not have the kind.
  - Fails if the object does not exist, or does not show how a driver image is written, because the kind has no public definition.
  - Runs inside Ansible on the controller, whatever host the task is for.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - npuops.ascend.attributes
  - npuops.ascend.attributes.full
  - npuops.ascend.attributes.cluster
options:
  images:
    description: References of images. Those whose tag is not that of a driver image are ignored.
    type: list
    elements: str
    required: true
seealso:
  - module: npuops.ascend.npu_mirror
"""

EXAMPLES = r"""
- name: Allow the driver of the next upgrade
  npuops.ascend.npu_image_white_list:
    images: [registry.example.com/mlops/ascend-driver:25.5.1-910b-6.6.0-145.0.4.135-oe2403sp3]
  run_once: true
"""

RETURN = r"""
added:
  description: The entries that were added, or would be in check mode.
  returned: success
  type: list
  elements: str
"""
