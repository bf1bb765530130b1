# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run npu-smi and parse its output.

npu-smi can hang in the kernel, where even SIGKILL does not end it. So each call has a time limit, and this collection runs at most
one npu-smi on a host: it inherits a lock that is held as long as the process exists and records since when. npu-smi prints errors
on standard output; its exit status is a negative DCMI code modulo 256.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import stat
import time

from ansible_collections.npuops.ascend.plugins.module_utils._host import command as host_command
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NoVerdict, NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import make_directory, wait_for_lock

LOCK = "/run/npuops/npu-smi.lock"

# Seconds that it takes to kill an npu-smi that exceeds its time limit.
_TO_BE_KILLED = 2

_REBOOT = "if this persists, reboot the host"
# code: (meaning, what to do)
DCMI_CODES = {
    -8001: ("invalid parameter", "npu-smi and the driver have different versions, or the card ID is wrong"),
    -8002: ("permission denied", "run it as root, or as a member of the group HwHiAiUser"),
    -8003: ("out of memory", "check the free memory of the host"),
    -8004: ("a secure function failed", _REBOOT),
    -8005: (
        "inner error",
        "possible causes are a driver or firmware upgrade without a reboot, libraries of another version than the loaded driver, "
        "missing permissions on /dev/davinci*, and a wedged chip; check dmesg",
    ),
    -8006: ("timeout", "the chip does not respond; %s" % _REBOOT),
    -8007: ("invalid device ID", "list the cards with npu-smi info -l"),
    -8008: ("the device does not exist", "compare lspci -n | grep 19e5:d with /dev/davinci*"),
    -8009: ("ioctl failed", "the libraries and the loaded driver may have different versions; check dmesg"),
    -8010: ("sending to the chip failed", _REBOOT),
    -8011: ("receiving from the chip failed", _REBOOT),
    -8012: ("the chip is not ready", "it may still be starting: try again in a minute; %s" % _REBOOT),
    -8013: ("not available in a container", "run it on the host"),
    -8014: ("a file could not be read or written", "check the driver tree and the disk"),
    -8015: ("the chip is being reset", "wait for the reset to end"),
    -8016: ("aborted", "try again"),
    -8017: ("an upgrade is in progress", "wait for it to end"),
    -8020: (
        "the device is busy",
        "a process has it open, or the driver reserves it for a container; npuops.ascend.validate names them",
    ),
    -8255: ("not supported", "this chip or driver does not support the command"),
    -9001: ("missing argument", "the command is incomplete"),
    # Also what npu-smi returns when no card answers the query of its board type.
    -9005: (
        "unknown command, or no card that npu-smi knows",
        "check that the libraries beside npu-smi are those of the loaded driver, that lspci -n | grep 19e5:d lists the chips and, "
        "in a container, that the whole driver is mounted",
    ),
}
# A shortage of memory is a problem of the host, not of the chip.
_OUT_OF_MEMORY = -8003

# Errors of exec for a program that can never be started. All other errors may be temporary.
_BROKEN_PROGRAM = (
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EACCES,
    errno.EPERM,
    errno.ENOEXEC,
    errno.ELIBBAD,
    errno.ELOOP,
    errno.EINVAL,
)
# Signals by which a program ends itself: with a broken driver or library, it would at each call.
_CRASHES = {int(number): number.name for number in (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)}
# What the dynamic loader prints, in the C locale, if intact libraries cannot be loaded because of a shortage.
_SHORTAGE = re.compile(r"Cannot allocate memory|Too many open files|failed to map segment")
_STATUSES = {code & 255: code for code in sorted(DCMI_CODES)}

_TITLE = re.compile(r"\|\s*npu-smi\s+(\S+)\s+Version:\s*(\S+)\s*\|\s*\Z")
# Of phyid-remap.
_FIELD = re.compile(r"\s*([A-Za-z -]+?)\s*:\s*([0-9]{1,9})\s*\Z")
# A line for each chip of the card.
_SHARE = re.compile(r"^\s*Device-share Status\s*: (True|False)\s*$", re.MULTILINE)
_BUS_ID = re.compile(r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]\Z")


