#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_python
short_description: A Python for a host that has none
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Has the host's own containerd pull the node agent's image and unpacks it to C(/var/lib/npuops/python). Nothing else of the
    host is touched, C(/usr) may be read-only. What has to be on the host is a POSIX shell, C(ctr) and what every
    distribution has of C(cp), C(mv), C(ln), C(readlink) and C(umount).
  - Modules then run on the host when C(ansible_python_interpreter) is C(/var/lib/npuops/python/current/python3).
  - Needs no Python on the host. It runs inside Ansible on the controller and sends a shell script to the host's standard
    input, so that the credentials are on no command line. There they are in a file that only root can read, in C(/run),
    while the image is pulled.
  - Each image has a directory of its own, named after the reference. The link C(current) is switched with one rename when the new
    Python has been seen to start. Then the old one is removed. Whatever is interrupted leaves the old one or the new one.
  - The same reference is taken for the same image. The registry is asked only when another one has to be brought.
  - Privileges are taken as for modules with pipelining, so C(sudo) must not insist on a terminal (C(requiretty)).
extends_documentation_fragment:
  - npuops.ascend.attributes
  - npuops.ascend.attributes.full
requirements:
  - containerd on the host
options:
  state:
    description:
      - V(present) for the Python of O(image), V(absent) for none. Do V(absent) last of all, because no module runs on the host
        afterwards.
    type: str
    choices: [present, absent]
    default: present
  image:
    description:
      - The node agent's image. Required with O(state=present), where a Python has to be there.
    type: str
  only_with:
    description:
      - With O(state=present), paths on the host. When none of them exists, no Python is brought, and RV(python) is V(false).
      - With an empty list, one is always brought.
    type: list
    elements: str
    default: []
  credentials_of:
    description:
      - The image or repository that the options below are meant for. If it is in another registry than O(image), they are not
        used.
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
    default: false
  registry_ca_file:
    description: PEM file with authorities to trust for the registry, at the same path on the controller and on the host.
    type: path
seealso:
  - module: npuops.ascend.npu_facts
"""

EXAMPLES = r"""
- name: Bring a Python
  npuops.ascend.npu_python:
    image: registry.example.com/npuops/node-agent:0.1.0
  when: ansible_python_interpreter | default('') == '/var/lib/npuops/python/current/python3'
"""

RETURN = r"""
python:
  description: Whether the Python that install added is on the host now.
  returned: success
  type: bool
runtime:
  description: The name of its directory; V(none) when there is none.
  returned: success
  type: str
  sample: 0.1.0-3c1f9f0a7c52
msg:
  description: What was done, or that nothing was necessary.
  returned: always
  type: str
"""
