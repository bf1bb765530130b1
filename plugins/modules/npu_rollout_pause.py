#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_rollout_pause
short_description: Pause all rollouts in a cluster, or let them run again
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - While rollouts are paused, no upgrade or rollback begins with another node. A node that is cordoned but has not been sent its
    reboot is given back; one that has is finished.
  - It is one pause for the whole cluster, whichever run or controller asks. Recoveries are not paused.
  - Runs inside Ansible on the controller, whatever host the task is for.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - npuops.ascend.attributes
  - npuops.ascend.attributes.cluster
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
options:
  state:
    description:
      - V(paused) pauses rollouts.
      - V(running) ends the pause. A halt because a node failed stays, see C(npu_upgrade_clear_halt).
    type: str
    choices: [paused, running]
    default: paused
  reason:
    description: Why, for all who look at the status or start a run.
    type: str
    default: ""
  namespace:
    description: Namespace of the Lease C(npu-maintenance), which stores the pause.
    type: str
    default: npu-operator
"""

EXAMPLES = r"""
- name: Pause all rollouts
  npuops.ascend.npu_rollout_pause:
    reason: incident 4711
  run_once: true

- name: Let rollouts run again
  npuops.ascend.npu_rollout_pause:
    state: running
  run_once: true
"""

RETURN = r"""
halted:
  description:
    - What stops rollouts now, with C(who), C(why), C(when) and C(reason), which is V(pause) for a pause. A pause has a halt by a
      node that failed in C(failure). V(none) if nothing stops them.
  returned: success
  type: dict
"""