class NpuSmi:
    """npu-smi of the driver tree ``tree``; ``timeout`` in seconds for one call (default 30).

    A call waits up to ``lock_wait`` seconds (default 40) for another call of this collection to end. ``fallbacks`` are the paths
    at which packages install the program.
    """

    def __init__(
        self,
        tree,
        timeout=30,
        lock=LOCK,
        lock_wait=40,
        fallbacks=("/usr/local/sbin/npu-smi", "/usr/local/bin/npu-smi"),
    ):
        self.tree = tree
        self.timeout = timeout
        self.lock = lock
        self.lock_wait = lock_wait
        self.fallbacks = tuple(fallbacks)
        # The cards whose firmware npu-smi calls incompatible with the driver, when they were asked for it.
        self.incompatible = set()

    def program(self):
        """The path of npu-smi; raises NpuError if there is none."""
        places = (os.path.join(self.tree, "tools", "npu-smi"),) + self.fallbacks
        for path in places:
            if _is_file(path):
                return path
        raise NpuError("This host has no npu-smi (searched for %s). Run npuops.ascend.install" % ", ".join(places))

    def run(self, *arguments, timeout=None, most=None):
        """The output of ``npu-smi <arguments>``; ``timeout``: seconds, by default those of this object; ``most``: bytes that are
        read, by default all.

        Raises NpuError if there is no npu-smi, if it hangs, fails or cannot be started, or if another one still hangs; NoVerdict if
        the machine prevented it from running. The details of the exception have ``npu_smi``: {command, status, dcmi_code, output}.
        """
        program = self.program()
        command = "npu-smi " + " ".join(arguments)
        lib64 = os.path.join(self.tree, "lib64")
        path = ":".join((os.path.join(lib64, "driver"), os.path.join(lib64, "common"), lib64))
        timeout = self.timeout if timeout is None else timeout
        fd = self._lock(timeout)
        try:
            result = host_command.run(
                [program] + list(arguments), timeout, env={"LD_LIBRARY_PATH": path}, pass_fds=(fd,), most=most
            )
        except OSError as exc:
            # Without the program's name, the fork or the file for the output failed.
            broken = exc.filename == program and exc.errno in _BROKEN_PROGRAM
            raise (NpuError if broken else NoVerdict)("%s cannot be started: %s" % (program, exc.strerror or exc)) from None
        finally:
            os.close(fd)
        if result.timed_out:
            raise NpuError(
                "%s did not end within %d s: it hangs in the driver. Check dmesg; the chip does not recover without a reboot of "
                "the host" % (command, timeout),
                npu_smi={"command": command, "status": None, "dcmi_code": None, "output": result.text},
            )
        if result.rc != 0:
            raise failure(command, result.rc, result.text)
        return result.stdout

    def info(self):
        """The output of ``npu-smi info``, parsed by ``parse_info``."""
        return parse_info(self.run("info"))

    def board(self, npu_id, chip_id=None):
        """The output of ``npu-smi info -t board -i <npu_id>`` as a dict, with "Firmware Version"; of one chip of the card with
        ``chip_id``."""
        chip = [] if chip_id is None else ["-c", str(chip_id)]
        return parse_fields(self.run("info", "-t", "board", "-i", str(npu_id), *chip))

    def place(self, number):
        """(NPU ID, chip ID), which is how npu-smi names the chip with the physical ID ``number``, N of /dev/davinciN."""
        return parse_place(self.run("info", "-t", "phyid-remap", "-p", str(number)))

    def device_share(self, npu_id):
        """Whether several containers may open a chip of the card, as device-share says; None if npu-smi does not tell."""
        try:
            states = _SHARE.findall(self.run("info", "-t", "device-share", "-i", str(npu_id)))
        except NpuError:
            return None  # only newer drivers have it
        return "False" not in states if states else None

    def firmware(self, listed):
        """The versions of the firmware of the chips ``listed`` (as of ``info``), in that order; NA where it is unknown."""
        found = []
        for chip in listed:
            # The board of a card says nothing of its single chips.
            alone = sum(other["npu"] == chip["npu"] for other in listed) == 1
            version = self._firmware(chip["npu"], None if alone else chip["chip"])
            if version == "NA" and not alone:
                # Some cards tell it of the card only, and some have no board of a card.
                try:
                    version = self._firmware(chip["npu"])
                except NoVerdict:
                    raise
                except NpuError:
                    pass
            found.append(version)
        return found

    def _firmware(self, npu_id, chip_id=None):
        board = self.board(npu_id, chip_id)
        # Many cards say nothing of it.
        if board.get("Compatibility") not in (None, "", "NA", "OK"):
            self.incompatible.add(npu_id)
        return board.get("Firmware Version") or "NA"

    def _lock(self, timeout):
        """A file descriptor that holds the lock, for ``timeout`` seconds. Raises NpuError if an npu-smi with the lock hangs,
        NoVerdict if it is running."""
        try:
            make_directory(os.path.dirname(self.lock))
            fd = wait_for_lock(self.lock, self.lock_wait, self._refuse)
            self._sign(fd, timeout)
            return fd
        except OSError as exc:
            raise NoVerdict("The lock %s cannot be used: %s" % (self.lock, exc.strerror)) from None

    def _refuse(self, late):
        age, limit = self._holder()
        details = {"command": None, "status": None, "dcmi_code": None, "output": ""}
        if age >= limit + _TO_BE_KILLED:
            raise NpuError(
                "Another npu-smi on this host has been running for %d s, which exceeds its limit of %d s, so no second one is "
                "started. If it hangs in the driver (ps shows state D), reboot the host" % (age, limit),
                npu_smi=details,
            )
        if late:
            raise NoVerdict(
                "Another npu-smi on this host has been running for %d s, its limit is %d s; no second one is started. "
                "Try again in a minute" % (age, limit),
                npu_smi=details,
            )

    def _sign(self, fd, timeout):
        """Record in the lock since when it is held, in seconds since the boot, and for how many seconds it may be held."""
        text = b"%.2f %.2f\n" % (_since_boot(), timeout)
        try:
            os.ftruncate(fd, 0)
            os.pwrite(fd, text, 0)
        except OSError:
            os.close(fd)
            raise

    def _holder(self):
        """(seconds for which the lock has been held, seconds for which it may be held)."""
        fd = os.open(self.lock, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            since, limit = os.pread(fd, 64, 0).split()
            return max(0.0, _since_boot() - float(since)), float(limit)
        except ValueError:
            # The holder has not written it yet, or is of an older version, which used the time of the file.
            return max(0.0, time.time() - os.fstat(fd).st_mtime), float(self.timeout)
        finally:
            os.close(fd)


def _since_boot():
    """Seconds by the clock of /proc/uptime, which cannot be set."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def failure(command, status, output):
    """The NpuError for an npu-smi with the exit status ``status`` (negative: killed by that signal) and the output ``output``."""
    killed = _signal(status)
    if killed:
        return NoVerdict(
            "%s was killed by %s. Check dmesg, which shows whether the host was out of memory" % (command, killed),
            npu_smi={"command": command, "status": status, "dcmi_code": None, "output": output[:4000]},
        )
    shown = re.search(r"\bret(?: is |=)(-[0-9]{4})\b", output)
    code = int(shown.group(1)) if shown else _STATUSES.get(status)
    message = "%s failed with status %d" % (command, status)
    if -status in _CRASHES or status - 128 in _CRASHES:
        message = "%s crashed (%s). Check dmesg; the driver tree may be damaged, or not that of the loaded driver" % (
            command,
            _CRASHES.get(-status) or _CRASHES[status - 128],
        )
    short = status == 127 and _SHORTAGE.search(output)
    if short:
        message += ": the host is short of memory or open files"
    elif status == 127 and "libraries" in output:
        message += ": its libraries cannot be loaded. The driver tree is damaged or incomplete"
    elif code in DCMI_CODES:
        meaning, advice = DCMI_CODES[code]
        message += " (DCMI %d, %s). %s" % (code, meaning, _sentence(advice))
    elif code is not None:
        message += " (DCMI %d)" % code
    if output:
        message += ". Its output: %s" % _excerpt(output)
    kind = NoVerdict if short or code == _OUT_OF_MEMORY else NpuError
    return kind(message, npu_smi={"command": command, "status": status, "dcmi_code": code, "output": output[:4000]})


def _signal(status):
    """The name of the signal with which something else ended npu-smi, also in the form in which shells return it (128 + number);
    otherwise None."""
    number = -status if status < 0 else status - 128
    if number in _CRASHES or (status >= 0 and number not in (signal.SIGKILL, signal.SIGTERM)):
        return None  # DCMI codes are in the same range, but do not include these two
    try:
        return signal.Signals(number).name
    except ValueError:
        return "signal %d" % number


def _is_file(path):
    """Like os.path.isfile, which however treats a shortage of memory as a missing file."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError as exc:
        if exc.errno in (errno.ENOMEM, errno.ENFILE, errno.EMFILE):
            raise NoVerdict("%s cannot be checked: %s" % (path, exc.strerror)) from None
        return False


def parse_info(text):
    """Parse the table of ``npu-smi info``, in any of its layouts.

    Returns {npu_smi_version, version, layout, chips, warnings}. ``version`` is that of the driver; ``layout`` is ``hbm``
    (910A, 910B), ``hbm-phy`` (910C), ``device`` (310, 310P) or ``950``. Each chip is {npu, chip, phy_id, name, health,
    bus_id}; ``phy_id`` is None if the layout does not have it. Names are unreliable. Raises NpuError for anything that is not a
    complete table.
    """
    versions = layout = heading = first = None
    chips = []
    warnings = []
    for line in text.splitlines():
        line = line.strip()
        if not line or line.startswith("+"):
            continue
        title = _TITLE.match(line)
        if versions is None:
            if title:
                versions = title.groups()
            else:
                warnings.append(line)
            continue
        cells = [" ".join(cell.split()) for cell in line.strip("|").split("|")]
        if any(cell.startswith("Process id") for cell in cells):
            break
        if layout is None:
            # The first cells of the two heading lines identify the layout.
            if heading is None:
                heading = cells[0]
            else:
                layout = _LAYOUTS.get((heading, cells[0]))
                if layout is None or "Bus-Id" not in cells:
                    raise _unreadable(line, text)
        elif first is None:
            first = cells
        else:
            chips.append(_chip(layout, first, cells, text))
            first = None
    if versions is None and "There is no NPU card" in text:
        why = "The loaded driver does not see those of the PCI bus: check dmesg"
        raise _not_taken("npu-smi lists no chip: %s %s" % (_excerpt(text), why), text)
    if versions is None or layout is None or first is not None:
        raise _unreadable("an incomplete table" if versions else text.strip() or "nothing", text)
    return {
        "npu_smi_version": versions[0],
        "version": versions[1],
        "layout": layout,
        "chips": chips,
        "warnings": warnings,
    }


def parse_fields(text):
    """The ``name : value`` lines of ``npu-smi info -t ...`` as a dict; of several with the same name, the first."""
    fields = {}
    for line in text.splitlines():
        name, separator, value = line.partition(" : ")
        if separator:
            fields.setdefault(name.strip(), value.strip())
    return fields


def parse_place(text):
    """(NPU ID, chip ID) from the output of ``npu-smi info -t phyid-remap -p N``. Raises NpuError."""
    fields = {}
    for line in text.splitlines():
        match = _FIELD.match(line)
        if match:
            fields[match.group(1)] = int(match.group(2))
    if "NPU ID" not in fields or "Chip ID" not in fields:
        raise _not_taken("npu-smi info -t phyid-remap printed something unexpected: %s" % (_excerpt(text) or "nothing"), text)
    return fields["NPU ID"], fields["Chip ID"]


# (first cell of the first heading, of the second) -> layout
_LAYOUTS = {
    ("NPU Name", "Chip"): "hbm",
    ("NPU Name", "Chip Phy-ID"): "hbm-phy",
    ("NPU Name", "Chip Device"): "device",
    ("NPU ID", ""): "950",
}


def _chip(layout, first, second, text):
    """One chip from the cells of its two lines; raises NpuError if they are not those of a chip."""
    if layout == "950":
        # The card has a separate cell, and exactly one chip.
        first = [" ".join(first[:2])] + first[2:]
        second = ["0"] + second[2:]
    card = re.match(r"([0-9]{1,9}) (.+)\Z", first[0])
    place = re.match(r"([0-9]{1,9})(?: ([0-9]{1,9}))?\Z", second[0])
    if card and place and second[1:2] == ["NA"]:
        raise _not_taken(
            "npu-smi lists %s without a PCI address, so it is part of an SoC, such as an Atlas 200I. Only PCIe cards are supported"
            % _excerpt(card.group(2)),
            text,
        )
    if not card or not place or len(first) < 3 or len(second) < 3 or not first[1] or not _BUS_ID.match(second[1]):
        raise _unreadable("%s / %s" % (" | ".join(first), " | ".join(second)), text)
    return {
        "npu": int(card.group(1)),
        "chip": int(place.group(1)),
        "phy_id": int(place.group(2)) if place.group(2) else None,
        "name": card.group(2),
        "health": first[1],
        "bus_id": second[1].lower(),
    }


def _unreadable(what, text):
    return _not_taken("npu-smi info printed something that this version of npuops.ascend cannot parse: %s" % _excerpt(what), text)


def _not_taken(message, text):
    return NpuError(message, npu_smi={"command": "npu-smi info", "status": 0, "dcmi_code": None, "output": text[:4000]})


def _excerpt(text):
    """The start of ``text`` in one line."""
    line = " / ".join(part.strip() for part in text.splitlines() if part.strip())
    return line if len(line) <= 300 else line[:300] + " ..."


def _sentence(text):
    return text[:1].upper() + text[1:]
