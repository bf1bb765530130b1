# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A module on many hosts from one task, in threads over the hosts' own connections.

Ansible runs a task in a process for each host, and with ssh that process is nine tenths of what a short look at a host costs.

How to reach a host remains Ansible's own decision: `_Way` is its TaskExecutor, of which only the two methods run that make a
connection, with its options and its become plugin, from the variables of a host. They are not public, and alike in ansible-core
2.18 to 2.21, nor is what collects the warnings of a task and who looks at values; tests/unit/ansible/test_many_hosts.py runs with
each of them.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from ansible import constants
from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.executor.task_executor import TaskExecutor
from ansible.playbook.play_context import PlayContext
from ansible.plugins.action import ActionBase
from ansible.template import Templar
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import one_line
from ansible_collections.npuops.ascend.plugins.plugin_utils._action import bounded, ssh_keepalive
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.host_module import HostAction
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.lanes import Lanes

try:
    from ansible._internal._display_utils import DeferredWarningContext
    from ansible._internal._templating._access import AnsibleAccessContext
except ImportError:  # ansible-core 2.18
    DeferredWarningContext = AnsibleAccessContext = None


# Each takes some 200 KB.
_MOST_BUILT = 32


@dataclasses.dataclass(frozen=True)
class Call:
    """A module for a host; ``variables``: the host's, not evaluated."""

    host: Any
    variables: dict[str, Any]
    module: str
    arguments: dict[str, Any]


class _Many:
    """What the hosts have in common: ``action``, with its loaders; its ``task``, as one of each host; ``built``: what is sent to a
    host to run a module there, by all that it depends on."""

    def __init__(self, action: ActionBase, passwords: dict[str, str]) -> None:
        self.action, self.passwords = action, passwords
        self.built: dict[str, Any] = {}
        self.task = action._task.copy()  # noqa: SLF001
        # In ansible-core 2.21, the task already has the connection to the host that it is delegated to.
        self.task.delegate_to, self.task.connection = None, self.task.play.connection


class _Action(HostAction):
    """Of one of many hosts, nearly all of which are sent the same: to put it together takes a third of the time of a call."""

    def __init__(self, built: dict[str, Any], *arguments: Any) -> None:
        super().__init__(*arguments)
        self._built = built

    def _configure_module(self, module_name: str, module_args: dict[str, Any], task_vars: dict[str, Any]) -> Any:
        environment: dict[str, Any] = {}
        self._compute_environment_string(environment)
        python = self._templar.template(task_vars.get("ansible_python_interpreter"))
        discovered = (task_vars.get("ansible_facts") or {}).get("discovered_interpreter_python")
        local = getattr(self._connection, "_remote_is_local", False)
        compression = task_vars.get("ansible_module_compression")
        decides = [module_name, module_args, environment, python, discovered, local, compression]
        key = json.dumps(decides, sort_keys=True, default=repr)
        if key not in self._built:
            built = super()._configure_module(module_name, module_args, task_vars)
            # Not with the Python that this host was asked for just now. And without pipelining, each host is sent its own.
            if self._discovered_interpreter_key or len(self._built) >= _MOST_BUILT:
                return built
            self._built[key] = built
        return self._built[key]


class _Way(TaskExecutor):
    """The connection to a host as Ansible makes it for a task of that host."""

    # Of the class, it is a property in ansible-core 2.21.
    _task = property(lambda self: self._own_task)

    def __init__(self, many: _Many, call: Call) -> None:  # pylint: disable=super-init-not-called
        self._own_task, self._many = many.task, many
        self._loader, self._shared_loader_obj = many.action._loader, many.action._shared_loader_obj  # noqa: SLF001
        self._host, self._new_stdin, self._connection = call.host, None, None
        self._templar = Templar(loader=self._loader, variables=call.variables)
        context = PlayContext(play=self._own_task.play, passwords=many.passwords)
        context = context.set_task_and_variable_override(task=self._own_task, variables=call.variables, templar=self._templar)
        context.post_validate(templar=self._templar)
        context.remote_addr = context.remote_addr or call.host.address
        self._play_context = context

    def action(self, variables: dict[str, Any]) -> HostAction:
        """An action of the host, whose ``variables`` learn how it is reached."""
        context, templar = self._play_context, self._templar
        kind = variables.get("ansible_connection")
        kind = self._own_task.connection if kind is None else templar.template(kind)
        connection = self._connection = self._get_connection(variables, templar, kind)
        self._set_connection_options(variables, templar)
        connection.update_vars(variables)
        ssh_keepalive.add(connection)
        return _Action(self._many.built, self._own_task, connection, context, self._loader, templar, self._shared_loader_obj)


def passwords(play_context: PlayContext, task_vars: Mapping[str, Any], delegate: str) -> dict[str, str]:
    """The passwords that a person gave on the command line, from the context of a task that is delegated to ``delegate``. One that
    is a variable of that host is for no other host."""
    own = (task_vars.get("ansible_delegated_vars") or {}).get(delegate) or {}
    found = {"conn_pass": ("password", play_context.password), "become_pass": ("become_pass", play_context.become_pass)}
    return {
        name: value or ""
        for name, (attribute, value) in found.items()
        if not any(variable in own for variable in constants.MAGIC_VARIABLE_MAPPING[attribute])
    }


def ask(action: ActionBase, calls: Iterable[Call], secrets: dict[str, str], at_once: int, limit: int) -> dict[str, dict[str, Any]]:
    """The result of each call by the name of its host; where there is none, one with ``unreachable`` or ``failed`` and ``msg``.

    ``at_once``: how many hosts are asked at once; ``limit``: seconds for each. What a host still does after that, is given up.
    """
    by_name = {call.host.name: call for call in calls}
    late = {"unreachable": True, "msg": "no answer within %d s" % limit}
    many = _Many(action, secrets)
    lanes = Lanes(lambda name: _answer(many, by_name[name]), late, limit)
    try:
        return lanes.run(by_name, at_once)
    finally:
        # An ssh to a host that froze.
        if lanes.given_up:
            bounded.kill_descendants(os.getpid())


def _answer(many: _Many, call: Call) -> dict[str, Any]:
    """The result, with the warnings of this host: that of the task is for all hosts, and ansible-core 2.21 moves all there."""
    if DeferredWarningContext is None:
        return _result(many, call)
    # What evaluates a template puts itself on a stack, and finds another thread's on it if it is that of the task.
    AnsibleAccessContext._contextvar.set(AnsibleAccessContext())  # noqa: SLF001
    with DeferredWarningContext(variables={}) as context:
        answer = _result(many, call)
    own = answer.get("warnings")
    own = own if isinstance(own, list) else []
    return dict(answer, warnings=own + [warning for warning in context.get_warnings() if warning not in own])


def _result(many: _Many, call: Call) -> dict[str, Any]:
    try:
        one = _Way(many, call).action(call.variables)
        try:
            return one.answer(call.module, call.arguments, call.variables)
        finally:
            one.cleanup()
    except AnsibleConnectionFailure as exc:
        return {"unreachable": True, "msg": one_line(exc)}
    except AnsibleError as exc:
        return {"failed": True, "msg": one_line(exc)}
    except Exception as exc:
        return {"failed": True, "msg": one_line("%s: %s" % (type(exc).__name__, exc))}
