# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Huawei's package of the Ascend Docker Runtime (.run): what of it becomes an installation. It is read, never run.

Ascend-docker-runtime_26.1.0_linux-aarch64.run

    ascend-docker-*    the programs; that of the installer is left out
    base.list          for servers; those with a suffix are for edge devices
    run_main.sh        the installer, which says the version
"""

from __future__ import annotations

import os
import re
import stat

from ansible_collections.npuops.ascend.plugins.module_utils._chips import kernel_modules
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import ascend_runtime
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, printable
from ansible_collections.npuops.ascend.plugins.module_utils._run_package import makeself

# containerd runs the first; it looks for the others beside itself.
PROGRAMS = (ascend_runtime.PROGRAM, *ascend_runtime.HELPERS, "ascend-docker-destroy")
BASE_LIST = "base.list"

# Real ones have about 30 MiB. The runtime refuses programs of more than 100 MiB.
MAX_BYTES = 512 * 2**20
_MAX_TEXT = 2**20
_FORM = "Ascend-docker-runtime_<version>_linux-<arch>.run"
_NOT_ONE = "it is not a package of the Ascend Docker Runtime (%s)" % _FORM
_NAME = re.compile(r"Ascend-docker-runtime_([0-9][0-9A-Za-z.]{0,40})_linux-([0-9a-z_]+)\.run\Z", re.IGNORECASE)
_VERSION = re.compile(r"^readonly PACKAGE_VERSION=v?([0-9][0-9A-Za-z.]{0,40})$", re.MULTILINE)
_VERSION_LINE = re.compile(r"([0-9]+\.[0-9]+)(?![0-9])")


def version_in(name):
    """The version in the file name of a package, or None if it is called otherwise."""
    match = _NAME.match(name.rpartition("/")[2])
    return match.group(1) if match else None


def version_line_of(version):
    """The version line of MindCluster that a version belongs to, such as 26.1; None if it has another form."""
    match = _VERSION_LINE.match(version)
    return match.group(1) if match else None


def check_version_line(package, version, version_line):
    """Raise NpuError if the ``version`` in the ``package`` is of another version line than ``version_line`` (empty: any)."""
    if version_line and version_line_of(version) != version_line:
        raise NpuError(
            "%s has the Ascend Docker Runtime %s, and npu_mindcluster_version_line is %s. It is a part of MindCluster: set "
            "npu_runtime_package and npu_runtime_package_sha256 to the package of that version line"
            % (package, version, version_line)
        )


class Unpacked:
    """The package ``file``, unpacked to the directory ``place`` (new). ``name``: for messages. Raises NpuError.

    ``version``, ``base_list`` (its bytes), ``machine`` (of its programs; None if they are scripts); programs are in ``place``.
    """

    def __init__(self, file, place, name):
        self.place = place
        self.name = name
        makeself.Package(file, name, advice="Check that it is " + _FORM).extract(place, MAX_BYTES)
        for program in PROGRAMS:
            self._check(program)
        self.base_list = self._read(BASE_LIST)
        self.machine = self._machine()
        match = _VERSION.search(self._read("run_main.sh").decode("utf-8", "replace"))
        if match is None:
            raise NpuError("run_main.sh in %s says no version: %s" % (name, _NOT_ONE))
        self.version = match.group(1)

    def path(self, name):
        """Where the file of that name is."""
        return os.path.join(self.place, name)

    def _check(self, name):
        try:
            info = os.lstat(self.path(name))
        except OSError:
            raise NpuError("%s has no file %s: %s" % (self.name, name, _NOT_ONE)) from None
        if not stat.S_ISREG(info.st_mode) or not info.st_size:
            raise NpuError("%s in %s is not a file with content: %s" % (name, self.name, _NOT_ONE))

    def _read(self, name):
        self._check(name)
        with open(self.path(name), "rb") as stream:
            content = stream.read(_MAX_TEXT + 1)
        if len(content) > _MAX_TEXT:
            raise NpuError("%s in %s has more than %d KiB" % (name, self.name, _MAX_TEXT // 1024))
        return content

    def _machine(self):
        machines = set()
        for name in PROGRAMS:
            with open(self.path(name), "rb") as stream:
                machines.add(kernel_modules.elf_machine(stream.read(20)))
        machines.discard(None)
        if len(machines) > 1:
            raise NpuError("%s has programs for %s: %s" % (self.name, printable(" and ".join(sorted(machines))), _NOT_ONE))
        return machines.pop() if machines else None
