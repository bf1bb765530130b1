# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: npu_hosts
short_description: What the controller knows about each NPU host, as input for the modules that judge the whole fleet
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Collects, for each host, the results that the playbooks registered as C(__npu_python), C(__npu_facts), C(__npu_vnpu),
    C(__npu_validation) and C(__npu_pings), its configuration from the C(npu_) variables, and the names of all variables that begin
    with C(npu_).
  - A host that could not be reached, or whose facts could not be read, is in the list with the reason. So is one whose answer does
    not have the form of facts, or is too large; nothing of it is used. One that has no Python
    only because check mode brings none, or because none is needed there, has C(pending) instead.
positional: hostvars, credentials, asked, answers, validations
options:
  _input:
    description: Inventory names.
    type: list
    elements: str
    required: true
  hostvars:
    description: Ansible's C(hostvars).
    type: dict
    required: true
  credentials:
    description: Whether to include the registry credentials.
    type: bool
    default: false
  asked:
    description: Whether all of them were asked for facts. If not, one without facts is nothing special.
    type: bool
    default: true
  answers:
    description:
      - What M(npuops.ascend.npu_many_hosts) returned for M(npuops.ascend.npu_facts),
        RV(npuops.ascend.npu_many_hosts#module:answers). Without it, the facts are those that each host has registered as
        C(__npu_facts).
    type: dict
  validations:
    description: What it returned for M(npuops.ascend.npu_validate), for hosts that have registered nothing as C(__npu_validation).
    type: dict
"""

EXAMPLES = r"""
- name: Gather the status of the fleet
  npuops.ascend.npu_status:
    hosts: "{{ ansible_play_hosts_all | npuops.ascend.npu_hosts(hostvars) }}"
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
_value:
  description: One entry per host, with name, facts, error, unreachable, validation, config, variables and, if there are any, pings.
  type: list
  elements: dict
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError

_SECRET = (
    "registry_username",
    "registry_password",
    "driver_package_username",
    "driver_package_password",
    "firmware_package_username",
    "firmware_package_password",
    "runtime_package_username",
    "runtime_package_password",
)


def npu_hosts(
    names: Iterable[str],
    hostvars: Any,
    credentials: bool = False,
    asked: bool = True,
    answers: Mapping[str, dict[str, Any]] | None = None,
    validations: Mapping[str, dict[str, Any]] | None = None,
) -> list[dict[str, Any]]:
    """See DOCUMENTATION."""
    from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
    from ansible_collections.npuops.ascend.plugins.plugin_utils._data.outside import outside
    from ansible_collections.npuops.ascend.plugins.plugin_utils._settings.empty_answers import given

    # Where an answer was left empty, what the inventory says.
    configured = given(hostvars)

    def host(name: str) -> dict[str, Any]:
        # Ansible puts the variables of a host together for each look.
        variables = hostvars[name]
        config = _config(variables if configured is hostvars else configured[name], credentials)
        return _host(name, variables, config, asked, answers, validations or {})

    try:
        return outside([host(name) for name in names])
    except NpuError as error:
        raise AnsibleFilterError(error.message)


def _host(
    name: str,
    variables: Mapping[str, Any],
    config: dict[str, Any],
    asked: bool,
    answers: Mapping[str, dict[str, Any]] | None,
    validations: Mapping[str, dict[str, Any]],
) -> dict[str, Any]:
    from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import ping_results, why_not
    from ansible_collections.npuops.ascend.plugins.plugin_utils._python.trouble import explain
    from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import no_value

    no_value.check(variables, fleet=True)
    python = _result(variables, "__npu_python")
    facts = _result(variables, "__npu_facts") if answers is None else answers.get(name, {})
    if python.get("failed") or python.get("unreachable"):
        # Without a Python nothing could be asked.
        facts = python
    facts = _with_vnpus(facts, _result(variables, "__npu_vnpu"))
    # Install validates by itself, when all is in place; elsewhere it comes with the facts.
    validation = _result(variables, "__npu_validation") or validations.get(name) or facts.get("validation") or {}
    validation = {key: val for key, val in validation.items() if key != "invocation"}
    wrong = None if facts.get("unreachable") else why_not(facts.get("npu"), validation)
    if wrong:
        facts, validation = {"msg": wrong}, {}
    host = {
        "name": name,
        "facts": facts.get("npu"),
        "validation": validation or None,
        "unreachable": bool(facts.get("unreachable") or validation.get("unreachable")),
        "error": None,
        "config": config,
        "variables": [key for key in variables if key.startswith("npu_")],
    }
    if "__npu_pings" in variables:
        host["pings"] = ping_results(variables["__npu_pings"])
    if not host["facts"] and facts is not python and python.get("python") is False:
        host["pending"] = "has no Python: %s" % python.get("msg")
    elif not host["facts"] and (asked or facts):
        host["error"] = explain(facts) or facts.get("msg") or "its facts were not read"
    elif host["unreachable"]:
        host["error"] = validation.get("msg")
    return host


def _with_vnpus(facts: dict[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """The facts may be older than the virtual NPUs that install has created since."""
    if not isinstance(facts.get("npu"), Mapping) or "vnpus" not in change or change.get("failed"):
        return facts
    made = change["vnpus"]
    if isinstance(made, list) and all(isinstance(vnpu, Mapping) for vnpu in made):
        made = [{key: vnpu.get(key) for key in ("chip", "id", "template")} for vnpu in made]
    return dict(facts, npu=dict(facts["npu"], vnpus=made, vnpu_plan=None))


def _config(variables: Mapping[str, Any], credentials: bool) -> dict[str, Any]:
    from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import host_config
    from ansible_collections.npuops.ascend.plugins.plugin_utils._settings.empty_answers import is_empty

    names = [name for name in host_config.NAMES if credentials or name not in _SECRET]
    config = {name: variables["npu_" + name] for name in names if "npu_" + name in variables}
    return {key: value for key, value in config.items() if not is_empty(value)}


def _result(variables: Mapping[str, Any], register: str) -> dict[str, Any]:
    return variables[register] if register in variables else {}


class FilterModule:
    """The filter above."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"npu_hosts": npu_hosts}
