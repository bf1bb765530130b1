# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host's own renewal of the CDI spec, for the files in it that may come and go.

A container whose mount has no source does not start. So systemd watches these files, and a script removes their mounts from the
spec or adds them: it copies the template, which has all of them, line by line.
"""

from __future__ import annotations

import os
import stat

from ansible_collections.npuops.ascend.plugins.module_utils._containerd import cdi_spec
from ansible_collections.npuops.ascend.plugins.module_utils._host import process, systemd
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import read_text, remove_file, write_atomic

HOME = "/var/lib/npuops"
SCRIPT = HOME + "/bin/npu-cdi-mounts"
TEMPLATE = HOME + "/cdi-spec.json"
PATH_UNIT = "npu-cdi-mounts.path"
SERVICE = "npu-cdi-mounts.service"
_HEAD = "# Written by the Ansible collection npuops.ascend.\n\n"
_BEFORE = " ".join(
    dict.fromkeys([*process.EMBEDDING_UNITS, process.KUBELET_UNIT, *process.CONTAINERD_UNITS.values(), process.CRIO_UNIT])
)
_SERVICE_TEXT = """[Unit]
Description=Renew the CDI spec of the NPUs
RequiresMountsFor=%s
Before=%s
# However often the files change.
StartLimitIntervalSec=0

[Service]
Type=oneshot
ExecStart=/bin/sh %s %s %s
TimeoutStartSec=30

[Install]
WantedBy=multi-user.target
"""


class Renewal:
    """What renews the spec ``wanted``; None if nothing is to do so. ``script``: the text of SCRIPT, by default that on the host."""

    def __init__(self, wanted, script=None, fs=""):
        self.fs = fs
        self.files = {}
        script = script or read_text(fs + SCRIPT)
        if wanted is None or script is None:
            return
        watched = "".join("PathChanged=%s\n" % path for path in cdi_spec.OPTIONAL)
        self.files = {
            SCRIPT: (script, 0o755),
            TEMPLATE: (cdi_spec.text(wanted), 0o644),
            systemd.UNIT_DIRECTORY + SERVICE: (_HEAD + _SERVICE_TEXT % (HOME, _BEFORE, SCRIPT, TEMPLATE, cdi_spec.PATH), 0o644),
            systemd.UNIT_DIRECTORY + PATH_UNIT: (
                _HEAD
                + "[Unit]\nDescription=Watch the files of this host that containers with an NPU get\n\n[Path]\n"
                + watched
                + "\n[Install]\nWantedBy=multi-user.target\n",
                0o644,
            ),
        }

    def reason(self):
        """Why something is to be written or removed; None if nothing is."""
        for path in (SCRIPT, TEMPLATE, systemd.UNIT_DIRECTORY + SERVICE, systemd.UNIT_DIRECTORY + PATH_UNIT):
            if path not in self.files:
                if os.path.lexists(self.fs + path):
                    return "%s is not needed" % path
            elif self._differs(path):
                return "%s is not that of this version" % path
        if self.files and not all(os.path.lexists(self.fs + _wanted_by(unit)) for unit in (SERVICE, PATH_UNIT)):
            return "%s is not enabled" % PATH_UNIT
        # As after a run that was killed, or if an administrator has stopped it. Without systemd, nothing is known.
        if self.files and systemd.show(PATH_UNIT, "ActiveState").get("ActiveState", "active") != "active":
            return "%s is not active" % PATH_UNIT
        if self.files and systemd.need_reload([PATH_UNIT, SERVICE]):
            return "systemd has not read %s" % SERVICE
        return None

    def apply(self):
        """Write the files and start the units, or stop the units and remove the files."""
        if self.files:
            for path, (content, mode) in self.files.items():
                os.makedirs(os.path.dirname(self.fs + path), 0o755, exist_ok=True)
                write_atomic(self.fs + path, content, mode)
            systemd.systemctl("daemon-reload")
            systemd.systemctl("enable", SERVICE)
            systemd.systemctl("enable", PATH_UNIT)
            systemd.systemctl("restart", PATH_UNIT)
            return
        for unit in (PATH_UNIT, SERVICE):
            if os.path.lexists(self.fs + systemd.UNIT_DIRECTORY + unit):
                systemd.systemctl("disable", "--now", unit)
                remove_file(self.fs + systemd.UNIT_DIRECTORY + unit)
        systemd.systemctl("daemon-reload")
        for path in (SCRIPT, TEMPLATE):
            remove_file(self.fs + path)

    def _differs(self, path):
        content, mode = self.files[path]
        return read_text(self.fs + path) != content or stat.S_IMODE(os.stat(self.fs + path).st_mode) != mode


def _wanted_by(unit):
    return systemd.UNIT_DIRECTORY + "multi-user.target.wants/" + unit
