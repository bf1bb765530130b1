# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What to tell of a host on which no module runs: Ansible's own wrapper is already too new for an old Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Where npu_python puts a Python of our own.
INTERPRETER = "/var/lib/npuops/python/current/python3"

_NEEDED = "Host modules need Python 3.8 or newer"
_CURE = (
    "Install one there and name it in ansible_python_interpreter, or set that to %s for this host: then install brings one"
    % INTERPRETER
)
_OURS_IS_MISSING = "Its Python comes with install, which has not been run on it, or not to its end. Run npuops.ascend.install"


def explain(result: Mapping[str, Any]) -> str | None:
    """Why a module gave no result of its own, as a sentence, from Ansible's ``result`` (a dict); None when it did."""
    message, output = str(result.get("msg") or ""), str(result.get("module_stderr") or "")
    if INTERPRETER in output + message and (result.get("rc") == 127 or "not found" in output + message):
        return "no Python is there yet (%s). %s" % (_last_line(output) or message.rstrip("."), _OURS_IS_MISSING)
    if result.get("rc") in (126, 127) or "interpreter" in message and "not found" in message:
        return "no Python can be run there (%s). %s. %s" % (_last_line(output) or message.rstrip("."), _NEEDED, _CURE)
    if "requires a minimum of Python" in output + message or "SyntaxError" in output:
        return "its Python is too old (%s). %s. %s" % (_last_line(output) or message.rstrip("."), _NEEDED, _CURE)
    if "deserialization failed" in message and output:
        return "%s (%s)" % (message.rstrip("."), _last_line(output))
    return None


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else ""
