# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The markers in /run/npuops: is the driver of this boot ready, suspended by us, under maintenance?"""

from __future__ import annotations

import json
import os
from typing import Optional

from .changed import Changed
from .files import write_json

READY = "driver-ready"
SUSPENDED = "driver-suspended"
MAINTENANCE = "maintenance"
# What suspending adds to the marker, and taking it back removes.
SINCE, REASON, OUTPUT, PROBES = "since", "reason", "output", "probes"
_ADDED = (SINCE, REASON, OUTPUT, PROBES)


class Markers:
    """The markers of this boot, as last seen by poll().

    A marker with another boot ID, or one that cannot be read, counts as absent.
    """

    def __init__(self, directory: str, boot_id_file: str, changed: Changed) -> None:
        self._directory = directory
        self._boot_id_file = boot_id_file
        self._changed = changed
        self._seen: Optional[dict] = None
        self.ready: Optional[dict] = None
        self.suspended: Optional[dict] = None
        self.maintenance = False
        self.generation = 0  # counts the changes of the three, also those made here

    @property
    def boot_id(self) -> str:
        """This boot's ID; "" when it cannot be read, which matches no marker."""
        try:
            with open(self._boot_id_file, encoding="ascii") as stream:
                return stream.read().strip()
        except (OSError, ValueError):
            return ""

    def poll(self) -> None:
        """Look again, and ring when something is different. Costs three stat calls when nothing is."""
        seen = {name: _identity(self._path(name)) for name in (READY, SUSPENDED, MAINTENANCE)}
        if seen == self._seen:
            return
        before = (self.ready, self.suspended, self.maintenance)
        self._seen = seen
        self.ready = self._read(READY)
        self.suspended = self._read(SUSPENDED)
        self.maintenance = seen[MAINTENANCE] is not None
        if before != (self.ready, self.suspended, self.maintenance):
            self.generation += 1
            self._changed.notify()

    def suspend(self) -> None:
        """driver-ready becomes driver-suspended. Raises OSError; FileNotFoundError when the driver is not ready.

        Dying between this and explain() leaves a suspended driver that nobody has explained yet.
        """
        os.rename(self._path(READY), self._path(SUSPENDED))
        self.poll()

    def explain(self, since: str, reason: str, output: str, probes: int) -> None:
        """Write down in driver-suspended what happened. Raises OSError."""
        if self.suspended is not None:
            write_json(self._path(SUSPENDED), {**self.suspended, SINCE: since, REASON: reason, OUTPUT: output, PROBES: probes})
            self.poll()

    def resume(self) -> None:
        """driver-suspended becomes driver-ready as it was. Raises OSError."""
        marker = self._read(SUSPENDED)
        if marker is not None:
            write_json(self._path(SUSPENDED), {key: value for key, value in marker.items() if key not in _ADDED})
            os.rename(self._path(SUSPENDED), self._path(READY))
        self.poll()

    def drop_suspended(self) -> None:
        """Remove driver-suspended: a newer driver-ready, or another boot, has overtaken it."""
        if os.path.lexists(self._path(SUSPENDED)):
            os.unlink(self._path(SUSPENDED))
        self.poll()

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, name)

    def _read(self, name: str) -> Optional[dict]:
        try:
            with open(self._path(name), encoding="utf-8") as stream:
                marker = json.load(stream)
        except (OSError, ValueError):
            return None
        boot_id = self.boot_id
        return marker if isinstance(marker, dict) and boot_id and marker.get("boot_id") == boot_id else None


def _identity(path: str) -> Optional[tuple]:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size
