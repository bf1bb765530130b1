#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_node_agent_image_build
short_description: Build the node agent's image for all architectures and push it
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Puts the node agent of this collection and the Python packages that it needs on top of a base image, for each architecture, and
    pushes the result under one name. Each node pulls the image for its own architecture.
  - Needs no container engine, no emulation and no root. Layers of the base image are copied as they are.
  - The Python packages are wheels whose checksums are in C(images/node-agent/requirements.lock). pip downloads them, unless
    O(wheels) is set.
  - The image is reproducible. The same version of this collection and the same base image give the same digest.
  - Runs inside Ansible on the controller, whatever host the task is for.
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
requirements:
  - python >= 3.11
  - pip, unless O(wheels) is set
options:
  image:
    description:
      - The image to push, as C(<registry>/<repository>:<tag>). What the tag names is replaced.
    type: str
    required: true
  base:
    description:
      - The base image, with Python 3.11 and glibc 2.28 or newer. C(npu-smi) on the hosts needs the latter, too.
      - Append C(@) and a digest to get the same image each time. Otherwise, a new base image under that tag changes the image.
    type: str
    default: docker.io/library/python:3.11-slim-bookworm
  base_username:
    description:
      - User name for the registry of O(base). By default O(registry_username) if both images are in the same registry, otherwise
        none.
    type: str
  base_password:
    description:
      - Password for the registry of O(base).
    type: str
  base_plain_http:
    description:
      - Whether to use HTTP instead of HTTPS for the registry of O(base). If both images are in the same registry,
        O(registry_plain_http) decides.
    type: bool
    default: false
  architectures:
    description:
      - What to build for. Architectures that are not in the list are not in the image.
    type: list
    elements: str
    choices: [amd64, arm64]
    default: [amd64, arm64]
  wheels:
    description:
      - A directory on the controller with the wheels of all architectures. With it, nothing is downloaded but the base image.
    type: path
notes:
  - O(registry_ca_file) is used for both registries.
seealso:
  - module: npuops.ascend.npu_driver_image_build
"""

EXAMPLES = r"""
- name: Push the node agent's image for amd64 and arm64
  npuops.ascend.npu_node_agent_image_build:
    image: registry.example.com/npuops/node-agent:0.1.0
    registry_username: pusher
    registry_password: "{{ vault_registry_password }}"

- name: The same from a mirror of the base image, without access to a package index
  npuops.ascend.npu_node_agent_image_build:
    image: registry.example.com/npuops/node-agent:0.1.0
    base: registry.example.com/mirror/python:3.11-slim-bookworm
    wheels: /srv/wheels
"""

RETURN = r"""
image:
  description: Reference of the image, with its tag.
  type: str
  returned: success
  sample: registry.example.com/npuops/node-agent:0.1.0
digest:
  description: Digest of the image's index.
  type: str
  returned: success
base:
  description: The base image, with its digest.
  type: str
  returned: success
platforms:
  description: The images in the index.
  type: list
  elements: dict
  returned: success
  contains:
    platform:
      description: Operating system and architecture.
      type: str
      sample: linux/arm64
    digest:
      description: Digest of the image's manifest.
      type: str
msg:
  description: Why the image was pushed, or would be in check mode.
  type: str
  returned: success
"""
