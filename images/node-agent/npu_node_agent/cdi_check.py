# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check that the CDI spec fits this host. The agent only reports problems; only the collection's module writes the spec."""

from __future__ import annotations

import os
import re
from typing import Iterator, NamedTuple, Optional

from ansible_collections.npuops.ascend.plugins.module_utils._chips import chip_memory, pci
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import cdi_spec
from ansible_collections.npuops.ascend.plugins.module_utils._runtime import runtime_mode

from .cdi_spec import SpecFile

_DEVICE = re.compile(r"v?davinci([0-9]+)")


class HostPaths(NamedTuple):
    """The paths at which the agent sees the host's device nodes, its driver tree (through the link), how it gives chips, its PCI
    functions, and which chips install has recorded.
    """

    dev_dir: str
    driver_tree: str
    mode_file: str = runtime_mode.PATH
    pci_devices: str = "/sys/bus/pci/devices"
    memory: str = chip_memory.PATH


def problems(spec: SpecFile, host: HostPaths, marker: Optional[dict]) -> list:
    """What is wrong, as sentences; empty if the spec fits the chips and the ready driver (``marker``), or if CDI is not used."""
    found: list = []
    try:
        if runtime_mode.read(host.mode_file) == runtime_mode.ASCEND:
            return []
        found = list(_others(spec))
        document = spec.load()
        return [*found, *_kind(document), *_devices(document, host), *_mounts(document, host), *_release(host, marker)]
    except OSError as exc:
        return [*found, "it cannot be checked: %s" % exc]
    except (ValueError, TypeError, AttributeError, KeyError) as exc:
        return [*found, "%s is not a CDI spec: %s" % (spec.path, exc)]


def _others(spec: SpecFile) -> Iterator[str]:
    """One invalid file in the directory makes all CDI devices of the host unusable."""
    directories = cdi_spec.directories_of(spec.path)
    for path in cdi_spec.unreadable(directories):
        if path != spec.path:
            yield "%s in the same directory is invalid, so containerd cannot resolve any CDI device: remove it" % path
    for path in cdi_spec.other_writers(spec.path, directories):
        yield "%s describes devices of the same kind, so containerd resolves neither: remove it" % path


def _kind(document: dict) -> Iterator[str]:
    if document.get("kind") != cdi_spec.KIND:
        yield "its kind is %r, not %s" % (document.get("kind"), cdi_spec.KIND)


def _devices(document: dict, host: HostPaths) -> Iterator[str]:
    chips = {match.group(1) for match in map(_DEVICE.fullmatch, os.listdir(host.dev_dir)) if match}
    names = {str(device["name"]) for device in document["devices"] if str(device["name"]).isdigit()}
    for chip in sorted(chips - names, key=int):
        yield "chip %s has a device node, but no entry" % chip
    absent = sorted(names - chips, key=int)
    # It still describes chips that are missing since install. What containers get of the other chips is the same.
    if absent and len(absent) > _missing(host):
        for name in absent:
            yield "chip %s has an entry, but no device node" % name


def _missing(host: HostPaths) -> int:
    """How many of the chips that install has recorded are missing from the PCI bus."""
    try:
        recorded = sum(chip_memory.read(host.memory).values())
    except OSError:
        return 0  # pods can write beside it
    return max(0, recorded - pci.chip_count(pci.chip_functions(host.pci_devices)))


def _mounts(document: dict, host: HostPaths) -> Iterator[str]:
    """Checks only paths in the driver tree, because the agent sees no others."""
    tree = host.driver_tree.rstrip("/") + "/"
    edits = [
        document.get("containerEdits") or {},
        *(device.get("containerEdits") or {} for device in document["devices"]),
    ]
    paths = {mount["hostPath"] for edit in edits for mount in edit.get("mounts") or ()}
    for path in sorted(paths):
        if (path + "/").startswith(tree) and not os.path.exists(path):
            yield "%s, which it mounts, does not exist" % path


def _release(host: HostPaths, marker: Optional[dict]) -> Iterator[str]:
    """The spec goes through the link, so the link must point to the loaded release."""
    release = (marker or {}).get("release")
    if not release or not os.path.islink(host.driver_tree):
        return
    named = os.path.basename(os.path.dirname(os.readlink(host.driver_tree)))
    if named != release:
        yield "it points to the release %s, but %s is loaded" % (named, release)
