# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Install, upgrade and remove the Ascend Docker Runtime of a host. Afterwards it is whole and used, or everything is as before.

First ``examine``, then ``apply``. A killed run is completed by the next one: the directory with its record is complete or absent,
the edit of containerd's configuration is marked as such, and the status of the running containerd decides.
"""

from __future__ import annotations

import contextlib
import os

from ansible_collections.npuops.ascend.plugins.module_utils._ascend_runtime import (
    containers,
    installation,
    placing,
    preconditions,
    trial,
)
from ansible_collections.npuops.ascend.plugins.module_utils._ascend_runtime import package as runtime_package
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import cdi_spec, containerd_runtime, default_runtime
from ansible_collections.npuops.ascend.plugins.module_utils._driver import releases
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import exclusive, make_directory
from ansible_collections.npuops.ascend.plugins.module_utils._run_package import package_name

_LOCK = "/run/npuops/ascend-docker-runtime.lock"
_LOCK_SECONDS = 300


class Install:
    """One package for this host.

    ``package``: its name, for messages; ``digest``: ``sha256:`` and its checksum; ``file``: the file on this host, None if it is
    not there yet; ``version_line``: of MindCluster, that it must be of (empty: any); ``timeout``: seconds for a restart of
    containerd.

    After ``examine``: ``files_differ``, ``before`` (an Installed or None), ``reason``.
    """

    def __init__(self, package, digest, file=None, version_line="", timeout=30):
        self.package = package
        self.digest = digest
        self.file = file
        self.version_line = version_line
        self.version = runtime_package.version_in(package)
        self.before = None
        self.files_differ = False
        self.reason = None
        self.notes = []
        self._registration = default_runtime.Registration(containerd_runtime.find(), installation.PROGRAM, timeout)

    def examine(self):
        """Why a change is necessary, as a sentence; None if the runtime of the package is installed and used. Raises NpuError."""
        for why in (installation.foreign(), installation.unfit_place(), preconditions.no_driver()):
            if why:
                raise NpuError(why)
        if self.version:
            runtime_package.check_version_line(self.package, self.version, self.version_line)
        self.before = installation.find()
        self.reason = self._why()
        self.files_differ = self.reason is not None
        registered = self._registration.examine()
        self.reason = self.reason or registered
        if self.before and not self.files_differ:
            self.version = self.before.version
            runtime_package.check_version_line(self.package, self.version, self.version_line)
            if installation.list_is_changed(self.before):
                self.notes.append("%s was modified after npuops.ascend wrote it; left unchanged" % installation.BASE_LIST)
        return self.reason

    def _why(self):
        if self.before is None:
            return "the Ascend Docker Runtime is not installed"
        if self.before.digest != self.digest:
            return "the Ascend Docker Runtime %s of another package is installed" % self.before.version
        if installation.list_is_missing():
            return "%s is missing" % installation.BASE_LIST
        return installation.damage(self.before)

    def would_change(self, restart=True):
        """As enable_cdi.Switch.would_change."""
        change = self._registration
        change.check_restart(restart)
        return self.files_differ or change.edit is not None or (restart and change.restart_required)

    @property
    def edit(self):
        """The path of the file of containerd's configuration that changes, or None."""
        return self._registration.edit.path if self._registration.edit else None

    @property
    def daemon(self):
        """The containerd of this host."""
        return self._registration.daemon

    @property
    def restart_required(self):
        """Whether containerd must be restarted."""
        return self._registration.restart_required

    def diff(self):
        """What changes, as Ansible's diffs."""
        found = []
        if self.files_differ:
            state = self.before.version + "\n" if self.before else ""
            header = installation.HOME
            found.append(
                {"before_header": header, "after_header": header, "before": state, "after": (self.version or self.package) + "\n"}
            )
        shown = self._registration.diff()
        return found + ([{"prepared": shown}] if shown else [])

    def apply(self, restart=True):
        """Install and register it. If that fails, everything is as before, and NpuError says why."""
        with _alone():
            try:
                with self._files() if self.files_differ else contextlib.nullcontext():
                    self._registration.apply(restart)
            except OSError as exc:
                if exc.errno in releases.NO_SPACE:
                    raise NpuError("The file system of %s is full" % installation.PARENT) from None
                raise NpuError("The Ascend Docker Runtime cannot be installed: %s" % exc) from None

    @contextlib.contextmanager
    def _files(self):
        """Put the files of the package in place; if the block fails, restore what was installed before."""
        package_name.check_digest(self.package, releases.file_digest(self.file), self.digest)
        with placing.workspace() as work:
            unpacked = runtime_package.Unpacked(self.file, os.path.join(work, "package"), self.package)
            self._check(unpacked)
            place = os.path.join(work, "new")
            installed = placing.prepare(unpacked, self.digest, place, self.before)
            old_list = placing.read_base_list()
            try:
                if not placing.write_base_list(unpacked.base_list, self.before):
                    self.notes.append("%s differs from the package's file; left unchanged" % installation.BASE_LIST)
                trial.check(os.path.join(place, runtime_package.PROGRAMS[0]), _chip(), installed.version)
                placing.put(place)
                try:
                    yield
                except BaseException as exc:
                    if self.before:
                        placing.put(place)
                    elif not getattr(exc, "details", {}).get("unrestored"):
                        # Otherwise, containerd's configuration still names the program.
                        os.rename(installation.HOME, place)
                    raise
            except BaseException:
                placing.restore_base_list(old_list)
                raise

    def _check(self, unpacked):
        machine = os.uname().machine
        if unpacked.machine and unpacked.machine != machine:
            raise NpuError(
                "%s is for %s, and this host is %s: set npu_runtime_package for each architecture"
                % (self.package, unpacked.machine, machine)
            )
        if self.version and self.version != unpacked.version:
            raise NpuError("%s has the version %s, which its name does not say" % (self.package, unpacked.version))
        self.version = unpacked.version
        runtime_package.check_version_line(self.package, self.version, self.version_line)


