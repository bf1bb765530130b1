#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_driver_image_build
short_description: Build a driver image from an Ascend driver package and push it
version_added: 0.1.0
description:
  - Extracts a C(.run) package with its own options C(--noexec --extract), arranges the files as its installer does, keeps the
    kernel modules for one kernel, and pushes the result as a container image with the tag C(<HDK>-<chip>-<kernel>-<os>).
  - The driver version (HDK) is read from the package. The image is reproducible. The same input gives the same digest.
  - If the tag has an image for another architecture, it stays, and the tag becomes an index of both. Each host pulls its own.
  - Needs neither a container engine nor root, so it works in an execution environment.
  - The package is Huawei's software under Huawei's license. Push the image only to registries where that license permits it.
author:
  - npuops.ascend maintainers (@npuops)
extends_documentation_fragment:
  - npuops.ascend.attributes
  - npuops.ascend.registry
attributes:
  check_mode:
    support: full
    details:
      - Builds the image in a temporary directory and compares it with the image in the registry, but does not push it.
  diff_mode:
    support: none
  idempotent:
    support: full
options:
  package:
    description:
      - Path of the C(.run) file, or of the directory with its extracted content.
    type: path
    required: true
  package_sha256:
    description:
      - The SHA-256 checksum of the C(.run) file, as 64 hexadecimal digits. The module fails if it differs.
      - By default the checksum is not verified. Not supported if O(package) is a directory.
    type: str
  firmware:
    description:
      - Path of the firmware package (C(.run) file) that belongs to the driver. It becomes part of the image, and an upgrade with
        C(npu_firmware_policy=match) writes it into the chips.
      - By default, the image has no firmware.
    type: path
  firmware_sha256:
    description:
      - The SHA-256 checksum of the firmware package, as 64 hexadecimal digits. The module fails if it differs.
    type: str
  chip:
    description:
      - The chip in image tags, for example V(910b) or V(310p). Required unless O(profile) is set.
    type: str
  kernel:
    description:
      - The kernel of the hosts, as C(uname -r) prints it or as it is in image tags. The image has modules for this kernel only.
      - Required unless O(profile) is set.
    type: str
  os:
    description:
      - The operating system in image tags, for example V(oe2403sp3). Required unless O(profile) is set or O(kernel) contains it, as
        the kernel releases of openEuler and Kylin do.
    type: str
  profile:
    description:
      - The tag without the version, C(<chip>-<kernel>-<os>). Replaces O(chip), O(kernel) and O(os).
    type: str
  modules:
    description:
      - Directory with additional kernel modules, for example modules that the package built with C(--repack). They take precedence
        over the modules in the package.
    type: path
  repository:
    description:
      - The repository to push to, as C(<registry>/<repository>) without a tag.
    type: str
    required: true
notes:
  - Do not build images for two architectures under one tag at the same time. A registry cannot detect that one overwrites the
    index of the other.
  - Runs on the machine that has the package, usually the controller. That machine needs Python 3.8 or newer with its standard
    library, C(bash) or C(sh), and access to the registry.
seealso:
  - module: npuops.ascend.npu_driver_stage
"""

EXAMPLES = r"""
- name: Push the driver image for openEuler 24.03 SP3 hosts with 910B chips
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
  description: Reference of the image, with its tag.
  type: str
  returned: success
  sample: registry.example.com/mlops/ascend-driver:25.5.0-910b-6.6.0-145.0.4.135-oe2403sp3
digest:
  description: Digest of the image's manifest, also where the tag is an index.
  type: str
  returned: success
version:
  description: Version of the driver, from the package.
  type: str
  returned: success
firmware_version:
  description: Version of the firmware in the image, or V(none).
  type: str
  returned: success
kernel:
  description: Release of the kernel (C(uname -r)) that the modules are for.
  type: str
  returned: success
machine:
  description: Machine of the hosts, as C(uname -m) prints it.
  type: str
  returned: success
modules:
  description: The kernel modules, in load order.
  type: list
  elements: str
  returned: success
