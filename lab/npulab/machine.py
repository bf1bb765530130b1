# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Debian packages the lab needs on the machine. Installed when missing; nothing is started, nothing else changes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from .settings import LabError
from .tasks import Step

# Package and a file that shows it is there (asking dpkg would miss programs installed in other ways).
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


def install_packages(step: Step) -> None:
    """Install what is missing with apt, without recommended packages and without starting a service."""
    missing = [name for name, file in PACKAGES.items() if not os.path.exists(file)]
    if not missing:
        return
    if os.geteuid() != 0:
        raise LabError("the lab runs as root: it makes containers with systemd in them")
    step.say(f"installing {' '.join(missing)}")
    apt = ["apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=300"]
    env = {"DEBIAN_FRONTEND": "noninteractive"}
    with no_services():
        step.run(*apt, "update", env=env)
        step.run(*apt, "install", "--no-install-recommends", *missing, env=env)


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
