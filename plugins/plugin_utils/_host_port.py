# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host of a maintenance through the connection of an Ansible task; the port that _cycle_host describes.

Private to npuops.ascend: no API, may change without notice.
"""

from __future__ import annotations

import contextlib
import signal
import time

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible_collections.npuops.ascend.plugins.module_utils import _python_trouble
from ansible_collections.npuops.ascend.plugins.module_utils._cycle_host import HostUnreachable
from ansible_collections.npuops.ascend.plugins.module_utils._errors import NpuError, one_line

# Seconds for one call. The record's heartbeat must not get too old meanwhile.
LIMIT = 60
# How a module's process ends when its host goes down: by a signal, as a shell tells it or as Python does.
_CUT_SHORT = (255, 137, 143, -9, -15)


class HostPort:
    def __init__(self, action, task_vars, root, library_path=None):
        """``action``: the ActionBase whose connection is used; ``root``: the directory with the driver's links."""
        self._action, self._task_vars = action, task_vars
        self._root, self._library_path = root, library_path

    def view(self, wait=None):
        return self._boot(state="view", wait=wait)["view"]

    def rebooted(self, boot_id, generation, release, refuse_held):
        result = self._boot(
            state="rebooted", boot_id=boot_id, generation=generation, release=release, refuse_held=refuse_held
        )
        if result["queued"]:
            # A connection that is kept open would hang when its other end is gone.
            self._reset()
        return result

    def confirmed(self, generation, release):
        self._boot(state="confirmed", generation=generation, release=release)

    def withdrawn(self, generation):
        self._boot(state="withdrawn", generation=generation)

    def validate(self, version):
        # Until it is confirmed, a new driver is on trial. That the right one is loaded, the cycle knows from the view.
        arguments = {"source": "image", "root": self._root, "fail": False, "trial": True}
        if version:
            arguments["version"] = version
        if self._library_path:
            arguments["library_path"] = self._library_path
        return self._call("npuops.ascend.npu_validate", arguments)

    def _boot(self, **arguments):
        arguments = {name: value for name, value in arguments.items() if value is not None}
        return self._call("npuops.ascend.npu_boot", dict(arguments, root=self._root))

    def _call(self, module, arguments):
        """The module's result. Raises HostUnreachable, or NpuError with what the module says."""
        try:
            with _limit(LIMIT):
                result = self._action._execute_module(  # noqa: SLF001
                    module_name=module, module_args=arguments, task_vars=self._task_vars
                )
        except (AnsibleConnectionFailure, _TimeIsUp) as exc:
            self._reset()
            raise HostUnreachable(one_line(exc))
        if result.get("unreachable") or ("module_stdout" in result and result.get("rc") in _CUT_SHORT):
            self._reset()
            raise HostUnreachable(one_line(result.get("msg") or "the connection ended"))
        if result.get("failed"):
            text = _python_trouble.explain(result) or result.get("msg") or "%s failed" % module
            raise NpuError(text)
        return result

    def _reset(self):
        with contextlib.suppress(AnsibleError, AttributeError):
            self._action._connection.reset()  # noqa: SLF001


class _TimeIsUp(Exception):
    pass


@contextlib.contextmanager
def _limit(seconds):
    """Raise _TimeIsUp after ``seconds``: a connection to a host that hangs ends by itself only after many minutes.

    An alarm that was set before (the task's own timeout) goes on afterwards.
    """

    def on_alarm(_signum, _frame):
        raise _TimeIsUp("no answer within %d s" % seconds)

    started, handler = time.monotonic(), signal.signal(signal.SIGALRM, on_alarm)
    left = signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, handler)
        if left:
            signal.alarm(max(1, left - int(time.monotonic() - started)))
