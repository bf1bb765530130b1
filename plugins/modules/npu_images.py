#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_images
short_description: "Step of a playbook: list the images that the fleet needs"
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Lists the driver image of each host, by its chips, kernel and operating system, or its driver package, the image with which
    C(npuops.ascend.accept) tests its chips, if it has one, and the images of the components that C(npuops.ascend.install) deploys.
  - The names are those upstream, not those in a registry mirror. Images whose name in the inventory is below C(npu_registry_mirror)
    of their host are not listed, but for those of O(extra); RV(table) names them.
  - Fails if the driver image of a host is not known, for example because the host could not be reached.
  - Uses neither a registry nor the cluster. Runs inside Ansible on the controller, whatever host the task is for.
extends_documentation_fragment:
  - npuops.ascend.attributes
  - npuops.ascend.attributes.info_module
  - npuops.ascend.hosts
  - npuops.ascend.components
requirements:
  - python >= 3.11
options:
  driver_versions:
    description:
      - The versions of the driver to list for each host. By default, it is the version that the configuration of the host has.
      - For a host whose driver comes from a package, only the configured package is listed.
    type: list
    elements: str
    default: []
  execution_environment_image:
    description: Image of the execution environment of AWX, if it is to be listed.
    type: str
  extra:
    description: Further images to list.
    type: list
    elements: str
    default: []
seealso:
  - module: npuops.ascend.npu_mirror
"""

EXAMPLES = r"""
- name: List the images of the fleet, for the present driver and the next one
  npuops.ascend.npu_images:
    hosts: "{{ ansible_play_hosts_all | npuops.ascend.npu_hosts(hostvars) }}"
    driver_versions: [25.5.0, 25.5.1]
    components: "{{ hostvars | npuops.ascend.npu_component_settings(inventory_hostname) }}"
  run_once: true
"""

RETURN = r"""
images:
  description: The images, each once.
  type: list
  elements: str
  returned: success
packages:
  description:
    - The packages of drivers, firmware and the Ascend Docker Runtime on web servers, each once. Those that are artifacts in a
      registry are among RV(images); files on the controller are not listed.
  type: list
  elements: dict
  returned: success
  contains:
    package:
      description: URL of the package, without its query.
      type: str
    sha256:
      description: SHA-256 of the package.
      type: str
needed_by:
  description: The same images with what needs them.
  type: list
  elements: dict
  returned: success
  contains:
    image:
      description: Reference of the image.
      type: str
    needed_by:
      description: What needs it.
      type: list
      elements: str
      sample: ["driver of npu-a", "driver of npu-b"]
table:
  description: Images and packages as lines for people.
  type: list
  elements: str
  returned: success
"""
