#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_workloads
short_description: "Step of a playbook: park and restore the workloads that use NPUs"
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Parks every workload whose pods request one of O(resources), or hold a ResourceClaim of an NPU driver.
  - Deployments, StatefulSets, ReplicaSets, ReplicationControllers and custom resources with a C(scale) subresource are set to zero
    replicas. Jobs, CronJobs and the jobs of Kubeflow, KubeRay and JobSet are suspended. KServe's services get the annotation
    C(serving.kserve.io/stop). Volcano's Jobs are aborted, and resumed, by C(Command) objects.
  - A custom resource is recognised by a pod template in its specification, or by the pods that it owns, directly or through other
    objects. Of objects that own each other the topmost is parked. A CronJob is parked together with its running Jobs.
  - DaemonSets and pods without a controller are not parked, nor are workloads without replicas or already suspended. Others
    that cannot be stopped, such as MindCluster's AscendJobs, are in RV(left), with the reason and what to do.
  - The previous state of a workload is stored on the workload, in the annotation C(npuops.ascend/parked), with a label of the
    same name. It is set by the same request that stops the workload, and removed by the request that restores it. So it can be
    restored from anywhere, even if the controller that parked it no longer exists.
  - Each request names the version of the object that was read. On a conflict, the object is read and evaluated again.
  - If a parked workload is neither at zero (or suspended) nor in its previous state, it was changed in the meantime. Then it is not
    restored, the label and the annotation are removed, and RV(left) lists it.
  - Of kinds in C(workload_kinds) of O(settings), the field or annotation that is named there is set. Which of them have parked
    workloads is stored on the Lease C(npu-maintenance), so that they are restored whatever the settings say then.
  - Of O(settings), it uses C(workload_kinds), C(pod_deletion.dra_drivers) (the drivers whose ResourceClaims are NPUs),
    C(wait_for_jobs.selector) (workloads with such pods are not parked), C(pod_deletion.timeout) (seconds to
    wait for the pods of parked workloads; RV(waiting) lists the workloads that still have pods afterwards, which is not a failure)
    and C(heartbeat_limit) (seconds without a heartbeat after which another run that has parked workloads is considered dead, and
    its workloads are restored).
  - Runs inside Ansible on the controller, whatever host the task is for.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - npuops.ascend.attributes
  - npuops.ascend.attributes.full
  - npuops.ascend.attributes.cluster
  - npuops.ascend.settings
options:
  state:
    description:
      - V(parked) parks and waits until all pods are deleted or terminating.
      - V(restored) restores everything that is parked in the cluster, by any run; except what was parked by another run
        that is still running.
    type: str
    choices: [parked, restored]
    required: true
  resources:
    description: The extended resources, such as V(huawei.com/Ascend910). For O(state=parked).
    type: list
    elements: str
    default: []
  run:
    description: ID of the run, which becomes part of the annotation.
    type: str
    default: by hand
  namespace:
    description: The namespace of npuops.ascend, in which nothing is parked.
    type: str
    default: npu-operator
notes:
  - Volcano counts each resume as a restart. A Job that would fail at the resume, by its C(spec.maxRetry), is not parked.
  - A HorizontalPodAutoscaler ignores a workload with zero replicas, and resumes when it is restored, see
    U(https://kubernetes.io/docs/concepts/workloads/autoscaling/horizontal-pod-autoscale/).
  - A Job that is suspended loses its pods and starts over when it is restored; so does its deadline, see
    U(https://kubernetes.io/docs/concepts/workloads/controllers/job/#suspending-a-job).
  - A CronJob without C(startingDeadlineSeconds) whose time passed while it was parked starts a Job as soon as it is restored, see
    U(https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/#schedule-suspension).
  - Which field of a custom resource its C(scale) subresource stands for is read from its CustomResourceDefinition, see
    U(https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#scale-subresource).
    The field is set in the object itself, in one request with the annotation.
  - Kubernetes copies annotations of a Deployment to its ReplicaSets and does not remove them there. Without the label they have no
    effect.
  - A controller that reconciles a workload, such as Argo CD or another operator, may scale it up again. Then its pods
    are evicted as usual, and RV(left) lists it in the end.
seealso:
  - module: npuops.ascend.npu_plan
"""

EXAMPLES = r"""
- name: Park the workloads that use NPUs
  npuops.ascend.npu_workloads:
    state: parked
    resources:
      - huawei.com/Ascend910
  run_once: true

- name: Restore all parked workloads
  npuops.ascend.npu_workloads:
    state: restored
  run_once: true
"""

RETURN = r"""
parked:
  description: The workloads of O(resources) that are parked now, or would be in check mode.
  returned: success
  type: list
  elements: dict
  contains: &entry
    object:
      description: Kind, namespace and name.
      type: str
      sample: Deployment train/web
    was:
      description:
        - The number of replicas, whether it was suspended, or the value of the field or annotation, before. Null if it was not set.
      type: raw
      sample: 3
restored:
  description: The workloads that were restored, or would be in check mode.
  returned: success
  type: list
  elements: dict
  contains: *entry
left:
  description: The workloads that were not changed.
  returned: success
  type: list
  elements: dict
  contains:
    object:
      description: Kind, namespace and name.
      type: str
    reason:
      description: Why the workload was not changed.
      type: str
    repair:
      description: Whether an administrator must restore the workload, because it is still parked.
      type: bool
    command:
      description: The command that restores it; null if there is nothing to restore, or its previous state is unknown.
      type: str
waiting:
  description: Parked workloads that still had pods after C(pod_deletion.timeout) in O(settings).
  returned: success
  type: list
  elements: str
unseen:
  description: Kinds that could not be checked, with the reason.
  returned: success
  type: list
  elements: str
problem:
  description: What could not be restored, as text, null if everything was restored.
  returned: success
  type: str
lines:
  description: The result as lines of text.
  returned: success
  type: list
  elements: str
"""
