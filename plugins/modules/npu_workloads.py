#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_workloads
short_description: Park the workloads that use NPUs, and restore them to exactly what they were
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Parks every workload whose pods ask for one of O(resources). Deployments, StatefulSets, ReplicaSets, ReplicationControllers and
    custom resources with a C(scale) subresource are set to zero replicas; Jobs and CronJobs are suspended.
  - A custom resource is recognised by a pod template in its specification, or by the pods that it owns, directly or through other
    objects. Of objects that own each other the topmost is parked. A CronJob is parked, and its running Jobs as well.
  - DaemonSets, pods without a controller and custom resources without a C(scale) subresource are left alone, and so is what has no
    replicas or is suspended already.
  - What a workload was is written on the workload, in the annotation C(npuops.ascend/parked), with a label of the same name. It is
    written in the same request that stops the workload, and taken away in the request that restores it. So it can be restored
    from anywhere, whatever became of the controller that parked it.
  - Each request names the version of the object that was read. If somebody else was faster, the object is read and judged again.
  - If a parked workload is neither at zero (or suspended) nor what it was before, somebody changed it meanwhile. Then it is left as
    it is, label and annotation are taken away, and RV(left) tells.
  - Runs inside Ansible on the controller, whatever host the task is for.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - npuops.ascend.attributes
  - npuops.ascend.attributes.full
  - npuops.ascend.attributes.cluster
options:
  state:
    description:
      - V(parked) parks and waits until no pod is left that was not told to end.
      - V(restored) restores everything that is parked in the cluster, by whichever run; but not what was parked by another run
        that is at work.
    type: str
    choices: [parked, restored]
    required: true
  resources:
    description: The extended resources that count, such as V(huawei.com/Ascend910). For O(state=parked).
    type: list
    elements: str
    default: []
  run:
    description: The name of the run, which becomes part of the annotation.
    type: str
    default: by hand
  namespace:
    description: The namespace of npuops.ascend, in which nothing is parked.
    type: str
    default: npu-operator
  spare:
    description: A label selector of pods that may finish; workloads with such pods are not parked.
    type: str
    default: ""
  timeout:
    description:
      - Seconds to wait for the pods of parked workloads, 0 for any time. Those that still have some are in RV(waiting); it is no
        failure. V(300) by default.
    type: raw
  heartbeat_limit:
    description:
      - How many seconds to wait for a sign of life of another run that has parked something. Without any it is taken for dead, and
        what it had parked is restored. V(90) by default.
    type: raw
notes:
  - A HorizontalPodAutoscaler does nothing to a workload with zero replicas, and goes on when it is restored, see
    U(https://kubernetes.io/docs/concepts/workloads/autoscaling/horizontal-pod-autoscale/).
  - A Job that is suspended loses its pods and starts anew when it is restored; its deadline begins again as well, see
    U(https://kubernetes.io/docs/concepts/workloads/controllers/job/#suspending-a-job).
  - A CronJob without C(startingDeadlineSeconds) whose time passed while it was parked starts a Job as soon as it is restored, see
    U(https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/#schedule-suspension).
  - Which field of a custom resource its C(scale) subresource stands for is read from its CustomResourceDefinition, see
    U(https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#scale-subresource).
    The field is set in the object itself, in one request with the annotation.
  - Kubernetes copies annotations of a Deployment to its ReplicaSets and does not take them away there. Without the label they mean
    nothing.
  - Something that keeps a workload as it should be, such as Argo CD or an operator of its own, may scale it up again. Then its pods
    are evicted as ever, and RV(left) tells in the end.
seealso:
  - module: npuops.ascend.npu_plan
"""

EXAMPLES = r"""
- name: Park the training
  npuops.ascend.npu_workloads:
    state: parked
    resources:
      - huawei.com/Ascend910
  run_once: true

- name: Restore whatever is parked
  npuops.ascend.npu_workloads:
    state: restored
  run_once: true
"""

RETURN = r"""
parked:
  description: What is parked now, or would be, of what O(resources) asks for.
  returned: success
  type: list
  elements: dict
  contains: &entry
    object:
      description: Kind, namespace and name.
      type: str
      sample: Deployment train/web
    was:
      description: The number of replicas, or whether it was suspended, before; null if that was not set.
      type: raw
      sample: 3
restored:
  description: What was restored, or would be.
  returned: success
  type: list
  elements: dict
  contains: *entry
left:
  description: What was left as it is.
  returned: success
  type: list
  elements: dict
  contains:
    object:
      description: Kind, namespace and name.
      type: str
    reason:
      description: Why.
      type: str
    repair:
      description: Whether a person has to see to it, because it is still parked.
      type: bool
    command:
      description: With what a person restores it; null when there is nothing to restore, or nobody knows what it was.
      type: str
waiting:
  description: Parked workloads that still had pods after O(timeout).
  returned: success
  type: list
  elements: str
unseen:
  description: Kinds that could not be looked at, with the reason.
  returned: success
  type: list
  elements: str
problem:
  description: What could not be restored, as text; null when all could.
  returned: success
  type: str
lines:
  description: All of this for people.
  returned: success
  type: list
  elements: str
"""
