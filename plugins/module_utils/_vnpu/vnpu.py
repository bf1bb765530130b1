# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Virtual NPUs (vNPUs): which templates chips have, what pods request, and what npu-smi says about them.

A vNPU has cores, memory and other parts of one chip, as its template says. Sources: templates and IDs from MindCluster's
documentation (docs/zh/scheduling/04_usage/02_virtual_instance, 26.1.0), names of resources from its device plugin
(pkg/common/device.go, 7.3.2 and 26.1.0), tables from npu-smi (npu_chip_info.c, npu_info_print.c of hicann/driver).
"""

from __future__ import annotations

import collections
import re

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, printable

Vnpu = collections.namedtuple("Vnpu", "chip id template")
Vnpu.__doc__ = """``chip``: N of /dev/davinciN; ``id``: N of /dev/vdavinciN; ``template``: its name."""

Found = collections.namedtuple("Found", "vnpu used")
Found.__doc__ = """A Vnpu that exists, and whether the driver says that a container uses it."""

Chip = collections.namedtuple("Chip", "parts found")
Chip.__doc__ = """What npu-smi says of a chip: ``parts``: {part: total}, and the vNPUs that it has, as a list of Found."""

# Template -> what the device plugin adds to the name of the chip's resource.
_SUFFIXES = {
    "vir01": "1c",
    "vir02": "2c",
    "vir02_1c": "2c.1cpu",
    "vir04": "4c",
    "vir04_3c": "4c.3cpu",
    "vir04_3c_ndvpp": "4c.3cpu.ndvpp",
    "vir04_4c_dvpp": "4c.4cpu.dvpp",
    "vir05_1c_8g": "5c.1cpu.8g",
    "vir05_1c_16g": "5c.1cpu.16g",
    "vir06_1c_16g": "6c.1cpu.16g",
    "vir08": "8c",
    "vir10_3c_16g": "10c.3cpu.16g",
    "vir10_3c_16g_nm": "10c.3cpu.16g.ndvpp",
    "vir10_3c_32g": "10c.3cpu.32g",
    "vir10_4c_16g_m": "10c.4cpu.16g.dvpp",
    "vir12_3c_32g": "12c.3cpu.32g",
    "vir16": "16c",
}

TEMPLATE_NAMES = tuple(sorted(_SUFFIXES))

# Family -> the templates that some of its chips have. Which ones a chip has, npu-smi says.
TEMPLATES = {
    "310P": ("vir01", "vir02", "vir02_1c", "vir04", "vir04_3c", "vir04_3c_ndvpp", "vir04_4c_dvpp"),
    "910A": ("vir02", "vir04", "vir08", "vir16"),
    "910B": (
        "vir05_1c_8g",
        "vir05_1c_16g",
        "vir06_1c_16g",
        "vir10_3c_16g",
        "vir10_3c_16g_nm",
        "vir10_3c_32g",
        "vir10_4c_16g_m",
        "vir12_3c_32g",
    ),
    "910C": ("vir05_1c_16g", "vir06_1c_16g", "vir10_3c_32g", "vir12_3c_32g"),
}

_FIRST_ID, _IDS_PER_CHIP = 100, 16
# How many of its IDs a chip has; 310P: fewer than others.
_MOST = {"310P": 8}

# The parts that vNPUs divide, and that must suffice. Memory is not among them: the driver's share of it differs.
PARTS = ("AICORE", "AICPU", "VPC", "VENC", "VDEC", "JPEGD", "JPEGE")

_COLUMNS = ("AICORE", "Memory", "AICPU", "VPC", "VENC", "VDEC", "JPEGD", "JPEGE", "PNGD")
_NAME = re.compile(r"vir[0-9]{2}(?:_[0-9a-z]{1,8}){0,3}\Z")
_NUMBER = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,3})?\Z")
_PAIR = re.compile(r"(?:[0-9]{1,6}|NA)/([0-9]{1,6}|NA)\Z")
_TOTAL = re.compile(r"\|\s*Total number of vnpu:\s*([0-9]{1,4})\s*\|\Z")
_ROW = re.compile(r"\|\s*([0-9]{1,5})\s*\|\s*(?:[0-9]+|NA)\s*\|\s*(?:[0-9a-f]+|NA)\s*\|\s*([0-9]+|NA)\s*\|\s*(\S+)\s*\|\Z")


def resource(chip_resource, template):
    """What pods request for a vNPU. ``chip_resource``: that of the whole chip, as in pci.Family."""
    return "%s-%s" % (chip_resource, _SUFFIXES[template])


def is_of_vnpu(name):
    """Whether the resource ``name`` is that of a vNPU, not of a whole chip."""
    return name.partition("-")[2] in _SUFFIXES.values()


def offered(chip_resource, chips, vnpus):
    """{resource: count} that the device plugin offers for ``chips`` chips that are divided into ``vnpus`` (of Vnpu).

    A chip with vNPUs is not offered as a whole.
    """
    # A record may be of a host that had more chips.
    counts = {chip_resource: max(0, chips - len({vnpu.chip for vnpu in vnpus}))}
    for vnpu in vnpus:
        name = resource(chip_resource, vnpu.template)
        counts[name] = counts.get(name, 0) + 1
    return counts


def ids(family, chip):
    """The IDs that vNPUs of a chip can have. ``family``: its name."""
    first = _FIRST_ID + chip * _IDS_PER_CHIP
    return range(first, first + _MOST.get(family, _IDS_PER_CHIP))


def parse_templates(text):
    """{template: {part: number}} from the output of ``npu-smi info -t template-info``. Raises NpuError."""
    templates = {}
    rows = [line.strip() for line in text.splitlines() if line.strip()]
    try:
        start = next(index for index, row in enumerate(rows) if "====" in row) + 1
    except StopIteration:
        raise _unreadable("template-info", text) from None
    rows = [row.strip("|").split() for row in rows[start:] if not row.startswith("+-")]
    if not rows or len(rows) % 2:
        raise _unreadable("template-info", text)
    for first, second in zip(rows[::2], rows[1::2]):
        numbers = first[1:] + second
        if len(first) != 7 or len(second) != 3 or not _NAME.match(first[0]) or not all(map(_NUMBER.match, numbers)):
            raise _unreadable("template-info", text)
        cores, dummy, aicpu, vpc, venc, jpegd = (float(word) for word in first[1:])
        dummy, vdec, jpege = (float(word) for word in second)
        templates[first[0]] = dict(zip(PARTS, (cores, aicpu, vpc, venc, vdec, jpegd, jpege)))
    return templates


def parse_chip(number, text):
    """The Chip ``number`` from the output of ``npu-smi info -t info-vnpu`` for it. Raises NpuError."""
    rows = [line.strip() for line in text.splitlines() if line.strip()]
    parts = total = None
    found = []
    for row in rows:
        words = row.strip("|").split()
        if parts is None:
            pairs = [_PAIR.match(word) for word in words]
            if len(words) == len(_COLUMNS) and all(pairs):
                shown = dict(zip(_COLUMNS, (pair.group(1) for pair in pairs)))
                parts = {part: int(shown[part]) for part in PARTS if shown[part] != "NA"}
        elif total is None:
            match = _TOTAL.match(row)
            total = int(match.group(1)) if match else None
        elif not row.startswith("+") and "Vnpu ID" not in row:
            match = _ROW.match(row)
            if not match or not _NAME.match(match.group(3)):
                raise _unreadable("info-vnpu", text)
            found.append(Found(Vnpu(number, int(match.group(1)), match.group(3)), match.group(2) != "0"))
    if parts is None or "AICORE" not in parts or total is None or len(found) != total:
        raise _unreadable("info-vnpu", text)
    return Chip(parts, found)


def _unreadable(kind, text):
    return NpuError("npu-smi info -t %s printed something unexpected: %s" % (kind, printable(" ".join(text.split())) or "nothing"))
