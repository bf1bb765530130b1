#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_driver_stage
short_description: Stage an Ascend driver on an NPU host, from an image or a package
version_added: 0.1.0
description:
  - Extracts the driver from a container image, or from one of Huawei's packages (C(.run)), into a release below C(<root>/releases).
    A release is either complete or absent.
  - Pulls the image by digest with the host's own containerd, into a separate namespace, verifies and copies the driver, and removes
    the image from containerd.
  - A package is never run, only read. The controller downloads it, verifies its checksum, and sends it to hosts that lack the
    release. The host verifies the checksum again. If anything fails, nothing of it stays on the host.
  - Fails if the image or package is for another kernel, version or machine, if it has no driver tree, if its kernel modules are
    unsigned on a host that requires signatures, or if O(root) is mounted C(noexec) or has too little free space.
  - Changes no links. The loaded driver stays loaded, and the next boot loads the same driver. Use M(npuops.ascend.npu_driver)
    to activate a release.
author:
  - npuops.ascend maintainers (@npuops)
extends_documentation_fragment:
  - npuops.ascend.attributes
  - npuops.ascend.attributes.host
  - npuops.ascend.registry
attributes:
  check_mode:
    support: full
    details:
      - Queries the registry, and returns what would be staged, with digest and size. Of a package, nothing is downloaded.
  diff_mode:
    support: full
  idempotent:
    support: full
    details:
      - With O(digest), or a digest in O(image), a host that already has the release does not use the network. Nor is a package
        downloaded or sent for it.
