#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_accept_node
short_description: "Step of a playbook: give one verdict on a node and its chips"
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Runs M(npuops.ascend.npu_accept) on the host of a node until it has a result, and makes one document with one verdict of it.
  - With a level above 1, the node must be cordoned or have the taint C(npuops.ascend/not-accepted), and no pod on it may use NPUs.
    Otherwise the diagnosis, which loads the chips, is not started, and the verdict is V(UNKNOWN). A host that has not joined the
    cluster can be accepted.
  - With a level above 1, C(smoke_pod) in O(settings) and a node on which nothing has failed, also runs that pod on all chips of the
    node at once.
  - With a level above 1 and O(collective_pod), and a verdict of V(PASS) or V(WARNING), writes neither the file nor the annotation,
    and keeps the taint. M(npuops.ascend.npu_accept_collective) writes them when it has completed the document. A pod that a killed
    run of that module has left on the node is removed first.
  - Otherwise, writes the verdict to the annotation C(npuops.ascend/acceptance) of the Node. If the Node has the taint
    C(npuops.ascend/not-accepted), and the verdict is V(PASS) or V(WARNING) at the level that is the value of the taint, or at a
    higher one, the taint is removed.
  - Runs inside Ansible on the controller, for the host of the node. M(npuops.ascend.npu_accept) goes through the connection of that
    host. If the connection ends, or if this run is killed, the diagnosis goes on, and the next run waits for its result.
  - A host that does not respond has the verdict V(UNKNOWN). It is not a failure of the module.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - npuops.ascend.attributes
  - npuops.ascend.attributes.cluster
  - npuops.ascend.driver.step
  - npuops.ascend.registry
attributes:
  check_mode:
    support: full
    details:
      - Makes the checks of level 1 only, writes no file and no annotation, keeps the taint, and the host keeps no result.
  diff_mode:
    support: N/A
    details:
      - The verdict is not a configuration.
  idempotent:
    support: N/A
    details:
      - Each call is another acceptance, unless a diagnosis is running.
options:
  node:
    description: Name of the Node object.
    type: str
    required: true
  level:
    description: The option of the same name of M(npuops.ascend.npu_accept). By default, or if it is empty, V(1).
    type: raw
  ignore:
    description: Names of checks that do not count for the verdict.
    type: list
    elements: str
    default: []
  directory:
    description:
      - The directory on the controller in which to write the document. It is created if it does not exist. By default, no file is
        written.
    type: path
  toolbox:
    description: The option of the same name of M(npuops.ascend.npu_accept).
    type: path
    default: /usr/local/Ascend/toolbox
  toolbox_image:
    description: The option of the same name of M(npuops.ascend.npu_accept).
    type: str
  credentials_of:
    description:
      - The image or repository that the registry options are meant for. If O(toolbox_image) is in another registry, the host does
        not get them.
    type: str
  registry_mirror:
    description:
      - Where O(toolbox_image) and O(credentials_of) are instead of in the registries that they name. A prefix such as
        V(registry.example.com/mirror), which takes the place of the registry, or a dictionary of such prefixes by registry.
    type: raw
  registry_ca_file:
    description:
      - PEM file on the host with the certificate authorities to trust for the registry, besides the system's.
    type: path
  network:
    description: The option of the same name of M(npuops.ascend.npu_accept).
    type: str
    choices: ["off", warn, strict]
    default: strict
  collective_pod:
    description:
      - The path on the controller of the manifest of a pod that M(npuops.ascend.npu_accept_collective) is to run on pairs of nodes.
    type: path
  settings:
    description:
      - The settings of upgrades, as P(npuops.ascend.npu_settings#filter) returns them. They say which DRA drivers have NPUs, and
        what the smoke pod is and how long it may take.
    type: dict
    default: {}
seealso:
  - module: npuops.ascend.npu_accept
  - module: npuops.ascend.npu_accept_collective
"""

EXAMPLES = r"""
- name: Accept the node at level 2
  npuops.ascend.npu_accept_node:
    node: "{{ npu_node_name | default(inventory_hostname) }}"
    level: 2
    directory: ./npu-accept
  register: acceptance

- name: Show the verdict
  ansible.builtin.debug:
    msg: "{{ acceptance.lines }}"
"""

RETURN = r"""
document:
  description: The verdict. The file C(docs/accept.schema.json) is its schema.
  returned: success
  type: dict
  contains:
    schema:
      description: Version of the schema.
      type: int
    node:
      description: Name of the Node.
      type: str
    level:
      description: The level.
      type: int
    verdict:
      description: The worst of the verdicts of all checks that count, in the order V(PASS), V(WARNING), V(UNKNOWN), V(FAIL).
      type: str
    began:
      description: When the acceptance began, in UTC.
      type: str
    ended:
      description: When it ended, in UTC.
      type: str
    driver:
      description: Version of the driver, V(none) if it is not known.
      type: str
    firmware:
      description: Firmware version of the chips, with commas if they differ. V(none) if it is not known.
      type: str
    chips:
      description: Number of chips.
      type: int
    findings:
      description:
        - The results of all checks, as RV(npuops.ascend.npu_accept#module:result.findings), each with C(ignored), which is V(true)
          if it does not count.
      type: list
      elements: dict
path:
  description: Absolute path of the file, V(none) if none was written.
  returned: success
  type: str
lines:
  description: The verdict, the checks that have not passed, and whether pods can be scheduled onto a new node, as lines of text.
  returned: success
  type: list
  elements: str
problem:
  description:
    - The first of the lines if the verdict is V(FAIL) or V(UNKNOWN), or why the verdict was not written to the Node. Otherwise
      V(none).
  returned: success
  type: str
boot_id:
  description: The boot ID of the host.
  returned: if the acceptance waits for M(npuops.ascend.npu_accept_collective)
  type: str
collective:
  description: What that module needs to know besides the document.
  returned: if the acceptance waits for M(npuops.ascend.npu_accept_collective)
  type: dict
  contains:
    pod:
      description: Absolute path of the manifest.
      type: str
    timeout:
      description: Seconds that the pods of a pair may take, V(0) for no limit.
      type: int
    dra_drivers:
      description: The DRA drivers whose devices are NPUs.
      type: list
      elements: str
    ignored:
      description: Whether the collective does not count for the verdict.
      type: bool
    directory:
      description: Absolute path of the directory for the document, V(none) if no file is written.
      type: str
"""
