# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bringing a driver release into effect on a host whose driver is not loaded yet.

An Ascend chip does not survive the removal of its driver, so a driver that is loaded is never replaced here: that takes
a reboot, which is an upgrade's work.
"""

from __future__ import annotations

import functools
import os
import re
import shlex
import stat

from ansible_collections.npuops.ascend.plugins.module_utils._chips import pci
from ansible_collections.npuops.ascend.plugins.module_utils._chips.npu_smi import NpuSmi
from ansible_collections.npuops.ascend.plugins.module_utils._driver import trial_boot
from ansible_collections.npuops.ascend.plugins.module_utils._driver.releases import Layout
from ansible_collections.npuops.ascend.plugins.module_utils._host import command as host_command
from ansible_collections.npuops.ascend.plugins.module_utils._host import facts as host_facts
from ansible_collections.npuops.ascend.plugins.module_utils._host import system as host_system
from ansible_collections.npuops.ascend.plugins.module_utils._host import systemd, systemd_unit
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import make_directory, read_text, write_atomic
from ansible_collections.npuops.ascend.plugins.module_utils._host.system import Change, Missing

UNIT = "npu-driver.service"
SELECT_UNIT = "npu-driver-select.service"
_OWN = "/var/lib/npuops"
CONF = _OWN + "/driver.conf"

# systemd ends the unit after 900 s; npu-smi and the modules need their part of them.
MAX_DEVICE_WAIT = 800

# How long npu-smi may take once the devices are there, in seconds.
NPU_SMI_WAIT = 60


# What a release is called in check mode, while it has no name.
NOT_STAGED = "a release that is not staged yet"


def different_driver(wanted_release, facts):
    """Why ``wanted_release`` cannot come into effect now because of the driver that is loaded, or None.

    ``facts``: as ``_host_facts.driver_facts`` gives them (``driver`` of npu_facts).
    """
    if facts["next"]:
        return (
            "An upgrade to %s is under way on this host (it has the link next). Let it finish: run "
            "npuops.ascend.upgrade again" % facts["next"]
        )
    if not facts["loaded"] or facts["loaded_release"] == wanted_release:
        return None
    return (
        "This host runs the driver %s, wanted is %s. An Ascend chip does not survive the removal of a running driver, "
        "so install changes nothing here; run npuops.ascend.upgrade, which drains and reboots the node"
        % (facts["loaded_release"] or facts["loaded_version"] or "of unknown origin", wanted_release or NOT_STAGED)
    )


class Activation:
    """``release`` (or the preinstalled driver) in effect below ``root``, with what belongs to it on the host.

    source: ``image`` or ``preinstalled``; release: name below releases, None for preinstalled; files: list of
    {path, content, mode} (boot scripts and units); chip: the word in image tags; components: names of
    LOG_DIRECTORIES; timeout: seconds to wait for the devices; accept_absent: let a release pass that is not there or
    has no name yet (check mode: it was not staged). fs: the host's / (empty: here).

    ``plan()`` says what would change, ``apply()`` does it.
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
        fs="",
    ):
        self.source = source
        self.fs = fs
        self.facts = host_facts.driver_facts(root, source, fs)
        self.root = self.facts["root"]
        self.layout = Layout(fs + self.root)
        self.release = release if source == "image" else None
        self.files = list(files)
        self.chip = chip
        self.components = components
        if not 1 <= timeout <= MAX_DEVICE_WAIT:
            raise NpuError("The time to wait for the devices must be 1 to %d s, not %d" % (MAX_DEVICE_WAIT, timeout))
        self.timeout = timeout
        self.accept_absent = accept_absent
        self.missing = []
        self.changes = []
        # Why the release has to wait for an upgrade.
        self.pending = None
        # Why good does not move although the driver runs.
        self.unconfirmed = None

    def plan(self):
        """What would change, as a list of phrases; NpuError when the driver cannot be brought into effect.

        Nothing would when another driver is loaded: then ``pending`` says so.
        """
        self._check()
        if self.pending:
            return []
        self._add(host_system.accounts(self.fs))
        self._add(host_system.log_directories(self.components, self.fs))
        if self.source == "image":
            self._add(host_system.driver_paths(self.root, self.fs))
        self._add(self._boot_files())
        if self.source == "image":
            if self.release is None or self.layout.target("driver") != self.release:
                self.changes.append(
                    Change(
                        "let driver name %s" % (self.release or NOT_STAGED),
                        functools.partial(self.layout.point, "driver", self.release),
                    )
                )
            self._add(host_system.library_path(self.root, self.fs))
        if not self.is_ready():
            verb = "load the driver" if self.source == "image" else "look for the driver's devices"
            self.changes.append(Change(verb, self._start))
        reasons = [change.reason for change in self.changes]
        if self._good_is_due():
            reasons.append("let good name %s" % (self.release or NOT_STAGED))
        return reasons

    def apply(self):
        """Do what ``plan()`` found; returns the phrases of what was done. NpuError as soon as a step fails."""
        done = []
        for change in self.changes:
            change.apply()
            done.append(change.reason)
        if not self.pending and self._good_is_due():
            self.unconfirmed = self._confirm()
            if not self.unconfirmed:
                done.append("let good name %s" % self.release)
        return done

    def links(self):
        """What driver and good name, as a dict."""
        return {link: self.layout.target(link) for link in ("driver", "good")}

    def planned_links(self):
        """The same as it is after ``apply()``."""
        if self.source != "image" or self.pending:
            return self.links()
        wanted = self.release or NOT_STAGED
        return {"driver": wanted, "good": wanted if self._good_is_due() else self.layout.target("good")}

    def ready(self):
        """What the boot unit published in this boot, or None."""
        return host_facts.read_marker("driver-ready", self.fs)

    def is_ready(self):
        """Whether this very driver is ready."""
        marker = self.ready()
        return marker is not None and marker.get("source") == self.source and (marker.get("release") or None) == self.release

    def version(self):
        """The version of the driver in effect, or None."""
        return host_facts.driver_facts(self.root, self.source, self.fs)["version"]

    def _check(self):
        if not pci.chip_functions(self.fs + "/sys/bus/pci/devices"):
            raise NpuError("This host has no Ascend chip on its PCI bus: there is nothing a driver could drive")
        if self.facts["problem"]:
            raise NpuError(self.facts["problem"])
        if self.source != "image":
            return
        self.pending = different_driver(self.release, self.facts)
        if self.pending:
            return
        if self.release is None and not self.accept_absent:
            raise NpuError("No release is given: with source=image it must be one that was staged")
        manifest = self.layout.manifest(self.release) if self.release else None
        if manifest is None:
            if self.accept_absent:
                return
            raise NpuError("%s is not a complete release below %s/releases" % (self.release, self.root))
        kernel = os.uname().release
        if manifest.get("kernel") != kernel:
            raise NpuError(
                "The kernel changed since the driver was staged: release %s is for %s, this host runs %s. Run the "
                "install again: it stages the image for that kernel" % (self.release, manifest.get("kernel"), kernel)
            )

    def _add(self, steps):
        for step in steps:
            if isinstance(step, Missing):
                self.missing.append(step.text)
            else:
                self.changes.append(step)

    def _boot_files(self):
        """The scripts, the units and their settings, and that systemd knows of them."""
        reload_needed = False
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
            yield Change("let systemd read its units", functools.partial(systemd.systemctl, "daemon-reload"))
        for unit in (SELECT_UNIT, UNIT):
            wants = self.fs + systemd.UNIT_DIRECTORY + "multi-user.target.wants/" + unit
            if not os.path.lexists(wants):
                yield Change("enable %s" % unit, functools.partial(systemd.systemctl, "enable", unit))

    def _after_mounts(self, unit):
        """The text of a unit that starts when the drivers can be read: they may be on another file system than its scripts.

        systemd does not follow links, so where the directory really is counts as well.
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
        """Run the boot unit now; NpuError with its reason when it fails."""
        limit = self.timeout + NPU_SMI_WAIT + 60
        state = host_command.run(["systemctl", "is-active", UNIT], 30).stdout.strip()
        # A unit that is active did its work in this boot: only a restart makes it look again. One that is still
        # activating is waited for.
        result = host_command.run(["systemctl", "restart" if state == "active" else "start", UNIT], limit)
        if result.rc == 0 and self.is_ready():
            return
        failed = host_facts.read_marker("driver-failed", self.fs)
        if failed:
            raise NpuError("The driver does not work on this host: %s" % failed.get("reason"), failed=failed)
        if result.timed_out:
            raise NpuError("%s did not end within %d s: see journalctl -b -u %s" % (UNIT, limit, UNIT))
        raise NpuError("%s ended without a working driver: %s. See journalctl -b -u %s" % (UNIT, result.text or "no message", UNIT))

    def _good_is_due(self):
        """Whether this run may confirm the release. The trial boot of an upgrade is confirmed by that upgrade alone."""
        good = self.layout.target("good")
        trial = good is not None and os.path.lexists(self.fs + trial_boot.MAINTENANCE)
        return self.source == "image" and (self.release is None or good != self.release) and not trial

    def _confirm(self):
        """Move good to the release if npu-smi lists every chip as healthy; else the reason why not."""
        chips = pci.chip_count(pci.chip_functions(self.fs + "/sys/bus/pci/devices"))
        info = NpuSmi(self.fs + self.root + "/driver", lock=self.fs + "/run/npuops/npu-smi.lock").info()
        if len(info["chips"]) != chips:
            raise NpuError("npu-smi lists %d chips, the PCI bus shows %d" % (len(info["chips"]), chips))
        ill = ["%s is %s" % (chip["bus_id"], chip["health"]) for chip in info["chips"] if chip["health"] != "OK"]
        if ill:
            return "The driver runs, but is not taken as good while npu-smi does not call every chip healthy: %s" % (", ".join(ill))
        trial_boot.confirm(self.layout, self.release, self.fs)
        return None


def _write(path, content, mode):
    make_directory(os.path.dirname(path))
    write_atomic(path, content, mode)
