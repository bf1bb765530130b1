# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The markers in /run/npuops: whether the driver of this boot is ready, suspended by the agent, or under maintenance."""

from __future__ import annotations

import json
import logging
import os
from typing import Optional

from .changed import Changed
from .files import write_json

READY = "driver-ready"
FAILED = "driver-failed"
SUSPENDED = "driver-suspended"
MAINTENANCE = "maintenance"
STEP = "driver-step"  # what npu-driver.service does while it loads the driver
# The keys that a suspension adds to the marker, and that its end removes.
SINCE, REASON, OUTPUT, PROBES = "since", "reason", "output", "probes"
_ADDED = (SINCE, REASON, OUTPUT, PROBES)
CAUSE = "cause"
_NAMES = (READY, FAILED, SUSPENDED, MAINTENANCE, STEP)
_WITHOUT_CONTENT = (MAINTENANCE, STEP)  # only their existence matters
_LONGEST = 65536  # bytes

log = logging.getLogger(__name__)


class Markers:
    """The markers of this boot, as of the last poll().

    A marker with another boot ID or with invalid content is treated as absent. A marker that cannot be read at the moment (too many
    open files, no memory) keeps its last state, and is read again at the next poll.
    """

    def __init__(self, directory: str, boot_id_file: str, changed: Changed) -> None:
        self._directory = directory
        self._boot_id_file = boot_id_file
        self._changed = changed
        self._boot_id = ""
        self._seen: dict[str, Optional[tuple]] = {}
        self._contents: dict[str, Optional[dict]] = dict.fromkeys(_NAMES)
        self._complaint = ""
        self.ready: Optional[dict] = None
        self.failed: Optional[dict] = None
        self.suspended: Optional[dict] = None
        self.maintenance = False
        self.loading = False
        self.generation = 0  # counts changes of these, including those by this class

    def poll(self) -> None:
        """Read the markers again, and notify if anything changed. Costs a stat call for each if nothing did."""
        before = self._state()
        for name in _NAMES:
            try:
                self._look(name)
            except OSError as exc:
                self._complain("cannot read %s, using its last state: %s" % (self._path(name), exc.strerror))
                break
        else:
            self._complain("")
        self.ready, self.failed, self.suspended = (self._contents[name] for name in (READY, FAILED, SUSPENDED))
        self.maintenance, self.loading = (self._seen.get(name) is not None for name in _WITHOUT_CONTENT)
        if before != self._state():
            self.generation += 1
            self._changed.notify()

    def _state(self) -> tuple:
        return self.ready, self.failed, self.suspended, self.maintenance, self.loading

    def suspend(self) -> None:
        """Rename driver-ready to driver-suspended. Raises OSError; FileNotFoundError if the driver is not ready.

        If the agent dies between this and explain(), the suspended driver has no explanation yet.
        """
        os.rename(self._path(READY), self._path(SUSPENDED))
        self.poll()

    def explain(self, added: dict) -> None:
        """Record in driver-suspended what happened: the keys that a suspension adds. Raises OSError."""
        if self.suspended is not None:
            write_json(self._path(SUSPENDED), {**self.suspended, **added})
            self.poll()

    def resume(self) -> None:
        """Rename driver-suspended to driver-ready, with its original content. Raises OSError.

        If no file can be written, the explanation stays in it, until that of the next suspension replaces it.
        """
        try:
            marker, _ = self._read(SUSPENDED)
        except FileNotFoundError:
            marker = None
        if marker is not None:
            try:
                write_json(self._path(SUSPENDED), {key: value for key, value in marker.items() if key not in _ADDED})
            except OSError as exc:
                log.error("cannot remove from the marker why the driver was suspended: %s", exc)
            os.rename(self._path(SUSPENDED), self._path(READY))
        self.poll()

    def drop_suspended(self) -> None:
        """Remove driver-suspended, which is obsolete after a newer driver-ready or a reboot."""
        if os.path.lexists(self._path(SUSPENDED)):
            os.unlink(self._path(SUSPENDED))
        self.poll()

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, name)

    def _look(self, name: str) -> None:
        """Read the marker if the file differs from the last one that was read. Raises OSError without any change."""
        found: Optional[tuple]
        content: Optional[dict]
        try:
            found = _identity(os.stat(self._path(name)))
            if name in self._seen and found == self._seen[name]:
                return
            content = None
            if name not in _WITHOUT_CONTENT:
                content, found = self._read(name)
        except (FileNotFoundError, NotADirectoryError):
            found = content = None
        self._contents[name], self._seen[name] = content, found

    def _read(self, name: str) -> tuple[Optional[dict], tuple]:
        """The content of the marker (None: not of this boot), and the identity of the file. Raises OSError."""
        boot_id = self._boot()
        with open(self._path(name), "rb") as stream:
            identity = _identity(os.fstat(stream.fileno()))
            text = stream.read(_LONGEST + 1)
        try:
            marker = json.loads(text) if len(text) <= _LONGEST else None
        except (ValueError, RecursionError):
            marker = None
        of_this_boot = isinstance(marker, dict) and boot_id and marker.get("boot_id") == boot_id
        return marker if of_this_boot else None, identity

    def _boot(self) -> str:
        """The ID of this boot, which cannot change while this process runs; "" if there is none. Raises OSError."""
        if not self._boot_id:
            try:
                with open(self._boot_id_file, "rb") as stream:
                    self._boot_id = stream.read(_LONGEST).decode("ascii", "replace").strip()
            except FileNotFoundError:
                return ""
        return self._boot_id

    def _complain(self, text: str) -> None:
        """Log the text once as long as it does not change."""
        if text and text != self._complaint:
            log.error("%s", text)
        self._complaint = text


def _identity(found: os.stat_result) -> tuple:
    return found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size
