# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verify that a host provides its NPUs to containers, with one check for everything that must agree.

A check is a dict: ``name``, ``ok``, ``expected``, ``seen`` (both short texts) and ``message`` (what to do, or None).
Checks do not depend on each other's outcome, so that one run shows everything that is wrong.
"""

from __future__ import annotations

import functools
import grp
import os
import stat

from ansible_collections.npuops.ascend.plugins.module_utils._ascend_runtime import installation
from ansible_collections.npuops.ascend.plugins.module_utils._chips import (
    chip_faults,
    chip_health,
    chip_losses,
    chip_memory,
    device_nodes,
    hccn_ports,
    pci,
    reservations,
)
from ansible_collections.npuops.ascend.plugins.module_utils._chips import npu_smi as chips_npu_smi
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import (
    ascend_runtime,
    cdi_spec,
    containerd_config,
    containerd_runtime,
)
from ansible_collections.npuops.ascend.plugins.module_utils._crio import crio_runtime
from ansible_collections.npuops.ascend.plugins.module_utils._driver import loaded_driver
from ansible_collections.npuops.ascend.plugins.module_utils._driver.releases import are_siblings
from ansible_collections.npuops.ascend.plugins.module_utils._host import process as host_process
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._inspect import network_checks
from ansible_collections.npuops.ascend.plugins.module_utils._kubelet import kubelet_runtime
from ansible_collections.npuops.ascend.plugins.module_utils._run_package import version_info
from ansible_collections.npuops.ascend.plugins.module_utils._runtime import cri, runtime_mode
from ansible_collections.npuops.ascend.plugins.module_utils._vnpu import vnpu_change, vnpu_plan

INSTALL = "run npuops.ascend.install"
_LIBRARY_DEPTH = 20  # the device plugin's own limit
_GONE_ADVICE = "Check the host's cards, power and dmesg; if it is to stay like that, run npuops.ascend.install with npu_chips"
_ALL_GONE_ADVICE = "Check the host's cards, power and dmesg; if it is to stay like that, run npuops.ascend.uninstall for it"
_HEALTH_ADVICE = (
    "Run npu-smi info -t health -i NPU for the fault codes; a chip that stays Critical needs a reset or a reboot of the host, or a "
    "repair"
)


def check(name, ok, expected, seen, message):
    """One result; ``message`` is only used if it is not ``ok``."""
    return {"name": name, "ok": bool(ok), "expected": expected, "seen": seen, "message": None if ok else message}


class Validation:
    """The checks of one host, with ``results`` after ``run``.

    root, source: location of the driver; version: required driver version, None for any; timeout: seconds for one npu-smi;
    library_path: as in the CDI spec; trial: whether the driver may differ from good; runtime: of kubelet_runtime.runtime_facts, if
    known; network: what becomes of the checks of the network ports, off, warn or strict; fs: path of the host's /, npu_smi and
    hccn_tool: programs, for tests.
    """

    def __init__(
        self,
        root,
        source="image",
        version=None,
        timeout=30,
        library_path="hook",
        fs="",
        npu_smi=None,
        trial=False,
        runtime=None,
        network="off",
        hccn_tool=None,
    ):
        self.fs = fs
        self.network = network
        self.hccn_tool = hccn_tool
        self.ports = None
        self.network_results = []
        self.runtime = runtime
        self.trial = trial
        self.source = source = "preinstalled" if source == "preinstalled" else "image"
        self.version = version
        self.driver = loaded_driver.driver_facts(root, source, fs)
        self.root = self.driver["root"]
        self.library_path = library_path
        self.npu_smi = npu_smi or chips_npu_smi.NpuSmi(self.root + "/driver", timeout)
        self.host = None
        self.info = None
        self.firmware = None
        self.chip_health = []
        self.before = {"count": 0, "gone": [], "boot": None}
        self.vnpus = []
        self.results = []
        self._device_share = None

    @property
    def valid(self):
        """Whether all checks passed."""
        return all(result["ok"] for result in self.results)

    def run(self, find_daemon=None):
        """Run all checks, in the order in which to investigate them; the list of results. Empty on a host that never had chips."""
        try:
            self.host = cdi_spec.look(self.fs)
        except NpuError as exc:
            self._add("chips", False, "chips of one family", exc.message, exc.message)
            return self.results
        self.before = chip_losses.chips_before(pci.chip_functions(self.fs + "/sys/bus/pci/devices"), self.fs)
        if not self.host.chips:
            if self.missing:
                self._add("chips", False, "at least one", self.missing, _ALL_GONE_ADVICE)
            return self.results
        family = self.host.family.name
        self._add("chips", True, "at least one", "%d x %s on the PCI bus" % (self.host.chips, family), None)
        self._device_nodes()
        self._permissions()
        self._npu_smi()
        self._versions()
        self._release()
        self._ready()
        self._firmware()
        self._libraries()
        self._virtual_npus()
        if runtime_mode.of_host(self.fs) == runtime_mode.ASCEND:
            self._ascend_runtime(find_daemon or containerd_runtime.find)
        else:
            self._cdi_spec()
            self._runtime(find_daemon)
        # Without an answer of npu-smi, hccn_tool has none either, or hangs.
        if self.network != "off" and self.info is not None:
            self._network(family)
        return self.results

    @property
    def missing(self):
        """Which of the chips that the host had are missing, as a phrase, or None. Only known after ``run``."""
        chips = self.host.chips if self.host else 0
        return chip_memory.told(chips, self.before["count"], self.before["gone"], self.before["boot"])

    @property
    def notes(self):
        """What a person should know of a host, whether it is valid or not, as sentences."""
        ill = chip_health.told(self.chip_health)
        told = ["%s. %s" % (ill, _HEALTH_ADVICE)] if ill and self.valid else []
        # If all of them are missing, a check has failed.
        told += ["%s. %s" % (self.missing, _GONE_ADVICE)] if self.missing and self.host.chips else []
        if self.npu_smi.incompatible:
            told.append(
                "npu-smi info -t board says that the firmware and the driver of NPU %s are not compatible. Upgrade the firmware"
                % ", ".join(map(str, sorted(self.npu_smi.incompatible)))
            )
        told += self.reserved
        told += [_told_of_network(result) for result in self.network_results if not result["ok"] and self.network == "warn"]
        told += network_checks.notes(self.ports) if self.ports else []
        return told + pci.notes(self.fs + "/sys/bus/pci/devices")

    @property
    def reserved(self):
        """For which containers outside of Kubernetes the driver reserves chips, as sentences."""
        found = [entry for entry in reservations.read(self.fs) if not host_process.in_pod(entry["pid"], self.fs)]
        if not found:
            return []
        if self._device_share is None:
            self._device_share = self._ask_device_share()
        shared, state = self._device_share
        if shared:
            text = "The driver has given %s to %s, outside of Kubernetes. Pods can use these chips beside it%s"
        else:
            text = (
                "The driver reserves %s for %s, outside of Kubernetes: pods that get these chips fail with -8020. Stop the"
                " container%s"
            )
        return [
            text % (", ".join("/dev/davinci%d" % number for number in entry["chips"]), reservations.told(entry), state)
            for entry in found
        ]

    def _ask_device_share(self):
        """(whether all cards let several containers open a chip, what npu-smi says of that, as the end of a sentence)."""
        states = {}
        for npu in sorted({chip["npu"] for chip in self.info["chips"]} if self.info else ()):
            states[npu] = self.npu_smi.device_share(npu)
            if states[npu] is None:
                return False, ""  # one that does not answer takes its time
        off = [npu for npu in sorted(states) if not states[npu]]
        if off:
            return False, ". device-share is off for NPU %s: one container at a time can open a chip" % ", ".join(map(str, off))
        return (True, ": device-share is on for all NPUs") if states else (False, "")

    def _network(self, family):
        """The network ports of the chips. With warn, what is wrong there is told and the host is valid: it serves by itself."""
        self.ports = hccn_ports.gather(self.root + "/driver", self.fs, tool=self.hccn_tool)
        for finding in network_checks.findings(self.ports, family):
            seen = network_checks.phrases(finding)
            self.network_results.append(check(finding.name, not seen, finding.expected, seen or "as expected", finding.advice))
        if self.network == "strict":
            self.results += self.network_results

    def _add(self, name, ok, expected, seen, message):
        self.results.append(check(name, ok, expected, seen, message))

    def _virtual_npus(self):
        """The existing virtual NPUs are the recorded ones. A leftover holds parts of a chip, which no other virtual NPU can get."""
        try:
            layout = vnpu_change.Layout([], self.npu_smi, fs=self.fs)
            target = layout.record.target
            self.vnpus = [vnpu._asdict() for vnpu in target]
            if not target and not device_nodes.numbers(self.fs, "vdavinci"):
                return
            present = sorted(found.vnpu for chip in layout.chips().values() for found in chip.found)
        except NpuError as exc:
            self._add("virtual_npus", False, "the recorded virtual NPUs", "unknown", exc.message)
            return
        missing = [vnpu for vnpu in target if vnpu not in present]
        leftovers = [vnpu for vnpu in present if vnpu not in target]
        told = []
        if missing:
            told.append("Missing: %s. Run systemctl restart npu-driver, which creates them" % vnpu_plan.describe(missing))
        if leftovers:
            # Without a layout, the module destroys nothing.
            how = "Run npuops.ascend.npu_vnpu with leftovers: destroy, or" if target else "Destroy each with"
            told.append(
                "Not recorded, but holding parts of their chips: %s. %s npu-smi set -t destroy-vnpu"
                % (vnpu_plan.describe(leftovers), how)
            )
        self._add(
            "virtual_npus",
            not told,
            vnpu_plan.describe(target) or "none",
            vnpu_plan.describe(present) or "none",
            ". ".join(told),
        )

    def _device_nodes(self):
        host = self.host
        present = device_nodes.numbers(self.fs)
        absent = ["/dev/davinci%d" % number for number in host.missing]
        absent += ["/dev/" + name for name in host.nodes if not os.path.exists("%s/dev/%s" % (self.fs, name))]
        self._add(
            "device_nodes",
            len(present) == host.chips and not absent,
            "%d x /dev/davinciN and %s" % (host.chips, ", ".join(host.nodes)),
            "%d x /dev/davinciN%s" % (len(present), ", no " + ", ".join(absent) if absent else ""),
            "Each chip on the PCI bus needs its device node. Check systemctl status npu-driver and dmesg for why one is missing; a "
            "chip that fell off the bus needs a reboot of the host",
        )

    def _permissions(self):
        """The device nodes are character devices that the group HwHiAiUser, which all Ascend software expects, may use."""
        group = _group("HwHiAiUser")
        wrong = []
        for number in device_nodes.numbers(self.fs):
            path = "/dev/davinci%d" % number
            info = os.stat(self.fs + path)
            mode = stat.S_IMODE(info.st_mode)
            if not stat.S_ISCHR(info.st_mode):
                wrong.append("%s is not a device" % path)
            elif group is not None and not (mode & 0o060 == 0o060 and info.st_gid == group or mode & 0o006 == 0o006):
                wrong.append("%s %04o group %d" % (path, mode, info.st_gid))
        self._add(
            "device_permissions",
            not wrong,
            "devices that the group HwHiAiUser may use" if group is not None else "devices (this host has no group HwHiAiUser)",
            ", ".join(wrong) or "as expected",
            "Remove plain files in /dev, then "
            + (
                "run systemctl restart npu-driver, which sets owner and mode"
                if self.source == "image"
                else "run chgrp HwHiAiUser and chmod g+rw for each of the devices, and find out why the driver, which this"
                " collection has not installed, does not set them"
            ),
        )

    def _npu_smi(self):
        chips = self.host.chips
        try:
            self.info = self.npu_smi.info()
        except NpuError as exc:
            self._add("npu_smi", False, "%d chips listed" % chips, "no response", exc.message)
            return
        listed = self.info["chips"]
        self._add(
            "npu_smi",
            len(listed) == chips,
            "%d chips listed" % chips,
            "%d chips listed" % len(listed),
            "The PCI bus and npu-smi disagree about the number of chips. Check dmesg; a chip that fell off the bus needs a reboot "
            "of the host",
        )
        view = chip_health.view(listed)
        self.chip_health = chip_faults.added(view, chip_faults.ask_all(self.npu_smi, view))
        # One chip that does not serve is no reason to do without the others.
        self._add(
            "health",
            any(map(chip_health.serves, self.chip_health)),
            "a chip that is not Critical",
            chip_health.told(self.chip_health) or "OK for %d chips" % len(listed),
            _HEALTH_ADVICE,
        )

    def _versions(self):
        """version.info, the loaded modules and the header of npu-smi must show the same version."""
        tree = self.driver["version"]
        wanted = self.version or tree
        self._add(
            "driver_version",
            tree is not None and tree == wanted,
            self.version or "a driver tree at %s/driver" % self.root,
            tree or "no version.info",
            "%s. To replace a loaded driver, run npuops.ascend.upgrade" % _sentence(INSTALL),
        )
        loaded = self.driver["loaded_version"]
        if loaded is None:
            loaded = "loaded, without a version" if self.driver["loaded"] else "not loaded"
        self._add(
            "loaded_driver",
            self.driver["loaded"] and self.driver["loaded_version"] in (None, tree),
            tree or "a driver",
            loaded,
            "The loaded modules and the tree on disk must have the same version: libraries of another version fail with -8005. "
            "Reboot the host; the boot unit then loads the right modules (systemctl status npu-driver)",
        )
        if self.info:
            self._add(
                "npu_smi_version",
                self.info["version"] == tree,
                tree or "the version of the tree",
                self.info["version"],
                "npu-smi reports the loaded driver, but %s/driver contains another version. Reboot the host" % self.root,
            )

    def _release(self):
        """The links point to one release, and the loaded modules are from that release."""
        if self.source != "image":
            return
        driver = self.driver
        confirmed = self.trial or driver["release"] == driver["good"] or self._is_for_new_kernel()
        self._add(
            "release",
            driver["release"] is not None and confirmed and driver["next"] is None,
            "%s/driver%s, no next" % (self.root, "" if self.trial else " and good point to one release"),
            "driver: %s, good: %s, next: %s" % tuple(driver[link] or "-" for link in ("release", "good", "next")),
            "This boot tries a driver that is not confirmed, or the next boot will. Run the playbook again that began the"
            " maintenance (npuops.ascend.status names it): it validates and confirms the driver, or returns the host to good; if"
            " good is missing, %s" % INSTALL,
        )
        if driver["loaded_release"] is not None:
            self._add(
                "loaded_release",
                driver["loaded_release"] == driver["release"],
                driver["release"] or "-",
                driver["loaded_release"],
                "The kernel has loaded the modules of one release, but containers get the libraries of another. Reboot the host",
            )

    def _is_for_new_kernel(self):
        """Whether the kernel has changed since good was confirmed, and this boot has good's driver for the new kernel."""
        driver = self.driver
        if not driver["release"] or not driver["good"] or loaded_driver.trial(self.fs) == driver["release"]:
            return False
        return are_siblings(driver["release"], driver["good"])

    def _ready(self):
        marker = self.driver["ready"]
        failed = self.driver["failed"] or {}
        seen = "absent, or from another boot"
        agrees = False
        if marker:
            seen = "version %s, release %s" % (marker.get("version"), marker.get("release") or "-")
            agrees = marker.get("version") == self.driver["version"]
            agrees = agrees and (self.source != "image" or marker.get("release") == self.driver["release"])
        self._add(
            "driver_ready",
            agrees,
            "/run/npuops/driver-ready of this boot, version %s" % (self.driver["version"] or "-"),
            failed.get("reason") or seen,
            "Check systemctl status npu-driver for why the boot unit did not publish the driver",
        )

    def _firmware(self):
        try:
            bounds = version_info.firmware_range(version_info.read("%s%s/driver" % (self.fs, self.root)))
        except NpuError:
            return  # the check driver_version reports this
        if self.info is None:
            return
        listed = self.info["chips"]
        try:
            versions = self.npu_smi.firmware(listed)
        except NpuError as exc:
            if bounds:
                self._add("firmware", False, "%s to %s" % bounds, "unknown", exc.message)
            return
        seen = sorted(set(versions))
        # What not every chip of the host has told is not what the host runs.
        self.firmware = ", ".join(seen) if "NA" not in seen and len(versions) == self.host.chips else None
        if bounds is None:
            return
        told = zip(listed, versions)
        wrong = sorted({chip["npu"] for chip, version in told if version != "NA" and not version_info.in_range(version, *bounds)})
        self._add(
            "firmware",
            not wrong,
            "%s to %s" % bounds,
            ", ".join(seen).replace("NA", "unknown") + (" (NPU %s)" % ", ".join(map(str, wrong)) if wrong else ""),
            "The driver declares in version.info which firmware it supports. Upgrade the firmware first, then the driver",
        )

    def _libraries(self):
        """The device plugin exits if a user other than root could replace the driver's libraries."""
        problem = library_problem("%s%s/driver" % (self.fs, self.root), self.fs)
        self._add(
            "library_ownership",
            problem is None,
            "writable by root only, up to /",
            problem or "as expected",
            "Otherwise the driver's libraries do not work, and the device plugin and the exporter exit: chown root, chmod go-w",
        )

    def _cdi_spec(self):
        path = self.fs + cdi_spec.PATH
        directories = [self.fs + directory for directory in cdi_spec.DIRECTORIES]
        document = cdi_spec.read(path)
        problem = cdi_spec.problem(document, self.host, self.root, self.library_path, self.fs)
        if problem and self.missing:
            # It still describes them. What containers get of the other chips is the same.
            earlier = cdi_spec.problem(document, self.host.with_chips(self.before["count"]), self.root, self.library_path, self.fs)
            problem = problem if earlier else None
        self._add(
            "cdi_spec",
            problem is None,
            "%d chips of kind %s in %s" % (self.host.chips, cdi_spec.KIND, cdi_spec.PATH),
            problem or "%d chips" % self.host.chips,
            _sentence(INSTALL),
        )
        absent = [source for source in cdi_spec.mount_sources(document or {}) if not os.path.exists(self.fs + source)]
        self._add(
            "cdi_mounts",
            not absent,
            "everything that the spec mounts exists",
            "no " + ", ".join(absent) if absent else "as expected",
            "Containers with a chip cannot start without it: %s" % INSTALL,
        )
        self._cdi_hook(document or {})
        version, mounted = self._mounted_version(document or {})
        if mounted:
            self._add(
                "cdi_driver_version",
                version is not None and version == self.driver["version"],
                self.driver["version"] or "the driver's version",
                "%s in %s" % (version or "no version.info", mounted),
                "Containers get the libraries of a driver that is not the loaded one: %s" % INSTALL,
            )
        others = cdi_spec.other_writers(path, directories)
        broken = cdi_spec.unreadable(directories)
        self._add(
            "cdi_files",
            not others and not broken,
            "no other spec of that kind, no invalid file",
            ", ".join(["%s is of the same kind" % path for path in others] + ["%s is invalid" % path for path in broken])
            or "as expected",
            "The container runtime resolves no device that two files describe, and no device at all if the directory has an "
            "invalid file: remove the file",
        )

    def _cdi_hook(self, document):
        paths = cdi_spec.hooks(document)
        if not paths:
            return
        wrong = ["no " + path for path in paths if not os.access(self.fs + path, os.X_OK)]
        missing = ["no " + name for name in cdi_spec.missing_programs(self.fs)]
        self._add(
            "cdi_hook",
            not wrong and not missing,
            "%s and the programs that it runs" % ", ".join(paths),
            ", ".join(wrong + missing) or "as expected",
            # Without the hook, no container with a chip starts. Without its programs, containers do not find the libraries.
            "The hook makes the driver's libraries known to containers: %s" % INSTALL
            if wrong
            else "The hook makes the driver's libraries known to containers. Install the programs that it runs, or set "
            "npu_runtime_library_path: env",
        )

    def _mounted_version(self, document):
        """(version, path) of the driver tree that the spec mounts; (None, None) if it mounts none."""
        for mount in (document.get("containerEdits") or {}).get("mounts") or []:
            if isinstance(mount, dict) and mount.get("containerPath") == cdi_spec.TARGET:
                path = str(mount.get("hostPath"))
                try:
                    return version_info.read(self.fs + path)["Version"], os.path.realpath(self.fs + path)
                except NpuError:
                    return None, path
        return None, None

    def _runtime(self, find_daemon):
        runtime = self.runtime or kubelet_runtime.runtime_facts(self.fs)
        try:
            crio = kubelet_runtime.crio(self.fs, runtime)
        except NpuError as exc:
            self._add("cdi_config", False, "a container runtime with CDI", "unknown", exc.message)
            return
        if crio:
            self._crio(crio)
        else:
            self._containerd(find_daemon or functools.partial(containerd_runtime.find, self.fs, runtime))

    def _ascend_runtime(self, find_daemon):
        expected = "the default runtime is %s" % ascend_runtime.PROGRAM
        try:
            seen = ascend_runtime.look(find_daemon)
        except NpuError as exc:
            self._add("ascend_runtime_config", False, expected, "unknown", exc.message)
            return
        problem = ascend_runtime.config_problem(seen)
        self._add("ascend_runtime_config", problem is None, expected, str(seen.configured or "unknown"), problem)
        if seen.program:
            self._ascend_runtime_files(seen.program)
        problem = ascend_runtime.running_problem(seen)
        told = "no response" if seen.problem else str(seen.running or "unknown")
        self._add("ascend_runtime_running", problem is None, "the same in the running containerd", told, problem)

    def _ascend_runtime_files(self, program):
        told = "its programs, %s, and what that lists" % ascend_runtime.BASE_LIST
        advice = ascend_runtime.INSTALLER
        try:
            installed = installation.find(self.fs)
            problem = installed and installation.damage(installed, self.fs)
        except NpuError as exc:
            installed, problem = None, exc.message
        if installed:
            told = "those of version %s; %s" % (installed.version, told)
            advice = "Run npuops.ascend.install, which installs %s again" % installed.package
        problem = ascend_runtime.file_problem(program, self.fs) or problem
        self._add("ascend_runtime_files", problem is None, told, problem or "as expected", advice)

    def _crio(self, daemon):
        expected = "%s in cdi_spec_dirs" % crio_runtime.SPEC_DIR
        try:
            configured = daemon.configured()
        except NpuError as exc:
            self._add("cdi_config", False, expected, "unknown", exc.message)
        else:
            seen = "cdi_spec_dirs = %s" % crio_runtime.shown(configured.directories)
            valid = crio_runtime.SPEC_DIR in configured.directories
            self._add("cdi_config", valid, expected, seen, crio_runtime.add_to(configured))
        try:
            running = daemon.running()
        except cri.CriError as exc:
            self._add("cdi_running", False, expected, "no response", "%s. Check systemctl status %s" % (exc, crio_runtime.UNIT))
            return
        self._add(
            "cdi_running",
            crio_runtime.SPEC_DIR in running,
            expected,
            "cdi_spec_dirs = %s" % crio_runtime.shown(running),
            "CRI-O has not been restarted since its configuration changed: %s" % crio_runtime.RESTART,
        )

    def _containerd(self, find_daemon):
        expected = "enable_cdi = true, %s in cdi_spec_dirs" % containerd_config.SPEC_DIR
        try:
            daemon = find_daemon()
            dump = daemon.dump()
        except NpuError as exc:
            self._add("cdi_config", False, expected, "unknown", exc.message)
            return
        if dump.cri_disabled:
            self._add(
                "cdi_config",
                False,
                expected,
                "the CRI plugin is disabled",
                "Remove cri from disabled_plugins in %s, or in a file that it imports, and restart containerd" % daemon.config,
            )
            return
        self._add(
            "cdi_config",
            dump.on,
            expected,
            "enable_cdi = %s, cdi_spec_dirs = %s" % (str(dump.enabled).lower(), ", ".join(dump.spec_dirs) or "-"),
            "Without CDI, pods start without devices and without an error: %s" % INSTALL,
        )
        address = daemon.address or dump.address or containerd_runtime.DEFAULT_ADDRESS
        try:
            status = cri.status(address)
        except cri.CriError as exc:
            self._add("cdi_running", False, "CDI enabled in the running containerd", "no response", str(exc))
            return
        self._add(
            "cdi_running",
            status.cdi and containerd_config.has_spec_dir(status.cdi_spec_dirs),
            "CDI enabled in the running containerd",
            "%s, cdi_spec_dirs = %s" % ("on" if status.cdi else "off", ", ".join(status.cdi_spec_dirs) or "-"),
            "containerd has not been restarted since its configuration changed: %s" % INSTALL,
        )


