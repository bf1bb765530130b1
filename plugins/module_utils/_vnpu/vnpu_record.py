# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of the vNPUs that a host is to have: one line for each, which the boot script also reads.

It is written before the first change, so that whatever interrupts a change, the next boot or the next run completes it. During a
change it also names what is being destroyed, so that a run after an interruption knows that it is ours. After a creation that
failed it names what is missing, so that a run which is not told the layout completes that one.
"""

from __future__ import annotations

import collections
import os
import re

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import make_directory, remove_file, write_atomic
from ansible_collections.npuops.ascend.plugins.module_utils._vnpu.vnpu import Vnpu

PATH = "/var/lib/npuops/vnpu"

Record = collections.namedtuple("Record", "target leaving missing", defaults=((),))
Record.__doc__ = """Sorted lists of Vnpu: what the host is to have, and what a change destroys that has not ended yet; and a tuple
of those that are wanted and could not be created. A boot does not try those: without them the host has a driver at least."""

_HEAD = "# Written by the Ansible collection npuops.ascend: the virtual NPUs of this host. Chip, ID and template of each.\n"
_LEAVING, _MISSING = "destroy ", "missing "
_LINE = re.compile(r"(destroy |missing )?([0-9]{1,4}) ([0-9]{1,5}) (vir[0-9]{2}[0-9a-z_]{0,24})\Z")


def read(fs=""):
    """The Record; without a file, an empty one. Raises NpuError if it is damaged."""
    try:
        with open(fs + PATH, encoding="utf-8", errors="replace") as stream:
            lines = stream.read(65536).splitlines()
    except FileNotFoundError:
        return Record([], [])
    except OSError as exc:
        raise NpuError("%s cannot be read: %s" % (PATH, exc.strerror)) from None
    found = {None: [], _LEAVING: [], _MISSING: []}
    for number, line in enumerate(lines, 1):
        if not line or line.startswith("#"):
            continue
        match = _LINE.match(line)
        if not match:
            raise NpuError(
                "%s, line %d: not a virtual NPU. Correct the line (chip, ID and template), or remove the file if this host is to"
                " have none" % (PATH, number)
            )
        state, chip, number_of_vnpu, template = match.groups()
        found[state].append(Vnpu(int(chip), int(number_of_vnpu), template))
    return Record(sorted(found[None]), sorted(found[_LEAVING]), tuple(sorted(found[_MISSING])))


def exists(fs=""):
    """Whether there is one, also if it is damaged, or only of a change that has not ended."""
    return os.path.lexists(fs + PATH)


def write(record, fs=""):
    """Write the Record; remove the file if it has nothing."""
    path = fs + PATH
    if record == Record([], []):
        if exists(fs):
            remove_file(path)
        return
    make_directory(os.path.dirname(path))
    parts = (("", record.target), (_LEAVING, record.leaving), (_MISSING, record.missing))
    lines = [state + "%d %d %s\n" % vnpu for state, vnpus in parts for vnpu in vnpus]
    write_atomic(path, _HEAD + "".join(lines), 0o644)
