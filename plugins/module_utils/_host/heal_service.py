# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The systemd service that runs the watch on the control machine: its requirements, its unit, and starting and stopping it.

Messages name the variables of the role npu_heal_service.
"""

from __future__ import annotations

import functools
import json
import os
import pwd
import re
import stat

from ansible_collections.npuops.ascend.plugins.module_utils._host import command as host_command
from ansible_collections.npuops.ascend.plugins.module_utils._host import systemd, systemd_unit
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import read_text, remove_file, write_atomic
from ansible_collections.npuops.ascend.plugins.module_utils._host.system import Change

# The first line of the unit identifies it as this collection's.
MARK = "# Written by the Ansible collection npuops.ascend.\n"
# Options of ansible-playbook that prompt for input.
ASKING = ("-k", "--ask-pass", "-K", "--ask-become-pass", "-J", "--ask-vault-pass", "--ask-vault-password", "--step")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*\Z")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_WORDS = r"(?:PASSWORD|PASSPHRASE|SECRET|TOKEN|API_?KEY|(?<![A-Z])PASS|(?<![A-Z])PASSWD)S?"
# Who knows the address of a webhook can write into its chat.
_SECRET = re.compile(r"(?:%s|(?:NOTIFY|WEBHOOK)_URL)\Z" % _WORDS, re.IGNORECASE)
# As key=value, YAML or JSON. A template finds the value elsewhere.
_VALUE = re.compile(r"""([\w-]*%s)["']?(?:=|\s*:\s*)(?!["']?\{\{)\S""" % _WORDS, re.IGNORECASE)
_ACCOUNT_IN_URL = re.compile(r"://[^/\s:@]*:[^/\s@]+@")
_ACCESS_SECONDS = 20
# More than TimeoutStopSec below.
_STOP_SECONDS = 120

_UNIT = (
    MARK
    + """
[Unit]
Description=Recover NPU nodes whose driver no longer responds
Wants=network-online.target
After=network-online.target
# A service that cannot work exits repeatedly. Then it stays failed, so that systemctl --failed and monitoring show it.
StartLimitIntervalSec=900
StartLimitBurst=5

[Service]
Type=exec
User=%s
WorkingDirectory=%s
%sExecStart=%s
Restart=always
RestartSec=30
# Ansible exits immediately on SIGTERM. A recovery that it started also gets the signal, and this time to exit cleanly. With
# mixed, it would be killed as soon as the watch exits.
KillMode=control-group
TimeoutStopSec=90

[Install]
WantedBy=multi-user.target
"""
)


def is_secret(name, value):
    """Whether the variable ``name`` or its ``value`` must not be where others can read it."""
    told = value if isinstance(value, str) else json.dumps(value, default=str)
    return bool(_SECRET.search(name) or _VALUE.search(told) or _ACCOUNT_IN_URL.search(told))


class Setup:
    """What the service runs, and as which user. ``command``: path of ansible-playbook, empty if it was not found."""

    def __init__(self, user, directory, inventory, command, arguments, environment):
        self.user = user
        self.directory = directory
        self.inventory = list(inventory)
        self.command = command
        self.arguments = list(arguments)
        self.environment = {name: str(value) for name, value in environment.items()}

    def check(self):
        """Raise NpuError with everything that prevents the service from working on this host."""
        problems = list(self._unset()) + list(self._unwritable())
        if not problems:
            problems = list(self._missing())
        if problems:
            raise NpuError("\n".join(["Nothing was changed:"] + ["  " + problem for problem in problems]))

    def unit(self):
        """The text of the unit."""
        words = [self.command, "npuops.ascend.heal"]
        for path in self.inventory:
            words += ["-i", path]
        words += self.arguments + ["-e", '{"npu_heal_watch": true}']
        environment = "".join("Environment=%s\n" % systemd_unit.assignment(*entry) for entry in sorted(self.environment.items()))
        return _UNIT % (
            self.user,
            systemd_unit.path(self.directory),
            environment,
            systemd_unit.command(words),
        )

    def _unset(self):
        for name, value, meaning in (
            ("user", self.user, "the account that runs Ansible and has its SSH key"),
            ("directory", self.directory, "the absolute path of the working directory, where ansible.cfg is"),
            ("inventory", self.inventory, "the absolute path of the inventory, or a list of such paths"),
        ):
            if not value:
                yield "npu_heal_service_%s is not set: %s." % (name, meaning)

    def _unwritable(self):
        """Values that a unit cannot contain, or must not contain."""
        for name, path, _kind, _flag in self._places():
            # _missing reports a command that was not found, and _unset a directory that is not set.
            if not systemd_unit.is_path(path) and (path or name == "inventory"):
                yield (
                    "npu_heal_service_%s is %s, which a systemd unit cannot contain. Set it to the absolute path on this host,"
                    " without line breaks, and without spaces or a backslash at the end." % (name, json.dumps(path))
                )
        asking = [word for word in self.arguments if word in ASKING]
        if asking:
            yield (
                "npu_heal_service_arguments contains %s, but a service cannot prompt for input. Use SSH keys, and files for vault"
                " passwords (--vault-password-file)." % ", ".join(asking)
            )
        for name, values in (("arguments", self.arguments), ("environment", self.environment.values())):
            for value in values:
                found = _VALUE.search(value)
                if found or _ACCOUNT_IN_URL.search(value):
                    yield (
                        "npu_heal_service_%s contains %s, and all users on this host can read a unit. Put secrets into files that"
                        " only %s can read, such as the inventory, a vault, or a file for -e @FILE."
                        % (
                            name,
                            "the value of %s" % found.group(1) if found else "a URL with a password",
                            self.user or "the account",
                        )
                    )
        for name in sorted(self.environment):
            if not _VARIABLE.match(name) or _SECRET.search(name):
                yield (
                    "npu_heal_service_environment contains %s, which is not the name of an environment variable, or is one for a"
                    " secret. All users on this host can read a unit, so put secrets into files that only %s can read, and set"
                    " variables with their paths (KUBECONFIG, ANSIBLE_VAULT_PASSWORD_FILE)."
                    % (json.dumps(name), self.user or "the account")
                )
        for name, values in (("arguments", self.arguments), ("environment", self.environment.values())):
            if any("\0" in value for value in values):
                yield "npu_heal_service_%s contains a null character, which cannot be passed to a program. Remove it." % name

    def _missing(self):
        """What does not exist on this host, or what the account may not use."""
        is_account = self._is_account()
        if not is_account:
            yield (
                "npu_heal_service_user: this host has no account %s. Set it to the account that runs Ansible on this host and has"
                " its SSH key, or create the account." % json.dumps(self.user)
            )
        if not self.command:
            yield (
                "This host has no ansible-playbook in PATH. Install Ansible, or set npu_heal_service_command to its absolute path,"
                " such as /opt/ansible/bin/ansible-playbook."
            )
        for name, path, kind, flag in self._places():
            if path and not _is_there(path, kind):
                yield "npu_heal_service_%s: this host has no %s %s. Correct the path, or create the %s." % (name, kind, path, kind)
            elif path and is_account:
                yield from self._forbidden(name, path, kind, flag)

    def _is_account(self):
        try:
            pwd.getpwnam(self.user)
        except KeyError:
            return False
        return True

    def _forbidden(self, name, path, kind, flag):
        # Root may access everything, so the check runs as the account.
        result = host_command.run(["runuser", "-u", self.user, "--", "test", flag, path], _ACCESS_SECONDS)
        if result.rc != 0:
            does = {"directory": "enter", "inventory": "read", "program": "run"}[kind]
            yield (
                "npu_heal_service_%s: the account %s may not %s %s. Change its permissions or those of the directories above"
                " it, or set npu_heal_service_user to another account.%s"
                % (name, self.user, does, path, " (%s)" % result.text if result.text else "")
            )

    def _places(self):
        """(variable, path, kind of file, required access as an option of test(1))."""
        yield "directory", self.directory, "directory", "-x"
        for path in self.inventory:
            yield "inventory", path, "inventory", "-r"
        yield "command", self.command, "program", "-x"


def _is_there(path, kind):
    if kind == "inventory":
        return os.path.exists(path)
    return os.path.isdir(path) if kind == "directory" else os.path.isfile(path)


class Service:
    """The service ``name`` on this host. ``plan()`` returns what would change, ``apply()`` does it.

    Raises NpuError if this collection cannot manage a service of that name.
    """

    def __init__(self, name):
        if not _NAME.match(name) or name.endswith(".service"):
            raise NpuError(
                "npu_heal_service_name is %s; it must consist of letters, digits, dots, hyphens and underscores, without .service"
                " at the end, such as npuops-heal." % json.dumps(name)
            )
        if not os.path.isdir("/run/systemd/system"):
            raise NpuError(
                "This host does not run systemd (there is no directory /run/systemd/system), which runs the service. Choose another"
                " machine with -e npu_heal_service_hosts=HOST, or run npuops.ascend.heal with another service manager."
            )
        if os.geteuid() != 0:
            raise NpuError(
                "Ansible runs as user %s on this host, but only root may write to /etc/systemd/system. Add --become to the command,"
                " and --ask-become-pass if sudo requires a password." % _user_name()
            )
        self.unit = name + ".service"
        self.path = systemd.UNIT_DIRECTORY + self.unit
        self.text = read_text(self.path)
        self.state = systemd.show(self.unit, "FragmentPath", "ActiveState", "UnitFileState", "NeedDaemonReload")
        # Without this check, a name such as sshd would replace or remove that service.
        origin = self.state.get("FragmentPath", "")
        there = os.path.lexists(self.path)
        if origin not in ("", self.path) or (there and not (self.text or "").startswith(MARK)):
            raise NpuError(
                "This host has a service %s that npuops.ascend did not create (%s). Choose another npu_heal_service_name."
                % (name, origin or self.path)
            )
        self.changes = []

    def plan(self, wanted):
        """What would change so that the unit's text is ``wanted`` (None: no service), as a list of phrases."""
        self.changes = list(self._absent() if wanted is None else self._present(wanted))
        return [change.reason for change in self.changes]

    def apply(self):
        """Do what ``plan()`` found."""
        for change in self.changes:
            change.apply()

    def _present(self, wanted):
        another = self.text != wanted
        # True after a run that was killed after it wrote the unit.
        unread = another or self.state.get("NeedDaemonReload") == "yes"
        runs = self.state.get("ActiveState") in ("active", "activating", "reloading")
        if runs and unread:
            # First, so that a run that is killed afterwards does not leave a process with the settings of the old unit.
            yield _systemctl("stop %s" % self.unit, "stop", self.unit)
        if another or not self._is_roots():
            yield Change("write %s" % self.path, functools.partial(self._write, wanted, runs and unread))
            unread = True
        if unread:
            yield _systemctl("reload systemd", "daemon-reload")
        if self.state.get("UnitFileState") != "enabled":
            yield _systemctl("enable %s" % self.unit, "enable", self.unit)
        if unread or not runs:
            yield Change("start %s" % self.unit, self._start)

    def _absent(self):
        if os.path.lexists(self.path):
            yield _systemctl("stop and disable %s" % self.unit, "disable", "--now", self.unit)
            yield Change("remove %s" % self.path, functools.partial(remove_file, self.path))
        elif not self.state.get("FragmentPath"):
            return
        yield Change("reload systemd", self._forget)

    def _is_roots(self):
        info = os.stat(self.path)
        return (info.st_uid, info.st_gid, stat.S_IMODE(info.st_mode)) == (0, 0, 0o644)

    def _write(self, text, stopped):
        try:
            write_atomic(self.path, text)
        except OSError as exc:
            if stopped:
                self._start()
            raise NpuError("%s cannot be written: %s" % (self.path, exc.strerror)) from None

    def _start(self):
        # Otherwise repeated starts would exceed the unit's start limit.
        systemd.forget_failures(self.unit)
        systemd.systemctl("start", self.unit)

    def _forget(self):
        systemd.systemctl("daemon-reload")
        systemd.forget_failures(self.unit)


def _systemctl(phrase, *arguments):
    return Change(phrase, functools.partial(systemd.systemctl, *arguments, timeout=_STOP_SECONDS))


def _user_name():
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())
