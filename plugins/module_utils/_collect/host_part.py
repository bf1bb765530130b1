# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host's part of a bundle. Nothing on the host is changed, and what cannot be read is no failure: it is noted as left out.

The order is that of the importance: what comes first gets the room and the time.
"""

from __future__ import annotations

import json
import os

from ansible_collections.npuops.ascend.plugins.module_utils._chips import hccn_ports
from ansible_collections.npuops.ascend.plugins.module_utils._chips.npu_smi import NpuSmi, parse_info
from ansible_collections.npuops.ascend.plugins.module_utils._collect import bounded_output, host_files
from ansible_collections.npuops.ascend.plugins.module_utils._collect.gathered import Gathered
from ansible_collections.npuops.ascend.plugins.module_utils._collect.member_names import member_name
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import cdi_spec, containerd_config
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._inspect import facts as host_facts
from ansible_collections.npuops.ascend.plugins.module_utils._inspect import host_validation

SCHEMA = 1
# Seconds for one command, and for all calls of hccn_tool.
_COMMAND = 30
_PORTS = 60
_MOST_OUTPUT = 512 * 1024
_MOST_JOURNAL = 2 * 2**20
_JOURNAL_LINES = 20000
_MOST_CARDS = 64
_MOST_STATE = 256 * 1024
_MOST_LOG = 2**20
# The end of a log of which less fits is not worth a member.
_LEAST_LOG = 4096

# Their journals are short, and those of earlier boots say how these ended.
_OWN_UNITS = ("npu-driver*", "npuops*")
_UNITS = ("kubelet", "containerd", "k3s", "k3s-agent", "rke2-server", "rke2-agent", "snap.microk8s.daemon-*")
_KERNEL = {"kernel-this-boot": "0", "kernel-previous-boot": "-1"}
STATE = {"state": "/var/lib/npuops", "run": "/run/npuops"}
# The Python of npu_python: thousands of files that say nothing of this host.
_NOT_STATE = ("python",)
LOGS = {"var-log-npu": "/var/log/npu", "ascend_seclog": "/var/log/ascend_seclog", "root-ascend-log": "/root/ascend/log"}


class HostPart:
    """Gathers all of it into ``gathered``.

    root, source: location of the driver; library_path: as in the CDI spec; limit: bytes of all texts; seconds: time limit for all;
    command: seconds for one command; fs: path of the host's /; npu_smi, hccn_tool: programs, for tests.
    """

    def __init__(
        self,
        root,
        source,
        library_path="hook",
        limit=20 * 2**20,
        seconds=240,
        command=_COMMAND,
        fs="",
        npu_smi=None,
        hccn_tool=None,
    ):
        self.root = root
        self.source = source
        self.library_path = library_path
        self.command = command
        self.fs = fs
        self.gathered = Gathered(limit, seconds)
        self._npu_smi = npu_smi
        self._hccn_tool = hccn_tool
        self._facts = {}

    def gather(self):
        """{schema, files, left_out, more_left_out}."""
        for step in (
            self._add_facts,
            self._add_checks,
            self._add_npu_smi,
            self._add_ports,
            self._add_journals,
            self._add_state,
            self._add_containerd,
            self._add_logs,
        ):
            step()
        gathered = self.gathered
        return {
            "schema": SCHEMA,
            "files": gathered.files,
            "left_out": gathered.left_out,
            "more_left_out": gathered.more_left_out,
        }

    @property
    def _chips(self):
        return self._facts.get("chip_count", 0)

    @property
    def _smi(self):
        """With the time that is left."""
        smi = self._npu_smi or NpuSmi(self._facts["driver"]["root"] + "/driver")
        smi.timeout = smi.lock_wait = max(1, int(min(self.command, self.gathered.seconds)))
        return smi

    def _add_facts(self):
        try:
            self._facts = host_facts.gather(self.root, self.source, self.fs)
            self._facts["upgrade"] = host_facts.upgrade_facts(self._facts["driver"]["root"], self.fs)
        except (NpuError, OSError) as exc:
            self._failed("facts", exc)
        if self._facts:
            self._add_json("facts.json", self._facts, "npuops.ascend.npu_facts")

    def _add_checks(self):
        if not self._chips or not self.gathered.has_time("checks"):
            self._without_chips("checks")
            return
        try:
            checks = host_validation.validate(
                self.root,
                self.source,
                library_path=self.library_path,
                runtime=self._facts["runtime"],
                fs=self.fs,
                npu_smi=self._smi,
            )
        except (NpuError, OSError) as exc:
            self._failed("checks", exc)
            return
        self._add_json("checks.json", checks, "npuops.ascend.npu_validate")

    def _add_npu_smi(self):
        if not self._chips:
            self._without_chips("npu-smi")
            return
        table = self._add_smi("npu-smi/info.txt", "info")
        if table is None:
            return
        try:
            chips = parse_info(table)["chips"]
        except NpuError as exc:
            self._failed("npu-smi info -t", exc)
            return
        cards = sorted({chip["npu"] for chip in chips})
        for card in cards[:_MOST_CARDS]:
            for kind in ("board", "health"):
                # After one that hangs, the others would be refused one by one.
                if (
                    self._add_smi("npu-smi/%s-%d.txt" % (kind, card), "info", "-t", kind, "-i", str(card)) is None
                    and self._smi_hangs
                ):
                    return
        if len(cards) > _MOST_CARDS:
            self.gathered.leave_out("npu-smi info -t", "only the first %d cards are queried" % _MOST_CARDS)

    _smi_hangs = False

    def _add_smi(self, name, *arguments):
        """The output, or None."""
        command = "npu-smi " + " ".join(arguments)
        if not self.gathered.has_time(command):
            return None
        try:
            text = self._smi.run(*arguments)
        except NpuError as exc:
            failed = exc.details.get("npu_smi") or {}
            self._smi_hangs = bool(failed) and failed.get("status") is None
            self._failed(command, exc)
            if failed.get("output"):
                self.gathered.add(name, failed["output"][-_MOST_OUTPUT:], command)
            return None
        self.gathered.add(name, text[:_MOST_OUTPUT], command, cut=len(text) > _MOST_OUTPUT)
        return text

    def _add_ports(self):
        if not self._chips or not self.gathered.has_time("hccn_tool"):
            self._without_chips("hccn_tool")
            return
        try:
            ports = hccn_ports.gather(
                self._facts["driver"]["root"] + "/driver",
                self.fs,
                total=min(_PORTS, self.gathered.seconds),
                tool=self._hccn_tool,
            )
        except (NpuError, OSError) as exc:
            self._failed("hccn_tool", exc)
            return
        if ports["roce"]:
            self._add_json("hccn_tool.json", ports, "hccn_tool, /etc/hccn.conf")
        else:
            self.gathered.leave_out("hccn_tool", ports["reason"], absent=True)

    def _add_journals(self):
        for unit in _OWN_UNITS:
            self._add_journal(unit.rstrip("*"), ["-u", unit], "journal of %s" % unit)
        for unit in _UNITS:
            self._add_journal(unit.rstrip("*-").replace(".", "-"), ["-b", "-u", unit], "journal of %s, this boot" % unit)
        for name, boot in _KERNEL.items():
            self._add_journal(name, ["-k", "-b", boot], "kernel log, boot %s" % boot)

    def _add_journal(self, name, options, what):
        if not self.gathered.has_time(what):
            return
        argv = ["journalctl", "--no-pager", "--quiet", "-o", "short-iso", "-n", str(_JOURNAL_LINES)] + options
        try:
            # A part of the room, so that some is left for what comes later.
            result = bounded_output.tail(
                argv, min(self.command, self.gathered.seconds), min(_MOST_JOURNAL, self.gathered.room // 4)
            )
        except OSError as exc:
            self.gathered.leave_out(what, "journalctl cannot be started: %s" % exc.strerror)
            return
        if result.rc is None:
            self.gathered.leave_out(what, "journalctl did not end in time, so its output may be incomplete")
        elif result.rc != 0:
            # Such as that of the boot before on a host that does not keep its journal.
            self.gathered.leave_out(what, "journalctl failed with status %d: %s" % (result.rc, result.text[-300:]))
            return
        if result.text.strip():
            self.gathered.add("journal/%s.log" % name, result.text, what, cut=result.cut)
        elif result.rc == 0:
            self.gathered.leave_out(what, "it is empty", absent=True)

    def _add_state(self):
        for folder, top in STATE.items():
            for number, file in enumerate(self._search(top, lambda: True, _NOT_STATE)):
                self._add_file(folder, top, file, number, _MOST_STATE, whole=True)
        directory, name = os.path.split(cdi_spec.PATH)
        self._add_file("cdi", directory, host_files.Found((name,), 0, 0), 0, _MOST_STATE, whole=True)

    def _add_containerd(self):
        path = (self._facts.get("runtime") or {}).get("config_path")
        if not path:
            self.gathered.leave_out("configuration of containerd", "no containerd with a configuration file was found", absent=True)
            return
        try:
            files = [(file.path, file.text) for file in containerd_config.load(self.fs + path)]
        except (ValueError, OSError, NpuError) as exc:
            self._failed(path, exc)
            return
        for number, (name, text) in enumerate(files):
            member = member_name("containerd", (os.path.basename(name),), number)
            if len(text) > _MOST_STATE:
                self.gathered.leave_out(name, "it has more than %d bytes" % _MOST_STATE)
            else:
                self.gathered.add(member, text, name)

    def _add_logs(self):
        """The newest first, whatever their directory is."""
        found = []
        for folder, top in LOGS.items():
            if not self.gathered.has_time(top):
                return
            found += [
                (file, folder, top, number) for number, file in enumerate(self._search(top, lambda: self.gathered.seconds > 0))
            ]
        found.sort(key=lambda entry: entry[0].mtime, reverse=True)
        for index, (file, folder, top, number) in enumerate(found):
            if self.gathered.room < _LEAST_LOG:
                self.gathered.leave_out("%d older logs of the driver" % (len(found) - index), "the bundle has reached its limit")
                return
            if not self.gathered.has_time("%d older logs of the driver" % (len(found) - index)):
                return
            self._add_file("logs/" + folder, top, file, number, _MOST_LOG, whole=False)

    def _search(self, top, has_time, skip=()):
        """The files below a directory of the host, but for its directories ``skip``, that are found while ``has_time()``."""
        place = self.fs + top
        if os.path.islink(place):
            self.gathered.leave_out(top, "it is a link")
            return []
        if not os.path.isdir(place):
            self.gathered.leave_out(top, "it does not exist", absent=True)
            return []
        found, others = host_files.search(place, has_time, skip)
        for path, why in others:
            self.gathered.leave_out(path[len(self.fs) :], why)
        return found

    def _add_file(self, folder, top, file, number, most, whole):
        path = "/".join((top,) + file.parts)
        most = min(most, self.gathered.room)
        try:
            if whole:
                text, cut = host_files.read_whole(self.fs + top, file.parts, most), False
            else:
                text, cut = host_files.read_tail(self.fs + top, file.parts, most)
        except host_files.Unreadable as exc:
            self.gathered.leave_out(path, str(exc), absent=not os.path.lexists(self.fs + path))
            return
        # An empty file, such as a lock, says by its name what there is to say.
        self.gathered.add(member_name(folder, file.parts, number), text, path, cut=cut)

    def _add_json(self, name, value, source):
        self.gathered.add(name, json.dumps(value, indent=1, sort_keys=True, default=str) + "\n", source)

    def _without_chips(self, what):
        if not self._chips:
            self.gathered.leave_out(what, "the host has no chips", absent=True)

    def _failed(self, what, exc):
        self.gathered.leave_out(what, getattr(exc, "message", None) or str(exc) or type(exc).__name__)
