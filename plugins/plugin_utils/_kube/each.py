# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Something done to each of many objects that do not depend on each other: one that fails does not stop the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError


class AllOf:
    """``results``: what came of those that changed, in order; ``failed``: why those failed that did, by name."""

    def __init__(self) -> None:
        self.results: list[Any] = []
        self.failed: dict[str, NpuError] = {}
        self._done: list[str] = []
        self._said: dict[str, list[str]] = {}
        self._details: dict[str, Any] = {}
        self._outage = False

    def do(self, name: str, act: Callable[..., Any], *arguments: Any) -> bool:
        """Call ``act(*arguments)``, unless an earlier call found that there is no server any more. False when it failed."""
        if self._outage:
            self._fail(name, NpuError("not tried any more"))
            return False
        try:
            result = act(*arguments)
        except NpuError as exc:
            self._outage = getattr(exc, "outage", False)
            self._details = self._details or exc.details
            self._fail(name, exc)
            return False
        if result:
            self.results.append(result)
            self._done.append(name)
        return True

    def _fail(self, name: str, why: NpuError) -> None:
        self.failed[name] = why
        self._said.setdefault(why.message, []).append(name)

    def check(self) -> None:
        """Raise NpuError with all that failed; its details say what was done all the same."""
        if not self.failed:
            return
        lines = ["%s: %s" % (", ".join(names), message) for message, names in self._said.items()]
        if len(self.failed) > 1 or self._done:
            lines.insert(0, "%d failed, %d done:" % (len(self.failed), len(self._done)))
        raise NpuError("\n".join(lines), **dict(self._details, changed=bool(self._done), done=list(self._done)))
