# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An action that tidies up when its run is interrupted.

ansible-core ends a worker on Ctrl-C and on SIGTERM without an exception, so that no finally would be reached. And a worker whose
Ansible was killed would go on alone.
"""

from __future__ import annotations

import os
import signal
import time
from types import TracebackType

from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.clock import Clock

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SLICE = 0.2  # seconds


class Interruptible(Clock):
    """A clock that notices an interruption in its pauses, as a context. It raises SystemExit there, once: cleanup may also pause.

    Not in the middle of a request: a run that creates a pod and does not wait for the answer would not know that the pod exists.
    """

    def __init__(self) -> None:
        super().__init__()
        self._signal = 0
        self._over = False
        self._parent = os.getppid()

    def __enter__(self) -> Interruptible:
        self._before = [signal.signal(number, self._note) for number in _SIGNALS]
        return self

    def __exit__(self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None) -> None:
        for number, handler in zip(_SIGNALS, self._before):
            signal.signal(number, handler)
        if error is None and self._signal:
            raise SystemExit(128 + self._signal)

    def _note(self, number: int, _frame: object) -> None:
        self._signal = number

    def sleep(self, seconds: float) -> None:  # type: ignore[override]
        """Sleep in slices: Python goes on with a sleep after a signal."""
        end = self.monotonic() + seconds
        while True:
            if not self._over and (self._signal or os.getppid() != self._parent):
                self._over = True
                raise SystemExit(128 + (self._signal or signal.SIGHUP))
            left = end - self.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, _SLICE))
