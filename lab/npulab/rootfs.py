# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes' root file system: one Debian made by debootstrap, kept as a podman image, and a squashfs of its /usr."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from .files import digest, new_directory, write
from .locks import alone
from .podman import podman
from .settings import Lab
from .tasks import Step

SUITE = "bookworm"
PACKAGES = (
    "systemd,systemd-sysv,dbus,libpam-systemd,openssh-server,python3,"  # an ordinary host that Ansible can talk to
    "runc,containernetworking-plugins,conntrack,iptables,iproute2,ca-certificates,"  # what containerd and kubelet call
    "kmod,pciutils,procps,curl,less"  # what people and playbooks call
)
# Units that would act on the machine itself (its sysctls, devices, modules, clock) or have nothing to do in a node.
MASKED = (
    "getty@tty1.service",
    "console-getty.service",
    "systemd-sysctl.service",
    "systemd-modules-load.service",
    "systemd-udevd.service",
    "systemd-udev-trigger.service",
    "systemd-udevd-kernel.socket",
    "systemd-udevd-control.socket",
    "systemd-timesyncd.service",
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "fstrim.timer",
    "e2scrub_reap.service",
    "sys-kernel-debug.mount",
    "sys-kernel-tracing.mount",
    "dev-hugepages.mount",
    "systemd-random-seed.service",
    "systemd-pstore.service",
)
PACKAGE_MANAGER = (
    "usr/bin/apt*",
    "usr/bin/dpkg*",
    "usr/lib/apt",
    "usr/lib/dpkg",
    "usr/share/dpkg",
    "etc/apt",
    "var/lib/apt",
    "var/lib/dpkg",
    "var/cache/apt",
)
PYTHON = (
    "usr/bin/python*",
    "usr/bin/py3*",
    "usr/bin/pydoc*",
    "usr/bin/pygettext*",
    "usr/lib/python*",
    "usr/local/lib/python*",
    "usr/lib/*/libpython*",
    "usr/share/python*",
    "etc/python*",
)


def recipe() -> str:
    return digest(SUITE, PACKAGES, " ".join(MASKED), Path(__file__))


def image() -> str:
    """Name of the podman image; a new recipe is a new image."""
    return f"localhost/npulab-node:{recipe()}"


def make_image(lab: Lab, step: Step) -> None:
    """debootstrap (80 s) unless this machine already has the image."""
    if _exists(step):
        return
    with alone(lab.cache / "rootfs.lock", step, "makes the same"):
        if not _exists(step):
            _make_image(lab, step)


def _exists(step: Step) -> bool:
    return podman(step, "image", "exists", image(), check=False).returncode == 0


def _make_image(lab: Lab, step: Step) -> None:
    step.say("debootstrap")
    with new_directory(lab.cache / "rootfs") as work:
        root = work / "root"
        step.run("debootstrap", "--variant=minbase", f"--include={PACKAGES}", SUITE, root, *_mirror(step))
        _prepare(root, step)
        step.say("importing the image")
        step.run("tar", "--xattrs", "-C", root, "-cf", work / "root.tar", ".")
        podman(step, "import", "-q", work / "root.tar", image())
        shutil.rmtree(root)
        (work / "root.tar").unlink()
    shutil.rmtree(lab.cache / "rootfs")


def _mirror(step: Step) -> list[str]:
    """The mirror this machine's own apt uses for the suite; none if apt does not know: debootstrap has a default."""
    listed = step.run("apt-get", "indextargets", "--format", "$(CODENAME) $(REPO_URI)", "Created-By: Packages").stdout
    return [line.split()[1] for line in listed.splitlines() if line.split()[:1] == [SUITE]][:1]


def _prepare(root: Path, step: Step) -> None:
    for directory in ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/locale", "usr/share/man"):
        shutil.rmtree(root / directory, ignore_errors=True)
        (root / directory).mkdir()
    for unit in MASKED:
        link = root / "etc/systemd/system" / unit
        link.unlink(missing_ok=True)
        link.symlink_to("/dev/null")
    for key in root.glob("etc/ssh/ssh_host_*"):
        key.unlink()
    write(root / "etc/machine-id", "")
    (root / "var/lib/dbus/machine-id").unlink(missing_ok=True)
    (root / "etc/hostname").unlink(missing_ok=True)
    (root / "etc/resolv.conf").unlink(missing_ok=True)
    write(root / "etc/resolv.conf", "# nodes of the lab resolve nothing but /etc/hosts\n")


def copy_over(source: Path, root: Path, step: Step) -> None:
    """Copy a tree over a root: links and modes are kept, owner is root, existing directories are kept."""
    step.run("cp", "-a", "--no-preserve=ownership", f"{source}/.", f"{root}/")


def drop_package_manager(root: Path) -> None:
    _drop(root, PACKAGE_MANAGER)


def drop_python(root: Path) -> None:
    _drop(root, PYTHON)


def _drop(root: Path, patterns: tuple[str, ...]) -> None:
    for pattern in patterns:
        for path in root.glob(pattern):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def make_squashfs(lab: Lab, key: str, fill: Callable[[Path], None], step: Step) -> Path:
    """A squashfs in the cache. It can never be mounted writable, whatever root tries.

    :param key: names its content; an existing one is used
    :param fill: puts the content into a directory
    """
    directory = lab.cache / "usr" / key
    if not directory.is_dir():
        with new_directory(directory) as work:
            (work / "usr").mkdir()
            fill(work / "usr")
            step.run(
                "mksquashfs",
                work / "usr",
                work / "usr.squashfs",
                "-comp",
                "zstd",
                "-Xcompression-level",
                "3",
                "-quiet",
                "-no-progress",
            )
            shutil.rmtree(work / "usr")
    return directory / "usr.squashfs"


def remove_images(step: Step) -> None:
    listed = podman(step, "images", "-q", "--filter", "reference=localhost/npulab-node").stdout.split()
    if listed:
        podman(step, "rmi", *listed)
