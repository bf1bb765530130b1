#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_driver_stage
short_description: Stage an Ascend driver image on an NPU host
version_added: 0.1.0
description:
  - Extracts the driver from a container image into a release below C(<root>/releases). A release is either complete or absent.
  - Pulls the image by digest with the host's own containerd, into a separate namespace, verifies and copies the driver, and removes
    the image from containerd.
  - Fails if the image is for another kernel, version or machine, if it has no driver tree, if its kernel modules are unsigned on a
    host that requires signatures, or if O(root) is mounted C(noexec) or has too little free space.
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
      - Queries the registry, and returns what would be staged, with digest and size.
  diff_mode:
    support: full
  idempotent:
    support: full
    details:
      - With O(digest), or a digest in O(image), a host that already has the release does not use the network.
options:
  image:
    description:
      - Reference of the driver image, with a tag, a digest or both. O(state=present) requires O(image) or O(release).
    type: str
  release:
    description:
      - Name of a release on the host, instead of O(image). If it must be staged again, it is staged from the image that it was
        extracted from.
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
    type: str
  path:
    description:
      - Path of the driver tree in the image. By default the directory with C(version.info) and C(lib64).
    type: str
  registry_mirror:
    description:
      - Where the image is pulled from instead of the registry that O(image) names. A prefix such as V(registry.example.com/mirror),
        which takes the place of the registry, or a dictionary of such prefixes by registry.
      - It also applies to the image that O(release) was extracted from.
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
      - Maximum duration of the pull in seconds, and maximum number of seconds to wait for another run that stages on this host.
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
  description: Digest of the image.
  type: str
  returned: O(state=present)
version:
  description: Version of the driver. In check mode, if it is not staged yet, O(version).
  type: str
  returned: O(state=present)
  sample: 25.5.0
size:
  description: Size of the image's layers in bytes, V(none) if the registry was not queried.
  type: int
  returned: O(state=present)
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
from ansible_collections.npuops.ascend.plugins.module_utils._driver.releases import Layout
from ansible_collections.npuops.ascend.plugins.module_utils._driver.staging import Stager
from ansible_collections.npuops.ascend.plugins.module_utils._host import kernels as host_kernels
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._image import registry_options
from ansible_collections.npuops.ascend.plugins.module_utils._image.mirrored import mirrored


def of_release(options):
    """The options, with the image that the release was extracted from."""
    name = options["release"]
    manifest = Layout(options["root"]).manifest(name)
    if manifest is None or not all(isinstance(manifest.get(key), str) for key in ("image", "digest", "version", "kernel")):
        raise NpuError(
            "Release %s is incomplete on this host, and the image it was extracted from is unknown. Set npu_driver_version to a"
            " version that is in the registry and run npuops.ascend.upgrade" % name
        )
    return dict(options, **{key: manifest[key] for key in ("image", "digest", "version", "kernel")})


def present(module):
    options = of_release(module.params) if module.params["release"] else module.params
    stager = Stager(
        mirrored(options["image"], options["registry_mirror"]),
        digest=options["digest"],
        version=options["version"],
        root=options["root"],
        kernel=options["kernel"],
        path=options["path"],
        containerd_address=options["containerd_address"],
        ctr=options["ctr"],
        timeout=options["timeout"],
        verify=options["verify"],
        **registry_options.access(options),
    )
    layout = stager.layout
    before = layout.releases()
    reasons = []
    reason = stager.reason()
    name = stager.release
    if reason:
        reasons.append(reason)
        stager.check()
        name = stager.expected_release
        if not module.check_mode:
            name = stager.stage()
    removed = []
    if options["prune"]:
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
    after = sorted((set(before) | {name or "the release of %s" % stager.digest}) - set(removed))
    return result, before, after


def absent(module):
    layout = Layout(module.params["root"])
    before = layout.releases()
    digest = module.params["digest"]
    keep = [name for name in before if digest and layout.manifest(name).get("digest") != digest]
    removed = prune(layout, module, keep)
    result = {
        "changed": bool(removed),
        "msg": "%s is not in use" % ", ".join(removed) if removed else "There is no unused release",
        "removed": removed,
    }
    return result, before, [name for name in before if name not in removed]


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
            "image": {"type": "str"},
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
        required_if=[("state", "present", ["image", "release"], True)],
        mutually_exclusive=[("image", "release")],
        supports_check_mode=True,
    )
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
            "before": "".join(name + "\n" for name in before),
            "after": "".join(name + "\n" for name in after),
        }
    module.exit_json(**result)


if __name__ == "__main__":
    main()
