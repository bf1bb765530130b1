# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """The hosts of the fleet with their facts and configuration."""

    DOCUMENTATION = r"""
options:
  hosts:
    description:
      - The hosts to evaluate, as P(npuops.ascend.npu_hosts#filter) returns them.
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
        description: Why there are no facts for the host.
        type: str
      pending:
        description: What must be done on the host before facts can be gathered. It is not done in check mode.
        type: str
      unreachable:
        description: Whether the host could not be reached.
        type: bool
        default: false
      variables:
        description: The names of all variables of the host that start with C(npu_).
        type: list
        elements: str
        default: []
      validation:
        description: What M(npuops.ascend.npu_validate) returned.
        type: dict
      config:
        description:
          - The host's configuration. Each key is a variable of the collection without the prefix C(npu_).
          - A key that is absent or empty has the default value of its variable.
        type: dict
        default: {}
        suboptions:
          node_name:
            description: Name of the Node object, if it differs from the inventory name.
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
            description: A complete image reference, instead of repository and profile.
            type: str
          driver_image_path:
            description: Path of the driver tree inside the image.
            type: str
          driver_package:
            description: The driver package, as a URL, as a path on the controller, or as an artifact in a registry.
            type: str
          driver_package_sha256:
            description: SHA-256 checksum of the package.
            type: str
          driver_package_username:
            description: User name for the web server of the package.
            type: str
          driver_package_password:
            description: Password for the web server of the package.
            type: str
          driver_profile:
            description: C(<chip>-<kernel>-<os>), instead of the computed profile.
            type: str
          driver_digest:
            description: Digest of the image. Takes precedence over a tag.
            type: str
          driver_signature_policy:
            description: Whether images must be signed, V(off) or V(require).
            type: str
          driver_signature_keys:
            description: The public keys, as PEM texts or as paths on the controller.
            type: raw
          driver_root:
            description: Directory on the host that contains C(driver).
            type: str
          runtime_mode:
            description: How containers get their chips, V(cdi) or V(ascend).
            type: str
          runtime_package:
            description: The package of the Ascend Docker Runtime, as a URL, a path on the controller, or an artifact in a registry.
            type: str
          runtime_package_sha256:
            description: SHA-256 checksum of that package.
            type: str
          runtime_package_username:
            description: User name for the web server of that package.
            type: str
          runtime_package_password:
            description: Password for the web server of that package.
            type: str
          device_plugin_share_count:
            description: How often each chip is to be offered. Must be the same for all hosts.
            type: raw
          firmware_policy:
            description: Whether upgrades change the firmware of the chips, V(keep) or V(match).
            type: str
          firmware_version:
            description: Version of the firmware that the driver image or the firmware package must have.
            type: str
          firmware_package:
            description: The firmware package for hosts with a driver package, as O(hosts[].config.driver_package).
            type: str
          firmware_package_sha256:
            description: SHA-256 checksum of the firmware package.
            type: str
          firmware_package_username:
            description: User name for the web server of the firmware package.
            type: str
          firmware_package_password:
            description: Password for the web server of the firmware package.
            type: str
          registry_mirror:
            description: Where images are pulled from instead of their own registries, a prefix or a dictionary of prefixes.
            type: raw
          registry_username:
            description: User name for the registry.
            type: str
          registry_password:
            description: Password for the registry.
            type: str
          registry_plain_http:
            description: Whether to use HTTP instead of HTTPS for the registry.
            type: bool
          registry_ca_file:
            description:
              - PEM file on the controller with the certificate authorities to trust for the registry, besides the system's.
            type: path
"""
