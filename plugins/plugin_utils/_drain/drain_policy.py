# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How pods are made to go, as the variables say: which have to leave, how long they may take, what may be lost."""

from __future__ import annotations

import dataclasses
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import selectors as kube_selectors
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods import claims as pod_claims
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods.blocker import EMPTY_DIR, NO_CONTROLLER, Blocker
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods.pod_view import NPU, OTHER, Pod
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import valid_settings

# Seconds that a recovery waits where an upgrade may wait without a limit: what uses chips that do not respond may never end.
RECOVERY_LIMIT = 300


@dataclasses.dataclass(frozen=True)
class DrainPolicy:
    """How pods are made to go: npu_upgrade_wait_for_jobs, npu_upgrade_pod_deletion and npu_upgrade_drain."""

    jobs: kube_selectors.Selector
    jobs_timeout: int  # seconds; 0 = without limit
    deletion_force: bool
    deletion_timeout: int
    deletion_delete_empty_dir: bool
    dra_drivers: frozenset[str]  # whose devices are NPUs
    drain_enable: bool
    drain_force: bool
    drain_timeout: int
    drain_delete_empty_dir: bool
    drain_skip: kube_selectors.Selector

    @classmethod
    def of(cls, wait_for_jobs: Any = None, pod_deletion: Any = None, drain: Any = None) -> DrainPolicy:
        """From the three settings; what is not given has the default.

        Raises NpuError naming the variable and key.
        """
        given = {"wait_for_jobs": wait_for_jobs, "pod_deletion": pod_deletion, "drain": drain}
        settings = valid_settings.settings("npu_upgrade", given)
        jobs, deletion, drained = (settings[name] for name in given)
        return cls(
            jobs=kube_selectors.parse(jobs["selector"], "npu_upgrade_wait_for_jobs.selector"),
            jobs_timeout=jobs["timeout"],
            deletion_force=deletion["force"],
            deletion_timeout=deletion["timeout"],
            deletion_delete_empty_dir=deletion["delete_empty_dir"],
            dra_drivers=_dra_drivers(deletion["dra_drivers"]),
            drain_enable=drained["enable"],
            drain_force=drained["force"],
            drain_timeout=drained["timeout"],
            drain_delete_empty_dir=drained["delete_empty_dir"],
            drain_skip=kube_selectors.parse(drained["skip_selector"], "npu_upgrade_drain.skip_selector"),
        )

    def of_recovery(self) -> DrainPolicy:
        """The same, with RECOVERY_LIMIT in place of no limit."""
        return dataclasses.replace(
            self,
            jobs_timeout=self.jobs_timeout or RECOVERY_LIMIT,
            deletion_timeout=self.deletion_timeout or RECOVERY_LIMIT,
            drain_timeout=self.drain_timeout or RECOVERY_LIMIT,
        )

    def goes(self, pod: Pod) -> bool:
        """Whether the pod has to leave before the reboot."""
        kind = pod.kind
        return kind == NPU or (kind == OTHER and self.drain_enable and not self.drain_skip.matches(pod.labels))

    def timeout(self, kind: str) -> int:
        """Seconds for pods of the kind NPU or OTHER; 0 = without limit."""
        return self.deletion_timeout if kind == NPU else self.drain_timeout

    def _variable(self, pod: Pod) -> str:
        return "npu_upgrade_pod_deletion" if pod.kind == NPU else "npu_upgrade_drain"

    def objection(self, pod: Pod) -> Blocker | None:
        """The Blocker that the policy itself is to the pod's eviction, or None."""
        force, delete_empty_dir = self.drain_force, self.drain_delete_empty_dir
        if pod.kind == NPU:
            force, delete_empty_dir = self.deletion_force, self.deletion_delete_empty_dir
        if pod.owner is None and not force:
            why = "it has no controller and would be lost; delete it, or set %s.force: true" % self._variable(pod)
            return Blocker(NO_CONTROLLER, pod, why)
        if pod.empty_dir and not delete_empty_dir:
            why = "its emptyDir data would be lost; set %s.delete_empty_dir: true to allow that" % self._variable(pod)
            return Blocker(EMPTY_DIR, pod, why)
        return None


def _dra_drivers(text: str) -> frozenset[str]:
    names = text.replace(",", " ").split()
    for name in names:
        if not pod_claims.DRIVER_NAME.fullmatch(name):
            raise NpuError(
                "npu_upgrade_pod_deletion.dra_drivers names %r, which is not the name of a DRA driver, such as npu.huawei.com"
                % name[:253]
            )
    return frozenset(names)
