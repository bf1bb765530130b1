#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_mirror
short_description: "Step of a playbook: copy images and packages to another registry, or to a bundle and from it"
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Copies images with all their platforms and their signatures, and keeps their digests.
  - Copies from registries to a registry, from registries to a bundle, or from a bundle to a registry. A bundle is a directory that
    can be carried to a site without Internet. It is an OCI image layout with a file C(SHA256SUMS), so other tools can read it, too.
  - A run that was interrupted is continued by the next one. What is at the destination already is not copied again.
  - The name of an image is written after its content and its signatures. So a destination never has a part of an image under its
    name.
  - Before anything is copied from a bundle, all of its files are compared with their checksums.
  - Signatures are those of C(cosign sign --key), under the tag C(sha256-<digest>.sig). If the destination has signatures of an
    image that the source does not have, they are kept.
  - Runs inside Ansible on the controller, whatever host the task is for.
extends_documentation_fragment:
  - npuops.ascend.attributes
  - npuops.ascend.registry
attributes:
  check_mode:
    support: full
    details:
      - Looks at the source and the destination, and returns what would be copied.
  diff_mode:
    support: none
  idempotent:
    support: full
requirements:
  - python >= 3.11
options:
  images:
    description:
      - References of the images to copy from their registries. A reference without a tag and a digest means the tag V(latest).
      - O(images), O(packages) or O(from) is required.
    type: list
    elements: str
    default: []
  packages:
    description:
      - Driver packages to copy. In a registry, each becomes an artifact with that one file, in the repository
        C(ascend-driver-packages), under a tag that follows from its file name and checksum.
      - Packages from web servers are downloaded to the cache of the controller, also in check mode. A package that is an artifact
        in a registry is copied like an image, so it belongs to O(images).
    type: list
    elements: dict
    default: []
    suboptions:
      package:
        description: URL of the package, or its absolute path on the controller.
        type: str
        required: true
      sha256:
        description: SHA-256 of the package, 64 hexadecimal digits.
        type: str
        required: true
      username:
        description: User name for the web server. By default, it is that of the host in O(hosts) that has the same package.
        type: str
      password:
        description: Password for the web server.
        type: str
  hosts:
    description:
      - The hosts, from the filter P(npuops.ascend.npu_hosts#filter) with credentials. Their configuration tells how to download
        their packages.
    type: list
    elements: dict
    default: []
  from:
    description:
      - The directory of a bundle on the controller, from which all images are copied to the registry O(to).
    type: path
  to:
    description:
      - The directory of a bundle, new or existing. The value must begin with V(/), V(./), V(../) or V(~). Images that a bundle has
        already stay in it.
      - Or a prefix for the names of the images, such as V(registry.example.com/mirror). The prefix takes the place of the registry.
        V(quay.io/ascend/npu-exporter:v26.1.0) becomes V(registry.example.com/mirror/ascend/npu-exporter:v26.1.0).
      - Or a dictionary of such prefixes. Each key is a registry, or a registry with the beginning of a repository name, and the
        longest key that an image begins with counts.
      - By default, it is O(registry_mirror).
    type: raw
  checksum:
    description:
      - The checksum of the bundle, as the module returned it when the bundle was made. With it, any change to the bundle is
        found. Without it, only damage is found, because who changes a bundle can also change its checksums.
    type: str
  registries:
    description:
      - How to access the registries, one entry for each. A registry without an entry is accessed anonymously and with HTTPS.
    type: list
    elements: dict
    default: []
    suboptions:
      registry:
        description: Host name of the registry, with its port if it has one.
        type: str
        required: true
      username:
        description: User name for the registry.
        type: str
      password:
        description: Password for the registry.
        type: str
      plain_http:
        description: Whether to use HTTP instead of HTTPS for the registry.
        type: bool
        default: false
      ca_file:
        description: PEM file with the certificate authorities to trust for the registry, besides the system's.
        type: path
  registry_mirror:
    description:
      - The mirror that the fleet pulls from, with the values of O(to) that are not directories.
    type: raw
  credentials_of:
    description:
      - An image or a repository. O(registry_username), O(registry_password), O(registry_plain_http) and O(registry_ca_file) are for
        the registry that the fleet pulls it from, O(registry_mirror) considered. They are used for no other registry.
      - Without O(credentials_of), they are for the registry of O(registry_mirror) if that is a prefix, and otherwise not used.
    type: str
notes:
  - Authorities in O(registry_ca_file) are also trusted for the web servers of O(packages).
  - To copy to another registry, a layer needs its size in the directory for temporary files (environment variable C(TMPDIR)). Four
    layers are copied at once.
seealso:
  - module: npuops.ascend.npu_images
"""

EXAMPLES = r"""
- name: Put two images into a bundle
  npuops.ascend.npu_mirror:
    images:
      - registry.example.com/mlops/ascend-driver:25.5.0-910b-6.6.0-145.0.4.135-oe2403sp3
      - registry.example.com/npuops/node-agent:0.1.0
    to: /media/usb/npuops
    registries:
      - registry: registry.example.com
        username: puller
        password: "{{ vault_registry_password }}"

- name: Copy a driver package to the registry of the site
  npuops.ascend.npu_mirror:
    packages:
      - package: /srv/packages/Ascend-hdk-910b-npu-driver_25.5.0_linux-aarch64.run
        sha256: 3f0a7c1e5b9d2468ace013579bdf02468ace13579bdf02468ace13579bdf0246
    to: registry.site.example/npuops

- name: Copy all images of the bundle to the registry of the site
  npuops.ascend.npu_mirror:
    from: /media/usb/npuops
    to: registry.site.example/npuops
    checksum: 4a0e7f...
    registries:
      - registry: registry.site.example
        username: pusher
        password: "{{ vault_site_password }}"
"""

RETURN = r"""
images:
  description: The images and signatures that are copied, in their order.
  type: list
  elements: dict
  returned: success
  contains:
    image:
      description: Reference of the image at the source.
      type: str
    name:
      description: Reference of the image at the destination; in a bundle, after the directory and a colon.
      type: str
    digest:
      description: Digest of the image, at the source and at the destination.
      type: str
    size:
      description: Size of the image, of all platforms together, in bytes.
      type: int
    missing:
      description: Bytes to copy. What several images have in common is counted once.
      type: int
    state:
      description:
        - What was found at the destination. Images that are V(missing) or V(different) are copied.
        - V(kept) is a signature that is not copied, because the destination has others.
      type: str
      sample: missing
    signature:
      description: Whether it is a signature.
      type: bool
missing:
  description: Bytes that had to be copied, or would be in check mode.
  type: int
  returned: success
checksum:
  description: Checksum of the bundle, V(none) if there is none, or it is not complete yet.
  type: str
  returned: success, or when the run failed while it copied
packages:
  description:
    - The packages at the destination, as values of C(npu_driver_package), C(npu_firmware_package) and C(npu_runtime_package),
      including those that it had before. Empty if the destination is a bundle.
  type: list
  elements: str
  returned: success
  sample:
    - oci://registry.site.example/npuops/ascend-driver-packages:Ascend-hdk-910b-npu-driver_25.5.0_linux-aarch64-3f0a7c1e5b9d
bundle:
  description: Whether the destination is a bundle.
  type: bool
  returned: success
table:
  description: The images as lines for people.
  type: list
  elements: str
  returned: success
msg:
  description: How much there was to copy.
  type: str
  returned: success
"""