msg:
  description: Why the image was pushed, or would be in check mode.
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
from ansible_collections.npuops.ascend.plugins.module_utils._firmware import firmware as driver_firmware
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._image import oci, registry_options
from ansible_collections.npuops.ascend.plugins.module_utils._image.manifests import architecture
from ansible_collections.npuops.ascend.plugins.module_utils._image.reference import parse_reference
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry import RegistryClient


def profile_of(options):
    """``<chip>-<kernel>-<os>`` from the options."""
    if options["profile"]:
        return options["profile"]
    kernel_key, os_key = driver_profile.kernel_and_os(options["kernel"], {})
    if options["os"]:
        os_key = options["os"]
    elif os_key == "linux":
        raise NpuError("Kernel release %s does not contain the OS: set os to the OS in image tags" % options["kernel"])
    return "%s-%s-%s" % (options["chip"], kernel_key, os_key)


def add_firmware(options, workdir, content, driver, chip):
    """Put the firmware package into the image's ``content``; returns its ``Firmware``, or None if there is none.

    ``driver``: version of the driver, ``chip``: as in image tags.
    """
    if not options["firmware"]:
        return None
    if os.path.isdir(options["firmware"]):
        raise NpuError("firmware is the directory %s; it must be the .run file" % options["firmware"])
    driver_firmware.check_chip(os.path.basename(options["firmware"]), chip)
    extracted = run_package.extract(options["firmware"], os.path.join(workdir, "firmware"), options["firmware_sha256"])
    found = driver_firmware.arrange(options["firmware"], extracted, os.path.join(content, driver_firmware.DIRECTORY))
    if not found.supports(driver):
        raise NpuError(
            "The firmware %s works with drivers %s, not with %s: use the firmware package of the same release"
            % (found.version, ", ".join(found.drivers), driver)
        )
    return found


def build(options, workdir, check_mode):
    profile = profile_of(options)
    reference = parse_reference(options["repository"])
    if options["repository"] != reference.name:
        raise NpuError(
            "repository is %s; it must be registry and repository without a tag, such as %s"
            % (options["repository"], reference.name)
        )
    client = RegistryClient(reference.registry, **registry_options.access(options))
    package = run_package.extract(options["package"], workdir, options["package_sha256"])
    tree = os.path.join(workdir, "driver")
    kernel = run_package.assemble(package, tree, options["kernel"] or profile, options["modules"])
    machine = run_package.machine_of(tree)
    found = driver_tree.inspect(tree, tree, kernel, machine)
    content = os.path.join(workdir, "content")
    os.mkdir(content)
    os.chmod(content, 0o755)
    os.rename(tree, os.path.join(content, "driver"))
    brings = add_firmware(options, workdir, content, found.version, profile.partition("-")[0])
    layer = oci.write_layer(content, "", os.path.join(workdir, "layer.tar.gz"))
    annotations = {
        "org.opencontainers.image.title": "Ascend driver %s for %s" % (found.version, profile),
        "org.opencontainers.image.version": found.version,
        "npuops.ascend/version": found.version,
        "npuops.ascend/kernel": kernel,
    }
    if brings:
        annotations[driver_firmware.ANNOTATION_VERSION] = brings.version
        if brings.drivers:
            annotations[driver_firmware.ANNOTATION_DRIVERS] = ",".join(brings.drivers)
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
        "msg": reason or "%s is up to date" % name,
        "image": name,
        "digest": image.digest,
        "version": found.version,
        "firmware_version": brings.version if brings else None,
        "kernel": kernel,
        "machine": machine,
        "modules": [os.path.basename(path) for path in found.modules],
    }


def main():
    module = AnsibleModule(
        argument_spec={
            "package": {"type": "path", "required": True},
            "package_sha256": {"type": "str"},
            "firmware": {"type": "path"},
            "firmware_sha256": {"type": "str"},
            "chip": {"type": "str"},
            "kernel": {"type": "str"},
            "os": {"type": "str"},
            "profile": {"type": "str"},
            "modules": {"type": "path"},
            "repository": {"type": "str", "required": True},
            **registry_options.ARGUMENTS,
        },
        required_one_of=[("profile", "chip"), ("profile", "kernel")],
        mutually_exclusive=[("profile", "os")],
        required_by={"firmware_sha256": ["firmware"]},
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
