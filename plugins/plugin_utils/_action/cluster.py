# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the modules that talk to the cluster have in common: they run inside Ansible's own process on the controller.

A module proper would start a Python and import the Kubernetes client (together most of a second of CPU) for each call.
As action plugins they share one import: Ansible loads an action plugin before it forks.
"""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._action import screen, whole_numbers
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import this_run
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import no_value, spec_defaults

# The option of the modules that need to know where the components are.
NAMESPACE = {"type": "str", "default": spec_defaults.default("npu_namespace")}

# The options of the modules that look at a host's driver through its connection: documentation fragment driver.step.
DRIVER_OF_HOST = {
    "driver_root": {"type": "path", "default": spec_defaults.default("npu_driver_root")},
    "driver_source": {"type": "str", "choices": ["image", "package", "preinstalled"], "default": "image"},
    "library_path": {"type": "str", "choices": ["hook", "env", "none"], "default": "hook"},
}


class ClusterAction(ActionBase):
    """A subclass has ``ARGUMENTS`` (an argument_spec) and ``act(params)``, which returns the result as a dict.

    An NpuError becomes the failure, its details become part of the result. Arguments are never part of it.
    """

    ARGUMENTS: dict[str, Any] = {}
    _requires_connection = False
    _task_vars: dict[str, Any] = {}
    _cluster: kube_client.Cluster | None = None

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        self._task_vars = task_vars or {}
        result = super().run(tmp, task_vars)
        this_run.inventory_is((task_vars or {}).get("hostvars"))
        try:
            whole_numbers.check(self.ARGUMENTS, self._task.args)
            _validation, params = self.validate_argument_spec(dict(kube_client.AUTH_ARG_SPEC, **self.ARGUMENTS))
            no_value.check(task_vars or {})
            self.check_play()
            result.update({"changed": False}, **self.act(params))
        except NpuError as exc:
            result.update(exc.details, failed=True, msg=screen.clean(exc.message))
        return result

    def check_play(self) -> None:
        """Raise NpuError if the task has no place in this play."""

    def act(self, params: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    def _connected(self, params: dict[str, Any]) -> kube_client.Cluster:
        """The cluster, which is connected to when it is needed for the first time. Raises NpuError."""
        if self._cluster is None:
            self._cluster = kube_client.connect(params)
        return self._cluster

    @property
    def check_mode(self) -> bool:
        return self._task.check_mode

    @property
    def diff_mode(self) -> bool:
        return self._task.diff
