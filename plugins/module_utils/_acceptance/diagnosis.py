# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run ascend-dmi on this host, in a unit of systemd that outlives the connection, and tell what became of it.

/var/lib/npuops/acceptance       of the last acceptance with a diagnosis: {"level", "boot_id", "began", "findings", "image",
                                 "found", "result"}
/var/lib/npuops/acceptance.log   what the diagnosis prints

image: None for a ToolBox on the host, or {"name", "pulls", "pulled"}: NAME@DIGEST, how many pulls were begun, whether one was good.
found: the findings of the diagnosis, when it has ended and its image is removed; None before.
result: what the call that saw the end has returned; kept, because that answer may have been lost on its way. Missing before.
"""

from __future__ import annotations

import json
import os

from ansible_collections.npuops.ascend.plugins.module_utils._acceptance import ascend_dmi, image_traces
from ansible_collections.npuops.ascend.plugins.module_utils._acceptance.verdicts import PASS, UNKNOWN, finding
from ansible_collections.npuops.ascend.plugins.module_utils._host import boot as host_boot
from ansible_collections.npuops.ascend.plugins.module_utils._host import transient_unit
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, printable
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import (
    make_directory,
    read_object,
    read_untrusted,
    remove_file,
    write_atomic,
)

STATE = "/var/lib/npuops/acceptance"
LOG = "/var/lib/npuops/acceptance.log"
UNIT = image_traces.UNIT
NAME = "ascend-dmi"

_FIELDS = {"level": int, "boot_id": str, "began": str, "findings": list}
_IMAGE = {"name": str, "pulls": int, "pulled": bool}
_MOST_OUTPUT = 2**20
_LAST_OUTPUT = 300  # characters


def waiting(fs=""):
    """The acceptance whose diagnosis was started, as it is on disk; None if there is none, or if it has ended."""
    whole = read_object(fs + STATE)
    kept = _with(whole, _FIELDS)
    if kept is None or whole.get("result") is not None:
        return None
    image, found = _with(whole.get("image"), _IMAGE), whole.get("found")
    if whole.get("image") is not None and image is None:
        return None
    return dict(kept, image=image, found=found if isinstance(found, list) else None)


def _with(found, fields):
    """The ``fields`` of the dict ``found``; None if it is none, or one has another type."""
    if not isinstance(found, dict) or not all(isinstance(found.get(key), kind) for key, kind in fields.items()):
        return None
    return {key: found[key] for key in fields}


def remember(acceptance, fs=""):
    """Write the ``acceptance`` to the disk, before anything of it is started."""
    make_directory(os.path.dirname(fs + STATE))
    write_atomic(fs + STATE, json.dumps(acceptance, sort_keys=True) + "\n", 0o644)


def start(acceptance, argv, fs="", properties=()):
    """Start ``argv`` for the ``acceptance``, which is on disk before; ``properties``: of the unit. Raises NpuError."""
    remember(acceptance, fs)
    if os.path.lexists(fs + LOG):
        remove_file(fs + LOG)
    limit = ascend_dmi.LIMITS[acceptance["level"]]
    result = transient_unit.start(UNIT, "Accept the NPUs of this host", fs + LOG, limit, argv, properties)
    if result.rc is None:
        # systemd may start it still.
        raise NpuError("It is not known whether ascend-dmi runs: systemd-run did not respond within 20 s. Run accept again")
    if result.rc != 0:
        remove_file(fs + STATE)
        raise NpuError("ascend-dmi was not started: systemd-run: %s" % (result.text or "no output"))


def went_down(acceptance, fs=""):
    """The findings of an ``acceptance`` during which the host went down, None if it did not."""
    if acceptance["boot_id"] == host_boot.boot_id(fs):
        return None
    return [finding(NAME, acceptance["level"], UNKNOWN, "the host went down during the diagnosis", "Run accept again")]


def result(acceptance, fs=""):
    """The findings of the diagnosis of ``acceptance``, or None while it runs."""
    level = acceptance["level"]
    found = went_down(acceptance, fs)
    if found:
        return found
    end = transient_unit.end(UNIT)
    if end is None:
        return None
    try:
        text = (read_untrusted(fs + LOG, _MOST_OUTPUT) or b"").decode("utf-8", "replace")
    except OSError as exc:
        return [finding(NAME, level, UNKNOWN, "its output cannot be read: %s" % exc, "Run accept again")]
    found = ascend_dmi.findings(text, level)
    if end.code == 0 and found:
        return found
    if end.timed_out:
        why = "did not end within %d s and was stopped" % ascend_dmi.LIMITS[level]
    elif end.code is None:
        why = "ended in an unknown way (%s is %s)" % (UNIT, end.active)
    else:
        why = "ended with exit status %d" % end.code
        # An item that fails may be its exit status.
        if any(entry["verdict"] != PASS for entry in found):
            return found
    last = printable(" ".join(text.split())[-_LAST_OUTPUT:])
    seen = "it %s%s" % (why, ": %s" % last if last else "")
    return [*found, finding(NAME, level, UNKNOWN, seen, "See %s on the host" % LOG)]


def end(acceptance, result, fs=""):
    """The ``acceptance`` is over, with this ``result``."""
    remember(dict(acceptance, result=result), fs)
    transient_unit.stop(UNIT)


def ended(began, fs=""):
    """The result of the acceptance that began at ``began``, if it is the last one that has ended; None otherwise."""
    whole = _with(read_object(fs + STATE), {"began": str, "result": dict})
    return whole["result"] if whole and whole["began"] == began else None
