# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is in a driver package, before any host gets it: version, architecture, kernels, and the space that it needs.

The package is read once, member by member; nothing of it is run, and nothing but one kernel module at a time is written to disk.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import posixpath
import tempfile
from collections.abc import Iterator
from typing import IO, Any

from ansible_collections.npuops.ascend.plugins.module_utils._chips import kernel_modules
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, printable
from ansible_collections.npuops.ascend.plugins.module_utils._image import image_files
from ansible_collections.npuops.ascend.plugins.module_utils._run_package import makeself, version_info

_MAX_MODULE = 256 * 2**20
_VERSION_INFOS = ("driver/version.info", "version.info")


@dataclasses.dataclass(frozen=True)
class PackageContents:
    """``size``: of the package; ``unpacked``: of all of its files; ``machine``: ``uname -m``; ``kernels``: of its modules."""

    size: int
    unpacked: int
    version: str
    machine: str
    kernels: tuple[str, ...]


def read(path: str, name: str) -> PackageContents:
    """The contents of the package in the file ``path``, which messages call ``name``. Raises NpuError."""
    package = makeself.Package(path, name)
    infos: dict[str, str] = {}
    machines: dict[str, str] = {}
    kernels = set()
    unpacked = 0
    with _workspace(name) as work:
        for member, info, stream in package.members():
            unpacked += info.size
            if stream is None:
                continue
            if member in _VERSION_INFOS:
                infos[member] = stream.read(image_files.MAX_TEXT).decode("utf-8", "replace")
            elif kernel_modules.is_module(member):
                kernels.add(_kernel(stream, os.path.join(work, posixpath.basename(member)), name))
            elif posixpath.basename(member) == "npu-smi" or member.startswith(("driver/lib64/", "lib64/")):
                machine = kernel_modules.elf_machine(stream.read(20))
                if machine:
                    machines.setdefault(machine, member)
    version = _version(infos, name)
    if len(machines) != 1:
        told = "programs for %s" % " and ".join(sorted(machines)) if machines else "no libraries in driver/lib64"
        raise NpuError("%s has %s: it is not a driver package for one architecture" % (name, told))
    return PackageContents(package.size, unpacked, version, next(iter(machines)), tuple(sorted(kernels)))


@contextlib.contextmanager
def _workspace(name: str) -> Iterator[str]:
    """A directory for a kernel module. Only its files are an OSError: a package that cannot be read is an NpuError."""
    directory = "$TMPDIR"
    try:
        directory = tempfile.gettempdir()
        with tempfile.TemporaryDirectory(prefix="npu-package-") as work:
            yield work
    except OSError as exc:
        raise NpuError(
            "%s cannot be examined in %s on the controller: %s. Its kernel modules are written there, one at a time, of at most %d "
            "MiB; for another directory, set TMPDIR" % (name, directory, exc.strerror, _MAX_MODULE // 2**20)
        ) from None


def _version(infos: dict[str, str], name: str) -> str:
    text = next((infos[member] for member in _VERSION_INFOS if member in infos), None)
    if text is None:
        raise NpuError("%s has no version.info: it is not a driver package" % name)
    version = version_info.parse(text).get("Version")
    if not version or not version_info.is_version(version):
        raise NpuError("version.info in %s has no valid version: %s" % (name, printable(str(version), 80)))
    return version


def _kernel(stream: Any, path: str, name: str) -> str:
    size = 0
    with open(path, "wb") as target:
        size = _copy(stream, target)
    try:
        if size > _MAX_MODULE:
            raise NpuError("it has more than %d MiB" % (_MAX_MODULE // 2**20))
        return kernel_modules.vermagic_kernel(path)
    except NpuError as exc:
        raise NpuError(
            "%s has a module that cannot be read: %s" % (name, exc.message.replace(os.path.dirname(path) + "/", ""))
        ) from None
    finally:
        os.unlink(path)


def _copy(stream: Any, target: IO[bytes]) -> int:
    size = 0
    while size <= _MAX_MODULE:
        content = stream.read(1024 * 1024)
        if not content:
            break
        size += len(content)
        target.write(content)
    return size
