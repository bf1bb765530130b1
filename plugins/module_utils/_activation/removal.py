# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Remove what the activation of a driver created on a host, and everything else of this collection except the Python.

This depends on what was installed (driver.conf), not on the current configuration: a driver that was on the host before is never
changed. A loaded driver stays loaded until the next boot, because an Ascend chip does not survive a driver unload.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import shlex
import shutil

from ansible_collections.npuops.ascend.plugins.module_utils._activation import driver_paths
from ansible_collections.npuops.ascend.plugins.module_utils._activation.activation import CONF, SELECT_UNIT, UNIT
from ansible_collections.npuops.ascend.plugins.module_utils._chips import kernel_modules
from ansible_collections.npuops.ascend.plugins.module_utils._driver import loaded_driver
from ansible_collections.npuops.ascend.plugins.module_utils._driver.releases import LINKS, Layout
from ansible_collections.npuops.ascend.plugins.module_utils._firmware import flash_state
from ansible_collections.npuops.ascend.plugins.module_utils._host import boot as host_boot
from ansible_collections.npuops.ascend.plugins.module_utils._host import system as host_system
from ansible_collections.npuops.ascend.plugins.module_utils._host import systemd
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import read_text, remove_file, write_atomic
from ansible_collections.npuops.ascend.plugins.module_utils._host.system import Change
from ansible_collections.npuops.ascend.plugins.module_utils._run_package import version_info

HOME = "/var/lib/npuops"
RUN = "/run/npuops"
# In RUN: the only record of the release that the loaded modules are from.
LOADING = "driver-loading"
FILES = (
    HOME + "/bin/npu-driver",
    HOME + "/bin/npu-driver-select",
    HOME + "/bin/npu-vnpu",
    HOME + "/maintenance",
    # Of a trial that failed, it would speak for one of the next installation, whose generations begin with 1 again.
    HOME + "/trial",
    HOME + "/acceptance",
    HOME + "/acceptance.log",
    HOME + "/acceptance-history",
)
# Of the last write of firmware.
FIRMWARE_FILES = (flash_state.STATE, flash_state.LOG)


