# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The systemd service that keeps the watch running on the control machine: what it needs there, its unit, and its life.

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

# The first line of the unit, by which it is known as ours.
MARK = "# Written by the Ansible collection npuops.ascend.\n"
# Options of ansible-playbook that ask somebody for something.
ASKING = ("-k", "--ask-pass", "-K", "--ask-become-pass", "-J", "--ask-vault-pass", "--ask-vault-password", "--step")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*\Z")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_SECRET = re.compile(r"(PASSWORD|PASSPHRASE|SECRET|TOKEN|API_KEY)\Z", re.IGNORECASE)
_ACCESS_SECONDS = 20
# More than TimeoutStopSec below.
_STOP_SECONDS = 120

_UNIT = (
    MARK
    + """
[Unit]
Description=Recover NPU nodes whose driver no longer answers
Wants=network-online.target
After=network-online.target
# What cannot work ends again and again. Then it stays failed, where systemctl --failed and monitoring see it.
StartLimitIntervalSec=900
StartLimitBurst=5

[Service]
Type=exec
User=%s
WorkingDirectory=%s
%sExecStart=%s
Restart=always
RestartSec=30
# Ansible ends at once when it is told to. A recovery that it has started is told as well, and has this long to end in order;
# with mixed it would be killed as soon as the watch has ended.
KillMode=control-group
TimeoutStopSec=90

[Install]
WantedBy=multi-user.target
"""
)


class Setup:
    """What the service is to run, and as whom. ``command``: path of ansible-playbook, empty when none was found."""

    def __init__(self, user, directory, inventory, command, arguments, environment):
        self.user = user
        self.directory = directory
        self.inventory = list(inventory)
        self.command = command
        self.arguments = list(arguments)
        self.environment = {name: str(value) for name, value in environment.items()}

    def check(self):
        """Raise NpuError with all that keeps the service from working on this host."""
        problems = list(self._unset()) + list(self._unwritable())
        if not problems:
            problems = list(self._missing())
        if problems:
            raise NpuError("\n".join(["Nothing was changed:"] + ["  " + problem for problem in problems]))

    def unit(self):
        """The unit's text."""
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
            ("inventory", self.inventory, "the absolute path of the inventory, or a list of those"),
        ):
            if not value:
                yield "npu_heal_service_%s is not set: %s." % (name, meaning)

    def _unwritable(self):
        """What cannot stand in a unit, or must not."""
        for name, path, _kind, _flag in self._places():
            # A command that was not found is told below, a directory that is not set was told above.
            if not systemd_unit.is_path(path) and (path or name == "inventory"):
                yield (
                    "npu_heal_service_%s is %s, which cannot stand in a service: give the absolute path on this host,"
                    " without line breaks, and spaces or a backslash at its end." % (name, json.dumps(path))
                )
        asking = [word for word in self.arguments if word in ASKING]
        if asking:
            yield (
                "npu_heal_service_arguments has %s, but a service has nobody to ask. Use SSH keys, and files for vault"
                " passwords (--vault-password-file)." % ", ".join(asking)
            )
        for name in sorted(self.environment):
            if not _VARIABLE.match(name) or _SECRET.search(name):
                yield (
                    "npu_heal_service_environment has %s: it must be the name of an environment variable, and of none that"
                    " holds a secret, as everybody on this host can read a unit. Put secrets into files that only %s can read,"
                    " and name those (KUBECONFIG, ANSIBLE_VAULT_PASSWORD_FILE)." % (json.dumps(name), self.user or "the account")
                )
        for name, values in (("arguments", self.arguments), ("environment", self.environment.values())):
            if any("\0" in value for value in values):
                yield "npu_heal_service_%s holds a null character, which no program can be given." % name

    def _missing(self):
        """What is not on this host, or not for this account."""
        is_account = self._is_account()
        if not is_account:
            yield (
                "npu_heal_service_user: this host has no account %s. Name the one that runs Ansible there and has its SSH key,"
                " or create it." % json.dumps(self.user)
            )
        if not self.command:
            yield (
                "This host has no ansible-playbook where a shell looks for programs. Install Ansible there, or name its absolute"
                " path with npu_heal_service_command, such as /opt/ansible/bin/ansible-playbook."
            )
        for name, path, kind, flag in self._places():
            if path and not _is_there(path, kind):
                yield "npu_heal_service_%s: this host has no %s %s. Correct the path, or put it there." % (name, kind, path)
            elif path and is_account:
                yield from self._forbidden(name, path, kind, flag)

    def _is_account(self):
        try:
            pwd.getpwnam(self.user)
        except KeyError:
            return False
        return True

    def _forbidden(self, name, path, kind, flag):
        # What root may says nothing of what the account may.
        result = host_command.run(["runuser", "-u", self.user, "--", "test", flag, path], _ACCESS_SECONDS)
        if result.rc != 0:
            does = {"directory": "enter", "inventory": "read", "program": "run"}[kind]
            yield (
                "npu_heal_service_%s: the account %s may not %s %s. Change its permissions or those of the directories above"
                " it, or name another npu_heal_service_user.%s"
                % (name, self.user, does, path, " (%s)" % result.text if result.text else "")
            )

    def _places(self):
        """(variable, path, what has to be there, how the account has to be able to use it, as of test(1))."""
        yield "directory", self.directory, "directory", "-x"
        for path in self.inventory:
            yield "inventory", path, "inventory", "-r"
        yield "command", self.command, "program", "-x"


