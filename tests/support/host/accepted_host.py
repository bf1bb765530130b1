# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A healthy host below a temporary directory that is to be accepted, and what an acceptance finds there."""

from __future__ import annotations

import os
import stat

from ansible_collections.npuops.ascend.plugins.module_utils._acceptance import acceptance
from ansible_collections.npuops.ascend.plugins.module_utils._inspect.host_validation import Validation
from ansible_collections.npuops.ascend.plugins.module_utils._runtime import cri

from support.host.fake_host import add_process
from support.host.fake_units import SYSTEMCTL, SYSTEMD_RUN
from support.host.healthy_host import HealthyHost
from support.patience import PATIENCE

ASCEND_DMI = """#!/bin/sh
echo "ascend-dmi $*" >>"$FAKE/calls"
env >"$FAKE/environment"
while [ -e "$FAKE/hold" ]; do sleep 0.05; done
printf 'Summary:\\n    Arch: aarch64\\n\\nHardware:\\n    driver:\\n        HEALTH\\n    hbm:\\n'
cat "$FAKE/hbm" 2>/dev/null || echo '        PASS'
exit "$(cat "$FAKE/status" 2>/dev/null || echo 0)"
"""


def write_toolbox(directory, script=ASCEND_DMI):
    """A ToolBox in the ``directory`` (a Path)."""
    program = directory / "latest/Ascend-DMI/bin/ascend-dmi"
    program.parent.mkdir(parents=True)
    program.write_text(script)
    program.chmod(0o755)


def host_to_accept(tmp_path, monkeypatch):
    """Two chips, and a ToolBox."""
    root, fake = tmp_path / "host", tmp_path / "fake"
    for directory in (root, fake, tmp_path / "bin"):
        directory.mkdir()
    tmp_path.chmod(0o755)
    monkeypatch.setattr(cri, "status", lambda address, timeout=5: cri.CriStatus(True, True, ["/etc/cdi"]))
    monkeypatch.setenv("PATH", "%s:%s" % (tmp_path / "bin", os.environ["PATH"]))
    monkeypatch.setenv("FAKE", str(fake))
    for name, text in (("systemd-run", SYSTEMD_RUN), ("systemctl", SYSTEMCTL)):
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    found = HealthyHost(root)
    found.fake = fake
    found.toolbox = tmp_path / "toolbox"
    write_toolbox(found.toolbox)
    run = Validation.run
    monkeypatch.setattr(Validation, "run", lambda self, _find=None: run(self, lambda: found.daemon))
    # The paths of this test are this machine's.
    command = acceptance.ascend_dmi.command
    monkeypatch.setattr(acceptance.ascend_dmi, "command", lambda toolbox, level, fs: command(toolbox, level))
    return found


def look(host, level=2, wait=PATIENCE, began=None, **options):
    options.setdefault("toolbox", str(host.toolbox))
    validation = dict(host.tools, root="/var/lib/Ascend", network="strict")
    return acceptance.Acceptance(level, validation=validation, fs=str(host.root), **options).look(wait, began)


def ended(host, level=2, **options):
    answer = look(host, level, **options)
    assert answer["state"] == "done", answer
    return answer["result"]


def bad(result):
    return {found["name"]: (found["verdict"], found["seen"]) for found in result["findings"] if found["verdict"] != "PASS"}


def calls(host):
    path = host.fake / "calls"
    return [line for line in path.read_text().splitlines() if line.startswith("ascend-dmi")] if path.exists() else []


def hold(host, device):
    """A process has it open. A chip is known by its number, so it gets one of the driver's."""
    (host.root / "dev" / device).unlink()
    os.mknod(host.root / "dev" / device, stat.S_IFCHR | 0o666, os.makedev(237, 0))
    (host.root / "dev" / device).chmod(0o666)
    add_process(str(host.root), 100, "python", "python", "train.py", exe="/usr/bin/python")
    (host.root / "proc/100/fd").mkdir()
    (host.root / "proc/100/fd/3").symlink_to(host.root / "dev" / device)
