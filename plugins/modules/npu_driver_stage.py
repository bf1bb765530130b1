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
  - Gets the driver out of a container image and keeps it as a release below C(<root>/releases), complete or not at
    all.
  - The image is pulled by digest with the host's own containerd in a namespace of its own, checked, copied, and removed
    from containerd again.
  - Refused with the reason are an image for another kernel, version or machine, one without a driver tree, unsigned
    modules on a host that demands signed ones, a place that is mounted C(noexec) or has not enough room.
  - No link is touched, so whatever driver is loaded stays loaded, also after a reboot. M(npuops.ascend.npu_driver)
    brings a release into effect.
author:
  - npuops.ascend maintainers (@npuops)
extends_documentation_fragment:
  - npuops.ascend.attributes
  - npuops.ascend.attributes.host
attributes:
  check_mode:
    support: full
    details:
      - Asks the registry, and says what would be staged with its digest and size.
  diff_mode:
    support: full
  idempotent:
    support: full
    details:
      - With O(digest), or an O(image) with a digest, a host that has the release is not even asked to use the network.
options:
  image:
    description:
      - Reference of the driver image, with a tag, a digest or both. O(state=present) needs it, or O(release).
    type: str
  release:
    description:
      - In place of O(image), the name of a release that is on the host. Staged again, if it has to be, it is from the image that it
        was made from.
    type: str
  verify:
    description:
      - Whether all files of a release that is staged already are read, and compared with what they were when it was staged. If one
        of them is not, the release is staged again. Without it, only their sizes are compared.
      - A release that is loaded, that validated last or that a mount names is not replaced. That it is damaged is then a failure.
    type: bool
    default: false
  digest:
    description:
      - What the tag of O(image) was resolved to, C(sha256:) and 64 digits. Default is to ask the registry now.
      - With O(state=absent), only the releases made from this image are removed.
    type: str
  version:
    description:
      - The driver version that C(version.info) in the image must state, for example V(25.5.0). Default is any.
    type: str
  root:
    description:
      - The directory that holds C(releases).
    type: path
    default: /var/lib/Ascend
  kernel:
    description:
      - The kernel release (C(uname -r)) the modules must be built for. Default is the running kernel.
    type: str
  path:
    description:
      - Where in the image the driver tree is. Default is to look for C(version.info) with C(lib64) beside it.
    type: str
  registry_username:
    description:
      - User name for the registry.
    type: str
  registry_password:
    description:
      - Password for the registry. It reaches containerd through a file in C(/run) that only root can read and that is
        removed at once; for a token service, only a token does.
    type: str
  registry_plain_http:
    description:
      - Whether the registry is to be spoken to without TLS.
    type: bool
    default: false
  registry_ca_file:
    description:
      - PEM file on the host with the authorities to trust for the registry, besides the system's.
    type: path
  containerd_address:
    description:
      - Socket of the host's containerd.
    type: path
    default: /run/containerd/containerd.sock
  ctr:
    description:
      - Path of containerd's C(ctr). Default is to look for it, also where k3s and RKE2 have theirs.
    type: path
  timeout:
    description:
      - Seconds the pull may take, and seconds to wait for another run that stages on this host.
    type: int
    default: 1800
  prune:
    description:
      - Whether to remove, after staging, every other release that no link and no mount of any process names.
    type: bool
    default: false
  state:
    description:
      - V(present) stages O(image).
      - V(absent) removes releases that no link and no mount names. Releases in use are kept.
    type: str
    choices: [present, absent]
    default: present
"""

EXAMPLES = r"""
- name: Stage a driver
  npuops.ascend.npu_driver_stage:
    image: registry.example.com/mlops/ascend-driver:25.5.0-910b-6.6.0-145.0.4.135-oe2403sp3
    version: 25.5.0
    registry_username: puller
    registry_password: "{{ vault_registry_password }}"

- name: Remove what is not in use any more
  npuops.ascend.npu_driver_stage:
    state: absent
"""

RETURN = r"""
release:
  description: Name of the release, V(null) in check mode when nothing is staged yet.
  type: str
  returned: O(state=present)
  sample: 25.5.0-6.6.0-145.0.4.135.oe2403sp3.x86_64-0123456789ab
tree:
  description: The driver tree of the release, V(null) in check mode when nothing is staged yet.
  type: str
  returned: O(state=present)
  sample: /var/lib/Ascend/releases/25.5.0-6.6.0-145.0.4.135.oe2403sp3.x86_64-0123456789ab/driver
digest:
  description: Digest of the image.
  type: str
  returned: O(state=present)
version:
  description: Version of the driver.
  type: str
  returned: O(state=present)
  sample: 25.5.0
size:
  description: Bytes of the image's layers, V(null) when the registry was not asked.
  type: int
  returned: O(state=present)
removed:
  description: Names of the releases that were removed, or would be.
  type: list
  elements: str
  returned: success
msg:
  description: Why something was staged or removed, or would be.
  type: str
  returned: success
"""

import signal

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.npuops.ascend.plugins.module_utils._driver.releases import Layout
from ansible_collections.npuops.ascend.plugins.module_utils._driver.staging import Stager
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError


def of_release(options):
    """The options, with what the release was made from."""
    name = options["release"]
    manifest = Layout(options["root"]).manifest(name)
    if manifest is None or not all(isinstance(manifest.get(key), str) for key in ("image", "digest", "version", "kernel")):
        raise NpuError(
            "Release %s is not complete on this host, and what it was made from is not known. Set npu_driver_version to a version"
            " that is in the registry and run npuops.ascend.upgrade" % name
        )
    return dict(options, **{key: manifest[key] for key in ("image", "digest", "version", "kernel")})


def present(module):
    options = of_release(module.params) if module.params["release"] else module.params
    stager = Stager(
        options["image"],
        digest=options["digest"],
        version=options["version"],
        root=options["root"],
        kernel=options["kernel"],
        path=options["path"],
        username=options["registry_username"],
        password=options["registry_password"],
        plain_http=options["registry_plain_http"],
        ca_file=options["registry_ca_file"],
        containerd_address=options["containerd_address"],
        ctr=options["ctr"],
        timeout=options["timeout"],
        verify=options["verify"],
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
            reasons.append("%s is not in use any more" % ", ".join(removed))
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
        "msg": "%s is not in use" % ", ".join(removed) if removed else "There is no release that is not in use",
        "removed": removed,
    }
    return result, before, [name for name in before if name not in removed]


def prune(layout, module, keep):
    names = layout.prunable(keep)
    if not names or module.check_mode:
        return names
    with layout.lock(module.params["timeout"]):
        return layout.prune(keep)


def stop(number, frame):
    """End as after an error: whoever has something to put away does so."""
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
            "registry_username": {"type": "str"},
            "registry_password": {"type": "str", "no_log": True},
            "registry_plain_http": {"type": "bool", "default": False},
            "registry_ca_file": {"type": "path"},
            "containerd_address": {"type": "path", "default": "/run/containerd/containerd.sock"},
            "ctr": {"type": "path"},
            "timeout": {"type": "int", "default": 1800},
            "prune": {"type": "bool", "default": False},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
        required_if=[("state", "present", ["image", "release"], True)],
        mutually_exclusive=[("image", "release")],
        supports_check_mode=True,
    )
    # A lost connection or a stopped job shall not leave credentials and a mount behind.
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