options:
  source:
    description:
      - Where the driver is from, V(image) for O(image) or V(package) for O(package). Of the other one, all options are ignored.
      - With O(release), it does not matter.
    type: str
    choices: [image, package]
    default: image
  image:
    description:
      - Reference of the driver image, with a tag, a digest or both. O(state=present) requires O(image), O(package) or O(release).
    type: str
  package:
    description:
      - The driver package (C(.run) file), as the URL of a web server (C(https://) or C(http://)), as an absolute path on the
        controller, or as an artifact with exactly one file in a registry (C(oci://registry.example.com/mlops/ascend-packages:25.5.0)).
      - User name and password do not belong into the URL. What follows a C(?) in it is not shown and not recorded.
    type: str
  package_sha256:
    description:
      - The SHA-256 checksum of the package, as 64 hexadecimal digits. Required with O(source=package).
    type: str
  package_username:
    description:
      - User name for the web server of O(package). For a registry, it is O(registry_username).
    type: str
  package_password:
    description:
      - Password for the web server of O(package). It stays on the controller.
    type: str
  package_file:
    description:
      - Where the package is on the host. Set by the module itself.
    type: path
  firmware_package:
    description:
      - The firmware package (C(.run) file) to add to the release, so that M(npuops.ascend.npu_firmware) can write it.
        It is named as O(package), and counts only with it. A release that is staged without it, or with another one, gets it.
      - By default, a release keeps the firmware package that it has, and a new one gets none.
    type: str
  firmware_package_sha256:
    description:
      - The SHA-256 checksum of O(firmware_package), as 64 hexadecimal digits. Required with it.
    type: str
  firmware_package_username:
    description:
      - User name for the web server of O(firmware_package). For a registry, it is O(registry_username).
    type: str
  firmware_package_password:
    description:
      - Password for the web server of O(firmware_package). It stays on the controller.
    type: str
  firmware_package_file:
    description:
      - Where the firmware package is on the host. Set by the module itself.
    type: path
  release:
    description:
      - Name of a release on the host, instead of O(image) or O(package). If it must be staged again, it is staged from the image
        that it was extracted from. If that was a package, the module fails and says which one.
    type: str
  verify:
    description:
      - Whether to compare the content of all files of a staged release with their checksums. By default only sizes are compared.
      - If a file differs, the release is staged again. If the damaged release is in use (C(driver) or C(good) points to it, or it
        is mounted), the module fails instead.
    type: bool
    default: false
  digest:
    description:
      - Digest of O(image), as C(sha256:) and 64 hexadecimal digits. By default the registry is asked for the digest of the tag.
      - With O(state=absent), only releases from this image are removed.
    type: str
  version:
    description:
      - Driver version that C(version.info) in the image must have, for example V(25.5.0). By default any version is accepted.
    type: str
  root:
    description:
      - The directory that contains C(releases). It, C(releases) and all directories above must be writable by root only.
    type: path
    default: /var/lib/Ascend
  kernel:
    description:
      - Kernel release (C(uname -r)) that the kernel modules must be built for. By default the running kernel.
      - If the host has the C(symvers) of that kernel, the symbol versions of the modules must be those of the kernel. Then modules
        that an image has for another release are also accepted, if the kernel certainly loads them.
    type: str
  path:
    description:
      - Path of the driver tree in the image. By default the directory with C(version.info) and C(lib64).
    type: str
  registry_mirror:
    description:
      - Where the image is pulled from instead of the registry that O(image) names. A prefix such as V(registry.example.com/mirror),
        which takes the place of the registry, or a dictionary of such prefixes by registry.
      - It also applies to the image that O(release) was extracted from, and to an artifact in O(package).
    type: raw
  registry_password:
    description:
      - Password for the registry. It is passed to C(ctr) in a file below C(/run) that only root can read, and that is removed after
        the pull. If the registry uses a token service, the file contains a token instead.
    type: str
  registry_ca_file:
    description:
      - PEM file on the host with the certificate authorities to trust for the registry, besides the system's.
    type: path
  containerd_address:
    description:
      - Socket of the containerd that pulls the image. By default it is the kubelet's, also with k3s, RKE2, k0s and MicroK8s.
    type: path
  ctr:
    description:
      - Path of containerd's C(ctr). By default it is the one that belongs to the kubelet's containerd, or one in C(PATH).
    type: path
  timeout:
    description:
      - Maximum duration in seconds of the pull, of the download of a package, and of sending it to the host, and maximum number of
        seconds to wait for another run that stages on this host.
    type: int
    default: 1800
  prune:
    description:
      - Whether to remove all other releases after staging, except those that are in use (a link points to them, or they are
        mounted), and those that the host would use after a boot into another installed kernel.
    type: bool
    default: false
  state:
    description:
      - V(present) stages O(image) or O(release).
      - V(absent) removes the releases that are not in use. A release is in use if a link points to it, if it is mounted, or if
        the host would use it instead of one that a link points to, after a boot into another kernel with a directory in
        C(/lib/modules).
    type: str
    choices: [present, absent]
    default: present
seealso:
  - module: npuops.ascend.npu_driver
  - module: npuops.ascend.npu_driver_image_build
"""

EXAMPLES = r"""
- name: Stage a driver
  npuops.ascend.npu_driver_stage:
    image: registry.example.com/mlops/ascend-driver:25.5.0-910b-6.6.0-145.0.4.135-oe2403sp3
    version: 25.5.0
    registry_username: puller
    registry_password: "{{ vault_registry_password }}"

- name: Stage a driver from a package
  npuops.ascend.npu_driver_stage:
    source: package
    package: https://files.example.com/Ascend-hdk-910b-npu-driver_25.5.0_linux-aarch64.run
    package_sha256: 3f0a7c1e5b9d2468ace013579bdf02468ace13579bdf02468ace13579bdf0246
    version: 25.5.0

- name: Remove releases that are not in use
  npuops.ascend.npu_driver_stage:
    state: absent
"""

RETURN = r"""
release:
  description: Name of the release, V(none) in check mode if it is not staged yet.
  type: str
  returned: O(state=present)
  sample: 25.5.0-6.6.0-145.0.4.135.oe2403sp3.x86_64-0123456789ab
tree:
  description: Path of the driver tree of the release, V(none) in check mode if it is not staged yet.
  type: str
  returned: O(state=present)
  sample: /var/lib/Ascend/releases/25.5.0-6.6.0-145.0.4.135.oe2403sp3.x86_64-0123456789ab/driver
digest:
  description: Digest of the image, or C(sha256:) and the checksum of the package.
  type: str
  returned: O(state=present)
version:
  description: Version of the driver. In check mode, if it is not staged yet, O(version).
  type: str
  returned: O(state=present)
  sample: 25.5.0
size:
  description: Size of the image's layers or of the package in bytes, V(none) if the registry was not queried.
  type: int
  returned: O(state=present)
needs_package:
  description: Whether the package must be sent to the host first. The module does so by itself.
  type: bool
  returned: O(source=package)
needs_firmware_package:
  description: Whether the firmware package must be sent to the host first. The module does so by itself.
  type: bool
  returned: O(source=package)
removed:
  description: Names of the releases that were removed, or would be in check mode.
  type: list
  elements: str
  returned: success
msg:
  description: Why a release was staged or removed, or would be in check mode.
  type: str
  returned: success
"""

import signal

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.npuops.ascend.plugins.module_utils._activation.firmware_staging import FirmwarePackage
from ansible_collections.npuops.ascend.plugins.module_utils._driver.package_staging import PackageStager
from ansible_collections.npuops.ascend.plugins.module_utils._driver.releases import Layout
from ansible_collections.npuops.ascend.plugins.module_utils._driver.staging import Stager
from ansible_collections.npuops.ascend.plugins.module_utils._firmware import firmware
from ansible_collections.npuops.ascend.plugins.module_utils._host import kernels as host_kernels
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._image import registry_options
from ansible_collections.npuops.ascend.plugins.module_utils._image.mirrored import mirrored


def of_release(options):
    """The options, with the image or package that the release was extracted from."""
    name = options["release"]
    manifest = Layout(options["root"]).manifest(name) or {}
    of_package = isinstance(manifest.get("package"), str)
    needed = ("package" if of_package else "image", "digest", "version", "kernel")
    if not all(isinstance(manifest.get(key), str) for key in needed):
        raise NpuError(
            "Release %s is incomplete on this host, and it is unknown what it was extracted from. Set npu_driver_version to a"
            " version that you have an image or a package of, and run npuops.ascend.upgrade" % name
        )
    found = dict(options, **{key: manifest[key] for key in needed})
    if of_package:
        found.update(source="package", package_sha256=manifest["digest"].rpartition(":")[2], package_file=None)
        # What it has stays.
        found.update(firmware_package=None)
    else:
        found["source"] = "image"
    return found


def stager_of(options):
    common = {name: options[name] for name in ("version", "root", "kernel", "timeout", "verify")}
    if options["source"] == "package":
        wanted = None
        if options["firmware_package"]:
            wanted = FirmwarePackage(*(options["firmware_package" + part] for part in ("", "_sha256", "_file")))
        return PackageStager(options["package"], options["package_sha256"], options["package_file"], wanted, **common)
    return Stager(
        mirrored(options["image"], options["registry_mirror"]),
        digest=options["digest"],
        path=options["path"],
        containerd_address=options["containerd_address"],
        ctr=options["ctr"],
        # Without the mirror: what is staged again may come through another one.
        upstream=options["image"],
        **common,
        **registry_options.access(options),
    )


def present(module):
    options = of_release(module.params) if module.params["release"] else module.params
    stager = stager_of(options)
    layout = stager.layout
    before = listed(layout)
    reasons = []
    reason = stager.reason()
    name = stager.release
    of_package = options["source"] == "package"
    lacks_package, lacks_firmware = of_package and stager.lacks_file, of_package and stager.lacks_firmware_file
    lacks_any = lacks_package or lacks_firmware
    if lacks_package and module.params["release"]:
        raise NpuError(
            "%s. It is from the package %s (SHA-256 %s). Stage it again from there with npuops.ascend.upgrade"
            % (reason, options["package"], options["package_sha256"]),
            release=options["release"],
            package_settings={
                "npu_driver_source": "package",
                "npu_driver_package": options["package"],
                "npu_driver_package_sha256": options["package_sha256"],
                "npu_driver_version": options["version"],
            },
        )
    if reason:
        reasons.append(reason)
        stager.check()
        name = stager.release or stager.expected_release
        if not module.check_mode and not lacks_any:
            name = stager.stage()
    removed = []
    if options["prune"] and not lacks_any:
        removed = prune(layout, module, keep=[name])
        if removed:
            reasons.append("%s is no longer in use" % ", ".join(removed))
    manifest = layout.manifest(name) if name and layout.is_complete(name) else None
    staged = manifest is not None
    result = {
        "changed": bool(reasons),
        "msg": "; ".join(reasons) or "%s is staged" % name,
        "release": name if staged else None,
        "tree": layout.tree(name) if staged else None,
        "digest": stager.digest,
        "version": manifest["version"] if staged else options["version"],
        "size": stager.size,
        "removed": removed,
    }
    if of_package:
        result.update(needs_package=lacks_package, needs_firmware_package=lacks_firmware)
    after = dict(before)
    after.setdefault(name or "the release of %s" % stager.digest, None)
    if of_package and stager.needs_firmware:
        after[name or "the release of %s" % stager.digest] = stager.firmware.digest
    return result, before, {name: after[name] for name in after if name not in removed}


def absent(module):
    layout = Layout(module.params["root"])
    before = listed(layout)
    digest = module.params["digest"]
    keep = [name for name in before if digest and layout.manifest(name).get("digest") != digest]
    removed = prune(layout, module, keep)
    result = {
        "changed": bool(removed),
        "msg": "%s is not in use" % ", ".join(removed) if removed else "There is no unused release",
        "removed": removed,
    }
    return result, before, {name: before[name] for name in before if name not in removed}


def listed(layout):
    """The complete releases, each with the digest of its firmware package, or None."""
    found = {name: firmware.of_manifest(layout.manifest(name) or {}).get("sha256") for name in layout.releases()}
    return {name: "sha256:%s" % found[name] if found[name] else None for name in found}


def lines(releases):
    """Releases for people, as of ``listed``."""
    return "".join("%s%s\n" % (name, ", firmware %s" % releases[name][:19] if releases[name] else "") for name in sorted(releases))


def prune(layout, module, keep):
    kernels = host_kernels.installed()
    names = layout.prunable(keep, kernels)
    if not names or module.check_mode:
        return names
    with layout.lock(module.params["timeout"]):
        return layout.prune(keep, kernels)


def stop(number, frame):
    """Exit with an exception, so that context managers clean up."""
    raise SystemExit(128 + number)


def main():
    module = AnsibleModule(
        argument_spec={
            "source": {"type": "str", "choices": ["image", "package"], "default": "image"},
            "image": {"type": "str"},
            "package": {"type": "str"},
            "package_sha256": {"type": "str"},
            "package_username": {"type": "str"},
            "package_password": {"type": "str", "no_log": True},
            "package_file": {"type": "path"},
            "firmware_package": {"type": "str"},
            "firmware_package_sha256": {"type": "str"},
            "firmware_package_username": {"type": "str"},
            "firmware_package_password": {"type": "str", "no_log": True},
            "firmware_package_file": {"type": "path"},
            "release": {"type": "str"},
            "verify": {"type": "bool", "default": False},
            "digest": {"type": "str"},
            "version": {"type": "str"},
            "root": {"type": "path", "default": "/var/lib/Ascend"},
            "kernel": {"type": "str"},
            "path": {"type": "str"},
            "registry_mirror": {"type": "raw"},
            **registry_options.ARGUMENTS,
            "containerd_address": {"type": "path"},
            "ctr": {"type": "path"},
            "timeout": {"type": "int", "default": 1800},
            "prune": {"type": "bool", "default": False},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
        required_if=[("state", "present", ["image", "package", "release"], True)],
        mutually_exclusive=[("image", "release"), ("package", "release")],
        supports_check_mode=True,
    )
    params = module.params
    if params["state"] == "present" and not params["release"] and not params[params["source"]]:
        module.fail_json(msg="npu_driver_source is %s, but npu_driver_%s is not set" % (params["source"], params["source"]))
    # A lost connection or a cancelled job must not leave credentials or a mount behind.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    try:
        result, before, after = present(module) if module.params["state"] == "present" else absent(module)
    except NpuError as exc:
        module.fail_json(msg=exc.message, **exc.details)
    if module._diff:
        result["diff"] = {
            "before_header": "releases in %s" % module.params["root"],
            "after_header": "releases in %s" % module.params["root"],
            "before": lines(before),
            "after": lines(after),
        }
    module.exit_json(**result)


if __name__ == "__main__":
    main()
