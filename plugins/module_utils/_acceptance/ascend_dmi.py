# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ascend-dmi, the diagnosis in MindCluster's ToolBox: where it is, how it is called, and what it prints.

Sources: hiascend.com, MindCluster 6.0.0, 7.3.0 and 26.1.0, ToolBox User Guide, "One-Click Diagnosis", "Common Parameters" and the
pages of the single items.
"""

from __future__ import annotations

import os
import re
import stat

from ansible_collections.npuops.ascend.plugins.module_utils._acceptance.verdicts import FAIL, PASS, UNKNOWN, WARNING, finding
from ansible_collections.npuops.ascend.plugins.module_utils._host import process as host_process
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, printable

TOOLBOX = "/usr/local/Ascend/toolbox"
# By level. healthCheck takes up to 2 minutes, performanceCheck up to 3 hours, stressTest up to 9.5 hours.
SCENES = {2: ("healthCheck",), 3: ("healthCheck", "performanceCheck", "stressTest")}
LIMITS = {2: 900, 3: 50400}  # seconds

_PROGRAMS = ("latest/Ascend-DMI/bin/ascend-dmi", "Ascend-DMI/bin/ascend-dmi")
_WORDS = {
    "PASS": PASS,
    "HEALTH": PASS,
    "WARN": WARNING,
    "GENERAL_WARN": WARNING,
    "IMPORTANT_WARN": FAIL,
    "EMERGENCY_WARN": FAIL,
    "FAIL": FAIL,
}
_GROUP = re.compile(r"([A-Za-z][A-Za-z ]{0,31}):\s*\Z")
_ITEM = re.compile(r"\s{1,8}([A-Za-z][A-Za-z0-9_ -]{0,31}):\s*\Z")
_MOST_ITEMS = 64
_MOST_DETAILS = 8  # lines of one item
_MOST_LETTERS = 300  # of one line


def command(toolbox, level, fs=""):
    """The arguments of the diagnosis of ``level``, for the ToolBox in the directory ``toolbox``.

    Raises NpuError if there is no ToolBox, or if others than root could have changed what is run.
    """
    programs = [os.path.join(toolbox, name) for name in _PROGRAMS]
    program = next((path for path in programs if os.path.isfile(fs + path)), None)
    if program is None:
        raise NpuError(
            "this host has no ascend-dmi (searched for %s). Install MindCluster's ToolBox (Ascend-mindx-toolbox_*.run), or set "
            "npu_accept_toolbox to its directory" % ", ".join(programs)
        )
    scripts = [path for path in (os.path.join(toolbox, "set_env.sh"), _toolkit(toolbox)) if os.path.isfile(fs + path)]
    for path in [program, *scripts]:
        _check_owner(fs + path)
    argv = [program, "--dg", "--se", ",".join(SCENES[level]), "-q"]
    # Only these scripts know where the libraries of a version are.
    return ["bash", "-c", 'while [ "$1" != -- ]; do . "$1"; shift; done; shift; exec "$@"', "bash", *scripts, "--", *argv]


def _toolkit(toolbox):
    """CANN's script, which stands beside the ToolBox."""
    return os.path.join(os.path.dirname(toolbox.rstrip("/")), "ascend-toolkit", "set_env.sh")


def _check_owner(path):
    why = host_process.unsafe(path)
    if why is None and os.stat(path).st_mode & stat.S_IWGRP:
        why = "%s may be written by its group" % path
    if why:
        raise NpuError("%s, so %s is not run as root: chown root:root and chmod go-w it" % (why, path))


def findings(text, level):
    """What the diagnosis has found, one ``finding`` for each item that it prints; ``text``: its output, from which at most 64 items
    are read.
    """
    items = []  # (name, its lines)
    group, lines = None, []  # what no item has is dropped
    for line in text.splitlines():
        head, name = _GROUP.match(line), _ITEM.match(line)
        if head:
            group, lines = head.group(1), []
        elif name and group not in (None, "Summary"):
            lines = []
            items.append((name.group(1), lines))
        elif line.strip():
            lines.append(line)
    return [_of_item(name, lines, level) for name, lines in items[:_MOST_ITEMS]]


def _of_item(item, lines, level):
    word = lines[0].strip() if lines else ""
    details = [printable(line.strip())[:_MOST_LETTERS] for line in lines[1 : 1 + _MOST_DETAILS]]
    verdict = _WORDS.get(word, UNKNOWN)
    seen = "; ".join([printable(word)[:_MOST_LETTERS] or "nothing", *details])
    return finding("ascend-dmi %s" % item, level, verdict, seen)
