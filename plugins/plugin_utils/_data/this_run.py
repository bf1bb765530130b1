# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command to run next, with the inventory, the hosts and the variables that this run was started with.

A command without them does something else: with another inventory, or with the version that the inventory names.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import yaml
from ansible import context
from ansible.errors import AnsibleError
from ansible_collections.npuops.ascend.plugins.module_utils._host.heal_service import is_secret
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings.empty_answers import given as given_variables
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings.empty_answers import is_empty

# They answer for one run, so the next one must be told again.
_ONCE = ("npu_upgrade_clear_halt", "npu_upgrade_retry")
# Answers in AWX that its inventory does not have, by playbook; the surveys of the templates ask for them.
_VERSION, _FIRMWARE = ("npu_driver_version",), ("npu_firmware_policy", "npu_firmware_version")
_ANSWERS = {"install": _VERSION, "join": _VERSION, "plan": _VERSION + _FIRMWARE, "upgrade": _VERSION + _FIRMWARE}
# Of ansible-playbook, whose names in Ansible's own options are these.
_OPTIONS = {"remote_user": "--user", "private_key_file": "--private-key", "become_user": "--become-user"}
_FLAGS = {
    "become": "--become",
    "ask_pass": "--ask-pass",
    "become_ask_pass": "--ask-become-pass",
    "ask_vault_pass": "--ask-vault-pass",
}
_LISTS = {"vault_ids": "--vault-id", "vault_password_files": "--vault-password-file"}
# What Ansible reads in name=value as it is written: no blanks, quotes, backslashes or templates.
_PLAIN = re.compile(r"[\w./:@%+,=~^-]*", re.ASCII)

# Ansible's hostvars, for the names that the inventory has for Nodes. Ansible starts a process for each task, which is told once.
_inventory: dict[str, Any] = {"hostvars": None}


def inventory_is(hostvars: Any) -> None:
    """Tell which hosts the run has: Ansible's ``hostvars``, or None if they are not known."""
    _inventory["hostvars"] = hostvars


def host_of(node: str) -> str:
    """The inventory's name of the host of a Node; the Node's own name if the inventory has no host for it.

    ``--limit`` takes the inventory's name, and npu_node_name may be another one.
    """
    hostvars = _inventory["hostvars"]
    if hostvars is None:
        return node
    hostvars = given_variables(hostvars)
    # Mostly it is that one, and to read the variables of all hosts takes time.
    if node in hostvars and _node_of(hostvars, node) == node:
        return node
    return next((host for host in hostvars if _node_of(hostvars, host) == node), node)


def _node_of(hostvars: Any, host: str) -> str:
    try:
        name = hostvars[host].get("npu_node_name")
    except AnsibleError:  # a template that cannot be evaluated, which the plan tells of
        return host
    return host if is_empty(name) else str(name)


def excluding(hosts: Sequence[str], subset: str | None) -> str:
    """The pattern for --limit of all hosts but these. ``subset``: the --limit of this run, or None."""
    pattern = subset or "all"
    separator = "," if "," in pattern else ":"
    return separator.join([pattern, *("!" + host for host in hosts)])


def limit_without(host: str) -> str:
    """The option of ansible-playbook that leaves out this host of those of this run."""
    return "--limit " + shlex.quote(excluding([host], _option("subset")))


def again(
    playbook: str,
    variables: Mapping[str, Any] | None = None,
    *,
    limit: str | None = None,
    node: str | None = None,
    without: str | None = None,
) -> str:
    """Return what people do to run the playbook of this collection, as this run was started.

    :param variables: further extra variables; they take precedence
    :param limit: instead of the hosts of this run, those of this pattern
    :param node: instead of them, the host of this Node
    :param without: the hosts of this run, but not that of this Node

    Values of secrets are left out: they would be in a log. In AWX, it is a sentence: people do not type commands there.
    """
    given = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in (variables or {}).items()}
    if node:
        limit = host_of(node)
    elif without:
        limit = excluding([host_of(without)], _option("subset"))
    hosts = limit or _option("subset")
    if _is_in_awx():
        return _in_awx(playbook, given, hosts)
    words = ["ansible-playbook", *_words(), "npuops.ascend." + playbook]
    if hosts:
        words += ["--limit", hosts]
    for text in _extra_variables(given):
        words += ["-e", text]
    return " ".join(shlex.quote(word) for word in words)


