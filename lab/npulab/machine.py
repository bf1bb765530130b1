# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the lab needs of the machine itself: Debian packages and one kernel limit."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

from .files import write
from .locks import alone
from .settings import LabError
from .tasks import Step

# Package and a file that shows it is installed (asking dpkg would miss programs installed in other ways).
PACKAGES = {
    "podman": "/usr/bin/podman",
    "runc": "/usr/sbin/runc",
    "debootstrap": "/usr/sbin/debootstrap",
    "squashfs-tools": "/usr/bin/mksquashfs",
    "makeself": "/usr/bin/makeself",
    "gcc": "/usr/bin/gcc",
    "libc6-dev": "/usr/include/stdio.h",
    "iproute2": "/usr/sbin/ip",
    "openssl": "/usr/bin/openssl",
    "openssh-client": "/usr/bin/ssh",
}
POLICY = Path("/usr/sbin/policy-rc.d")
# As in dev/common.sh. apt waits for the lock of dpkg, but not for that of its own lists.
APT_LOCK = Path("/tmp/npuops-apt.lock")

# Not namespaced. One lab needs about 100 inotify instances, the kernel allows root 128; systemd in a node raises
# file-max by itself.
LIMITS = {Path("/proc/sys/fs/inotify/max_user_instances"): 1024, Path("/proc/sys/fs/file-max"): 0}
LIMITS_BEFORE = Path("/run/npulab-limits.json")  # of all labs together: the first one writes it, the last one uses it


def install_packages(step: Step) -> None:
    """Install what is missing with apt, without recommended packages and without starting a service."""
    if not _missing():
        return
    if os.geteuid() != 0:
        raise LabError("the lab runs as root: it makes containers with systemd in them")
    apt = ["apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=300"]
    env = {"DEBIAN_FRONTEND": "noninteractive"}
    with alone(APT_LOCK, step, "installs packages"):
        missing = _missing()
        if missing:
            step.say(f"installing {' '.join(missing)}")
            with no_services():
                step.run(*apt, "update", env=env)
                step.run(*apt, "install", "--no-install-recommends", *missing, env=env)


def _missing() -> list[str]:
    return [name for name, file in PACKAGES.items() if not os.path.exists(file)]


@contextlib.contextmanager
def no_services() -> Iterator[None]:
    """Debian's own way to say that packages must not start services: policy-rc.d. An existing one is left alone."""
    if POLICY.exists():
        yield
        return
    POLICY.write_text("#!/bin/sh\n# the lab installs packages; removed in a moment\nexit 101\n", encoding="utf-8")
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink()


def raise_limits() -> None:
    """Raise the machine's limits where they are too low for a lab, and remember what they were."""
    if not LIMITS_BEFORE.exists():
        write(LIMITS_BEFORE, json.dumps({str(file): file.read_text(encoding="ascii").strip() for file in LIMITS}))
    for file, wanted in LIMITS.items():
        if int(file.read_text(encoding="ascii")) < wanted:
            file.write_text(str(wanted), encoding="ascii")


def restore_limits() -> None:
    """Give the machine its limits back; for the last lab to leave."""
    if LIMITS_BEFORE.exists():
        for file, value in json.loads(LIMITS_BEFORE.read_text(encoding="utf-8")).items():
            Path(file).write_text(value, encoding="ascii")
        LIMITS_BEFORE.unlink()