class Removal:
    """Takes back what Install did. After ``examine``: ``kept`` (why something stays, or None)."""

    def __init__(self, timeout=30):
        self.installed = installation.find()
        self.kept = None
        self._timeout = timeout
        self._registration = None
        self._files_go = False

    def examine(self, force=False):
        """Why a change is necessary, as a sentence; None if there is nothing of this collection, or if all of it is in use.

        ``force``: whether to take the runtime away from containerd even though containers with chips need it to start again.
        """
        if self.installed is None:
            return self._examine_rest()
        daemon = containerd_runtime.find()
        users = containers.of(installation.PROGRAM, daemon)
        if users.with_chips and not force:
            self.kept = (
                "The Ascend Docker Runtime stays containerd's default runtime, because containers have chips by it (%d), which "
                "they would lose when they start again. Run again when their pods have ended" % len(users.with_chips)
            )
            return None
        self._registration = default_runtime.Registration(daemon, installation.PROGRAM, self._timeout)
        reason = self._registration.examine_removal()
        if users.all:
            self.kept = (
                "The files of the Ascend Docker Runtime stay in %s, because containers that it has started (%d) need them when "
                "they end. Run again after a reboot of the host" % (installation.HOME, len(users.all))
            )
        else:
            self._files_go = True
            reason = reason or "the Ascend Docker Runtime %s was installed by npuops.ascend" % self.installed.version
        return reason

    def _examine_rest(self):
        """The files were removed without this collection. If containerd is still configured to run them, no pod starts."""
        try:
            change = default_runtime.Registration(containerd_runtime.find(), installation.PROGRAM, self._timeout)
            reason = change.examine_removal()
        except NpuError:
            return None
        if reason and change.edit:
            self._registration = change
            return reason
        return None

    def would_change(self, restart=True):
        """As enable_cdi.Switch.would_change."""
        change = self._registration
        if change is None:
            return False
        change.check_restart(restart)
        return self._files_go or change.edit is not None or (restart and change.restart_required)

    @property
    def edit(self):
        """The path of the file of containerd's configuration that changes, or None."""
        return self._registration.edit.path if self._registration and self._registration.edit else None

    @property
    def daemon(self):
        """The containerd of this host, or None if nothing is to do."""
        return self._registration.daemon if self._registration else None

    def diff(self):
        """What changes, as Ansible's diffs."""
        found = []
        if self._files_go:
            header = installation.HOME
            found.append({"before_header": header, "after_header": header, "before": self.installed.version + "\n", "after": ""})
        shown = self._registration.diff() if self._registration else None
        return found + ([{"prepared": shown}] if shown else [])

    def apply(self, restart=True):
        """Take the runtime away from containerd, then remove its files."""
        with _alone():
            change = self._registration
            if change.edit or change.restart_required:
                change.apply_removal(restart)
            # Without a restart, containerd still runs it.
            if self._files_go and (restart or not change.restart_required):
                placing.remove(self.installed)


@contextlib.contextmanager
def _alone():
    make_directory(os.path.dirname(_LOCK))
    with exclusive(_LOCK, _LOCK_SECONDS, "changing the Ascend Docker Runtime"):
        yield


def _chip():
    """The number of a chip whose device node exists."""
    host = cdi_spec.look()
    present = [number for number in host.numbers if number not in host.missing]
    if not present:
        raise NpuError(
            "/dev/davinci%d does not exist: the driver is not loaded, so it cannot be tested whether the Ascend Docker Runtime "
            "starts a container with a chip. Check dmesg, then run again" % host.numbers[0]
        )
    return present[0]
