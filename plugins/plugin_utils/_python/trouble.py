# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Explain why modules cannot run on a host without a suitable Python. Even Ansible's own wrapper fails with an old Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Where npu_python installs its Python.
INTERPRETER = "/var/lib/npuops/python/current/python3"

_NEEDED = "Host modules need Python 3.8 or newer"
_CURE = (
    "Install one on the host and set ansible_python_interpreter to its path, or set ansible_python_interpreter to %s: then"
    " npuops.ascend.install installs one" % INTERPRETER
)
_OURS_IS_MISSING = (
    "The installation, which adds it from npu_node_agent_image, has not completed on this host. Run npuops.ascend.install"
)


def explain(result: Mapping[str, Any]) -> str | None:
    """Why a module returned no result of its own, as a sentence, from Ansible's ``result`` (a dict); None if it did."""
    message, output = str(result.get("msg") or ""), str(result.get("module_stderr") or "")
    if INTERPRETER in output + message and (result.get("rc") == 127 or "not found" in output + message):
        return "its Python is not installed yet (%s). %s" % (_last_line(output) or message.rstrip("."), _OURS_IS_MISSING)
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
