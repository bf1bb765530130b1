# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pathlib
from collections.abc import Iterable
from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._image import registry_options
from ansible_collections.npuops.ascend.plugins.module_utils._image.mirrored import mirrored
from ansible_collections.npuops.ascend.plugins.plugin_utils._action import screen
from ansible_collections.npuops.ascend.plugins.plugin_utils._python import runtime as python_runtime
from ansible_collections.npuops.ascend.plugins.plugin_utils._python.trouble import INTERPRETER

_SCRIPT = pathlib.Path(__file__).parent.parent / "plugin_utils" / "_python" / "bring_python.sh"

_ARGUMENTS = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "image": {"type": "str"},
    "only_with": {"type": "list", "elements": "str", "default": []},
    "credentials_of": {"type": "str"},
    "registry_mirror": {"type": "raw"},
    **registry_options.ARGUMENTS,
}


class ActionModule(ActionBase):
    """See the documentation of the module npu_python."""

    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        _validation, params = self.validate_argument_spec(_ARGUMENTS)
        try:
            for name in ("image", "credentials_of"):
                params[name] = mirrored(params[name], params["registry_mirror"])
            result.update({"changed": False}, **self._act(params))
        except NpuError as exc:
            result.update(exc.details, failed=True, msg=screen.clean(exc.message))
        return result

    def _act(self, params: dict[str, Any]) -> dict[str, Any]:
        host = self._look(params["only_with"])
        if params["state"] == "absent":
            return self._remove(host)
        if params["only_with"] and not set(host.traces) & set(params["only_with"]):
            return {"python": False, "runtime": host.current, "msg": "None of the paths exists: no Python is needed"}
        if not params["image"]:
            raise NpuError(
                "This host has no Python of its own (ansible_python_interpreter is %s), and npu_node_agent_image, the "
                "image that provides one, is not set" % INTERPRETER
            )
        name = python_runtime.name_of(params["image"])
        if host.current == name:
            return {"python": True, "runtime": name, "msg": "the Python of %s is installed" % params["image"]}
        msg = "install the Python of %s" % params["image"]
        result = {"changed": True, "python": True, "runtime": name, "msg": msg, "diff": _diff(host.current, name)}
        if self._task.check_mode:
            return dict(result, python=host.current is not None, runtime=host.current)
        self._bring(params)
        return result

    def _look(self, traces: Iterable[str]) -> python_runtime.PythonOnHost:
        status, output, error = self._send("look", traces="\n".join(traces))
        host = python_runtime.PythonOnHost(output)
        if status or not host.answered:
            raise NpuError(
                "The shell of this host does not run commands as expected (exit status %s): %s" % (status, error or output)
            )
        return host

    def _remove(self, host: python_runtime.PythonOnHost) -> dict[str, Any]:
        changed = host.current is not None or bool(host.traces)
        if changed and not self._task.check_mode:
            status, output, error = self._send("remove")
            if status:
                raise NpuError("The Python that install added to this host cannot be removed: %s" % (error or output))
        msg = "remove the Python that install added" if changed else "install added no Python"
        result = {"changed": changed, "python": False, "runtime": None, "msg": msg}
        return dict(result, diff=_diff(host.current, None)) if changed else result

    def _bring(self, params: dict[str, Any]) -> None:
        variables = python_runtime.pull_variables(
            params["image"], meant_for=params["credentials_of"], **registry_options.access(params)
        )
        status, output, error = self._send("bring", **variables)
        if status:
            raise python_runtime.failure(
                status, error or output, params["image"], python_runtime.secrets_of(variables["hosts_toml"])
            )

    def _send(self, task: str, **variables: str) -> tuple[int, str, str]:
        """Run the script on the host; (exit status, output, error). It goes to the shell's standard input."""
        text = python_runtime.script_for(_SCRIPT.read_text(encoding="utf-8"), task, **variables)
        answer = self._low_level_execute_command("/bin/sh -s", in_data=text.encode("utf-8"))
        return answer["rc"], answer["stdout"], answer["stderr"].strip()


def _diff(before: str | None, after: str | None) -> dict[str, str]:
    """What the link current names, as Ansible's diff."""
    names = {"before": before, "after": after}
    result = {key: "%s\n" % name if name else "" for key, name in names.items()}
    return dict(result, before_header=INTERPRETER, after_header=INTERPRETER)
