# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Create a container with a chip by the runtime, before containerd uses it: what fails there would fail for each pod of the host.

The container is created, with its devices and the driver's files, and removed again. Nothing in it is ever started.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile

from ansible_collections.npuops.ascend.plugins.module_utils._host import command as host_command
from ansible_collections.npuops.ascend.plugins.module_utils._host import mounts as host_mounts
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._runtime.ascend_docker_runtime import LOGS

# In memory. The runtime refuses unusual characters in paths.
_PLACE = "/run"
_PREFIX = "npuops-trial-"
_CREATE_SECONDS = 60
_DELETE_SECONDS = 30
_MAX_TEXT = 600


def problem(program, chip):
    """Why the runtime ``program`` cannot create a container with the chip of that number, as a sentence; None if it can."""
    # Of processes that were killed. Only one process at a time installs a runtime.
    for name in os.listdir(_PLACE):
        if name.startswith(_PREFIX):
            _remove(program, os.path.join(_PLACE, name))
    top = tempfile.mkdtemp(prefix=_PREFIX, dir=_PLACE)
    try:
        return _create(program, chip, top)
    finally:
        _remove(program, top)


def _remove(program, top):
    """Delete the container and its directory ``top``. What remains of it, the next trial deletes."""
    state, name = os.path.join(top, "state"), os.path.basename(top)
    with contextlib.suppress(OSError):
        host_command.run([program, "--root", state, "delete", "--force", name], _DELETE_SECONDS)
    if os.path.lexists(os.path.join(state, name)) or any(point.startswith(top + "/") for point in host_mounts.points()):
        return
    shutil.rmtree(top, ignore_errors=True)


def _create(program, chip, top):
    bundle, state, name = os.path.join(top, "bundle"), os.path.join(top, "state"), os.path.basename(top)
    rootfs = os.path.join(bundle, "rootfs")
    os.makedirs(rootfs)
    for directory in ("proc", "dev"):
        os.mkdir(os.path.join(rootfs, directory))
    command = os.path.join(rootfs, "never-started")
    with open(command, "w", encoding="ascii") as stream:
        stream.write("#!/never-started\n")
        os.fchmod(stream.fileno(), 0o755)
    with open(os.path.join(bundle, "config.json"), "w", encoding="utf-8") as stream:
        json.dump(_config(chip), stream)
        os.fchmod(stream.fileno(), 0o600)
    try:
        argv = [program, "--root", state, "create", "--bundle", bundle, name]
        result = host_command.run(argv, _CREATE_SECONDS, die_with_us=True)
    except OSError as exc:
        return "%s cannot be run: %s" % (program, exc.strerror or exc)
    if result.timed_out:
        return "it did not create one within %d seconds" % _CREATE_SECONDS
    if result.rc != 0:
        return "it fails (exit status %s): %s" % (result.rc, " ".join(result.text.split())[-_MAX_TEXT:] or "see " + LOGS)
    return None


def check(program, chip, version):
    """Raise NpuError if it cannot. ``version``: of the runtime."""
    why = problem(program, chip)
    if why:
        raise NpuError(
            "The Ascend Docker Runtime %s does not create a container with a chip on this host: %s. Nothing was changed, and "
            "containerd does not use it. Look into %s" % (version, why, LOGS)
        )


def _config(chip):
    return {
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": 0, "gid": 0},
            "args": ["/never-started"],
            "cwd": "/",
            "env": ["PATH=/usr/bin:/bin", "ASCEND_VISIBLE_DEVICES=%d" % chip],
            "noNewPrivileges": True,
        },
        "root": {"path": "rootfs"},
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc", "options": ["nosuid", "noexec", "nodev"]},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=1024k"]},
        ],
        "linux": {
            "namespaces": [{"type": kind} for kind in ("pid", "ipc", "uts", "mount", "network")],
            "resources": {"devices": [{"allow": False, "access": "rwm"}]},
        },
    }
