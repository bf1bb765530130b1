# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run hccn_tool, Huawei's program for the network ports of 910 chips. Nothing here changes a chip or a link: only -g is used.

The tool can hang in the kernel as npu-smi can, so each call has a time limit, and this collection runs one at a time on a host: the
program inherits a lock that is held as long as it exists. The tool itself refuses a second call while another client, such as the
exporter, makes one; such a call is made again.
"""

from __future__ import annotations

import os
import time

from ansible_collections.npuops.ascend.plugins.module_utils._chips import hccn_output
from ansible_collections.npuops.ascend.plugins.module_utils._host import command as host_command
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NoVerdict, NpuError, one_line, printable
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import make_directory, wait_for_lock

LOCK = "/run/npuops/hccn-tool.lock"
# Bytes of each output that are read. The longest answer, that about TLS, lists the certificates.
MOST_OUTPUT = 64 * 1024
# Only short answers are messages; certificates contain names that others have chosen.
_LONGEST_MESSAGE = 600

_BUSY = ("hccn_tool is busy", "I2c is busy", "Get lock failed")
_ABSENT = ("no ip was preset", "no gateway was preset", "Optical module is not present")
_UNSUPPORTED = (
    "not supported on this product",
    "not supported on this optical media",
    "unsupported on this optical module",
    "The VM does not support",
    "This device does not support",
)


class Absent(NpuError):
    """The chip has no such thing, such as no gateway."""


class Unsupported(NpuError):
    """The tool says that this product does not have it."""


class Hangs(NpuError):
    """The tool did not end in time. It is not called again."""


class HccnTool:
    """hccn_tool of the driver tree ``tree``.

    timeout: seconds for one call; lock_wait: seconds to wait for another call of this collection; busy_wait: seconds during which a
    call is repeated that the tool refuses because of another client.
    """

    def __init__(self, tree, timeout=10, lock=LOCK, lock_wait=20, busy_wait=10):
        self.tree = tree
        self.timeout = timeout
        self.lock = lock
        self.lock_wait = lock_wait
        self.busy_wait = busy_wait
        self.path = os.path.join(tree, "tools", "hccn_tool")

    def exists(self):
        """Whether the driver has the program."""
        return os.path.isfile(self.path)

    def get(self, chip, item):
        """The ``item`` of the chip /dev/davinci<chip>, as hccn_output parses it.

        Raises Absent, Unsupported, Hangs, NoVerdict if another call is running, or NpuError.
        """
        result = self._run("-i", str(chip), "-" + item, "-g")
        text = result.text
        if len(text) <= _LONGEST_MESSAGE:
            for kind, messages in ((Absent, _ABSENT), (Unsupported, _UNSUPPORTED)):
                if any(message in text for message in messages):
                    raise kind("hccn_tool -i %d -%s -g: %s" % (chip, item, _told(text)))
        if result.rc != 0:
            raise NpuError("hccn_tool -i %d -%s -g failed with status %d: %s" % (chip, item, result.rc, _told(text)))
        return hccn_output.PARSERS[item](result.stdout)

    def ping(self, chip, address):
        """(sent, received) of a ping of ``address`` through the port of the chip. Raises Hangs, NoVerdict or NpuError."""
        if not hccn_output.is_address(address):
            raise NpuError("%s is not an IPv4 address" % printable(repr(address), 60))
        result = self._run("-i", str(chip), "-ping", "-g", "address", address)
        counted = hccn_output.ping(result.stdout)
        if counted is None:
            raise NpuError("hccn_tool -i %d -ping -g address %s printed no result: %s" % (chip, address, _told(result.text)))
        return counted

    def _run(self, *arguments):
        """The command.Result of a call that ended and was not refused."""
        deadline = time.monotonic() + self.busy_wait
        while True:
            result = self._call(arguments)
            busy = len(result.text) <= _LONGEST_MESSAGE and any(message in result.text for message in _BUSY)
            if not busy:
                return result
            if time.monotonic() >= deadline:
                raise NoVerdict(
                    "hccn_tool was busy for %d s: another client, such as the exporter, uses it all the time. Try again"
                    % self.busy_wait
                )
            time.sleep(0.2)

    def _call(self, arguments):
        command = "hccn_tool " + " ".join(arguments)
        lib64 = os.path.join(self.tree, "lib64")
        libraries = ":".join((os.path.join(lib64, "driver"), os.path.join(lib64, "common"), lib64))
        lock = self._lock()
        try:
            result = host_command.run(
                [self.path, *arguments], self.timeout, env={"LD_LIBRARY_PATH": libraries}, pass_fds=(lock,), most=MOST_OUTPUT + 1
            )
        except OSError as exc:
            raise NpuError("%s cannot be started: %s. Run npuops.ascend.install" % (self.path, exc.strerror or exc)) from None
        finally:
            os.close(lock)
        if result.timed_out:
            raise Hangs(
                "%s did not end within %d s. Check dmesg; if it hangs in the driver (ps shows state D), reboot the host"
                % (command, self.timeout)
            )
        if max(len(result.stdout), len(result.stderr)) > MOST_OUTPUT:
            raise NpuError("%s printed more than %d KiB, which is not its usual output" % (command, MOST_OUTPUT // 1024))
        return result

    def _lock(self):
        """A file descriptor that holds the lock."""
        try:
            make_directory(os.path.dirname(self.lock))
            return wait_for_lock(self.lock, self.lock_wait, _refuse)
        except OSError as exc:
            raise NoVerdict("The lock %s cannot be used: %s" % (self.lock, exc.strerror)) from None


def _refuse(late):
    if late:
        raise NoVerdict(
            "Another hccn_tool of this collection still runs on this host, so no second one is started. Try again in a minute; if "
            "it hangs in the driver (ps shows state D), reboot the host"
        )


def _told(text):
    return printable(one_line(text[:_LONGEST_MESSAGE]), 200)
