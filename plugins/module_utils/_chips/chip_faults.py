# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fault codes of single chips: asking npu-smi for them, and saying what they mean.

Each chip costs one more npu-smi, so only chips that are not OK are asked for, and not all of them at any price.
"""

from __future__ import annotations

import re
import time

from ansible_collections.npuops.ascend.plugins.module_utils._chips import fault_table
from ansible_collections.npuops.ascend.plugins.module_utils._chips.npu_smi import parse_fields
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NoVerdict, NpuError

MOST_CODES = 8  # of a chip; the worst ones
MOST_CHIPS = 16  # that are asked for in one go
SECONDS = 20.0  # for all of them
_SECONDS_EACH = 10.0
_LARGEST = 65536  # bytes of output; the driver has at most 128 codes of a chip
_SHOWN = 3  # codes in a phrase
_CODE = re.compile(r"(?:0[xX])?([0-9A-Fa-f]{4,8})\Z")
_NONE = ("", "NA")
# An unknown code is between those that withdraw a chip and those that do not.
_RANKS = {level: rank for rank, level in enumerate(fault_table.LEVELS)}
_UNKNOWN_RANK = len(fault_table.KEPT) - 0.5


def parse(text, npu, chip):
    """{codes, codes_left_out} of ``npu-smi info -t health -i <npu> -c <chip>``: at most MOST_CODES codes, the worst first, and how
    many others there are. Raises NpuError for the answer about another chip, and for one that is none."""
    fields = parse_fields(text)
    for name, wanted in (("NPU ID", npu), ("Chip ID", chip)):
        if fields.get(name, str(wanted)) != str(wanted):
            raise NpuError("npu-smi info -t health answered for another chip than %d of NPU %d" % (chip, npu))
    told = fields.get("Error Code")
    if told is None:
        raise NpuError("npu-smi info -t health does not say which fault codes chip %d of NPU %d has" % (chip, npu))
    found = []
    for word in [] if told in _NONE else told.split():
        code = _CODE.match(word)
        if code is None:
            raise NpuError("npu-smi info -t health printed a fault code of chip %d of NPU %d that is none" % (chip, npu))
        found.append(code.group(1).upper())
    # In the order of npu-smi where they are equally bad.
    codes = sorted(dict.fromkeys(found), key=lambda code: -_rank(code))
    return {"codes": codes[:MOST_CODES], "codes_left_out": len(codes[MOST_CODES:])}


def ask(npu_smi, chip):
    """``parse`` of what ``npu_smi`` answers about ``chip`` (of chip_health.view). Raises NpuError."""
    timeout = min(_SECONDS_EACH, npu_smi.timeout)
    where = "-i", str(chip["npu"]), "-c", str(chip["chip"])
    text = npu_smi.run("info", "-t", "health", *where, timeout=timeout, most=_LARGEST + 1)
    if len(text) > _LARGEST:
        raise NpuError("npu-smi info -t health printed more than %d bytes about one chip" % _LARGEST)
    return parse(text, chip["npu"], chip["chip"])


def ask_all(npu_smi, chips, clock=time.monotonic):
    """{index: faults} of those of ``chips`` (of chip_health.view) that are not OK, as far as there is time; {} for a chip of which
    npu-smi does not say it. After one that hangs, or that the machine prevented from running, no other one is started."""
    deadline, answers = clock() + SECONDS, {}
    for number, chip in enumerate(chips):
        if chip["health"] == "OK":
            continue
        if len(answers) == MOST_CHIPS or clock() >= deadline:
            break
        try:
            answers[number] = ask(npu_smi, chip)
        except NoVerdict:
            break
        except NpuError as exc:
            answers[number] = {}
            if exc.details.get("npu_smi", {"status": 0})["status"] is None:
                break
    return answers


def added(chips, answers):
    """``chips`` with ``answers`` (of ask_all)."""
    return [dict(chip, **answers.get(number, {})) for number, chip in enumerate(chips)]


def level(code):
    """The level of the code; None for one that is not in the table."""
    return fault_table.CODES.get(code, (None, ""))[0]


def meaning(code):
    """What the code means; "" for one that is not in the table."""
    return fault_table.CODES.get(code, (None, ""))[1]


def withdrawn(chip):
    """Whether the device plugin withdraws the chip for one of its codes, unless the site has changed its levels."""
    return any(level(code) not in (None, *fault_table.KEPT) for code in chip.get("codes") or ())


def of_network(chip):
    """Those of the chip's codes that are about its network port."""
    return [code for code in chip.get("codes") or () if code in fault_table.NETWORK]


def told(chip):
    """The codes of the chip, with levels and meanings, as a phrase that begins with a space; "" without any."""
    codes = chip.get("codes") or ()
    left_out = len(codes[_SHOWN:]) + (chip.get("codes_left_out") or 0)
    phrases = [_told(code) for code in codes[:_SHOWN]] + (["%d more" % left_out] if left_out else [])
    return " with " + " and ".join(phrases) if phrases else ""


def _told(code):
    return "%s (%s: %s)" % (code, level(code), meaning(code)) if level(code) else code


def _rank(code):
    return _RANKS.get(level(code), _UNKNOWN_RANK)