def _is_there(path, kind):
    if kind == "inventory":
        return os.path.exists(path)
    return os.path.isdir(path) if kind == "directory" else os.path.isfile(path)


class Service:
    """The service ``name`` on this host. ``plan()`` says what would change, ``apply()`` does it.

    Raises NpuError where no service of that name can be ours.
    """

    def __init__(self, name):
        if not _NAME.match(name) or name.endswith(".service"):
            raise NpuError(
                "npu_heal_service_name is %s: it must be letters, digits, dots, hyphens and underscores, without .service at"
                " its end, such as npuops-heal." % json.dumps(name)
            )
        if not os.path.isdir("/run/systemd/system"):
            raise NpuError(
                "This host does not run systemd (there is no directory /run/systemd/system), so no service can be kept running"
                " there. Name another machine with -e npu_heal_service_hosts=HOST, or keep npuops.ascend.heal running with"
                " what this one has."
            )
        if os.geteuid() != 0:
            raise NpuError(
                "On this host this is the user %s, but only root may write to /etc/systemd/system. Add --become to the command, and"
                " --ask-become-pass where sudo wants a password." % _user_name()
            )
        self.unit = name + ".service"
        self.path = systemd.UNIT_DIRECTORY + self.unit
        self.text = read_text(self.path)
        self.state = systemd.show(self.unit, "FragmentPath", "ActiveState", "UnitFileState", "NeedDaemonReload")
        # By its name, sshd would be replaced or removed just as well.
        origin = self.state.get("FragmentPath", "")
        there = os.path.lexists(self.path)
        if origin not in ("", self.path) or (there and not (self.text or "").startswith(MARK)):
            raise NpuError(
                "This host has a service %s that is not ours (%s). Choose another npu_heal_service_name."
                % (name, origin or self.path)
            )
        self.changes = []

    def plan(self, wanted):
        """What would change for the unit's text to be ``wanted`` (None: no service), as a list of phrases."""
        self.changes = list(self._absent() if wanted is None else self._present(wanted))
        return [change.reason for change in self.changes]

    def apply(self):
        """Do what ``plan()`` found."""
        for change in self.changes:
            change.apply()

    def _present(self, wanted):
        another = self.text != wanted
        # As a run leaves it that was killed after it had written the unit.
        unread = another or self.state.get("NeedDaemonReload") == "yes"
        runs = self.state.get("ActiveState") in ("active", "activating", "reloading")
        if runs and unread:
            # First, so that a run that is killed from here on leaves no process that runs what the unit no longer says.
            yield _systemctl("stop %s" % self.unit, "stop", self.unit)
        if another or not self._is_roots():
            yield Change("write %s" % self.path, functools.partial(self._write, wanted, runs and unread))
            unread = True
        if unread:
            yield _systemctl("let systemd read its units", "daemon-reload")
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
        yield Change("let systemd forget it", self._forget)

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
        # So many starts in so little time are what the unit calls a failure.
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
