# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the firmware of a release into the chips of this host, with Huawei's package. It takes effect with the next boot.

Flash memory endures a limited number of writes, and a chip whose write was cut off may not start again. So the package runs in a
unit of systemd, which outlives the connection; what it is to do is on disk before it starts; and what failed, or ended in an
unknown way, is repeated only on request. While it runs, the host refuses to be rebooted.
"""

from __future__ import annotations

import os
import time

from ansible_collections.npuops.ascend.plugins.module_utils._activation import trial_boot
from ansible_collections.npuops.ascend.plugins.module_utils._chips import pci
from ansible_collections.npuops.ascend.plugins.module_utils._chips.holders import holders
from ansible_collections.npuops.ascend.plugins.module_utils._chips.npu_smi import NpuSmi
from ansible_collections.npuops.ascend.plugins.module_utils._driver import releases
from ansible_collections.npuops.ascend.plugins.module_utils._driver.releases import Layout
from ansible_collections.npuops.ascend.plugins.module_utils._firmware import firmware, flash_state
from ansible_collections.npuops.ascend.plugins.module_utils._firmware.flash_state import FAILED, LOG, STATE, UNIT, WRITING, WRITTEN
from ansible_collections.npuops.ascend.plugins.module_utils._host import boot as host_boot
from ansible_collections.npuops.ascend.plugins.module_utils._host import transient_unit
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import make_directory, read_text, remove_file
from ansible_collections.npuops.ascend.plugins.module_utils._run_package.version_info import parse

_LOOK = 0.5  # seconds
_SCHEDULED = "/run/systemd/shutdown/scheduled"  # exists while a shutdown at a later time is planned


class Flash:
    """The write of the firmware of ``release`` (below ``root``) by a run with this ``generation``, in the boot ``boot_id``.

    ``version``: the one that the firmware must have, None for any; ``again``: whether to repeat a write that failed; ``fs``: the
    host's / (empty: this machine's).
    """

    def __init__(self, root, release, boot_id, generation, again=False, fs="", version=None):
        self.root, self.fs, self.release = root, fs, release
        self.boot_id, self.generation, self.again = boot_id, generation, again
        layout = Layout(fs + root)
        path = layout.release_path(release)
        found = firmware.find(path) if layout.is_complete(release) else None
        if found is None:
            raise NpuError("Release %s on this host has no firmware. Run npuops.ascend.upgrade, which stages it" % release)
        if version and found.version != version:
            raise NpuError(
                "Release %s on this host has the firmware %s, not %s, so nothing was written. The image and its annotations "
                "differ: build it again with npuops.ascend.build_driver_image" % (release, found.version, version)
            )
        family = pci.family_of(pci.chip_functions(fs + "/sys/bus/pci/devices"))
        if family is not None:
            found.check_chip(family.key)
        self.firmware = found
        self.path = os.path.join(path, firmware.DIRECTORY, found.package)
        manifest = layout.manifest(release) or {}
        self.sha256 = firmware.of_manifest(manifest).get("sha256")

    def reason(self):
        """Why the firmware has to be written, as a phrase, or None. Raises NpuError if it must not be written."""
        trial_boot.check_generation(self.generation, self.fs)
        if self.boot_id != host_boot.boot_id(self.fs):
            return None
        last = flash_state.view(self.boot_id, self.fs) or {}
        stored = flash_state.stored(self.fs) or {}
        here = last.get("boot_id") == self.boot_id
        begun = not (here and stored.get("state") == WRITING and flash_state.never_began(self.fs))
        if last.get("state") == WRITING:
            if last["sha256"] != self.sha256:
                raise NpuError("The firmware %s is being written into the chips: wait until that ends" % last["version"])
            return None
        running = self.running()
        if last.get("state") == WRITTEN and here:
            # The next boot has it, whatever the chips run now.
            if last["sha256"] == self.sha256:
                return None
        elif running == [self.firmware.version]:
            return None
        problem = self._problem(last, here) if begun else None
        # A request may be repeated, by a connection that ended or by another attempt of the same maintenance.
        asked = self.again and (last.get("generation") or 0) < self.generation
        if problem and not asked:
            raise NpuError(
                "The firmware %s is not written again: %s. A write that was cut off may have damaged a chip: check npu-smi info "
                "and %s on the host. To write it again: -e npu_upgrade_retry=true" % (self.firmware.version, problem, LOG)
            )
        self._check_stays_up()
        trial_boot.check_kernel(Layout(self.fs + self.root), self.release, self.fs)
        return "write the firmware %s into the chips, which have %s" % (self.firmware.version, ", ".join(running))

    def _check_stays_up(self):
        """Raise NpuError if a reboot or a shutdown could cut the write off."""
        if trial_boot.is_going_down():
            raise NpuError(
                "The firmware %s is not written, because this host is about to reboot or shut down. Try again after that"
                % self.firmware.version
            )
        if os.path.lexists(self.fs + _SCHEDULED):
            raise NpuError(
                "The firmware %s is not written, because a shutdown of this host is scheduled. Cancel it (shutdown -c), or try "
                "again after it" % self.firmware.version
            )

    def _problem(self, last, here):
        """Why the last write of this firmware did not succeed, as a clause, or None."""
        if last.get("sha256") != self.sha256:
            return None
        if last["state"] == FAILED:
            return last["reason"] or "it failed before"
        return None if here else "it was written before, but the chips do not run it"

    def running(self):
        """The sorted versions of the firmware that the chips run."""
        npu_smi = NpuSmi(self.fs + self.root + "/driver", lock=self.fs + "/run/npuops/npu-smi.lock")
        versions = [version for version in npu_smi.firmware(npu_smi.info()["chips"]) if version != "NA"]
        chips = pci.chip_count(pci.chip_functions(self.fs + "/sys/bus/pci/devices"))
        if not chips or len(versions) != chips:
            raise NpuError(
                "npu-smi reports the firmware version of %d of %d chips, so the firmware is not written: compare npu-smi info with "
                "lspci -n | grep 19e5:d on this host" % (len(versions), chips)
            )
        return sorted(set(versions))

    def write(self, wait):
        """Start the write unless it was started, and wait at most ``wait`` seconds for its end.

        Returns {"state", "reason", "held", "told"}: state is None if nothing has to be written; reason: what was started, or None;
        told: why it failed, or None. Raises NpuError if it must not be written.
        """
        deadline = time.monotonic() + wait
        nothing = {"state": None, "reason": None, "held": [], "told": None}
        with trial_boot.alone(self.fs):
            reason = self.reason()
            last = flash_state.stored(self.fs) or {}
            if last.get("boot_id") != self.boot_id or self.boot_id != host_boot.boot_id(self.fs):
                last = {}
            if reason is None and last.get("state") != WRITING:
                return dict(nothing, state=WRITTEN if last.get("state") == WRITTEN else None)
            if reason is not None:
                held = holders(self.fs)
                if held:
                    return dict(nothing, held=held)
                self._check_package()
                self._start()
        return dict(nothing, reason=reason, **self._wait(deadline))

    def _check_package(self):
        if not self.sha256 or releases.file_digest(self.path) != self.sha256:
            raise NpuError(
                "%s is not the file that was staged, so the firmware was not written. With npu_firmware_package, run "
                "npuops.ascend.upgrade again, which stages it again. With a driver image, build it again with another digest, or "
                "move %s away while another driver is in use, and run npuops.ascend.upgrade"
                % (self.path, os.path.dirname(os.path.dirname(self.path)))
            )

    def _start(self):
        trial_boot.fence(self.generation, self.fs)
        info = parse(read_text(self.fs + "/etc/ascend_install.info") or "")
        mode = "--upgrade" if info.get("Firmware_Install_Path_Param") else "--full"
        before = flash_state.stored(self.fs)
        make_directory(os.path.dirname(self.fs + LOG))
        if os.path.lexists(self.fs + LOG):
            remove_file(self.fs + LOG)
        flash_state.save(
            {
                "state": WRITING,
                "release": self.release,
                "version": self.firmware.version,
                "sha256": self.sha256,
                "generation": self.generation,
                "boot_id": self.boot_id,
            },
            self.fs,
        )
        argv = ["bash", self.path, "--nox11", mode, "--quiet"]
        log = self.fs + LOG
        result = transient_unit.start(UNIT, "Write the firmware of the NPUs", log, flash_state.LIMIT, argv)
        if result.rc == 0:
            return
        if result.rc is None:
            # systemd may start it still.
            raise NpuError("It is not known whether the firmware is being written: systemd-run did not respond within 20 s")
        if before is None:
            remove_file(self.fs + STATE)
        else:
            flash_state.save(before, self.fs)
        raise NpuError("The firmware was not written: systemd-run: %s" % (result.text or "no output"))

    def _wait(self, deadline):
        while True:
            now = flash_state.view(self.boot_id, self.fs) or {}
            if now.get("state") != WRITING:
                with trial_boot.alone(self.fs):
                    # systemd knows how it ended only until the next boot. A later run may have started another write meanwhile.
                    now = flash_state.view(self.boot_id, self.fs) or {}
                    if now.get("state") not in (None, WRITING):
                        flash_state.save(now, self.fs)
            if now.get("state") != WRITING or time.monotonic() >= deadline:
                return {"state": now.get("state"), "told": now.get("reason")}
            time.sleep(_LOOK)