class Removal:
    """Removes everything from this host; ``root``: directory of the releases, unless driver.conf has another one;
    ``directories``: directories to remove if they are empty; ``fs``: the host's / (empty: this machine's).

    ``plan()`` returns what would change, ``apply()`` does it. ``left``: what is not removed and why, as sentences.
    """

    def __init__(self, root="/var/lib/Ascend", directories=(), fs=""):
        self.fs = fs
        conf = _settings(read_text(fs + CONF) or "")
        self.root = conf.get("NPU_DRIVER_ROOT", root).rstrip("/") or "/"
        self.directories = directories
        self.layout = Layout(fs + self.root)
        # Releases that were staged but never activated belong to this collection. Without either, an existing driver does not.
        self.source = conf.get("NPU_DRIVER_SOURCE") or ("image" if os.path.isdir(self.layout.releases_dir) else None)
        self.left = []
        self.changes = []

    def plan(self):
        """What would change, as a list of phrases. Raises NpuError while firmware is being written."""
        boot_id = host_boot.boot_id(self.fs)
        flash = flash_state.view(boot_id, self.fs) or {}
        if flash.get("state") == flash_state.WRITING:
            raise NpuError(
                "The firmware %s is being written into the chips of this host with its driver: wait until that ends, and run again"
                % flash["version"]
            )
        self.changes = list(self._units())
        for path in FILES + self._firmware_files(flash, boot_id):
            if os.path.lexists(self.fs + path):
                self.changes.append(Change("remove %s" % path, functools.partial(_unlink, self.fs + path)))
        if self.source == "image":
            self.changes.extend(self._driver())
        self.changes.extend(self._markers())
        sockets = HOME + "/device-plugins"
        if os.path.isdir(self.fs + sockets):
            self.changes.append(Change("remove %s" % sockets, functools.partial(_remove_tree, self.fs + sockets)))
        # Last, because it records what was installed, so that the next run can complete an interrupted one.
        if os.path.lexists(self.fs + CONF):
            self.changes.append(Change("remove %s" % CONF, functools.partial(_unlink, self.fs + CONF)))
        places = [HOME + "/bin", HOME, RUN] + ([] if self.source == "preinstalled" else [self.root]) + list(self.directories)
        going = [change.reason[len("remove ") :] for change in self.changes if change.reason.startswith("remove /")]
        self.changes.extend(self._empty(places, going))
        return [change.reason for change in self.changes]

    def apply(self):
        """Perform the changes of ``plan()``; returns phrases of what was done."""
        for change in self.changes:
            change.apply()
        return [change.reason for change in self.changes]

    def _firmware_files(self, flash, boot_id):
        """Those of FIRMWARE_FILES that are removed: nothing else tells that chips may be damaged, nor keeps a later write away."""
        if flash.get("state") == flash_state.FAILED:
            self.left.append(
                "the firmware %s could not be written into the chips (%s): check npu-smi info. %s and %s are kept; remove them "
                "after that" % (flash["version"], (flash["reason"] or "unknown").rstrip("."), flash_state.STATE, flash_state.LOG)
            )
            return ()
        if flash.get("state") == flash_state.WRITTEN and flash["boot_id"] == boot_id:
            self.left.append("the firmware %s is in the chips; they run it after the next boot of this host" % flash["version"])
        return FIRMWARE_FILES

    def _units(self):
        present = False
        for unit in (UNIT, SELECT_UNIT):
            path = self.fs + systemd.UNIT_DIRECTORY + unit
            if not os.path.lexists(path):
                continue
            present = True
            # Stopping the unit does not unload the driver.
            yield Change("disable %s" % unit, functools.partial(systemd.systemctl, "disable", "--now", unit))
            yield Change("remove %s%s" % (systemd.UNIT_DIRECTORY, unit), functools.partial(_unlink, path))
        if present:
            yield Change("reload systemd", functools.partial(systemd.systemctl, "daemon-reload"))

    def _driver(self):
        """Links, releases, and the files outside of root with the location of the driver."""
        links = [link for link in LINKS if self.layout.target(link)]
        for link in links:
            yield Change("remove %s/%s" % (self.root, link), functools.partial(self.layout.remove_link, link))
        releases = self.layout.releases_dir
        if os.path.isdir(releases):
            used = sorted(self.layout.mounted())
            for name in used:
                self.left.append("release %s is kept in %s/releases because it is mounted" % (name, self.root))
            names = [name for name in self.layout.releases() if name not in used]
            for name in names:
                path = "%s/releases/%s" % (self.root, name)
                yield Change("remove %s" % path, functools.partial(_remove_release, self.layout, name))
            if not used:
                yield Change("remove %s/releases" % self.root, functools.partial(_remove_tree, releases))
        yield from self._outside()

    def _outside(self):
        for path, target in driver_paths.tool_links(self.root).items():
            if os.path.islink(self.fs + path) and os.readlink(self.fs + path) == target:
                yield Change("remove %s" % path, functools.partial(_unlink, self.fs + path))
        for path in ("/lib/davinci.conf", "/etc/ld.so.conf.d/ascend_driver_so.conf"):
            if read_text(self.fs + path) not in (None, driver_paths.content_of(path, self.root)):
                continue
            # In a read-only directory, the file belongs to the operating system.
            if os.path.lexists(self.fs + path) and os.access(self.fs + os.path.dirname(path), os.W_OK):
                cache = path.startswith("/etc/ld.so")
                yield Change("remove %s" % path, functools.partial(_unlink, self.fs + path, self.fs if cache else None))
        yield from self._installed()

    def _installed(self):
        """What Huawei's packages have recorded of the driver, and of the firmware beside it. The chips keep their firmware."""
        path = "/etc/ascend_install.info"
        info = version_info.parse(read_text(self.fs + path) or "")
        going = [part for part in ("Driver", "Firmware") if info.get(part + "_Install_Path_Param") == self.root]
        if not going:
            return
        firmware = self.root + "/firmware"
        if "Firmware" in going and os.path.isdir(self.fs + firmware) and not os.path.islink(self.fs + firmware):
            yield Change("remove %s" % firmware, functools.partial(_remove_tree, self.fs + firmware))
        kept = {key: value for key, value in info.items() if key.partition("_")[0] not in going}
        if all(key.startswith("User") for key in kept):
            yield Change("remove %s" % path, functools.partial(_unlink, self.fs + path))
            return
        parts = " and ".join("the " + part.lower() for part in going)
        text = "".join("%s=%s\n" % item for item in kept.items())
        yield Change("remove %s from %s" % (parts, path), functools.partial(write_atomic, self.fs + path, text))

    def _markers(self):
        """The files in RUN, except LOADING while a driver is loaded."""
        modules = kernel_modules.loaded(self.fs + "/sys/module")
        try:
            names = sorted(os.listdir(self.fs + RUN))
        except OSError:
            return
        for name in names:
            if name == LOADING and any(module in modules for module in loaded_driver.PROBE_MODULES):
                self.left.append("the driver stays loaded until this host is rebooted: a chip does not survive a driver unload")
                continue
            if name == "python":
                continue
            path = "%s/%s" % (self.fs + RUN, name)
            remove = _remove_tree if os.path.isdir(path) and not os.path.islink(path) else _unlink
            yield Change("remove %s/%s" % (RUN, name), functools.partial(remove, path))

    def _empty(self, places, going):
        """Those of ``places`` that are empty after ``going`` has been removed."""
        for place in places:
            try:
                names = os.listdir(self.fs + place)
            except OSError:
                continue
            if all("%s/%s" % (place, name) in going for name in names):
                going.append(place)
                yield Change("remove %s" % place, functools.partial(_remove_directory, self.fs + place))


def _settings(text):
    """driver.conf as a dict."""
    settings = {}
    for number, line in enumerate(text.splitlines(), 1):
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            try:
                words = shlex.split(value)
            except ValueError as exc:
                raise NpuError(
                    "It is not known which driver was installed: line %d of %s cannot be read (%s). Correct it, then run again"
                    % (number, CONF, exc)
                ) from None
            settings[name] = words[0] if words else ""
    return settings


def _remove_release(layout, name):
    with layout.lock(60):
        if os.path.lexists(layout.release_path(name)):
            layout.remove(name)


def _remove_tree(path):
    """Remove the directory, from which others may remove files at the same time: programs that end, and the boot unit."""
    while os.path.lexists(path):
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(path)


def _remove_directory(path):
    """Remove the empty directory, unless another program has removed it since the plan, uses it, or has mounted something on it."""
    try:
        os.rmdir(path)
    except OSError as exc:
        if exc.errno not in (errno.ENOENT, errno.EBUSY, errno.ENOTEMPTY):
            raise


def _unlink(path, cache_of=None):
    """Remove the file; ``cache_of``: the / whose loader cache must be updated."""
    remove_file(path)
    if cache_of is not None:
        host_system.refresh_loader_cache(cache_of)
