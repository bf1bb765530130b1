# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Give a host the vNPUs of a layout: read which vNPUs exist, refuse what cannot be done, destroy and create the rest."""

from __future__ import annotations

import contextlib
import os
import stat
import time

from ansible_collections.npuops.ascend.plugins.module_utils._chips import pci
from ansible_collections.npuops.ascend.plugins.module_utils._chips.device_nodes import numbers
from ansible_collections.npuops.ascend.plugins.module_utils._chips.holders import holders
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import exclusive, make_directory
from ansible_collections.npuops.ascend.plugins.module_utils._vnpu import vnpu as chips_vnpu
from ansible_collections.npuops.ascend.plugins.module_utils._vnpu import vnpu_plan, vnpu_record
from ansible_collections.npuops.ascend.plugins.module_utils._vnpu.vnpu_record import Record

LOCK = "/run/npuops/vnpu.lock"
_LOCK_SECONDS = 5
_NODE_SECONDS = 10
_DOCKER = "docker"


class Layout:
    """``layout``: a list of {chips, templates}, as vnpu_layout.parse makes it; ``npu_smi``: an NpuSmi; ``destroy_leftovers``:
    whether vNPUs that are neither recorded nor wanted may be destroyed; ``fs``: the host's / (empty: this machine's).
    """

    def __init__(self, layout, npu_smi, destroy_leftovers=False, fs=""):
        self.npu_smi, self.fs, self._destroy_leftovers = npu_smi, fs, destroy_leftovers
        functions = pci.chip_functions(fs + "/sys/bus/pci/devices")
        self.family = pci.family_of(functions)
        self._two_chips = any(pci.chips_of(function) == 2 for function in functions)
        self.numbers = numbers(fs)
        self.wanted = vnpu_plan.expand(layout, self.family.name if self.family else "", self.numbers)
        self.record = vnpu_record.read(fs)
        self._places = {}

    @property
    def managed(self):
        """Whether this host has a layout, or had one that has to go."""
        return bool(self.wanted or self.record.target or self.record.leaving or self.record.missing)

    def plan(self, check_unused=True):
        """The vnpu_plan.Plan. Raises NpuError if it is impossible, or, with ``check_unused``, if a process or a container uses what
        the plan changes.

        npu-smi is not run on a host that has nothing to do with vNPUs.
        """
        if not self.managed and not numbers(self.fs, "vdavinci"):
            return vnpu_plan.Plan([], [], [], [])
        try:
            chips = self.chips()
        except NpuError:
            # In the mode of virtual machines, npu-smi does not list virtual NPUs.
            if self.managed:
                self._check_mode()
            raise
        found = [entry for chip in chips.values() for entry in chip.found]
        family = self.family.name if self.family else ""
        plan = vnpu_plan.plan(self.wanted, family, self.record, [entry.vnpu for entry in found])
        if not self.managed:
            return plan
        if plan.create or plan.destroy:
            self._check_cards()
        if plan.create:
            self._check_mode()
            templates = chips_vnpu.parse_templates(self.npu_smi.run("info", "-t", "template-info"))
            vnpu_plan.check(plan.target, self.family.name, chips, templates)
        if plan.leftovers and not self._destroy_leftovers:
            raise NpuError(
                "This host has virtual NPUs that are not in its layout, and hold parts of their chips: %s. If they are not needed,"
                " run the module npuops.ascend.npu_vnpu with leftovers: destroy, or destroy them with %s"
                % (vnpu_plan.describe(plan.leftovers), " and ".join(self._command(vnpu) for vnpu in plan.leftovers))
            )
        if check_unused:
            self._check_unused(plan, {entry.vnpu for entry in found if entry.used})
        return plan

    def apply(self):
        """Make the changes of plan(), and return it. What was interrupted is completed by the next call."""
        make_directory(os.path.dirname(self.fs + LOCK))
        with exclusive(self.fs + LOCK, _LOCK_SECONDS, "changing the virtual NPUs"):
            self.record = vnpu_record.read(self.fs)
            plan = self.plan()
            if not self.managed:
                return plan
            if not (plan.destroy or plan.create) and self.record == Record(plan.target, []):
                return plan
            vnpu_record.write(Record(plan.target, plan.destroy), self.fs)
            for vnpu in plan.destroy:
                self._set("destroy-vnpu", vnpu, "-v", str(vnpu.id))
            self._create_all(plan)
            if plan.destroy or plan.create:
                self._verify(plan.target)
            vnpu_record.write(Record(plan.target, []), self.fs)
            return plan

    def chips(self):
        """{number: vnpu.Chip} of all chips."""
        return {number: self._chip(number) for number in self.numbers}

    def _chip(self, number):
        npu, chip = self._place(number)
        return chips_vnpu.parse_chip(number, self.npu_smi.run("info", "-t", "info-vnpu", "-i", str(npu), "-c", str(chip)))

    def _place(self, number):
        """(NPU ID, chip ID), which is how npu-smi names a chip."""
        if number not in self._places:
            self._places[number] = self.npu_smi.place(number)
        return self._places[number]

    def _check_mode(self):
        shown = self.npu_smi.run("info", "-t", "vnpu-mode")
        if shown.partition(":")[2].strip() != _DOCKER:
            raise NpuError(
                "The chips of this host are in the mode in which virtual NPUs are for virtual machines: %s. Run npu-smi set -t"
                " vnpu-mode -d 0 on it" % " ".join(shown.split())
            )

    def _check_cards(self):
        """Both chips of an Atlas 300I Duo must be used in the same way: a limit of Huawei's."""
        cards = {}
        for number in self.numbers if self._two_chips else []:
            cards.setdefault(self._place(number)[0], []).append(number)
        for chips in cards.values():
            divided = [chip for chip in chips if chip in self.wanted]
            if divided and divided != chips:
                raise NpuError(
                    "layout: the chips %s are on one Atlas 300I Duo, of which either both or none are divided; only %s would be"
                    % (" and ".join(map(str, chips)), ", ".join(map(str, divided)))
                )

    def users(self, plan):
        """The processes, as ``holders`` tells them, that have a chip or a vNPU open which the ``plan`` changes."""
        names = {"vdavinci%d" % vnpu.id for vnpu in plan.destroy}
        names.update("davinci%d" % vnpu.chip for vnpu in plan.destroy + plan.create)
        return [entry for entry in holders(self.fs) if names & set(entry["device"].split(", "))] if names else []

    def _check_unused(self, plan, used):
        busy = [vnpu for vnpu in plan.destroy if vnpu in used]
        found = self.users(plan)
        if busy or found:
            users = ["%(command)s (PID %(pid)d, %(device)s)" % entry for entry in found]
            users += ["a container that uses virtual NPU %s" % vnpu_plan.describe([vnpu]) for vnpu in busy]
            raise NpuError(
                "The virtual NPUs cannot be changed while their chips are in use: %s. Cordon and drain the node, then run again"
                % ", ".join(users)
            )

    def _create_all(self, plan):
        there = [vnpu for vnpu in plan.target if vnpu not in plan.create]
        for vnpu in plan.create:
            try:
                self._create(vnpu)
            except NpuError:
                # A boot that cannot create what is recorded has no driver at all.
                missing = tuple(sorted(set(plan.target) - set(there)))
                vnpu_record.write(Record(sorted(there), [], missing), self.fs)
                raise
            there.append(vnpu)

    def _create(self, vnpu):
        try:
            self._set("create-vnpu", vnpu, "-f", vnpu.template, "-v", str(vnpu.id))
        except NpuError as exc:
            # A creation that fails may leave a vNPU behind that holds the parts, and that cannot be trusted. If npu-smi hangs, it
            # stays: only a reboot helps.
            with contextlib.suppress(NpuError):
                if any(entry.vnpu.id == vnpu.id for entry in self._chip(vnpu.chip).found):
                    self._set("destroy-vnpu", vnpu, "-v", str(vnpu.id))
            raise NpuError(
                "Virtual NPU %s could not be created: %s" % (vnpu_plan.describe([vnpu]), exc.message), **exc.details
            ) from None

    def _set(self, kind, vnpu, *arguments):
        npu, chip = self._place(vnpu.chip)
        self.npu_smi.run("set", "-t", kind, "-i", str(npu), "-c", str(chip), *arguments)

    def _command(self, vnpu):
        return "npu-smi set -t destroy-vnpu -i %d -c %d -v %d" % (self._place(vnpu.chip) + (vnpu.id,))

    def _verify(self, target):
        """Check that exactly the vNPUs of ``target`` exist, with device nodes that the users of their chips may use."""
        present = sorted(entry.vnpu for chip in self.chips().values() for entry in chip.found)
        if present != sorted(target):
            raise NpuError(
                "npu-smi reported success, but this host has the virtual NPUs %s instead of %s. Run again; if this persists, check"
                " dmesg" % (vnpu_plan.describe(present) or "none", vnpu_plan.describe(target) or "none")
            )
        deadline = time.monotonic() + _NODE_SECONDS
        for vnpu in target:
            path = "%s/dev/vdavinci%d" % (self.fs, vnpu.id)
            while not os.path.exists(path):
                if time.monotonic() >= deadline:
                    raise NpuError("/dev/vdavinci%d does not exist, although the virtual NPU does. Check dmesg" % vnpu.id)
                time.sleep(0.1)
            like = os.stat("%s/dev/davinci%d" % (self.fs, vnpu.chip))
            os.chown(path, like.st_uid, like.st_gid)
            os.chmod(path, stat.S_IMODE(like.st_mode))
