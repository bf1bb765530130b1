#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_python
short_description: "Step of a playbook: install a Python on a host that has none"
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Pulls the image of the node agent with the host's own containerd, and unpacks its Python to C(/var/lib/npuops/python). Nothing
    else on the host is changed, and C(/usr) may be read-only. The host needs a POSIX shell, C(ctr), C(cp), C(mv), C(ln),
    C(readlink) and C(umount).
  - Modules can run on the host afterwards, if C(ansible_python_interpreter) is C(/var/lib/npuops/python/current/python3).
  - Needs no Python on the host. The module runs inside Ansible on the controller and sends a shell script to the host through
    standard input, so that credentials do not appear on a command line. During the pull, they are in a file below C(/run) that only
    root can read.
  - Each image has a separate directory, whose name is derived from the reference. When the new Python has started successfully, the
    link C(current) is switched to it with one rename, and the old Python is removed. After an interruption, C(current) is the old
    or the new Python.
  - The same reference is assumed to be the same image. The registry is queried only if a different image must be installed.
  - Privilege escalation works as for modules with pipelining, so C(sudo) must not require a terminal (C(requiretty)).
extends_documentation_fragment:
  - npuops.ascend.attributes
  - npuops.ascend.attributes.full
  - npuops.ascend.registry
requirements:
  - containerd on the host
options:
  state:
    description:
      - V(present) installs the Python of O(image). V(absent) removes it. Use V(absent) as the last task for a host, because modules
        cannot run there afterwards.
    type: str
    choices: [present, absent]
    default: present
  image:
    description:
      - Image of the node agent. Required with O(state=present), unless O(only_with) makes a Python unnecessary.
    type: str
  only_with:
    description:
      - Paths on the host. With O(state=present), the Python is installed only if at least one of them exists, otherwise RV(python)
        is V(false).
      - With an empty list, the Python is always installed.
    type: list
    elements: str
    default: []
  credentials_of:
    description:
      - The image or repository that the registry options are meant for. If O(image) is in another registry, they are not used.
    type: str
  registry_mirror:
    description:
      - Where O(image) and O(credentials_of) are instead of in the registries that they name. A prefix such as
        V(registry.example.com/mirror), which takes the place of the registry, or a dictionary of such prefixes by registry.
    type: raw
  registry_ca_file:
    description:
      - PEM file with the certificate authorities to trust for the registry, at the same path on the controller and on the host.
    type: path
seealso:
  - module: npuops.ascend.npu_facts
"""

EXAMPLES = r"""
- name: Install a Python
  npuops.ascend.npu_python:
    image: registry.example.com/npuops/node-agent:0.1.0
  when: ansible_python_interpreter | default('') == '/var/lib/npuops/python/current/python3'
"""

RETURN = r"""
python:
  description: Whether the Python of this collection is on the host.
  returned: success
  type: bool
runtime:
  description: Name of its directory, V(none) without a Python.
  returned: success
  type: str
  sample: 0.1.0-3c1f9f0a7c52
msg:
  description: What was done, or that no change was necessary.
  returned: always
  type: str
"""
