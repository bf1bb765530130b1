#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_driver_image_build
short_description: Make a driver image of an Ascend driver package and push it
version_added: 0.1.0
description:
  - Extracts a C(.run) package with its own C(--noexec --extract), lays its files out as its installer would, keeps the
    kernel modules of one kernel, and pushes the result as a container image tagged C(<HDK>-<chip>-<kernel>-<os>).
  - The version is read from the package. The image is reproducible, so the same input gives the same digest.
  - Needs no container engine and no root, so it works in an execution environment.
  - The package is Huawei's software under Huawei's licence; keep the image where that licence allows it.
author:
  - npuops.ascend maintainers (@npuops)
extends_documentation_fragment:
  - npuops.ascend.attributes
attributes:
  check_mode:
    support: full
    details:
      - Makes the image in a temporary directory and compares it with the registry's, but pushes nothing.
  diff_mode:
    support: none
  idempotent:
    support: full
options:
  package:
    description:
      - Path of the C(.run) file, or of the directory where it was extracted.
    type: path
    required: true
  package_sha256:
    description:
      - The SHA-256 the file must have, as 64 hexadecimal digits.
    type: str
  chip:
    description:
      - The chip's word in image tags, for example V(910b) or V(310p). Required unless O(profile) is given.
    type: str
  kernel:
    description:
      - The kernel of the hosts, as C(uname -r) says it or as image tags have it. Modules for others are left out.
      - Required unless O(profile) is given.
    type: str
  os:
    description:
      - The OS's word in image tags, for example V(oe2403sp3). Required unless O(profile) is given, or O(kernel) names
        it as openEuler's and Kylin's do.
    type: str
  profile:
    description:
      - The tag without its version, C(<chip>-<kernel>-<os>), in place of the three options above.
    type: str
  modules:
    description:
      - Directory with more kernel modules, for example those the package built with C(--repack). They count before the
        package's own.
    type: path
  repository:
    description:
      - Where to push, registry and repository without a tag.
    type: str
    required: true
  registry_username:
    description:
      - User name for the registry.
    type: str
  registry_password:
    description:
      - Password for the registry.
    type: str
  registry_plain_http:
    description:
      - Whether the registry is to be spoken to without TLS.
    type: bool
    default: false
  registry_ca_file:
    description:
      - PEM file with the authorities to trust for the registry, besides the system's.
    type: path
"""

EXAMPLES = r"""
- name: Publish the driver for openEuler 24.03 SP3 hosts with 910B
  npuops.ascend.npu_driver_image_build:
    package: /srv/packages/Ascend-hdk-910b-npu-driver_25.5.0_linux-aarch64.run
    chip: 910b
    kernel: 6.6.0-145.0.4.135.oe2403sp3.aarch64
    repository: registry.example.com/mlops/ascend-driver
    registry_username: pusher
    registry_password: "{{ vault_registry_password }}"
  delegate_to: localhost
"""

RETURN = r"""
image:
  description: Reference of the image by tag.
  type: str
  returned: success
  sample: registry.example.com/mlops/ascend-driver:25.5.0-910b-6.6.0-145.0.4.135-oe2403sp3
digest:
  description: Digest of the image's manifest.
  type: str
  returned: success
version:
  description: Version of the driver, from the package.
  type: str
  returned: success
kernel:
  description: Kernel release the modules are for.
  type: str
  returned: success
machine:
  description: The hosts' machine as C(uname -m) says it.
  type: str
  returned: success
modules:
  description: The kernel modules, in the order in which they load.
  type: list
  elements: str
  returned: success
msg:
  description: Why the image was pushed, or would be.
  type: str
  returned: success
"""

import os
import shutil
import tempfile

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.npuops.ascend.plugins.module_utils._driver import profile as driver_profile
from ansible_collections.npuops.ascend.plugins.module_utils._driver import run_package
from ansible_collections.npuops.ascend.plugins.module_utils._driver import tree as driver_tree
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._image import oci
from ansible_collections.npuops.ascend.plugins.module_utils._image.manifests import architecture
from ansible_collections.npuops.ascend.plugins.module_utils._image.reference import parse_reference
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry import RegistryClient


def profile_of(options):
    """``<chip>-<kernel>-<os>`` as the options say it."""
    if options["profile"]:
        return options["profile"]
    kernel_key, os_key = driver_profile.kernel_and_os(options["kernel"], {})
    if options["os"]:
        os_key = options["os"]
    elif os_key == "linux":
        raise NpuError("Kernel %s does not tell the OS; give os as image tags have it" % options["kernel"])
    return "%s-%s-%s" % (options["chip"], kernel_key, os_key)


def build(options, workdir, check_mode):
    profile = profile_of(options)
    reference = parse_reference(options["repository"])
    if options["repository"] != reference.name:
        raise NpuError(
            "repository must be registry and repository without a tag, like %s, not %s" % (reference.name, options["repository"])
        )
    client = RegistryClient(
        reference.registry,
        options["registry_username"],
        options["registry_password"],
        options["registry_plain_http"],
        options["registry_ca_file"],
    )
    package = run_package.extract(options["package"], workdir, options["package_sha256"])
    tree = os.path.join(workdir, "driver")
    kernel = run_package.assemble(package, tree, options["kernel"] or profile, options["modules"])
    machine = run_package.machine_of(tree)
    found = driver_tree.inspect(tree, tree, kernel, machine)
    layer = oci.write_layer(tree, "driver", os.path.join(workdir, "layer.tar.gz"))
    annotations = {
        "org.opencontainers.image.title": "Ascend driver %s for %s" % (found.version, profile),
        "org.opencontainers.image.version": found.version,
        "npuops.ascend/version": found.version,
        "npuops.ascend/kernel": kernel,
    }
    if options["chip"]:
        annotations["npuops.ascend/chip"] = options["chip"]
    image = oci.Image(
        client,
        reference.repository,
        driver_profile.profile_tag(found.version, profile),
        layer,
        architecture(machine),
        annotations,
    )
    reason = image.reason()
    if reason and not check_mode:
        image.push()
    name = "%s:%s" % (reference.name, image.tag)
    return {
        "changed": reason is not None,
        "msg": reason or "%s is the same already" % name,
        "image": name,
        "digest": image.digest,
        "version": found.version,
        "kernel": kernel,
        "machine": machine,
        "modules": [os.path.basename(path) for path in found.modules],
    }


def main():
    module = AnsibleModule(
        argument_spec={
            "package": {"type": "path", "required": True},
            "package_sha256": {"type": "str"},
            "chip": {"type": "str"},
            "kernel": {"type": "str"},
            "os": {"type": "str"},
            "profile": {"type": "str"},
            "modules": {"type": "path"},
            "repository": {"type": "str", "required": True},
            "registry_username": {"type": "str"},
            "registry_password": {"type": "str", "no_log": True},
            "registry_plain_http": {"type": "bool", "default": False},
            "registry_ca_file": {"type": "path"},
        },
        required_one_of=[("profile", "chip"), ("profile", "kernel")],
        mutually_exclusive=[("profile", "os")],
        supports_check_mode=True,
    )
    workdir = tempfile.mkdtemp(prefix="npu-image-", dir=module.tmpdir)
    try:
        result = build(module.params, workdir, module.check_mode)
    except NpuError as exc:
        module.fail_json(msg=exc.message, **exc.details)
    finally:
        shutil.rmtree(workdir, ignore_errors=True)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
