# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The warnings of a module that ran on many hosts, each once with its hosts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import one_line, printable
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.and_more import and_more

# No module of ours has more. A host may answer anything.
_MOST = 5
_LONGEST = 1000


def take(answers: Mapping[str, dict[str, Any]]) -> list[str]:
    """Remove the warnings from the answers by host, and return them for people."""
    hosts: dict[str, list[str]] = {}
    for name, answer in answers.items():
        answer.pop("deprecations", None)
        warnings = answer.pop("warnings", None)
        for warning in warnings[:_MOST] if isinstance(warnings, list) else ():
            hosts.setdefault(_text(warning), []).append(name)
    return ["%s: %s" % (and_more(list(dict.fromkeys(names))), text) for text, names in hosts.items()]


def _text(warning: object) -> str:
    # In ansible-core 2.19 and later, it is an object with an event, which has a message.
    return printable(one_line(getattr(getattr(warning, "event", None), "msg", warning)), _LONGEST)
