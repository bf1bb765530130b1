# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the flags of a device plugin that is adopted ask for, and whether ours is configured to do the same."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import valid_settings

# Go takes one dash or two, and a boolean flag alone means true. Of the others, the value may be the next word.
_FLAG = re.compile(r"(?<![\w-])--?([A-Za-z][A-Za-z0-9-]{0,63})(?:=([^\s;&|\"']{0,64}))?(?=[\s;&|\"']|\Z)")
_WORDY = re.compile(r"(?<![\w-])(--?(?:shareDevCount|hotReset))\s+(?=[0-9])")
_LONGEST = 8192
_RESETS = {"0": "inference", "2": "training-offline"}


def of(daemonset: Object) -> dict[str, str]:
    """{flag: value} of its containers; a flag without a value is ``true``."""
    words: list[str] = []
    for container in daemonset["spec"]["template"]["spec"].get("containers") or []:
        words += [*(container.get("command") or []), *(container.get("args") or [])]
    text = _WORDY.sub(r"\1=", " ".join(map(str, words))[:_LONGEST])
    # -c is that of the shell which starts it.
    return {found[1]: "true" if found[2] is None else found[2] for found in _FLAG.finditer(text) if found[1] != "c"}


def conflicts(daemonset: Object, settings: Mapping[str, Any]) -> list[str]:
    """How ours would differ, as sentences. ``settings``: of the role, by their names without the prefix."""
    flags = of(daemonset)
    try:
        own = valid_settings.settings("npu_device_plugin", settings)
    except NpuError:
        return []  # preflight tells what is wrong with them
    told = []
    wanted: list[tuple[str, Any, Any]] = [
        ("volcano", flags.get("volcanoType") == "true", own["volcano"]),
        (
            "share_count",
            int(flags["shareDevCount"]) if re.fullmatch("[0-9]{1,6}", flags.get("shareDevCount", "")) else 1,
            own["share_count"],
        ),
        ("hot_reset", _RESETS.get(flags.get("hotReset", ""), "disabled"), own["hot_reset"]),
    ]
    for name, theirs, ours in wanted:
        if theirs != ours:
            told.append(
                "it runs with what npu_device_plugin_%s: %s does, and npu_device_plugin_%s is %s. Set it alike, and change it"
                " after the adoption if you want to" % (name, _yaml(theirs), name, _yaml(ours))
            )
    if flags.get("presetVirtualDevice") == "false":
        told.append("it divides chips while pods start (-presetVirtualDevice=false), which npuops.ascend does not support")
    if flags.get("use310PMixedInsert") == "true":
        told.append("it serves mixed 310P cards (-use310PMixedInsert=true), which npuops.ascend does not support")
    return told


def _yaml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
