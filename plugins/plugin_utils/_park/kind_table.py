# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How custom resources are stopped whose ``scale`` subresource is missing, or stops only a part of them.

Of all others, the ``scale`` subresource is used (LeaderWorkerSet, for one). Users add kinds with ``npu_upgrade_workload_kinds``,
see _park/declared_kinds.py.
"""

from __future__ import annotations

import dataclasses

Path = tuple[str, ...]  # to a field, such as ("spec", "replicas")
Key = tuple[str, str]  # group, kind

SUSPEND = ("spec", "suspend")
_RUN_POLICY = ("spec", "runPolicy", "suspend")
_KSERVE_STOP = ("metadata", "annotations", "serving.kserve.io/stop")


@dataclasses.dataclass(frozen=True)
class Stop:
    """How a kind is stopped: ``field`` is set to ``off``; or ``by_command``: Volcano's Commands say so (_park/volcano_jobs.py).

    ``never``: why it cannot be stopped, and what to do, a clause. ``beside``: it starts other workloads, which run on
    without it; so they are also stopped.
    """

    field: Path | None = None
    off: int | bool | str = 0
    by_command: bool = False
    never: str = ""
    beside: bool = False


_SUSPENDED = Stop(SUSPEND, True)

KNOWN: dict[Key, Stop] = {
    # Kubeflow Training Operator 1.7, Kubeflow Trainer 2.0. Some can be scaled, but then only one of their roles stops.
    **{
        ("kubeflow.org", kind): Stop(_RUN_POLICY, True)
        for kind in ("JAXJob", "MPIJob", "PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob")
    },
    ("trainer.kubeflow.org", "TrainJob"): _SUSPENDED,
    # KubeRay 1.1
    ("ray.io", "RayCluster"): _SUSPENDED,
    ("ray.io", "RayJob"): _SUSPENDED,
    ("jobset.x-k8s.io", "JobSet"): _SUSPENDED,
    # KServe: Knative services since 0.15.1, Deployments since 0.16; LLMInferenceService since 0.17. Older ones ignore it.
    ("serving.kserve.io", "InferenceService"): Stop(_KSERVE_STOP, "true"),
    ("serving.kserve.io", "LLMInferenceService"): Stop(_KSERVE_STOP, "true"),
    # Volcano 1.7 to 1.16: its Job has no field for that.
    ("batch.volcano.sh", "Job"): Stop(by_command=True, off=""),
    ("batch.volcano.sh", "CronJob"): Stop(SUSPEND, True, beside=True),
    # MindCluster 7.3 and 26.1: the operator is built on Kubeflow's library from before it could suspend.
    ("mindxdl.gitee.com", "AscendJob"): Stop(
        never="MindCluster's ascend-operator cannot suspend an AscendJob; if its job does not survive the eviction of single pods,"
        " delete it before the upgrade and create it again afterwards"
    ),
}
