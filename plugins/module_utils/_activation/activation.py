# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Activate a driver release on a host on which no driver is loaded yet.

An Ascend chip does not survive a driver unload, so a loaded driver is never replaced here. That requires a reboot, which an upgrade
performs.
"""

from __future__ import annotations

import functools
import os
import re
import shlex
import stat

from ansible_collections.npuops.ascend.plugins.module_utils._activation import driver_paths, trial_boot
from ansible_collections.npuops.ascend.plugins.module_utils._chips import chip_health, chip_losses, chip_memory, pci
from ansible_collections.npuops.ascend.plugins.module_utils._chips.npu_smi import NpuSmi
from ansible_collections.npuops.ascend.plugins.module_utils._driver import loaded_driver
from ansible_collections.npuops.ascend.plugins.module_utils._driver.releases import Layout
from ansible_collections.npuops.ascend.plugins.module_utils._host import boot as host_boot
from ansible_collections.npuops.ascend.plugins.module_utils._host import command as host_command
from ansible_collections.npuops.ascend.plugins.module_utils._host import system as host_system
from ansible_collections.npuops.ascend.plugins.module_utils._host import systemd, systemd_unit
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import make_directory, read_text, write_atomic
from ansible_collections.npuops.ascend.plugins.module_utils._host.system import Change, Missing

UNIT = "npu-driver.service"
SELECT_UNIT = "npu-driver-select.service"
_OWN = "/var/lib/npuops"
CONF = _OWN + "/driver.conf"

# systemd stops the unit after 900 s, which includes the time for npu-smi and for loading the modules.
MAX_DEVICE_WAIT = 800

# Seconds that npu-smi may take once the device nodes exist.
NPU_SMI_WAIT = 60


# The name of a release in check mode, if it is not known.
NOT_STAGED = "a release that is not staged yet"


def different_driver(wanted_release, facts):
    """Why ``wanted_release`` cannot be activated now because of the loaded driver, or None.

    ``facts``: the result of ``driver_facts`` (``driver`` in npu_facts).
    """
    if facts["next"]:
        return (
            "Another driver, %s, is to be tried on this host (the link next exists): its maintenance has not finished. Run the"
            " playbook again that began it; npuops.ascend.status names it" % facts["next"]
        )
    if not facts["loaded"] or facts["loaded_release"] == wanted_release:
        return None
    return (
        "This host runs the driver %s, but the configured driver is %s. An Ascend chip does not survive a driver unload, so "
        "install does not change this host. Run npuops.ascend.upgrade, which drains and reboots the node"
        % (facts["loaded_release"] or facts["loaded_version"] or "of unknown origin", wanted_release or NOT_STAGED)
    )


class Activation:
    """Activates ``release`` (or the preinstalled driver) below ``root``, with everything that it needs on the host.

    source: ``preinstalled``, or anything else for a staged release; release: name below releases, None for preinstalled; files:
    list of {path, content, mode} (boot scripts and units); chip: name of the chip in image tags; components: names of
    LOG_DIRECTORIES; timeout: seconds to wait for the device nodes; accept_absent: whether to accept a release that
    does not exist or has no name yet (check mode: it was not staged); chips: how many the host is to have, None for at least as
    many as before. fs: the host's / (empty: this machine's).

    ``plan()`` returns what would change, ``apply()`` does it.
    """

    def __init__(
        self,
        source,
        root,
        release=None,
        files=(),
        chip="",
        components=(),
        timeout=600,
        accept_absent=False,
        chips=None,
        fs="",
    ):
        # A release is used in the same way, whatever it was staged from.
        self.source = source = "preinstalled" if source == "preinstalled" else "image"
        self.fs = fs
        self.facts = loaded_driver.driver_facts(root, source, fs)
        self.root = self.facts["root"]
        self.layout = Layout(fs + self.root)
        self.release = release if source == "image" else None
        self.files = list(files)
        self.chip = chip
        self.components = components
        if not 1 <= timeout <= MAX_DEVICE_WAIT:
            raise NpuError("npu_driver_ready_timeout is %d; it must be between 1 and %d seconds" % (timeout, MAX_DEVICE_WAIT))
        self.timeout = timeout
        self.accept_absent = accept_absent
        self.chips = chips
        self.missing = []
        self.changes = []
        # Why the release requires an upgrade.
        self.pending = None
        # Why good is not updated although the driver works.
        self.unconfirmed = None

    def plan(self):
        """What would change, as a list of phrases; raises NpuError if the driver cannot be activated.

        If another driver is loaded, the list is empty, and ``pending`` says why.
        """
        self._check()
        if self.pending:
            return []
        self._add(self._remember_chips())
        self._add(host_system.accounts(self.fs))
        self._add(host_system.log_directories(self.components, self.fs))
        if self.source == "image":
            self._add(driver_paths.driver_paths(self.root, self.fs))
        self._add(self._boot_files())
        if self.source == "image":
            if self.release is None or self.layout.target("driver") != self.release:
                self.changes.append(
                    Change(
                        "point driver to %s" % (self.release or NOT_STAGED),
                        functools.partial(self.layout.point, "driver", self.release),
                    )
                )
            self._add(driver_paths.library_path(self.root, self.fs))
            if self.release:
                self._add(driver_paths.tools(self.root, self.layout.tree(self.release), self.fs))
        if not self.is_ready():
            verb = "load the driver" if self.source == "image" else "check the driver's devices"
            self.changes.append(Change(verb, self._start))
        reasons = [change.reason for change in self.changes]
        if self._good_is_due():
            reasons.append("point good to %s" % (self.release or NOT_STAGED))
        return reasons

    def apply(self):
        """Perform the changes of ``plan()``; returns phrases of what was done. Raises NpuError as soon as a step fails."""
        done = []
        for change in self.changes:
            change.apply()
            done.append(change.reason)
        if not self.pending and self._good_is_due():
            self.unconfirmed = self._confirm()
            if not self.unconfirmed:
                done.append("point good to %s" % self.release)
        return done

    def links(self):
        """The releases that driver and good point to, as a dict."""
        return {link: self.layout.target(link) for link in ("driver", "good")}

    def planned_links(self):
        """What ``links()`` will return after ``apply()``."""
        if self.source != "image" or self.pending:
            return self.links()
        wanted = self.release or NOT_STAGED
        return {"driver": wanted, "good": wanted if self._good_is_due() else self.layout.target("good")}

    def ready(self):
        """What the boot unit published in this boot, or None."""
        return host_boot.read_marker("driver-ready", self.fs)

    def is_ready(self):
        """Whether this driver, and no other, is ready."""
        marker = self.ready()
        return marker is not None and marker.get("source") == self.source and (marker.get("release") or None) == self.release

    def version(self):
        """The version of the active driver, or None."""
        return loaded_driver.driver_facts(self.root, self.source, self.fs)["version"]

    def _check(self):
        functions = pci.chip_functions(self.fs + "/sys/bus/pci/devices")
        if not functions:
            lost = self._lost(functions)
            if lost:
                raise NpuError(lost)
            told = "; ".join(pci.notes(self.fs + "/sys/bus/pci/devices")) or "remove it from the group npu_nodes"
            raise NpuError("This host has no Ascend chip on its PCI bus, so it needs no driver: %s" % told)
        if self.facts["problem"]:
            raise NpuError(self.facts["problem"])
        if self.source != "image":
            return
        self.pending = different_driver(self.release, self.facts)
        if self.pending:
            return
        if self.release is None and not self.accept_absent:
            raise NpuError("release is not set: source=image requires the name of a staged release")
        manifest = self.layout.manifest(self.release) if self.release else None
        if manifest is None:
            if self.accept_absent:
                return
            raise NpuError(
                "%s is not a complete release below %s/releases. Stage it with npu_driver_stage" % (self.release, self.root)
            )
        kernel = os.uname().release
        if manifest.get("kernel") != kernel:
            raise NpuError(
                "The kernel has changed since the driver was staged: release %s is for %s, but this host runs %s. Run "
                "npuops.ascend.install again, which stages the image for that kernel"
                % (self.release, manifest.get("kernel"), kernel)
            )

    def _remember_chips(self):
        """Record which chips the host has. Raises NpuError if some of those before are missing, unless that is accepted."""
        functions = pci.chip_functions(self.fs + "/sys/bus/pci/devices")
        problem = self._lost(functions)
        if problem:
            raise NpuError(problem)
        present, path = chip_memory.of(functions), self.fs + chip_memory.PATH
        if not chip_memory.has(present, path):
            yield Change("record the chips of the host", functools.partial(chip_memory.write, present, path))

    def _lost(self, functions):
        """Why the chips of ``functions`` must not be taken as all that the host has, as a sentence, or None."""
        before = chip_losses.chips_before(functions, self.fs)
        return chip_memory.problem(pci.chip_count(functions), self.chips, before["count"], before["gone"], before["boot"])

    def _add(self, steps):
        for step in steps:
            if isinstance(step, Missing):
                self.missing.append(step.text)
            else:
                self.changes.append(step)

    def _boot_files(self):
        """The boot scripts, the units and their settings; reload systemd and enable the units."""
        reload_needed = systemd.need_reload([SELECT_UNIT, UNIT])
        for entry in self.files + [{"path": CONF, "content": self._conf(), "mode": "0644"}]:
            path, mode = self.fs + entry["path"], int(str(entry["mode"]), 8)
            is_unit = entry["path"].startswith(systemd.UNIT_DIRECTORY)
            content = self._after_mounts(entry["content"]) if is_unit else entry["content"]
            same_content = read_text(path) == content
            if same_content and stat.S_IMODE(os.stat(path).st_mode) == mode:
                continue
            reload_needed = reload_needed or is_unit
            yield Change("write %s" % entry["path"], functools.partial(_write, path, content, mode))
        if reload_needed:
            yield Change("reload systemd", functools.partial(systemd.systemctl, "daemon-reload"))
        for unit in (SELECT_UNIT, UNIT):
            wants = self.fs + systemd.UNIT_DIRECTORY + "multi-user.target.wants/" + unit
            if not os.path.lexists(wants):
                yield Change("enable %s" % unit, functools.partial(systemd.systemctl, "enable", unit))

    def _after_mounts(self, unit):
        """The text of ``unit`` with the mounts that it must start after: drivers may be on another file system than the scripts.

        systemd does not follow links, so the real path of the directory is also included.
        """
        real = os.path.realpath(self.fs + self.root)
        real = real[len(self.fs) :] if self.fs and real.startswith(self.fs + "/") else real
        mounts = systemd_unit.paths(dict.fromkeys((_OWN, self.root, real)))
        return re.sub("^RequiresMountsFor=.*$", lambda _match: "RequiresMountsFor=" + mounts, unit, flags=re.MULTILINE)

    def _conf(self):
        settings = (
            ("NPU_DRIVER_SOURCE", self.source),
            ("NPU_DRIVER_ROOT", self.root),
            ("NPU_DRIVER_CHIP", self.chip),
            ("NPU_DEVICE_WAIT", str(self.timeout)),
            ("NPU_SMI_WAIT", str(NPU_SMI_WAIT)),
        )
        return "# Written by the Ansible collection npuops.ascend.\n" + "".join(
            "%s=%s\n" % (name, shlex.quote(value)) for name, value in settings
        )

    def _start(self):
        """Run the boot unit now; raises NpuError with its reason if it fails."""
        limit = self.timeout + NPU_SMI_WAIT + 60
        state = host_command.run(["systemctl", "is-active", UNIT], 30).stdout.strip()
        # An active unit has already run in this boot, so it must be restarted. For a unit that is still activating, start waits.
        result = host_command.run(["systemctl", "restart" if state == "active" else "start", UNIT], limit)
        if result.rc == 0 and self.is_ready():
            return
        failed = host_boot.read_marker("driver-failed", self.fs)
        if failed:
            raise NpuError("The driver does not work on this host: %s" % failed.get("reason"), failed=failed)
        if result.timed_out:
            raise NpuError("%s did not end within %d s: check journalctl -b -u %s" % (UNIT, limit, UNIT))
        raise NpuError(
            "%s ended without a working driver: %s. Check journalctl -b -u %s" % (UNIT, result.text or "no message", UNIT)
        )

    def _good_is_due(self):
        """Whether this run may confirm the release. Only an upgrade itself may confirm its trial boot."""
        good = self.layout.target("good")
        trial = good is not None and os.path.lexists(self.fs + trial_boot.MAINTENANCE)
        return self.source == "image" and (self.release is None or good != self.release) and not trial

    def _confirm(self):
        """Point good to the release if npu-smi lists every chip and one of them serves; otherwise return the reason why not."""
        chips = pci.chip_count(pci.chip_functions(self.fs + "/sys/bus/pci/devices"))
        info = NpuSmi(self.fs + self.root + "/driver", lock=self.fs + "/run/npuops/npu-smi.lock").info()
        if len(info["chips"]) != chips:
            raise NpuError("npu-smi lists %d chips, but the PCI bus has %d. Check dmesg" % (len(info["chips"]), chips))
        if not any(map(chip_health.serves, info["chips"])):
            return "The driver is loaded, but not confirmed as good, because none of its chips can be used: %s" % chip_health.told(
                info["chips"]
            )
        trial_boot.confirm(self.layout, self.release, self.fs)
        return None


def _write(path, content, mode):
    make_directory(os.path.dirname(path))
    write_atomic(path, content, mode)
