# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""MindCluster's optional components, in the order in which install deploys them: what each consists of, and what it needs there.

A further one is a row here, its facts in mindcluster.yml, and a role.
"""

from __future__ import annotations

import dataclasses

from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import component_names

# Whose an object is: the roles of these components put this label on what people could have made themselves.
MANAGED_BY, OURS = "app.kubernetes.io/managed-by", "npuops.ascend"

# Where upstream's programs write and look for each other, whatever namespace they are in.
DL_NAMESPACE, CLUSTER_NAMESPACE, VOLCANO_NAMESPACE = "mindx-dl", "cluster-system", "volcano-system"
# What noded writes of a node, as long as the node has a fault.
NODE_INFO = "mindx-dl-nodeinfo-"


@dataclasses.dataclass(frozen=True)
class Need:
    """A kind that the cluster must have. ``group``: its path, with the version; ``kind``: for people."""

    group: str
    resource: str
    kind: str


@dataclasses.dataclass(frozen=True)
class Crd:
    """A CustomResourceDefinition that a component brings. ``path``: of all its objects; ``objects``: what people call them;
    ``own``: the names of those that the component makes by itself."""

    name: str
    path: str
    objects: str
    own: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Component:
    """``part``: its role without npu_; ``names``: of its workloads, all of the same ``kind``; ``images``: of these, the settings of
    its role without the prefix; ``harm``: what two of them in a cluster do; ``keep``: what else to do with another one;
    ``namespace``: where it must be, or None for npu_namespace; ``namespaces``: which ones its role makes beside npu_namespace;
    ``objects``: (resource, group) of its parts in its namespace; ``cluster_roles``, ``cluster_role_bindings``: their names;
    ``roles``: (namespace, name) of its Roles, and of their bindings; ``policies``: the names of its
    ValidatingAdmissionPolicies, which have bindings of the same name; ``needs``: without which it ends; ``needs_with``: the same,
    by the setting that asks for it; ``crds``: what it brings; ``writes``: (namespace, beginnings of names) of its ConfigMaps,
    which no other component reads for long once it is removed."""

    part: str
    title: str
    kind: str
    names: tuple[str, ...]
    harm: str
    objects: tuple[tuple[str, str], ...]
    cluster_roles: tuple[str, ...]
    cluster_role_bindings: tuple[str, ...]
    images: tuple[str, ...] = ("image",)
    keep: str = ""
    namespace: str | None = None
    namespaces: tuple[str, ...] = ()
    roles: tuple[tuple[str, str], ...] = ()
    policies: tuple[str, ...] = ()
    needs: tuple[Need, ...] = ()
    needs_with: tuple[tuple[str, tuple[Need, ...]], ...] = ()
    crds: tuple[Crd, ...] = ()
    writes: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def role(self) -> str:
        return "npu_" + self.part

    @property
    def resource(self) -> str:
        """Of its workload, in the group apps."""
        return self.kind.lower() + "s"

    def home(self, namespace: str) -> str:
        """Where it is. ``namespace``: npu_namespace."""
        return self.namespace or namespace


_VOLCANO_JOB = Need("/apis/batch.volcano.sh/v1alpha1", "jobs", "Job of batch.volcano.sh/v1alpha1")
_POD_GROUP = Need("/apis/scheduling.volcano.sh/v1beta1", "podgroups", "PodGroup of scheduling.volcano.sh/v1beta1")
_QUEUE = Need("/apis/scheduling.volcano.sh/v1beta1", "queues", "Queue of scheduling.volcano.sh/v1beta1")

COMPONENTS = (
    # Before the others, because they look for its kinds.
    Component(
        part="volcano",
        title="Volcano",
        kind="Deployment",
        names=("volcano-scheduler", "volcano-controllers"),
        images=("scheduler_image", "controllers_image"),
        harm="two schedulers give the same chips to two pods",
        keep="To go on with that one, set npu_volcano_enabled: false and npu_device_plugin_volcano: true",
        objects=(("deployments", "apps"), ("serviceaccounts", "")),
        cluster_roles=("volcano-scheduler", "volcano-controllers"),
        cluster_role_bindings=("volcano-scheduler-role", "volcano-controllers-role"),
        namespace=VOLCANO_NAMESPACE,
        namespaces=(VOLCANO_NAMESPACE, DL_NAMESPACE),
        roles=(
            (VOLCANO_NAMESPACE, "npuops-volcano-scheduler"),
            (VOLCANO_NAMESPACE, "npuops-volcano-controllers"),
            (DL_NAMESPACE, "npuops-volcano-scheduler"),
        ),
        crds=(
            Crd("jobs.batch.volcano.sh", "/apis/batch.volcano.sh/v1alpha1/jobs", "Volcano Jobs"),
            Crd("commands.bus.volcano.sh", "/apis/bus.volcano.sh/v1alpha1/commands", "Commands"),
            Crd("podgroups.scheduling.volcano.sh", "/apis/scheduling.volcano.sh/v1beta1/podgroups", "PodGroups"),
            Crd("queues.scheduling.volcano.sh", "/apis/scheduling.volcano.sh/v1beta1/queues", "Queues", ("default", "root")),
            Crd("numatopologies.nodeinfo.volcano.sh", "/apis/nodeinfo.volcano.sh/v1alpha1/numatopologies", "Numatopologies"),
            Crd("hypernodes.topology.volcano.sh", "/apis/topology.volcano.sh/v1alpha1/hypernodes", "HyperNodes"),
            Crd("jobtemplates.flow.volcano.sh", "/apis/flow.volcano.sh/v1alpha1/jobtemplates", "JobTemplates"),
            Crd("jobflows.flow.volcano.sh", "/apis/flow.volcano.sh/v1alpha1/jobflows", "JobFlows"),
        ),
        writes=(
            (VOLCANO_NAMESPACE, ("vcjob-fault-npu-cm",)),
            (DL_NAMESPACE, ("job-reschedule-reason",)),
        ),
    ),
    # The others look for its Service, and only in that namespace.
    Component(
        part="clusterd",
        title="clusterd",
        kind="Deployment",
        names=("clusterd",),
        harm="two of them overwrite each other's ConfigMaps",
        objects=(("deployments", "apps"), ("serviceaccounts", ""), ("services", "")),
        cluster_roles=("pods-clusterd-role",),
        cluster_role_bindings=("pods-clusterd-rolebinding",),
        namespace=DL_NAMESPACE,
        namespaces=(DL_NAMESPACE, CLUSTER_NAMESPACE),
        needs=(_POD_GROUP,),
        writes=(
            (DL_NAMESPACE, ("cluster-info-", "current-job-statistic")),
            (CLUSTER_NAMESPACE, ("statistic-fault-info", "fault-job-info", "super-pod-", "clusterd-manual-info-cm")),
        ),
    ),
    Component(
        part="noded",
        title="noded",
        kind="DaemonSet",
        names=(component_names.NODED,),
        harm="two of them on one node delete each other's reports",
        objects=(("daemonsets", "apps"), ("serviceaccounts", "")),
        cluster_roles=("pods-noded-role",),
        cluster_role_bindings=("pods-noded-rolebinding",),
        namespaces=(DL_NAMESPACE,),
        roles=((DL_NAMESPACE, "npuops-noded"),),
        policies=("npuops-noded-nodes", "npuops-noded-configmaps"),
        writes=((DL_NAMESPACE, (NODE_INFO,)),),
    ),
    Component(
        part="ascend_operator",
        title="ascend-operator",
        kind="Deployment",
        names=("ascend-operator-manager",),
        harm="two of them disturb each other's jobs",
        objects=(("deployments", "apps"), ("serviceaccounts", "")),
        cluster_roles=("ascend-operator-manager-role",),
        cluster_role_bindings=("ascend-operator-manager-rolebinding",),
        needs=(_VOLCANO_JOB,),
        needs_with=(("gang_scheduling", (_POD_GROUP, _QUEUE)),),
        crds=(Crd("ascendjobs.mindxdl.gitee.com", "/apis/mindxdl.gitee.com/v1/ascendjobs", "AscendJobs"),),
    ),
)
PARTS = tuple(component.part for component in COMPONENTS)
