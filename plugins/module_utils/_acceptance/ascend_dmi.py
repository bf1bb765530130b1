# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ascend-dmi, the diagnosis in MindCluster's ToolBox: where it is, how it is called, and what it prints.

Sources: hiascend.com, MindCluster 6.0.0, 7.3.0 and 26.1.0, ToolBox User Guide, "One-Click Diagnosis", "Common Parameters",
"Environment Configuration" and the pages of the single items.
"""

from __future__ import annotations

import os
import re
import shlex
import stat

from ansible_collections.npuops.ascend.plugins.module_utils._acceptance.verdicts import FAIL, PASS, UNKNOWN, WARNING, finding
from ansible_collections.npuops.ascend.plugins.module_utils._host import process as host_process
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, printable

TOOLBOX = "/usr/local/Ascend/toolbox"
# By level. healthCheck takes up to 2 minutes, performanceCheck up to 3 hours, stressTest up to 9.5 hours.
SCENES = {2: ("healthCheck",), 3: ("healthCheck", "performanceCheck", "stressTest")}
LIMITS = {2: 900, 3: 50400}  # seconds

_PROGRAMS = ("latest/Ascend-DMI/bin/ascend-dmi", "Ascend-DMI/bin/ascend-dmi")
# What is cut off of a long output is its beginning.
_NONE_IN_IMAGE = (
    "searched for %s: the image has no ascend-dmi. Set npu_accept_toolbox to the directory of MindCluster's ToolBox in it"
)
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
    programs = _programs(toolbox)
    program = next((path for path in programs if os.path.isfile(fs + path)), None)
    if program is None:
        raise NpuError(
            "this host has no ascend-dmi (searched for %s). Install MindCluster's ToolBox (Ascend-mindx-toolbox_*.run), or set "
            "npu_accept_toolbox to its directory" % ", ".join(programs)
        )
    scripts = [next((path for path in paths if os.path.isfile(fs + path)), None) for paths in _scripts(toolbox)]
    scripts = [path for path in scripts if path]
    for path in [program, *scripts]:
        _check_owner(fs + path)
    # Only these scripts know where the libraries of a version are.
    words = ["bash", *scripts, "--", program, *_arguments(level)]
    return ["bash", "-c", 'while [ "$1" != -- ]; do . "$1"; shift; done; shift; exec "$@"', *words]


def command_in_image(toolbox, level, library_path):
    """The same in a container, where ``toolbox`` is its directory. Only the container knows whether there is one.

    ``library_path``: where the driver's libraries are.
    """
    lines = [
        # containerd's default is 1024.
        "ulimit -n 65536 2>/dev/null",
        *('for file in %s; do [ ! -f "$file" ] || { . "$file"; break; }; done' % _words(paths) for paths in _scripts(toolbox)),
        'export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}%s"' % library_path,
    ]
    for path in map(shlex.quote, _programs(toolbox)):
        lines.append("[ ! -f %s ] || exec %s %s" % (path, path, _words(_arguments(level))))
    lines.append("echo %s; exit 127" % shlex.quote(_NONE_IN_IMAGE % " and ".join(_programs(toolbox))))
    return ["bash", "-c", "\n".join(lines)]


def _words(texts):
    return " ".join(map(shlex.quote, texts))


def _programs(toolbox):
    return [os.path.join(toolbox, name) for name in _PROGRAMS]


def _scripts(toolbox):
    """The script of ToolBox, and that of CANN, which stands beside it: each as the paths where it may be, the first one first."""
    beside = os.path.dirname(toolbox.rstrip("/"))
    # Since CANN 8.5, its directory is cann.
    return [[toolbox + "/set_env.sh"], [os.path.join(beside, name, "set_env.sh") for name in ("cann", "ascend-toolkit")]]


def _arguments(level):
    return ["--dg", "--se", ",".join(SCENES[level]), "-q"]


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
