# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """The hosts of the fleet with all that is known of them."""

    DOCUMENTATION = r"""
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
        description: What M(npuops.ascend.npu_validate) returned.
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
          driver_digest:
            description: The image's digest. Counts for more than a tag.
            type: str
          driver_signature_policy:
            description: Whether images must be signed, V(off) or V(require).
            type: str
          driver_signature_keys:
            description: The public keys, as PEM texts or as paths on the controller.
            type: raw
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
"""