def library_problem(tree, top="/"):
    """Why users other than root can write the libraries of ``tree`` (a path with owner or mode), or None.

    Checks lib64, everything in it, and every directory above its real path up to ``top``.
    """
    top = os.path.realpath(top or "/")
    start = os.path.realpath(os.path.join(tree, "lib64"))
    if not os.path.isdir(start):
        return "%s/lib64 does not exist" % tree
    paths = []
    for directory, dummy, files in os.walk(start):
        paths.append(directory)
        paths.extend(os.path.join(directory, name) for name in files)
    parent = start
    while parent not in (top, "/"):
        parent = os.path.dirname(parent)
        paths.append(parent)
    for path in paths:
        try:
            info = os.stat(path)  # follows links
        except OSError:
            return "%s is a broken link" % path
        if info.st_uid != 0:
            return "%s belongs to user ID %d" % (path, info.st_uid)
        if info.st_mode & 0o022:
            return "%s has mode %04o" % (path, stat.S_IMODE(info.st_mode))
        if path.count("/") > _LIBRARY_DEPTH:
            return "%s is more than %d directories deep" % (path, _LIBRARY_DEPTH)
    return None


def validate(root, source, **options):
    """The result of the module npu_validate for this host; ``options`` as for Validation."""
    validation = Validation(root, source, **options)
    validation.run()
    return {
        "reserved": validation.reserved,
        "msg": "\n".join([summary(validation.results), *validation.notes, *cdi_spec.notes(validation.fs)]),
        "valid": validation.valid,
        "checks": validation.results,
        "chips": validation.host.chips if validation.host else 0,
        "version": validation.driver["version"],
        "firmware_version": validation.firmware,
        "chip_health": validation.chip_health,
        "vnpus": validation.vnpus,
        "network": _network_view(validation),
    }


def _network_view(validation):
    """The ports and what is wrong with them; None if they were not looked at."""
    if validation.ports is None:
        return None
    # With strict, they are among the checks of the host.
    results = validation.network_results if validation.network == "warn" else []
    return dict(validation.ports, mode=validation.network, checks=results)


def summary(results):
    """The failed checks, one line each followed by what to do; one sentence if all passed."""
    failed = [result for result in results if not result["ok"]]
    if not failed:
        return "all %d checks passed" % len(results) if results else "this host has no chips: nothing to check"
    lines = ["%d of %d checks failed" % (len(failed), len(results))]
    for result in failed:
        lines.append("%s: %s (expected: %s)" % (result["name"], result["seen"], result["expected"]))
        lines.append("  -> %s" % result["message"])
    return "\n".join(lines)


def _told_of_network(result):
    return "%s: %s (expected: %s). %s" % (result["name"], result["seen"], result["expected"], result["message"])


def _group(name):
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        return None


def _sentence(text):
    return text[:1].upper() + text[1:]