def in_order(commands: Iterable[str]) -> str:
    """Several of them, each to be run after the one before."""
    return (" and then " if _is_in_awx() else " && ").join(commands)


def _is_in_awx() -> bool:
    return "JOB_ID" in os.environ and "INVENTORY_ID" in os.environ


def _in_awx(playbook: str, given: Mapping[str, str], limit: str | None) -> str:
    answers = _answers()
    repeated = {name: str(answers[name]) for name in _ANSWERS.get(playbook, ()) if not is_empty(answers.get(name))}
    more = ["%s: %s" % item for item in {**repeated, **given}.items()]
    told = ["the variables " + ", ".join(more)] if more else []
    told += ["the limit " + limit] if limit else []
    return "launch the job template of npuops.ascend.%s again%s" % (playbook, " with " + " and ".join(told) if told else "")


def _answers() -> dict[str, Any]:
    """The extra variables of the job. AWX gives them in a file."""
    found: dict[str, Any] = {}
    for text in _option("extra_vars") or ():
        found.update(_read(text[1:]) if text.startswith("@") else _parsed(text))
    return found


def _read(path: str) -> dict[str, Any]:
    """What the file says; nothing if it cannot be read. AWX writes the tag !unsafe in it."""
    from ansible.parsing.dataloader import DataLoader

    try:
        found = DataLoader().load_from_file(path)
    except (UnicodeError, AnsibleError):  # UnicodeError: ansible-core before 2.19
        return {}
    return found if isinstance(found, dict) else {}


def _option(name: str) -> Any:
    """An option of the program that runs; None outside of one."""
    try:
        return context.CLIARGS.get(name)
    except AttributeError:
        return None


def _words() -> Iterator[str]:
    for source in _option("inventory") or ():
        yield from ("-i", _path(source))
    for name, word in _OPTIONS.items():
        if _option(name):
            yield from (word, str(_option(name)))
    for name, word in _FLAGS.items():
        if _option(name):
            yield word
    for name, word in _LISTS.items():
        for value in _option(name) or ():
            yield from (word, str(value))


def _path(source: str) -> str:
    """Ansible makes paths absolute; people are in the same directory when they run the next command."""
    if "," in source or not os.path.isabs(source):
        return source
    near = os.path.relpath(source)
    return source if near.startswith("..") else near


def _extra_variables(given: Mapping[str, str]) -> Iterator[str]:
    """The values of -e, without secrets, without what `given` replaces, and with that."""
    for text in _option("extra_vars") or ():
        if text.startswith("@"):
            yield text
            continue
        kept = {name: value for name, value in _parsed(text).items() if name not in (*given, *_ONCE) and not is_secret(name, value)}
        if kept and all(isinstance(value, str) for value in kept.values()):
            yield from (_written(*item) for item in kept.items())
        elif kept:
            yield json.dumps(kept)
    yield from (_written(*item) for item in given.items())


def _written(name: str, value: str) -> str:
    return "%s=%s" % (name, value) if _PLAIN.fullmatch(value) else json.dumps({name: value})


def _parsed(text: str) -> dict[str, Any]:
    """What one -e says; nothing if it cannot be read, as Ansible has read it in this run."""
    # Only here, as it loads most of Ansible.
    from ansible.parsing.splitter import parse_kv

    try:
        found = yaml.safe_load(text) if text[:1] in "{[" else parse_kv(text)
    except (yaml.YAMLError, AnsibleError):
        return {}
    return {str(name): value for name, value in found.items() if name != "_raw_params"} if isinstance(found, dict) else {}
