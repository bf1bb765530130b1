# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What driver images and packages hold: their size, and the firmware that they bring. Each is asked for once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ansible_collections.npuops.ascend.plugins.module_utils._firmware import firmware as driver_firmware
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import Brings, StagedFirmware
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.planned_node import PlannedNode
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.rollout_settings import Lookups
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight import firmware_package
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight.firmware_package import FirmwareContents

_T = TypeVar("_T")


class DriverContents:
    def __init__(self, lookups: Lookups) -> None:
        self._lookups = lookups
        self._sizes: dict[tuple[Any, ...], int | NpuError] = {}
        self._images: dict[tuple[Any, ...], Brings | NpuError | None] = {}
        self._packages: dict[tuple[Any, ...], FirmwareContents | NpuError] = {}

    def image_size(self, entry: PlannedNode) -> int:
        """Bytes. Raises NpuError."""
        checked, key = entry.checked, _image_of(entry)
        return _once(self._sizes, key, lambda: self._lookups.size(key[0], key[1], checked.config, key[2]))

    def firmware(self, entry: PlannedNode, release: str) -> Brings | None:
        """What the node gets with its driver, staged as ``release`` if it is; None for nothing. Raises NpuError."""
        staged = ((entry.facts.get("upgrade") or {}).get("staged") or {}).get(release)
        if entry.checked.package:
            # What an earlier run has staged does not count by itself: the settings say what is to be there.
            return self._of_package(entry, (staged or {}).get("brings"))
        return staged.get("brings") if staged else self._of_image(entry)

    def _of_image(self, entry: PlannedNode) -> Brings | None:
        checked, lookup, key = entry.checked, self._lookups.firmware, _image_of(entry)
        if lookup is None or not checked.image:
            return None
        return _once(self._images, key, lambda: lookup(key[0], key[1], checked.config, key[2]))

    def _of_package(self, entry: PlannedNode, staged: StagedFirmware | None) -> Brings | None:
        config = entry.checked.config
        source = firmware_package.source_of(config)
        if source is None:
            return None
        entry.firmware_package = source.name
        family = (entry.facts.get("family") or {}).get("key")
        driver_firmware.check_chip(driver_firmware.file_name(source.name, ""), family)
        if staged and "sha256:%s" % staged.get("sha256") == source.digest:
            return staged
        key = (source, config["driver_signature_policy"], str(config["driver_signature_keys"]))
        found = _once(self._packages, key, lambda: self._lookups.firmware_package(source, config))
        # It is on the host twice while it is staged.
        entry.firmware_space = 2 * found.size
        return {"version": found.version, "drivers": list(found.drivers)}


def _image_of(entry: PlannedNode) -> tuple[str, str, str | None]:
    """(reference, digest, machine)."""
    return entry.checked.image or "", entry.checked.digest or "", entry.facts.get("machine")


def _once(known: dict[tuple[Any, ...], _T | NpuError], key: tuple[Any, ...], ask: Callable[[], _T]) -> _T:
    """What ``ask`` says, asked for once. Raises NpuError."""
    if key not in known:
        try:
            known[key] = ask()
        except NpuError as exc:
            known[key] = exc
    found = known[key]
    if isinstance(found, NpuError):
        raise found
    return found
