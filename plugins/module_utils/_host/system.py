# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the driver and MindCluster require on a host outside of the driver's directory.

Each function yields Change (what would be changed) and Missing (what cannot be changed, with the consequences). Needs neither a
package manager nor a writable /usr. ``fs`` is the host's / (empty: this machine's).
"""

from __future__ import annotations

import collections
import functools
import grp
import os
import pwd
import stat

from ansible_collections.npuops.ascend.plugins.module_utils._host import command as host_command
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import read_text

Change = collections.namedtuple("Change", "reason apply")
Change.__doc__ = """``reason``: what would be done, as a phrase; ``apply``: does it."""

Missing = collections.namedtuple("Missing", "text")
Missing.__doc__ = """``text``: what cannot be done on this host, why, and the consequences."""

DRIVER_USER = "HwHiAiUser"
MINDCLUSTER_USER = "hwMindX"
IDS = {DRIVER_USER: 1000, MINDCLUSTER_USER: 9000}


# MindCluster's DaemonSets mount these as hostPath of type Directory. Without them, no pod starts.
LOG_ROOT = "/var/log/mindx-dl"
LOG_DIRECTORIES = {"device_plugin": "devicePlugin", "exporter": "npu-exporter"}

_BIN = "/usr/sbin:/usr/bin:/sbin:/bin"


def accounts(fs=""):
    """The users and groups HwHiAiUser (1000) and hwMindX (9000, a member of HwHiAiUser)."""
    costs = {
        DRIVER_USER: "the device nodes belong to root alone, so only root's processes on the host can use the chips",
        MINDCLUSTER_USER: "MindCluster components that do not run as root cannot write their logs",
    }
    for name in (DRIVER_USER, MINDCLUSTER_USER):
        wanted = IDS[name]
        group = _group(name, fs)
        user = _user(name, fs)
        if group is not None and user is not None:
            if (user.pw_uid, group.gr_gid) != (wanted, wanted):
                yield Missing(
                    "%s exists with UID %d and GID %d, but MindCluster's containers expect %d for both. It is not changed, so "
                    "containers that run as %d may not be able to use files of %s"
                    % (name, user.pw_uid, group.gr_gid, wanted, wanted, name)
                )
            elif name == MINDCLUSTER_USER and not _is_member(name, fs):
                yield _command_change(
                    "add %s to the group %s" % (name, DRIVER_USER),
                    ["usermod", "--append", "--groups", DRIVER_USER, name],
                    fs,
                )
            continue
        taken = _taken(name, wanted, group, user, fs)
        if taken:
            yield Missing("%s is not created: %s. Until then %s" % (name, taken, costs[name]))
            continue
        if not os.access(fs + "/etc/passwd", os.W_OK):
            yield Missing("%s is not created: /etc is not writable. Without it, %s" % (name, costs[name]))
            continue
        if not (_program("useradd") and _program("groupadd")):
            yield Missing("%s is not created: this host has no useradd. Without it, %s" % (name, costs[name]))
            continue
        if group is None:
            yield _command_change("create the group %s" % name, ["groupadd", "--gid", str(wanted), name], fs)
        if user is None:
            argv = ["useradd", "--uid", str(wanted), "--gid", name]
            if name == DRIVER_USER:
                argv += ["--create-home", "--shell", "/bin/bash", name]
            else:
                argv += ["--no-create-home", "--shell", "/sbin/nologin"]
                if _group(DRIVER_USER, fs) is not None or not _taken(DRIVER_USER, IDS[DRIVER_USER], None, None, fs):
                    argv += ["--groups", DRIVER_USER]
                argv.append(name)
            yield _command_change("create the user %s" % name, argv, fs)


def log_directories(components, fs=""):
    """The log directories of ``components`` (names of LOG_DIRECTORIES), owned by root, with mode 0750."""
    directories = [(LOG_ROOT, 0o755)]
    directories += [("%s/%s" % (LOG_ROOT, LOG_DIRECTORIES[name]), 0o750) for name in components]
    if not components:
        return
    for path, mode in directories:
        try:
            info = os.lstat(fs + path)
        except FileNotFoundError:
            yield Change("create %s" % path, functools.partial(_make_directory, fs + path, mode))
            continue
        if not stat.S_ISDIR(info.st_mode):
            raise NpuError("%s is not a directory, but must be one. Move it away and run again" % path)
        if stat.S_IMODE(info.st_mode) != mode:
            yield Change("set the mode of %s to %04o" % (path, mode), functools.partial(os.chmod, fs + path, mode))
        if (info.st_uid, info.st_gid) != (os.geteuid(), os.getegid()):
            owner = functools.partial(os.chown, fs + path, os.geteuid(), os.getegid())
            yield Change("set the owner of %s to root" % path, owner)


def refresh_loader_cache(fs):
    """Run ldconfig, if the host has it."""
    program = _program("ldconfig")
    if program:
        host_command.run([program] + (["-r", fs] if fs else []), 60)


def _make_directory(path, mode):
    parent = os.path.dirname(path)
    if not os.path.isdir(parent):
        _make_directory(parent, 0o755)
    os.mkdir(path)
    os.chmod(path, mode)


def _taken(name, number, group, user, fs):
    """Why ``name`` cannot be created with ``number`` as uid and gid, or None."""
    other_user = _user_by_id(number, fs)
    other_group = _group_by_id(number, fs)
    if user is None and other_user is not None:
        return "UID %d belongs to the user %s. Change the UID of that user" % (number, other_user.pw_name)
    if group is None and other_group is not None:
        return "GID %d belongs to the group %s. Change the GID of that group" % (number, other_group.gr_name)
    return None


def _is_member(name, fs):
    group = _group(DRIVER_USER, fs)
    return group is None or name in group.gr_mem


def _command_change(reason, argv, fs):
    return Change(reason, functools.partial(_run, reason, argv, fs))


def _run(reason, argv, fs):
    result = host_command.run([_program(argv[0]) or argv[0]] + (["--prefix", fs] if fs else []) + argv[1:], 60)
    if result.rc != 0:
        raise NpuError("Cannot %s: %s" % (reason, result.text or "%s failed without output" % argv[0]))


def _program(name):
    for directory in os.environ.get("PATH", "").split(":") + _BIN.split(":"):
        if directory and os.access(os.path.join(directory, name), os.X_OK):
            return os.path.join(directory, name)
    return None


# Users and groups: from the system's name service (which may query LDAP); below another root, from the files.


def _user(name, fs):
    return _find(pwd.getpwnam, name, _users, lambda user: user.pw_name == name, fs)


def _user_by_id(number, fs):
    return _find(pwd.getpwuid, number, _users, lambda user: user.pw_uid == number, fs)


def _group(name, fs):
    return _find(grp.getgrnam, name, _groups, lambda group: group.gr_name == name, fs)


def _group_by_id(number, fs):
    return _find(grp.getgrgid, number, _groups, lambda group: group.gr_gid == number, fs)


def _find(look_up, key, read, matches, fs):
    if fs:
        return next((entry for entry in read(fs) if matches(entry)), None)
    try:
        return look_up(key)
    except KeyError:
        return None


def _users(fs):
    for fields in _colon_lines(fs + "/etc/passwd", 7):
        yield pwd.struct_passwd(fields[:2] + [int(fields[2]), int(fields[3])] + fields[4:])


def _groups(fs):
    for fields in _colon_lines(fs + "/etc/group", 4):
        yield grp.struct_group(fields[:2] + [int(fields[2]), [name for name in fields[3].split(",") if name]])


def _colon_lines(path, width):
    for line in (read_text(path) or "").splitlines():
        fields = line.split(":")
        if len(fields) == width:
            yield fields
