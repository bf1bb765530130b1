# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host's CDI spec, read-only: what a container gets from it."""

from __future__ import annotations

import json
import os
from typing import Optional

from .translate import NOTHING, Provided


class SpecFile:
    """The spec at ``path``, which is read again when the file was replaced."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._identity: Optional[tuple] = None
        self._spec: dict = {}

    def load(self) -> dict:
        """The spec; raises OSError or ValueError if it cannot be read."""
        found = os.stat(self.path)
        identity = (found.st_ino, found.st_mtime_ns, found.st_size)
        if identity != self._identity:
            with open(self.path, encoding="utf-8") as stream:
                spec = json.load(stream)
            if not isinstance(spec, dict) or not isinstance(spec.get("devices"), list):
                raise ValueError("%s is not a CDI spec" % self.path)
            self._identity, self._spec = identity, spec
        return self._spec

    def provided_by(self, names: list) -> Provided:
        """What the devices ``names`` provide; NOTHING if the spec cannot be read.

        A container with CDI devices does not start without a spec, and starts without intervention when there is one.
        """
        try:
            spec = self.load()
            edits = [spec.get("containerEdits")]
            edits += [device.get("containerEdits") for device in spec["devices"] if device.get("name") in names]
            nodes = [node for edit in edits if edit for node in edit.get("deviceNodes") or ()]
            mounts = [mount for edit in edits if edit for mount in edit.get("mounts") or ()]
            return Provided(
                frozenset(node.get("hostPath") or node["path"] for node in nodes),
                frozenset((mount["hostPath"], mount["containerPath"]) for mount in mounts),
            )
        except (OSError, ValueError, KeyError, AttributeError, TypeError):
            return NOTHING
