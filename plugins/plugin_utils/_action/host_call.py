# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host of a maintenance through the connection of an Ansible task; the port that _cycle_host describes."""

from __future__ import annotations

import contextlib
from typing import Any

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, one_line
from ansible_collections.npuops.ascend.plugins.plugin_utils._action import bounded, ssh_keepalive
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import host_answers
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import (
    AcceptanceAnswer,
    FirmwareAnswer,
    RebootAnswer,
    Verdict,
    View,
    VnpuAnswer,
)
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.host_side import HostBusy, HostUnreachable
from ansible_collections.npuops.ascend.plugins.plugin_utils._python import trouble as python_trouble

# Seconds for one call. The record's heartbeat must not get too old meanwhile.
LIMIT = 60
# For one that asks each port of each chip.
ACCEPT_LIMIT = 300
# And for telling the master of a kept connection, on this machine, to end.
RESET_LIMIT = 10
# How a module's process ends when its host goes down: by a signal, as a shell tells it or as Python does.
_CUT_SHORT = (255, 137, 143, -9, -15)


class HostPort:
    def __init__(self, action: ActionBase, task_vars: dict[str, Any], root: str, library_path: str | None = None) -> None:
        """``action``: the ActionBase whose connection is used; ``root``: the directory with the driver's links."""
        self._action, self._task_vars = action, task_vars
        self._root, self._library_path = root, library_path

    def view(self, wait: int | None = None, chips: bool = False, ports: bool = False) -> View:
        return host_answers.view(self._boot(state="view", wait=wait, chips=chips or None, network=ports or None).get("view"))

    def rebooted(self, boot_id: str, generation: int, release: str | None, refuse_held: bool) -> RebootAnswer:
        result = self._boot(state="rebooted", boot_id=boot_id, generation=generation, release=release, refuse_held=refuse_held)
        answer = host_answers.reboot_answer(result)
        if answer["queued"]:
            # A connection that is kept open would hang when its other end is gone.
            self._reset()
        return answer

    def firmware_written(self, boot_id: str, generation: int, release: str, version: str, again: bool) -> FirmwareAnswer:
        # Short, so that people soon see what the node waits for.
        arguments: dict[str, Any] = {
            "boot_id": boot_id,
            "generation": generation,
            "release": release,
            "version": version,
            "wait": 5,
        }
        return host_answers.firmware_answer(self._call("npuops.ascend.npu_firmware", dict(arguments, again=again, root=self._root)))

    def divided(self, layout: list[dict[str, Any]]) -> VnpuAnswer:
        place = {"source": "image", "root": self._root}
        answer = host_answers.vnpu_answer(self._call("npuops.ascend.npu_vnpu", dict(place, layout=layout)))
        # Always: an earlier run may have been killed after it divided the chips and before it described them.
        arguments = dict(place, library_path=self._library_path) if self._library_path else place
        self._call("npuops.ascend.npu_cdi_spec", arguments)
        return answer

    def confirmed(self, generation: int, release: str, boot_id: str) -> None:
        self._boot(state="confirmed", generation=generation, release=release, boot_id=boot_id)

    def withdrawn(self, generation: int) -> None:
        self._boot(state="withdrawn", generation=generation)

    def validate(self, version: str | None) -> Verdict:
        # Until it is confirmed, a new driver is on trial. That the right one is loaded, the cycle knows from the view.
        arguments = {"source": "image", "root": self._root, "fail": False, "trial": True}
        if version:
            arguments["version"] = version
        if self._library_path:
            arguments["library_path"] = self._library_path
        return host_answers.verdict(self._call("npuops.ascend.npu_validate", arguments))

    def collected(self, arguments: dict[str, Any], seconds: int) -> dict[str, Any]:
        """The diagnostic data as the host sends them, not validated; ``seconds``: the limit of the call."""
        return self._call("npuops.ascend.npu_collect", dict(arguments, root=self._root), seconds)

    def accepted(self, arguments: dict[str, Any]) -> AcceptanceAnswer:
        """What npu_accept has found so far."""
        answer = self._call("npuops.ascend.npu_accept", dict(arguments, root=self._root), ACCEPT_LIMIT)
        return host_answers.acceptance_answer(answer)

    def _boot(self, **arguments: Any) -> dict[str, Any]:
        arguments = {name: value for name, value in arguments.items() if value is not None}
        return self._call("npuops.ascend.npu_trial_boot", dict(arguments, root=self._root))

    def _call(self, module: str, arguments: dict[str, Any], seconds: int | None = None) -> dict[str, Any]:
        """The module's result. Raises HostUnreachable, HostBusy, or NpuError with what the module says."""
        try:
            result = bounded.call(lambda: self._execute(module, arguments), seconds or LIMIT)
        except (AnsibleConnectionFailure, bounded.TimeIsUp, bounded.Cut) as exc:
            self._reset()
            raise HostUnreachable(one_line(exc))
        self._keep_interpreter(result)
        if result.get("unreachable") or ("module_stdout" in result and result.get("rc") in _CUT_SHORT):
            self._reset()
            raise HostUnreachable(one_line(result.get("msg") or "the connection ended"))
        if result.get("failed") and result.get("busy") is True:
            # Perhaps the module of a call that was cut off, which goes on there.
            raise HostBusy(one_line(result.get("msg")))
        if result.get("failed"):
            raise NpuError(python_trouble.explain(result) or result.get("msg") or _without_message(module, result))
        return result

    def _execute(self, module: str, arguments: dict[str, Any]) -> dict[str, Any]:
        ssh_keepalive.add(self._action._connection)  # noqa: SLF001
        return self._action._execute_module(  # noqa: SLF001
            module_name=module, module_args=arguments, task_vars=self._task_vars
        )

    def _keep_interpreter(self, result: dict[str, Any]) -> None:
        """Remember which Python Ansible has found on the host; otherwise each call would search for it again."""
        for name, value in (result.get("ansible_facts") or {}).items():
            if name.startswith("discovered_interpreter_"):
                self._task_vars.setdefault("ansible_facts", {})[name] = value

    def _reset(self) -> None:
        with contextlib.suppress(AnsibleError, bounded.TimeIsUp, bounded.Cut):
            bounded.call(self._action._connection.reset, RESET_LIMIT)  # noqa: SLF001


def _without_message(module: str, result: dict[str, Any]) -> str:
    """What is known of a module that failed and does not say why."""
    lines = [line[:200] for name in ("module_stderr", "module_stdout") for line in str(result.get(name) or "").splitlines()[-1:]]
    status = "" if result.get("rc") is None else " with exit status %s" % result["rc"]
    return one_line("%s failed%s, without a message%s" % (module, status, "".join(": " + line for line in lines)))
