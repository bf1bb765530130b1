# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Translate an Allocate response of the upstream plugin to CDI device names. ascend_runtime.py does it for the other runtime."""

from __future__ import annotations

import re
from typing import Callable, Iterable, NamedTuple

from ansible_collections.npuops.ascend.plugins.module_utils._containerd.cdi_spec import KIND

from . import api, wire

VISIBLE_DEVICES = "ASCEND_VISIBLE_DEVICES"

_CHIP_PATH = re.compile(r"/dev/v?davinci([0-9]+)")
# The plugin writes "0,3"; ascend-docker-runtime also accepts ranges and names, so they are accepted here. In a name, a second
# number is no end of a range: Ascend310P-0-3 is one of the devices that share chip 0.
_CHIP_ENTRY = re.compile(r"(?:Ascend[0-9A-Za-z]*-([0-9]+)(?:-[0-9]+)?|([0-9]+)(?:-([0-9]+))?)")
_LARGEST_RANGE = 1024


class TranslateError(ValueError):
    """The response specifies its chips in an unknown format. The container would start without them."""


class Provided(NamedTuple):
    """What CDI provides to a container: host paths of device nodes, and (host path, container path) of mounts."""

    devices: frozenset
    mounts: frozenset


NOTHING = Provided(frozenset(), frozenset())


def allocate(answer: bytes, provided_by: Callable[[list], Provided]) -> tuple[bytes, list]:
    """Translate an AllocateResponse.

    ``provided_by`` returns what the CDI devices with the given names ("0", "100") provide to a container.
    Returns the new message and the qualified CDI names per container. Raises WireError, TranslateError.
    """
    fields, names = [], []
    for field in wire.decode(answer):
        if field.number == api.CONTAINER_RESPONSES and field.kind == wire.BYTES:
            container, container_names = _container(wire.content(field), provided_by)
            field = wire.blob(api.CONTAINER_RESPONSES, container)
            names.append(container_names)
        fields.append(field)
    return wire.encode(fields), names


def _container(message: bytes, provided_by: Callable[[list], Provided]) -> tuple[bytes, list]:
    fields = wire.decode(message)
    own = [wire.text(wire.decode(device), api.CDI_NAME) for device in wire.messages(fields, api.CDI_DEVICES)]
    if own:
        return message, own  # the plugin already uses CDI devices
    chips = chips_of(fields)
    if not chips:
        return message, []
    provided = provided_by(chips)
    kept = [field for field in fields if not _superfluous(field, provided)]
    names = ["%s=%s" % (KIND, chip) for chip in chips]
    devices = [wire.blob(api.CDI_DEVICES, wire.encode([wire.blob(api.CDI_NAME, name)])) for name in names]
    return wire.encode(kept + devices), names


def chips_of(fields: list) -> list:
    """Chip numbers as text, without duplicates, in the order of the response."""
    chips = []
    for spec in wire.messages(fields, api.DEVICE_SPECS):
        match = _CHIP_PATH.fullmatch(wire.text(wire.decode(spec), api.HOST_PATH))
        if match:
            chips.append(match.group(1))
    for entry in wire.messages(fields, api.ENVS):
        pair = wire.decode(entry)
        if wire.text(pair, api.MAP_KEY) == VISIBLE_DEVICES:
            chips.extend(_visible(wire.text(pair, api.MAP_VALUE)))
    return list(dict.fromkeys(str(int(chip)) for chip in chips))


def _visible(value: str) -> Iterable[str]:
    """Chip numbers in the value of ASCEND_VISIBLE_DEVICES. Raises TranslateError."""
    chips: list = []
    if value.strip() in ("", "void"):
        return chips
    for entry in value.split(","):
        match = _CHIP_ENTRY.fullmatch(entry.strip())
        if not match:
            raise TranslateError("%s=%r: %r is not a chip" % (VISIBLE_DEVICES, value, entry))
        named, begin, end = match.groups()
        first, last = int(named or begin), int(named or end or begin)
        if not first <= last < first + _LARGEST_RANGE:
            raise TranslateError("%s=%r: %r is not a range of chips" % (VISIBLE_DEVICES, value, entry))
        chips.extend(str(chip) for chip in range(first, last + 1))
    return chips


def _superfluous(field: wire.Field, provided: Provided) -> bool:
    """Whether the container would get this twice. This includes the variable, because another runtime hook acts on it."""
    if field.number == api.ENVS:
        return wire.text(wire.decode(wire.content(field)), api.MAP_KEY) == VISIBLE_DEVICES
    if field.number == api.DEVICE_SPECS:
        return wire.text(wire.decode(wire.content(field)), api.HOST_PATH) in provided.devices
    if field.number == api.MOUNTS:
        mount = wire.decode(wire.content(field))
        return (wire.text(mount, api.HOST_PATH), wire.text(mount, api.CONTAINER_PATH)) in provided.mounts
    return False
