#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_accept_collective
short_description: "Step of a playbook: run a pod on pairs of nodes, and complete the verdicts on them"
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Runs a user's own pod on pairs of nodes that M(npuops.ascend.npu_accept_node) has looked at, one pod on each node of a pair.
    Both must succeed. This shows whether the chips of the two nodes reach each other.
  - The containers get the environment variables C(NNODES), which is V(2), C(NODE_RANK), C(MASTER_ADDR) and C(MASTER_PORT), which
    is V(29500). The pod of rank 0 is created first, and that of rank 1 when the first one has an IP address.
  - Nodes are paired in the order of their names, if they are drained or have the taint C(npuops.ascend/not-accepted), if no pod
    on them uses NPUs, and if they offer the NPUs that the pod asks for. Nodes that offer different kinds of NPUs are not paired.
    If the number of nodes is odd, the last one is paired with the first one, after the pair of that. At most 16 pairs run at the
    same time.
  - Each node of a pair that fails is tried again with a node of a pair that has passed, if there is one.
  - If the pod of one rank fails, the other one is deleted at once. No pod is left, also if the module fails or is interrupted.
  - Adds the result to each document as the finding C(collective), and writes document, annotation and taint as
    M(npuops.ascend.npu_accept_node) does. A node that has not joined the cluster has no such finding. A node without a partner
    has the verdict V(UNKNOWN).
  - Runs inside Ansible on the controller, whatever host the task is for.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - npuops.ascend.attributes
  - npuops.ascend.attributes.cluster
attributes:
  check_mode:
    support: full
    details:
      - Creates no pod and writes nothing.
  diff_mode:
    support: N/A
    details:
      - The verdict is not a configuration.
  idempotent:
    support: N/A
    details:
      - Each call runs the pods.
options:
  acceptances:
    description:
      - The acceptances that wait, as P(npuops.ascend.npu_acceptances#filter) returns them with C(waiting). Anything that does not
        have their form is refused.
    type: list
    elements: dict
    required: true
seealso:
  - module: npuops.ascend.npu_accept_node
  - plugin: npuops.ascend.npu_acceptances
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Run the collective on pairs of nodes
  npuops.ascend.npu_accept_collective:
    acceptances: "{{ ansible_play_hosts_all | npuops.ascend.npu_acceptances(hostvars, waiting=true) }}"
  run_once: true
  register: collective
"""

RETURN = r"""
acceptances:
  description:
    - By the inventory name of the host, what M(npuops.ascend.npu_accept_node) returns as C(document), C(path), C(lines) and
      C(problem).
  returned: success
  type: dict
"""
