# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What became of the last write of firmware into the chips of this host.

/var/lib/npuops/firmware       {"state", "release", "version", "sha256", "generation", "boot_id", "reason"}
/var/lib/npuops/firmware.log   what the package printed
"""

from __future__ import annotations

import json
import os

from ansible_collections.npuops.ascend.plugins.module_utils._host import systemd, transient_unit
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import printable
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import make_directory, read_object, read_text, write_atomic

STATE = "/var/lib/npuops/firmware"
LOG = "/var/lib/npuops/firmware.log"
UNIT = "npuops-firmware.service"

# WRITTEN: the next boot has it.
WRITING, WRITTEN, FAILED = "writing", "written", "failed"
STATES = (WRITING, WRITTEN, FAILED)
_FIELDS = ("state", "release", "version", "sha256", "generation", "boot_id", "reason")

# Seconds that the package may take. Huawei's own deployment tool sets no limit; eight chips take some minutes.
LIMIT = 1800
# Huawei's deployment tool accepts both: 2 is a success that asks for a reboot.
_SUCCESS = (0, 2)
_LAST_OUTPUT = 300  # characters


def stored(fs=""):
    """The last write as it is on disk, or None if there was none."""
    found = read_object(fs + STATE)
    if found is None or found.get("state") not in STATES:
        return None
    return {key: found.get(key) for key in _FIELDS}


def view(boot_id, fs=""):
    """The last write as it is now, in the boot ``boot_id``, or None if there was none. Changes nothing."""
    found = stored(fs)
    if found is None or found["state"] != WRITING:
        # The file may be damaged or removed: whether the unit runs counts.
        if os.path.lexists(fs + LOG) and transient_unit.runs(systemd.show(UNIT, "ActiveState", "SubState")):
            known = found or dict.fromkeys(_FIELDS)
            return dict(known, state=WRITING, reason=None, boot_id=boot_id, version=known["version"] or "unknown")
        return found
    if found["boot_id"] != boot_id:
        return dict(found, state=FAILED, reason="the host went down while the firmware %s was written" % found["version"])
    return dict(found, **_of_unit(fs))


def never_began(fs=""):
    """Whether the run that announced the write ended before it could start the package."""
    return not os.path.lexists(fs + LOG) and systemd.show(UNIT, "ActiveState").get("ActiveState") in (None, "inactive")


def save(found, fs=""):
    """Write the state to disk."""
    make_directory(os.path.dirname(fs + STATE))
    write_atomic(fs + STATE, json.dumps({key: found.get(key) for key in _FIELDS}, sort_keys=True) + "\n", 0o644)


def _of_unit(fs):
    """{state, reason} of the package that was started in this boot."""
    end = transient_unit.end(UNIT)
    if end is None:
        return {"state": WRITING, "reason": None}
    if end.code in _SUCCESS:
        return {"state": WRITTEN, "reason": None}
    if end.timed_out:
        why = "the package did not end within %d s and was stopped" % LIMIT
    elif end.code is None:
        why = "it is not known how the package ended (%s is %s)" % (UNIT, end.active)
    else:
        why = "the package failed with exit status %d" % end.code
    text = " ".join((read_text(fs + LOG) or "").split())
    return {"state": FAILED, "reason": why + (": %s" % printable(text[-_LAST_OUTPUT:]) if text else "")}
